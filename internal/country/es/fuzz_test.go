package es_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/country/es"
	"tributary/internal/fault"
	"tributary/internal/mutate"
)

// seeds are a call, an answer and a list.
func seeds(f *testing.F) {
	f.Helper()
	o := openFor(f, patient(0, 1), f.TempDir())
	d := cases()[0].Draft
	filing, err := o.channel.Prepare(d)
	if err != nil {
		f.Fatal(err)
	}
	call := es.Envelope(supplier, nif, true, record(f, filing))
	_, answer := o.post(call, credentials())
	f.Add(call)
	f.Add([]byte(answer))
	f.Add([]byte(soapFault("Client", "Codigo[4102].x")))
	f.Add([]byte("<!DOCTYPE a><a/>"))
	f.Add([]byte(strings.Repeat("<a>", 40)))
}

// FuzzAnswers: whatever comes from outside is an answer or a list of AEAT's own
// namespaces, or refused; never both, and never with a document type.
func FuzzAnswers(f *testing.F) {
	seeds(f)
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, source []byte) {
		answer, list := es.ReadAnswer(source), es.ReadList(source)
		if answer == nil && list == nil {
			t.Error("it is read as an answer and as a list")
		}
		if (answer == nil || list == nil) && (!bytes.Contains(source, []byte("schemas.xmlsoap.org/soap/envelope/")) ||
			doctype(source)) {
			t.Errorf("it is believed without an envelope, or with a document type: %q", source)
		}
	})
}

// doctype reports whether the standard library sees a directive.
func doctype(source []byte) bool {
	dec := xml.NewDecoder(bytes.NewReader(source))
	for {
		token, err := dec.Token()
		if err != nil {
			return false
		}
		if _, ok := token.(xml.Directive); ok {
			return true
		}
	}
}

// FuzzPrepare: any texts give well-formed XML that the double reads, or faults.
func FuzzPrepare(f *testing.F) {
	f.Add("A-1", "Acme", "Café", "A28015865", "ES")
	f.Add("]]>", "<b>&amp;", "\x00\u202e\ufffe", "12-34", "US")
	f.Add("1", "x", "y", "DE111111125", "DE")
	ch, err := es.Pack().Connect(country.Endpoint{BaseURL: "http://unused", HTTP: http.DefaultClient})
	if err != nil {
		f.Fatal(err)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, number, name, item, tax, from string) {
		if number == "" || name == "" || item == "" {
			return
		}
		d := draft(number, business(name, from, tax), line(item, 1210, "21"))
		filing, err := ch.Prepare(d)
		var known *fault.Error
		if errors.As(err, &known) && known.Kind == fault.Invalid {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, filing.Report)
		if _, ok := es.RecordOf(filing.Report); !ok {
			t.Error("no record in the report")
		}
	})
}

func wellFormed(t *testing.T, text []byte) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(text))
	for {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
}
