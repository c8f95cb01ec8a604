package api

import (
	"bytes"
	"mime"
	"net/http"
	"slices"
	"strings"

	"tributary/internal/fault"
	"tributary/internal/received"
	"tributary/internal/strictjson"
	"tributary/internal/transaction"
)

// receivedMedia are the content types of documents that others sent, and how their bytes begin; "" as they like. JSON
// is none of them: no document of any country that is read is written in it.
func receivedMedia() []receivedType {
	return []receivedType{
		{"application/xml", received.XML, "<", "UBL, CII, FatturaPA, FA(3), NAV InvoiceData, CFDI"},
		{"application/pdf", received.PDF, "%PDF-", "Factur-X, ZUGFeRD"},
		{"application/pkcs7-mime", received.Signed, "", "FatturaPA, signed"},
	}
}

type receivedType struct {
	name    string
	media   received.Media
	begins  string
	formats string // that are read of it, for people
}

// receive takes a document that somebody sent to a company of the client.
func (a *API) receive(c *call) error {
	q := c.query()
	if err := q.err(); err != nil {
		return err
	}
	types := receivedMedia()
	name, _, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if name == "text/xml" {
		name = "application/xml" // its older name
	}
	at := slices.IndexFunc(types, func(t receivedType) bool { return t.name == name })
	if err != nil || at < 0 {
		var names []string
		for _, t := range types {
			names = append(names, t.name+" ("+t.formats+")")
		}
		what := "Content-Type must be one of " + strings.Join(names, ", ")
		return fault.New(fault.MediaType, "%s", what).
			With(fault.Fault{Code: fault.MediaTypeUnsupported, Type: fault.General, Message: what})
	}
	body, err := c.bytesUpTo(received.BytesMax)
	if err != nil {
		return err
	}
	if err := types[at].check(body); err != nil {
		return err
	}
	id, _, err := a.cfg.Received.Take(c.Context(), received.Arrival{Scope: c.caller.ClientID, Live: c.caller.Live,
		Media: types[at].media, Bytes: body, Source: received.Upload})
	if err != nil {
		return err
	}
	return c.answer(http.StatusAccepted, operationAnswer{id})
}

// respond answers a received document in the name of the company that received it.
func (a *API) respond(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	said, err := readResponse(body)
	if err != nil {
		return err
	}
	answer, err := a.cfg.Received.Answered(c.Context(), c.caller.ClientID, c.PathValue("operation_id"))
	if err != nil {
		return err
	}
	answer.Status, answer.Reason, answer.Note = said.Status, said.Reason, said.Note
	id, err := a.cfg.Transactions.Answer(c.Context(), c.actingAs(), answer)
	if err != nil {
		return err
	}
	return c.answer(http.StatusAccepted, operationAnswer{id})
}

// Limits of an answer, in characters.
const (
	responseReasonMax = 20
	responseNoteMax   = 500
)

// readResponse reads the shape; what a country takes is its own matter.
func readResponse(body []byte) (in transaction.Answer, err error) {
	r := &strictjson.Reader{}
	r.Open(body, bodyBytesMax)
	status := strictjson.Absent
	r.Body(func(name string) {
		switch name {
		case "status":
			if status = r.Line(&in.Status, responseReasonMax); status == strictjson.Taken && !slices.Contains(transaction.AnswerStatuses(), in.Status) {
				r.Refuse(fault.FieldNotValid, "must be one of %s", strings.Join(transaction.AnswerStatuses(), ", "))
			}
		case "reason":
			r.Line(&in.Reason, responseReasonMax)
		case "note":
			r.Lines(&in.Note, responseNoteMax)
		default:
			r.Unknown()
		}
	})
	if status == strictjson.Absent {
		r.Missing("status")
	}
	if err := r.Err(); err != nil {
		return in, err
	}
	return in, r.Faults.Err("the response")
}

// check refuses what is plainly not what its type says; whether it is a document is found when it is read.
func (t receivedType) check(body []byte) error {
	begin := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\uFEFF")), " \t\r\n")
	if len(begin) > 0 && (bytes.HasPrefix(begin, []byte(t.begins)) || t.media == received.XML && wide(body)) {
		return nil
	}
	what := "the body is not " + t.name
	if len(begin) == 0 {
		what = "the body is empty"
	}
	return fault.New(fault.Invalid, "%s", what).With(fault.Fault{Code: fault.FieldNotValid, Type: fault.Validation, Message: what})
}

// wide reports whether a text is in UTF-16, which readers refuse by their own words.
func wide(body []byte) bool {
	return bytes.HasPrefix(body, []byte("\xff\xfe")) || bytes.HasPrefix(body, []byte("\xfe\xff"))
}
