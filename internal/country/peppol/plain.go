package peppol

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"tributary/internal/country"
	"tributary/internal/fault"
)

// plain posts the document in its envelope to an address, for access points
// whose interface is no more than that.
//
// Failure policy: nobody can be asked what became of a document, so one whose
// answer was lost is never posted again by the program: a person decides.
type plain struct{ at country.Endpoint }

func (plain) class() country.Class { return country.ByNothing }

func (p plain) submit(ctx context.Context, m message) (country.Receipt, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.at.BaseURL, bytes.NewReader(m.document(m.report, m.to)))
	if err != nil {
		return country.Receipt{}, fmt.Errorf("%w: %w", country.ErrNotTaken, err)
	}
	r.Header.Set("Content-Type", "application/xml")
	r.Header.Set("X-SBDH-Instance-ID", m.Instance)
	if m.token != "" {
		r.Header.Set("Authorization", "Bearer "+m.token)
	}
	reply, err := country.Exchange(p.at.HTTP, r, answerMax)
	if err != nil {
		return country.Receipt{}, err
	}
	if reply.Status/100 == 2 && (bytes.HasPrefix(bytes.ToLower(bytes.TrimSpace(reply.Body)), []byte("<!doctype")) ||
		strings.Contains(reply.Header.Get("Content-Type"), "html")) {
		return country.Receipt{}, fmt.Errorf("the access point answered %d with a page for people", reply.Status)
	}
	switch reply.Status {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		out := country.Receipt{Outcome: country.Accepted, AuthorityID1: m.Instance, SHA256: m.sha256, Raw: reply.Body,
			Document: reply.Body, Format: "JSON"}
		if !bytes.HasPrefix(bytes.TrimSpace(reply.Body), []byte("{")) {
			out.Document = fmt.Appendf(nil, `{"sbdhInstanceIdentifier":%q,"status":%d}`, m.Instance, reply.Status)
		}
		return out, nil
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity:
		return country.Receipt{Outcome: country.Rejected, Raw: reply.Body,
			Faults: []fault.Fault{refused("the access point did not take the document: %s", string(reply.Body))}}, nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return country.Receipt{}, country.Unidentified(errors.New("the access point refuses the token"))
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return country.Receipt{}, fmt.Errorf("%w: %w: nothing takes documents at the access point's address",
			country.ErrNotTaken, country.ErrNoAddress)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if reply.Status == http.StatusServiceUnavailable && reply.Header.Get("Retry-After") == "" {
			break // a proxy's, which may have passed the document on; nobody can be asked
		}
		return country.Receipt{Raw: reply.Body}.Untaken("the access point is not available"), nil
	}
	return country.Receipt{}, fmt.Errorf("the access point answered %d", reply.Status)
}

func (plain) find(context.Context, message) (country.Receipt, error) {
	return country.Receipt{}, errors.New("the access point cannot be asked what it has")
}
