package peppol

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
)

// phoss speaks to phoss-ap 0.12 (https://github.com/phax/phoss-ap, OutboundController).
//
// Its oddities, each of which would send an invoice twice if misread: it sends
// while we wait; 422 with a JSON string means that it kept nothing, with a JSON
// object that it keeps the document and tries again by itself; and it takes a
// second document under an instance identifier that it already has, so nothing
// is handed over again before its status said 404. A field of our own (custom1)
// carries the hash of the document, by which ours is told from another's.
type phoss struct{ at country.Endpoint }

func (phoss) class() country.Class { return country.ByNumber }

const headerToken = "X-Token"

// sendingReport is what submitting answers (Phase4PeppolSendingReport), as far as it is used.
type sendingReport struct {
	Instance string `json:"sbdhInstanceIdentifier"`
	Message  string `json:"as4MessageId"`
	Result   string `json:"sendingResult"`
	Error    string `json:"lookupError"`
	Errors   []struct {
		Description string `json:"description"`
		Detail      string `json:"errorDetail"`
	} `json:"as4ResponseErrors"`
	Success bool `json:"overallSuccess"`
}

// submit hands a document over that the access point does not have. It asks
// before, every time: the one who would deliver it twice is the access point.
func (p phoss) submit(ctx context.Context, m message) (country.Receipt, error) {
	held, err := p.find(ctx, m)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("%w: %w", country.ErrNotTaken, err)
	}
	if held.Outcome != country.Absent {
		held.Duplicate = true
		return held, nil
	}
	return p.hand(ctx, m)
}

func (p phoss) hand(ctx context.Context, m message) (country.Receipt, error) {
	address := p.at.BaseURL + "/api/outbound/submit"
	for _, part := range []string{m.Sender.String(), m.to.String(), schemeDocument + "::" + m.Document,
		schemeProcess + "::" + m.Process, m.Country} {
		address += "/" + url.PathEscape(part)
	}
	reply, err := country.Request{URL: address + "?" + url.Values{"sbdhInstanceID": {m.Instance}, "custom1": {m.sha256}}.Encode(), Header: []string{"Content-Type", "application/xml", headerToken, m.token},
		Body: m.report, BytesMax: answerMax}.Do(ctx, p.at.HTTP)
	if err != nil {
		return country.Receipt{}, err
	}
	var words string
	var report sendingReport
	spoken, told := json.Unmarshal(reply.Body, &words) == nil, json.Unmarshal(reply.Body, &report) == nil
	switch {
	case reply.Status == http.StatusUnauthorized:
		return country.Receipt{}, country.Unidentified(errors.New("the access point refuses the token"))
	case reply.Status == http.StatusNotFound:
		return country.Receipt{}, fmt.Errorf("%w: %w: the access point has sending turned off", country.ErrNotTaken,
			country.ErrNoAddress)
	case reply.Status == http.StatusServiceUnavailable:
		return country.Receipt{Raw: reply.Body}.Untaken("the access point is not available"), nil
	case reply.Status == http.StatusBadRequest && spoken, reply.Status == http.StatusUnprocessableEntity && spoken:
		return country.Receipt{Outcome: country.Rejected, Raw: reply.Body,
			Faults: []fault.Fault{refused("the access point did not take the document: %s", words)}}, nil
	case !told || report.Instance != m.Instance:
		return country.Receipt{}, fmt.Errorf("the access point answered %d with something that is no report of %s",
			reply.Status, m.Instance)
	case reply.Status == http.StatusUnprocessableEntity:
		return country.Receipt{Outcome: country.Pending, Handle: m.Instance, Document: reply.Body, Format: "JSON",
			Raw: reply.Body}, nil
	case reply.Status == http.StatusOK && report.Success:
		return country.Receipt{Outcome: country.Accepted, AuthorityID1: m.Instance, AuthorityID2: report.Message, SHA256: m.sha256,
			Document: reply.Body, Format: "JSON", Raw: reply.Body}, nil
	}
	return country.Receipt{}, fmt.Errorf("the access point answered %d", reply.Status)
}

func refused(format string, words string) fault.Fault {
	return fault.Fault{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: fmt.Sprintf(format, clipped(words))}
}

func clipped(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), textMost)], "")
}

// transmission is the status of a document (OutboundTransactionResponse).
type transmission struct {
	Instance  string `json:"sbdhInstanceID"`
	Status    string `json:"status"`
	Completed string `json:"completedDT"`
	Error     string `json:"errorDetails"`
	MLS       string `json:"mlsStatus"`
	Custom1   string `json:"custom1"`
}

func (p phoss) find(ctx context.Context, m message) (country.Receipt, error) {
	reply, err := country.Request{Method: http.MethodGet,
		URL:    p.at.BaseURL + "/api/outbound/status/" + url.PathEscape(m.Instance) + "?includeArchive=true",
		Header: []string{headerToken, m.token}, BytesMax: answerMax}.Do(ctx, p.at.HTTP)
	if err != nil {
		return country.Receipt{}, err
	}
	var t transmission
	switch {
	case reply.Status == http.StatusUnauthorized:
		return country.Receipt{}, country.Unidentified(errors.New("the access point refuses the token"))
	case reply.Status == http.StatusNotFound && len(bytes.TrimSpace(reply.Body)) == 0:
		return country.Receipt{Outcome: country.Absent}, nil // a page of a proxy in between has a body
	case reply.Status != http.StatusOK:
		return country.Receipt{}, fmt.Errorf("the access point answered %d when it was asked for %s", reply.Status, m.Instance)
	}
	if err := json.Unmarshal(reply.Body, &t); err != nil || t.Instance != m.Instance {
		return country.Receipt{}, fmt.Errorf("the access point answered something that is no status of %s", m.Instance)
	}
	return t.receipt(m, reply.Body)
}

// receipt says what a status means.
func (t transmission) receipt(m message, raw []byte) (country.Receipt, error) {
	out := country.Receipt{AuthorityID1: m.Instance, SHA256: t.Custom1, Handle: m.Instance, Document: raw, Format: "JSON",
		Raw: raw, News: t.news(m.Instance)}
	if at, err := time.Parse(time.RFC3339, t.Completed); err == nil {
		out.At = at
	}
	switch t.Status {
	case "sent":
		out.Outcome = country.Accepted // its AS4 message id was in an answer that got lost, or in none
		out.Faults = []fault.Fault{fault.Warn("tax_authority_id_2", fault.AuthorityIDUnavailable,
			"is not known: the access point's status does not say it")}
	case "pending", "sending", "failed": // failed: it is tried again
		out.Outcome, out.At = country.Pending, time.Time{}
	case "rejected", "permanently_failed":
		out.Outcome = country.Rejected
		out.Faults = []fault.Fault{refused("the access point could not deliver the document: %s", t.Error)}
	default:
		return country.Receipt{}, fmt.Errorf("the access point says that %s is %q, which is not known", m.Instance, t.Status)
	}
	return out, nil
}

// news is the receiver's message level status (Peppol MLS 1.0), where one came.
// The access point does not say when it did: the time is that of the sending.
func (t transmission) news(instance string) []country.News {
	at, _ := time.Parse(time.RFC3339, t.Completed)
	n := country.News{Key: "mls/" + instance + "/" + t.MLS, Source: country.FromAccessPoint, Severity: country.Info, At: at}
	switch t.MLS {
	case "received_ap":
		n.Code, n.Name, n.Message = "AP", "Accepted", "the receiver's access point has delivered the invoice"
	case "received_ab":
		n.Code, n.Name, n.Message = "AB", "Acknowledged",
			"the receiver's access point has passed the invoice on, and cannot confirm that it arrived"
	case "received_re":
		n.Code, n.Name, n.Severity = "RE", "Rejected", country.Problem
		n.Message = "the receiver's access point has rejected the invoice; the buyer does not have it"
	default:
		return nil
	}
	return []country.News{n}
}
