package fr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
)

// Paths and sizes of the Flow Service (XP Z12-013, annex A).
const (
	pathFlows      = "/v1/flows"
	pathSearch     = "/v1/flows/search"
	pathHealth     = "/v1/healthcheck"
	answerBytesMax = 4 << 20
	uploadBytesMax = 100 << 20
	pageMost       = 100
	pagesMax       = 50
	waitMost       = 15 * time.Minute
)

// Values of flows.
const (
	ackPending = "Pending"
	ackOk      = "Ok"
	ackError   = "Error"

	flowInvoice  = "CustomerInvoice"
	flowStatus   = "CustomerInvoiceLC"
	flowPurchase = "SupplierInvoice" // one that somebody sent to the company
	directionIn  = "In"
	directionOut = "Out"

	reasonExisting = "AlreadyExistingFlow"
)

// flowInfo is what a platform is told of a flow beside its file.
type flowInfo struct {
	Syntax   string `json:"flowSyntax"`
	Name     string `json:"name"`
	Profile  string `json:"flowProfile,omitempty"`
	Rule     string `json:"processingRule"`
	Tracking string `json:"trackingId"`
	SHA256   string `json:"sha256"`
}

// flow is what it says of one.
type flow struct {
	ID        string    `json:"flowId"`
	Tracking  string    `json:"trackingId"`
	Submitted time.Time `json:"submittedAt"`
	Updated   time.Time `json:"updatedAt"`
	Type      string    `json:"flowType"`
	Direction string    `json:"flowDirection"`
	Syntax    string    `json:"flowSyntax"`
	SHA256    string    `json:"sha256"`
	Ack       struct {
		Status  string   `json:"status"`
		Details []detail `json:"details"`
	} `json:"acknowledgement"`
}

type detail struct {
	Level   string `json:"level"`
	Item    string `json:"item"`
	Code    string `json:"reasonCode"`
	Message string `json:"reasonMessage"`
}

// because reports whether a flow was refused for a reason.
func (f *flow) because(code string) bool {
	for _, d := range f.Ack.Details {
		if d.Code == code {
			return true
		}
	}
	return false
}

// refusal is the platform's own word about a call, with a status that refuses.
type refusal struct {
	status     int
	code, text string
	wait       time.Duration
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the platform refuses the call: %d %s %s", r.status, r.code, r.text)
}

// limited reports whether the platform takes no more for now.
func (r *refusal) limited() bool { return r.status == http.StatusTooManyRequests }

// about reports whether a refusal is about what was sent: the same bytes would be
// refused again.
func (r *refusal) about() bool {
	return r.status == http.StatusBadRequest || r.status == http.StatusRequestEntityTooLarge || r.status == http.StatusUnprocessableEntity
}

// call makes one call for a company. A token that the platform does not take any
// more is fetched anew once: it had read nothing of the call.
func (ch *channel) call(ctx context.Context, siren string, q country.Request, c country.Credentials) (country.Reply, error) {
	q.BytesMax = max(q.BytesMax, answerBytesMax)
	header := q.Header
	for attempt := 0; ; attempt++ {
		token, err := ch.token(ctx, c, attempt > 0)
		if err != nil {
			return country.Reply{}, err
		}
		q.Header = append(header[:len(header):len(header)], "Authorization", "Bearer "+token, "Request-Id", uuid.NewString(), "Organization-Id", siren)
		reply, err := q.Do(ctx, ch.at.HTTP)
		switch {
		case err != nil:
			return reply, err
		case reply.Status == http.StatusUnauthorized && attempt == 0:
			continue
		case reply.Status == http.StatusUnauthorized:
			return reply, ch.unwelcome(c, "the platform does not take its own token")
		case reply.Status/100 == 2:
			return reply, nil
		}
		return reply, ch.refused(reply, c)
	}
}

// refused is an answer that refuses: the platform's own where it is one, else
// somebody's page, which says nothing.
func (ch *channel) refused(reply country.Reply, c country.Credentials) error {
	var said struct {
		Code    string `json:"errorCode"`
		Message string `json:"errorMessage"`
	}
	if json.Unmarshal(reply.Body, &said) != nil || said.Code == "" || reply.Status >= 500 {
		return fmt.Errorf("the platform answered with status %d: %s", reply.Status, clip(reply.Body))
	}
	if reply.Status == http.StatusForbidden {
		return ch.unwelcome(c, said.Code+" "+said.Message)
	}
	return &refusal{status: reply.Status, code: said.Code, text: said.Message, wait: waitOf(reply.Header)}
}

// waitOf is the pause that a limit asks for, within reason.
func waitOf(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 1 || time.Duration(seconds) > waitMost/time.Second {
		return time.Minute
	}
	return time.Duration(seconds) * time.Second
}

func clip(body []byte) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(body[:min(len(body), 300)]), "?")), " ")
}

// read understands an answer in JSON.
func read(reply country.Reply, into any) error {
	if err := json.Unmarshal(reply.Body, into); err != nil {
		return fmt.Errorf("the answer is not the platform's: %s", clip(reply.Body))
	}
	return nil
}

// submit hands a file over under our tracking id.
func (ch *channel) submit(ctx context.Context, f country.Filing, c country.Credentials) (got flow, raw []byte, err error) {
	var x extra
	if err := f.Carried(&x); err != nil {
		return got, nil, fmt.Errorf("%w: %w", country.ErrNotTaken, err)
	}
	info := flowInfo{Syntax: x.Syntax, Name: x.Name, Rule: x.Rule, Tracking: f.DedupeKey, SHA256: f.SHA256}
	if x.Syntax == syntaxCII || x.Syntax == syntaxUBL {
		info.Profile = "CIUS"
	}
	body, kind, err := parts(info, f.Report)
	if err != nil {
		return got, nil, fmt.Errorf("%w: %w", country.ErrNotTaken, err)
	}
	reply, err := ch.call(ctx, f.Supplier, country.Request{URL: ch.base + pathFlows, Body: body, Header: []string{"Content-Type", kind}}, c)
	if err != nil {
		return got, reply.Body, err
	}
	if err := read(reply, &got); err != nil {
		return got, reply.Body, err
	}
	if reply.Status != http.StatusAccepted || got.ID == "" || got.Tracking != f.DedupeKey {
		return got, reply.Body, fmt.Errorf("the answer is about another flow: status %d, trackingId %q", reply.Status, got.Tracking)
	}
	return got, reply.Body, nil
}

// parts is the form of a submission: what it is, and the file.
func parts(info flowInfo, file []byte) (body []byte, kind string, err error) {
	text, err := json.Marshal(info)
	if err != nil {
		return nil, "", fmt.Errorf("writing flowInfo: %w", err)
	}
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for _, p := range []struct {
		disposition, kind string
		content           []byte
	}{
		{`form-data; name="flowInfo"`, "application/json", text},
		{fmt.Sprintf(`form-data; name="file"; filename=%q`, info.Name), "application/xml", file},
	} {
		to, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {p.disposition}, "Content-Type": {p.kind}})
		if err == nil {
			_, err = to.Write(p.content)
		}
		if err != nil {
			return nil, "", fmt.Errorf("writing the form: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", fmt.Errorf("writing the form: %w", err)
	}
	return out.Bytes(), w.FormDataContentType(), nil
}

// condition says which flows are looked for.
type condition struct {
	Tracking  string     `json:"trackingId,omitempty"`
	After     *time.Time `json:"updatedAfter,omitempty"`
	Before    *time.Time `json:"updatedBefore,omitempty"`
	Type      []string   `json:"flowType,omitempty"`
	Direction []string   `json:"flowDirection,omitempty"`
}

// search is one page of flows.
func (ch *channel) search(ctx context.Context, siren string, where condition, c country.Credentials) ([]flow, error) {
	text, err := json.Marshal(map[string]any{"limit": pageMost, "where": where})
	if err != nil {
		return nil, fmt.Errorf("writing a search: %w", err)
	}
	reply, err := ch.call(ctx, siren, country.Request{URL: ch.base + pathSearch, Body: text, Header: []string{"Content-Type", "application/json"}}, c)
	if err != nil {
		return nil, err
	}
	var got struct {
		Results []flow `json:"results"`
	}
	if err := read(reply, &got); err != nil {
		return nil, err
	}
	if got.Results == nil {
		return nil, errors.New("the answer to a search has no results")
	}
	for i := range got.Results {
		f := &got.Results[i]
		if f.ID == "" || where.Tracking != "" && f.Tracking != where.Tracking || len(where.Type) == 1 && f.Type != where.Type[0] ||
			where.After != nil && f.Updated.Before(*where.After) {
			return nil, fmt.Errorf("the answer to a search is about other flows: %q", f.ID)
		}
	}
	return got.Results, nil
}

// metadata is what the platform says of a flow of ours.
func (ch *channel) metadata(ctx context.Context, f country.Filing, id string, c country.Credentials) (got flow, raw []byte, err error) {
	reply, err := ch.call(ctx, f.Supplier, country.Request{Method: http.MethodGet, URL: ch.base + pathFlows + "/" + url.PathEscape(id) + "?docType=Metadata"}, c)
	if err != nil {
		return got, nil, err
	}
	if err := read(reply, &got); err != nil {
		return got, nil, err
	}
	if got.ID != id || got.Tracking != f.DedupeKey {
		return got, nil, fmt.Errorf("the answer is about the flow %q, not %s", got.ID, id)
	}
	return got, reply.Body, nil
}

// original is the file of a flow.
func (ch *channel) original(ctx context.Context, siren, id string, c country.Credentials) ([]byte, error) {
	return ch.file(ctx, siren, id, uploadBytesMax, c)
}

func (ch *channel) file(ctx context.Context, siren, id string, bytesMax int64, c country.Credentials) ([]byte, error) {
	reply, err := ch.call(ctx, siren, country.Request{Method: http.MethodGet, BytesMax: bytesMax,
		URL: ch.base + pathFlows + "/" + url.PathEscape(id) + "?docType=Original"}, c)
	return reply.Body, err
}
