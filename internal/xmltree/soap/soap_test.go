package soap_test

import (
	"errors"
	"strings"
	"testing"

	"tributary/internal/mutate"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

func TestEnvelopesOfBothVersionsAreWrittenAndRead(t *testing.T) {
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		w := xmltree.NewWriter(100)
		w.Declare()
		soap.Message{Version: v, Spaces: []string{"xmlns:q", "urn:q"}, Body: func(w *xmltree.Writer) {
			w.Start("q:Ask")
			w.Leaf("q:Number", "1 & 2")
			w.End()
		}}.WriteTo(w)
		m, err := soap.Read(w.Bytes(), xmltree.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if m.Version != v || m.Header == nil || !m.Content.Is("urn:q", "Ask") || m.Content.Value("Number") != "1 & 2" ||
			m.Fault != nil {
			t.Errorf("version %d: %+v", v, m)
		}
	}
	if a, b := soap.V11.ContentType("x"), soap.V12.ContentType("x"); a != "text/xml; charset=utf-8" ||
		b != `application/soap+xml; charset=utf-8; action="x"` {
		t.Errorf("content types %s and %s", a, b)
	}
}

func TestFaultsAreDataInBothVersions(t *testing.T) {
	detail := xmltree.New("detail")
	detail.Leaf("code", "4102")
	for v, f := range map[soap.Version]*soap.Fault{
		soap.V11: {Code: "Client", Subcode: "Authentication", Reason: "Código <1>", Actor: "urn:actor", Detail: detail},
		soap.V12: {Code: "Sender", Reason: "Código <1>", Actor: "urn:actor",
			Detail: xmltree.New("soapenv:Detail", "xmlns:soapenv", soap.Space12)},
	} {
		m, err := soap.Read(f.Bytes(v), xmltree.Limits{})
		if err != nil || m.Fault == nil {
			t.Fatalf("version %d: %+v, %v", v, m, err)
		}
		got := m.Fault
		if got.Code != f.Code || got.Subcode != f.Subcode || got.Reason != f.Reason || got.Actor != f.Actor ||
			got.Detail == nil {
			t.Errorf("version %d: %+v", v, got)
		}
		if v == soap.V11 && got.Detail.Value("code") != "4102" {
			t.Errorf("detail is %+v", got.Detail)
		}
	}
}

func TestWhatIsNoEnvelopeIsAnError(t *testing.T) {
	const open, end = `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/">`, `</e:Envelope>`
	for name, source := range map[string]string{
		"a page":           "<html><body>busy</body></html>",
		"another version":  `<e:Envelope xmlns:e="urn:e"><e:Body/></e:Envelope>`,
		"no body":          open + "<e:Header/>" + end,
		"body elsewhere":   open + `<Body/>` + end,
		"several elements": open + "<e:Body><a/><b/></e:Body>" + end,
		"two bodies":       open + "<e:Body/><e:Body/>" + end,
		"more in 1.2":      strings.ReplaceAll(open, soap.Space11, soap.Space12) + "<e:Body/><x/>" + end,
	} {
		if _, err := soap.Read([]byte(source), xmltree.Limits{}); !errors.Is(err, soap.ErrEnvelope) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if m, err := soap.Read([]byte(open+"<e:Body/><x/>"+end), xmltree.Limits{}); err != nil || m.Content != nil {
		t.Errorf("an empty body: %+v, %v", m, err)
	}
	if _, err := soap.Read([]byte(open+"<e:Body><a/>"), xmltree.Limits{}); !errors.Is(err, xmltree.ErrSyntax) {
		t.Errorf("cut short: %v", err)
	}
	if _, err := soap.Read([]byte(open+"<e:Body><a/></e:Body>"+end), xmltree.Limits{Elements: 2}); !errors.Is(err,
		xmltree.ErrLimit) {
		t.Errorf("past the limit: %v", err)
	}
}

func FuzzReadEnvelope(f *testing.F) {
	f.Add((&soap.Fault{Code: "Client", Reason: "x"}).Bytes(soap.V11))
	f.Add((&soap.Fault{Code: "Sender", Reason: "x"}).Bytes(soap.V12))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, source []byte) {
		m, err := soap.Read(source, xmltree.Limits{})
		if err != nil {
			return
		}
		if m.Fault != nil && (m.Content == nil || m.Content.Local != "Fault") || m.Document.Root.Local != "Envelope" {
			t.Fatalf("%+v", m)
		}
	})
}
