package es_test

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/es"
	"tributary/internal/country/identity"
	"tributary/internal/fault"
)

// seeds are a call, an answer and a list.
func seeds(f *testing.F) {
	f.Helper()
	o := openFor(f, es.Patient(0, 1), f.TempDir())
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
	f.Fuzz(func(t *testing.T, source []byte) {
		answer, list := es.ReadAnswer(source), es.ReadList(source)
		if answer == nil && list == nil {
			t.Error("it is read as an answer and as a list")
		}
		if (answer == nil || list == nil) && (!bytes.Contains(source, []byte("schemas.xmlsoap.org/soap/envelope/")) || doctype(source)) {
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

// FuzzElements: what is read has the names that the standard library reads, in
// its order, and every element stands where it says, inside its parent.
func FuzzElements(f *testing.F) {
	seeds(f)
	f.Add([]byte("<a>x<!---->y<b c='d'/> </a>"))
	f.Fuzz(func(t *testing.T, source []byte) {
		all, err := es.Elements(source)
		if err != nil {
			return
		}
		if doctype(source) {
			t.Fatal("a document type is taken")
		}
		var names []xml.Name
		for dec := xml.NewDecoder(bytes.NewReader(source)); ; {
			token, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("taken although %v", err)
			}
			if start, ok := token.(xml.StartElement); ok {
				names = append(names, start.Name)
			}
		}
		if len(names) != len(all) {
			t.Fatalf("%d elements, not %d", len(all), len(names))
		}
		open := []es.Element{{To: len(source)}}
		for i, e := range all {
			open = open[:e.Depth]
			around := open[e.Depth-1]
			if e.Space != names[i].Space || e.Name != names[i].Local || e.Depth > es.DepthMax || e.From < around.From || e.To > around.To || e.From >= e.To {
				t.Fatalf("%+v, but %v within %+v", e, names[i], around)
			}
			if source[e.From] != '<' || source[e.To-1] != '>' {
				t.Fatalf("%+v is %q", e, source[e.From:e.To])
			}
			if strings.TrimSpace(e.Text) != e.Text {
				t.Fatalf("blanks around %q", e.Text)
			}
			open = append(open, e)
		}
	})
}

// FuzzDouble: the double answers every call with XML or a page, and registers
// nothing that it did not accept.
func FuzzDouble(f *testing.F) {
	seeds(f)
	id, err := identity.NewKeeper().Open(credentials().Certificate(), time.Now())
	if err != nil {
		f.Fatal(err)
	}
	leaf := ":" + base64.StdEncoding.EncodeToString(id.Leaf.Raw) + ":"
	f.Fuzz(func(t *testing.T, source []byte) {
		desk, err := country.OpenDesk(t.TempDir(), "ES")
		if err != nil {
			t.Fatal(err)
		}
		defer desk.Close()
		r := httptest.NewRequest(http.MethodPost, es.ServicePath, bytes.NewReader(source))
		r.Header.Set("Client-Cert", leaf)
		w := httptest.NewRecorder()
		es.Patient(0, 1).Simulator(desk).ServeHTTP(w, r)
		wellFormed(t, w.Body.Bytes())
		held, err := desk.Registrations()
		accepted := strings.Count(w.Body.String(), "<sfR:EstadoRegistro>Correcto<") + strings.Count(w.Body.String(), "<sfR:EstadoRegistro>AceptadoConErrores<")
		if err != nil || len(held) > accepted {
			t.Errorf("%d registered, %d accepted, %v", len(held), accepted, err)
		}
	})
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
