package ro

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/xmltree"
)

// Paths, names and sizes of e-Factura.
const (
	path            = "/FCTEL/rest"
	spaceUpload     = "mfp:anaf:dgti:spv:respUploadFisier:v1"
	spaceState      = "mfp:anaf:dgti:efactura:stareMesajFactura:v1"
	spaceErrors     = "mfp:anaf:dgti:efactura:mesajEroriFactuta:v1"
	uploadBytesMax  = 10 << 20
	answerBytesMax  = 1 << 20
	listBytesMax    = 4 << 20
	archiveBytesMax = 32 << 20
)

// refusal is ANAF's own word about a call, with status 200.
type refusal struct{ text string }

func (r *refusal) Error() string { return "ANAF refuses the call: " + r.text }

// limited reports whether a refusal is a limit that was reached.
func (r *refusal) limited() bool {
	said := strings.ToLower(r.text)
	return strings.HasPrefix(said, "s-au facut deja") || strings.Contains(said, "limita")
}

// ungranted reports whether the person lacks the right to act for the company.
func (r *refusal) ungranted() bool {
	said := strings.ToLower(r.text)
	return strings.Contains(said, "nu aveti drept") || strings.Contains(said, "nu exista niciun cif")
}

// meaning is a refusal as an error: of the grant, of a limit, or of the call.
func (r *refusal) meaning() error {
	if r.ungranted() {
		return fmt.Errorf("%w: %w: %w", country.ErrNotTaken, country.ErrCredentials, r)
	}
	return r
}

// call makes one call with the access token. Only status 200 is ANAF's answer: a
// 401 is about the token, a 204 is a limit, and all else is somebody's page.
func (ch *channel) call(ctx context.Context, q country.Request, c country.Credentials) ([]byte, error) {
	token := c.Named[secretAccess]
	if token == "" {
		return nil, fmt.Errorf("%w: %w: nobody has authorized this service at ANAF", country.ErrNotTaken, country.ErrCredentials)
	}
	q.URL = ch.base + q.URL
	q.Header = append(q.Header, "Authorization", "Bearer "+token)
	reply, err := q.Do(ctx, ch.at.HTTP)
	switch {
	case err != nil:
		return nil, err
	case reply.Status == http.StatusUnauthorized:
		return nil, fmt.Errorf("%w: %w: ANAF does not take the access token", country.ErrNotTaken, country.ErrCredentials)
	case reply.Status == http.StatusNoContent:
		return nil, &refusal{"limita de apeluri (204)"}
	case reply.Status != http.StatusOK:
		return nil, fmt.Errorf("ANAF answered with status %d: %s", reply.Status, clip(reply.Body))
	}
	return reply.Body, nil
}

func clip(body []byte) string {
	said := strings.Join(strings.Fields(strings.ToValidUTF8(string(body[:min(len(body), 300)]), "?")), " ")
	return said
}

// header reads an answer whose root is header in a space. A text that is JSON and
// says eroare is a refusal.
func header(body []byte, space string) (*xmltree.Element, error) {
	doc, err := xmltree.Limits{Bytes: answerBytesMax}.Read(body)
	if err != nil {
		if said, ok := eroare(body); ok {
			return nil, (&refusal{said}).meaning()
		}
		return nil, fmt.Errorf("the answer is not ANAF's: %w", err)
	}
	if !doc.Root.Is(space, "header") {
		return nil, fmt.Errorf("the answer is not ANAF's: its root is {%s}%s", doc.Root.Space, doc.Root.Local)
	}
	return doc.Root, nil
}

// eroare is the error of an answer in JSON.
func eroare(body []byte) (string, bool) {
	var said struct {
		Eroare string `json:"eroare"`
	}
	if json.Unmarshal(body, &said) != nil || said.Eroare == "" {
		return "", false
	}
	return said.Eroare, true
}

// errorsOf are the messages of a header.
func errorsOf(h *xmltree.Element, name string) (list []string) {
	for _, e := range h.All(name) {
		list = append(list, e.Attr("errorMessage"))
	}
	return list
}

// upload hands a document over and answers its index.
func (ch *channel) upload(ctx context.Context, f country.Filing, c country.Credentials) (index string, raw []byte, err error) {
	var x extra
	if err := f.Carried(&x); err != nil {
		return "", nil, fmt.Errorf("%w: %w", country.ErrNotTaken, err)
	}
	query := url.Values{"standard": {x.Standard}, "cif": {f.Supplier}}
	if x.Abroad {
		query.Set("extern", "DA")
	}
	if x.Own {
		query.Set("autofactura", "DA")
	}
	service := "/upload?"
	if x.Consumer {
		service = "/uploadb2c?"
	}
	kind := quotaCalls
	if x.Standard == standardAnswer {
		kind = quotaAnswers
	}
	if err := ch.spend(ctx, kind, f.Supplier); err != nil {
		return "", nil, err
	}
	raw, err = ch.call(ctx, country.Request{URL: service + query.Encode(), Body: f.Report, BytesMax: answerBytesMax,
		Header: []string{"Content-Type", "application/xml"}}, c)
	if err != nil {
		return "", raw, err
	}
	h, err := header(raw, spaceUpload)
	if err != nil {
		return "", raw, err
	}
	if h.Attr("ExecutionStatus") == "0" && digits(h.Attr("index_incarcare")) {
		return h.Attr("index_incarcare"), raw, nil
	}
	if said := errorsOf(h, "Errors"); h.Attr("ExecutionStatus") == "1" && len(said) > 0 {
		return "", raw, (&refusal{strings.Join(said, "; ")}).meaning()
	}
	return "", raw, errors.New("ANAF's answer has neither an index nor an error")
}

func digits(text string) bool {
	return text != "" && len(text) <= 20 && strings.Trim(text, "0123456789") == ""
}

// States of an upload.
const (
	stateOK      = "ok"
	stateNOK     = "nok"
	stateWorking = "in prelucrare"
)

// state is what ANAF says of an index, and under what its archive is.
func (ch *channel) state(ctx context.Context, index string, c country.Credentials) (state, archive string, err error) {
	if err := ch.spend(ctx, quotaStates, index); err != nil {
		return "", "", err
	}
	raw, err := ch.call(ctx, country.Request{Method: http.MethodGet, URL: "/stareMesaj?id_incarcare=" + url.QueryEscape(index),
		BytesMax: answerBytesMax}, c)
	if err != nil {
		return "", "", err
	}
	h, err := header(raw, spaceState)
	if err != nil {
		return "", "", err
	}
	if said := errorsOf(h, "Errors"); len(said) > 0 {
		return "", "", (&refusal{strings.Join(said, "; ")}).meaning()
	}
	return h.Attr("stare"), h.Attr("id_descarcare"), nil
}

// message is a line of ANAF's list.
type message struct {
	Created string `json:"data_creare"`
	Index   string `json:"id_solicitare"`
	Type    string `json:"tip"`
	ID      string `json:"id"`
}

// listed is a page of the list.
type listed struct {
	Messages []message `json:"mesaje"`
	Pages    int       `json:"numar_total_pagini"`
	Error    *string   `json:"eroare"`
}

const pagesMax = 40

// Filters of ANAF's list, and what their lines say that they are. Lines of answers are
// said to be received and sent in one text.
const (
	filterSent     = "T"
	filterReceived = "P"
	filterAnswers  = "R"

	typeSent     = "FACTURA TRIMISA"
	typeReceived = "FACTURA PRIMITA"
	typeAnswer   = "MESAJ CUMPARATOR"
)

// sent lists what ANAF has processed of a company's own since an instant, by one
// of its filters. That there is nothing is spelt as an error.
func (ch *channel) sent(ctx context.Context, cif, filter string, since time.Time, c country.Credentials) (all []message, err error) {
	now := ch.now()
	if oldest := now.Add(-60*24*time.Hour + time.Hour); since.Before(oldest) {
		since = oldest
	}
	if since.After(now) {
		since = now.Add(-clocksApart) // it was prepared by a clock that is ahead
	}
	all, _, err = ch.messages(ctx, asking{cif, since, now, filter, pagesMax}, c)
	return all, err
}

// asking is a question for the messages of a company.
type asking struct {
	cif      string
	from, to time.Time
	filter   string
	pages    int // at most
}

// messages reads a list; more: it has more pages.
func (ch *channel) messages(ctx context.Context, a asking, c country.Credentials) (all []message, more bool, err error) {
	for page, pages := 1, 1; page <= pages; page++ {
		query := url.Values{"startTime": {milli(a.from)}, "endTime": {milli(a.to)}, "cif": {a.cif}, "pagina": {fmt.Sprint(page)}, "filtru": {a.filter}}
		if err := ch.spend(ctx, quotaLists, a.cif); err != nil {
			return nil, false, err
		}
		raw, err := ch.call(ctx, country.Request{Method: http.MethodGet, URL: "/listaMesajePaginatieFactura?" + query.Encode(),
			BytesMax: listBytesMax}, c)
		if err != nil {
			return nil, false, err
		}
		var got listed
		if err := json.Unmarshal(raw, &got); err != nil {
			return nil, false, fmt.Errorf("ANAF's list cannot be read: %w", err)
		}
		switch {
		case got.Error != nil && strings.HasPrefix(*got.Error, "Nu exista mesaje"):
			return all, false, nil
		case got.Error != nil:
			return nil, false, (&refusal{*got.Error}).meaning()
		case got.Messages == nil || got.Pages < 1:
			return nil, false, errors.New("ANAF's list has neither messages nor an error")
		}
		all, pages, more = append(all, got.Messages...), min(got.Pages, a.pages), got.Pages > a.pages
	}
	return all, more, nil
}

func milli(t time.Time) string { return fmt.Sprint(t.UnixMilli()) }
