package sdiwire_test

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"tributary/internal/mutate"
	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
)

func TestFileNamesAreThoseOfTheSpecification(t *testing.T) {
	for text, ok := range map[string]bool{
		"IT01234567890_00001.xml": true, "IT01234567890_1.xml": true, "ITHVQWPH73P42H501Y_x0024.xml": true,
		"DE12_A.xml":               true,
		"IT01234567890_000001.xml": false, "IT0123456789_00001.xml": false, "IT01234567890123456_1.xml": false,
		"IT01234567890_00001.xml.p7m": false, "IT01234567890_00001.zip": false, "IT01234567890_.xml": false,
		"it01234567890_00001.xml": false, "IT01234567890_0-001.xml": false, "": false, "DE1_A.xml": false,
	} {
		n, got := sdiwire.ParseName(text)
		if got != ok || ok && n.String() != text {
			t.Errorf("%q: %v %+v", text, got, n)
		}
	}
}

func TestMessageNamesSayWhatTheyAreAbout(t *testing.T) {
	for _, m := range sdiwire.Messages() {
		name := sdiwire.MessageName("IT01234567890_00001.xml", m.Kind, 1)
		invoice, kind, ok := sdiwire.ParseMessageName(name)
		if !ok || invoice != "IT01234567890_00001.xml" || kind != m.Kind || !sdiwire.Callable(name) {
			t.Errorf("%s: %q %q %v", name, invoice, kind, ok)
		}
		if found, ok := sdiwire.MessageCalled(m.Action()); !ok || found != m {
			t.Errorf("%s: %+v", m.Action(), found)
		}
		if found, ok := sdiwire.MessageOf(m.Kind); !ok || found != m {
			t.Errorf("%s: %+v", m.Kind, found)
		}
	}
	if _, _, ok := sdiwire.ParseMessageName("IT01234567890_00001.xml"); ok {
		t.Error("an invoice is taken for a message")
	}
	if _, ok := sdiwire.MessageCalled("http://www.fatturapa.it/RicezioneFatture/NotificaDecorrenzaTermini"); ok {
		t.Error("a receiver's operation is taken for a transmitter's")
	}
}

func TestAFileTravelsInTheEnvelopeOrBesideIt(t *testing.T) {
	file := []byte("<a>\r\n--x\x00\xff</a>")
	plain := "<f><File>" + base64.StdEncoding.EncodeToString(file) + "</File></f>"
	kind, body := sdiwire.Pack([]byte("<f><File>"+sdiwire.Include+"</File></f>"), file, "text/xml")
	for contentType, text := range map[string][]byte{"text/xml; charset=utf-8": []byte(plain), kind: body} {
		p, err := sdiwire.Open(contentType, text)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := xmltree.Read(p.Envelope)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.File(doc.Root.At("File")); err != nil || !bytes.Equal(got, file) {
			t.Errorf("%s: %q %v", contentType, got, err)
		}
	}
	for _, wrong := range []string{`<f><File>*</File></f>`, `<f><File><a/></File></f>`, `<f/>`,
		strings.Replace(`<f><File>`+sdiwire.Include+`</File></f>`, "cid:", "cid:no", 1)} {
		doc, err := xmltree.Read([]byte(wrong))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := (sdiwire.Packed{}).File(doc.Root.At("File")); err == nil {
			t.Errorf("%s: %q", wrong, got)
		}
	}
	if _, err := sdiwire.Open(kind, body[:len(body)-20]); err == nil {
		t.Error("a body that breaks off is whole")
	}
	if _, err := sdiwire.Open("multipart/related", body); err == nil {
		t.Error("a body without a boundary is read")
	}
}

func TestTheSimulatedCAIsACertificateOfACA(t *testing.T) {
	block, rest := pem.Decode([]byte(sdiwire.SimulatedCA))
	if block == nil || len(rest) > 0 {
		t.Fatal("no PEM")
	}
	if ca, err := x509.ParseCertificate(block.Bytes); err != nil || !ca.IsCA {
		t.Fatal(err)
	}
}

func FuzzOpen(f *testing.F) {
	kind, body := sdiwire.Pack([]byte("<f><File>"+sdiwire.Include+"</File></f>"), []byte("file"), "text/xml")
	f.Add(kind, body)
	f.Add("text/xml", []byte("<f><File>QQ==</File></f>"))
	f.Add(`multipart/related; boundary="b"; start="<a>"`,
		[]byte("--b\r\nContent-ID: <a>\r\nContent-Transfer-Encoding: base64\r\n\r\nPGYvPg==\r\n--b--\r\n"))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		p, err := sdiwire.Open(contentType, body)
		if err != nil {
			return
		}
		doc, err := xmltree.Read(p.Envelope)
		if err != nil {
			return
		}
		if file, err := p.File(doc.Root.At("File")); err == nil && len(file) > len(body) {
			t.Errorf("%d bytes out of %d", len(file), len(body))
		}
	})
}
