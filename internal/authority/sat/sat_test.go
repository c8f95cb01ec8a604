package sat_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/authority/sat"
	"tributary/internal/country/identity"
	"tributary/internal/leaks"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/official"
	"tributary/internal/official/satwire"
	"tributary/internal/official/xsd"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
	"tributary/internal/xmltree/structure"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const rfc = "EKU9003173C9"

var holder = sync.OnceValue(func() *identity.Identity {
	file, password, err := identity.Test(rfc, "ESCUELA KEMPER URGATE", time.Now())
	if err != nil {
		panic(err)
	}
	id, err := identity.NewKeeper().Open(identity.PKCS12{File: file, Password: password}, time.Now())
	if err != nil {
		panic(err)
	}
	return id
})

// seal makes the key of the simulated SAT once for all tests.
var seal = sync.OnceValue(func() *sat.Seal { return new(sat.Seal) })

// voucher is one as another program would write it: without prefixes, with
// white space between elements, sealed over an original string that stands right
// here. Values may be replaced after they were sealed.
func voucher(t testing.TB, folio string, replace ...string) []byte {
	t.Helper()
	zone, err := time.LoadLocation("America/Mexico_City")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().In(zone).Format("2006-01-02T15:04:05")
	number := satwire.CertificateNumber(holder().Leaf)
	text := "||4.0|" + folio + "|" + at + "|03|" + number + "|200.00|MXN|232.00|I|01|PUE|06000|" + rfc +
		"|ESCUELA KEMPER URGATE|601|" +
		"URE180429TM6|UNIVERSIDAD ROBOTICA ESPAÑOLA|86991|601|G03|50211503|2|H87|Cigarros|100.00|200.00|02|" +
		"200.00|002|Tasa|0.160000|32.00|200.00|002|Tasa|0.160000|32.00|32.00||"
	sum := sha256.Sum256([]byte(text))
	signature, err := holder().Key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString
	const tax = `<Traslados><Traslado Base="200.00" Impuesto="002" TipoFactor="Tasa" TasaOCuota="0.160000" Importe="32.00"/></Traslados>`
	return []byte(strings.NewReplacer(replace...).Replace(`<?xml version='1.0' encoding='utf-8'?>
<Comprobante xmlns="` + satwire.SpaceCFDI + `" Version="4.0" Folio="` + folio + `" Fecha="` + at + `" Sello="` + encoded(signature) + `" FormaPago="03" NoCertificado="` + number +
		`" Certificado="` + encoded(holder().Leaf.Raw) + `" SubTotal="200.00" Moneda="MXN" Total="232.00" TipoDeComprobante="I" Exportacion="01" MetodoPago="PUE" LugarExpedicion="06000">
  <Emisor Rfc="` + rfc + `" Nombre="ESCUELA   KEMPER URGATE" RegimenFiscal="601"/>
  <Receptor Rfc="URE180429TM6" Nombre="UNIVERSIDAD ROBOTICA ESPAÑOLA" DomicilioFiscalReceptor="86991" RegimenFiscalReceptor="601" UsoCFDI="G03"/>
  <Conceptos>
    <Concepto ClaveProdServ="50211503" Cantidad="2" ClaveUnidad="H87" Descripcion="Cigarros" ValorUnitario="100.00" Importe="200.00" ObjetoImp="02"><Impuestos>` + tax + `</Impuestos></Concepto>
  </Conceptos>
  <Impuestos TotalImpuestosTrasladados="32.00">` + tax + `</Impuestos>
</Comprobante>`))
}

// office is a double over real HTTP.
type office struct {
	desk   *authority.Desk
	server *httptest.Server
}

func open(t testing.TB) office {
	t.Helper()
	desk, err := authority.OpenDesk(t.TempDir(), "MX")
	if err != nil {
		t.Fatal(err)
	}
	o := office{desk, httptest.NewServer(seal().New(desk))}
	t.Cleanup(func() {
		o.server.Close()
		if err := desk.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

func (o office) held(t testing.TB) int {
	t.Helper()
	all, err := o.desk.Registrations()
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func soapCall(space, method, args string) string {
	return `<e:Envelope xmlns:e="` + soap.Space11 + `"><e:Body><` + method + ` xmlns="` + space + `">` + args + `</` +
		method + `></e:Body></e:Envelope>`
}

func stampCall(method string, document []byte) string {
	return soapCall(satwire.SpaceSOAPStamp, method,
		`<xml>`+base64.StdEncoding.EncodeToString(document)+`</xml><username>u</username><password>p</password>`)
}

// post makes a SOAP call and answers what its envelope holds.
func (o office) post(t testing.TB, path, body string) *soap.Envelope {
	t.Helper()
	resp, err := http.Post(o.server.URL+path, "text/xml", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	m, err := soap.Read(raw, xmltree.Limits{})
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return m
}

func TestVoucherOfAnotherProgramIsStampedByTheOfficialStructure(t *testing.T) {
	o := open(t)
	raw := voucher(t, "A-1")
	result := o.post(t, satwire.PathSOAPStamp, stampCall("stamp", raw)).Content.At("stampResult")
	doc, err := xmltree.Read([]byte(result.Value("xml")))
	if err != nil {
		t.Fatalf("%v: %s", err, result.AppendTo(nil))
	}
	if flaw := official.CFDI.Schema().First(doc.Root); flaw != nil {
		t.Error(flaw)
	}
	stamp := doc.Root.Find(satwire.SpaceStamp, "TimbreFiscalDigital")
	if stamp.Attr("UUID") == "" || stamp.Attr("UUID") != result.Value("UUID") ||
		stamp.Attr("SelloCFD") != doc.Root.Attr("Sello") || o.held(t) != 1 {
		t.Errorf("%s", doc.Root.AppendTo(nil))
	}
	again := o.post(t, satwire.PathSOAPStamp, stampCall("stamped", raw)).Content.At("stampedResult")
	if again.Value("UUID") != result.Value("UUID") || again.Value("xml") != result.Value("xml") {
		t.Errorf("shown again: %s", again.AppendTo(nil))
	}
	sealed := base64.StdEncoding.EncodeToString([]byte(result.Value("xml")))
	got := o.post(t, satwire.PathSOAPStamp,
		soapCall(satwire.SpaceSOAPStamp, "stamp", `<xml>`+sealed+`</xml><username>u</username><password>p</password>`))
	if code := got.Content.Find(satwire.SpaceSOAPViews, "CodigoError").Value(); code != satwire.CodeStampedBefore ||
		o.held(t) != 1 {
		t.Errorf("a stamped one: %s", code)
	}
}

func TestVouchersAreRefusedForWhatTheyAre(t *testing.T) {
	o := open(t)
	for _, c := range []struct{ name, old, changed, code, words string }{
		{"waybill", `TipoDeComprobante="I"`, `TipoDeComprobante="T"`, "CFDI40999", "TipoDeComprobante T"},
		{"complement", `</Comprobante>`, `<Complemento/></Comprobante>`, "CFDI40999", "Complemento"},
		{"unknown currency", `Moneda="MXN"`, `Moneda="QQQ"`, "301", "Moneda"},
		{"white space is no text", `<Conceptos>`, `<Conceptos>x`, "301", "Conceptos"},
		{"another namespace", satwire.SpaceCFDI, "http://www.sat.gob.mx/cfd/3", "301", ""},
		{"changed after the seal", `Descripcion="Cigarros"`, `Descripcion="Puros"`, "CFDI40102", ""},
		{"twice the attribute", `Folio="`, `Folio="x" Folio="`, "301", ""},
	} {
		raw := voucher(t, "A-2", c.old, c.changed)
		m := o.post(t, satwire.PathSOAPStamp, stampCall("stamp", raw))
		code, words := m.Content.Find(satwire.SpaceSOAPViews, "CodigoError").Value(),
			m.Content.Find(satwire.SpaceSOAPViews, "MensajeIncidencia").Value()
		if code != c.code || !strings.Contains(words, c.words) {
			t.Errorf("%s: %s %s", c.name, code, words)
		}
	}
	if o.held(t) != 0 {
		t.Errorf("%d registrations", o.held(t))
	}
}

func TestCallsOfAnotherServiceAreFaults(t *testing.T) {
	o := open(t)
	for path, body := range map[string]string{
		satwire.PathSOAPStamp:  soapCall(satwire.SpaceSOAPCancel, "stamp", ""),
		satwire.PathSOAPCancel: soapCall(satwire.SpaceSOAPCancel, "cancel", ""),
		satwire.PathSOAPList:   "<a/>",
		satwire.PathState:      strings.Replace(soapCall(satwire.SpaceState, "Consulta", ""), soap.Space11, soap.Space12, 1),
	} {
		if m := o.post(t, path, body); m.Fault == nil || m.Fault.Code != "Client" {
			t.Errorf("%s: %s", path, m.Document.Source)
		}
	}
}

// The description that is served lets through what the service takes.
func TestServicesDescribeThemselves(t *testing.T) {
	o := open(t)
	for path, call := range map[string]string{
		satwire.PathSOAPStamp: stampCall("stamp", []byte("x")),
		satwire.PathSOAPCancel: soapCall(satwire.SpaceSOAPCancel, "get_sat_status",
			"<username>u</username><password>p</password><taxpayer_id>a</taxpayer_id><rtaxpayer_id>b</rtaxpayer_id><uuid>c</uuid><total>1.00</total>"),
		satwire.PathSOAPList: soapCall(satwire.SpaceSOAPList, "get_xml",
			"<username>u</username><password>p</password><uuid>c</uuid><taxpayer_id>a</taxpayer_id><invoice_type>I</invoice_type>"),
		satwire.PathState: soapCall(satwire.SpaceState, "Consulta", "<expresionImpresa>?id=A</expresionImpresa>"),
	} {
		resp, err := http.Get(o.server.URL + path + "?wsdl")
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v", path, resp.StatusCode, err)
		}
		doc, err := xmltree.Read(raw)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if got := doc.Root.At("service", "port", "address").Attr("location"); got != o.server.URL+path {
			t.Errorf("%s is said to be at %s", path, got)
		}
		file := filepath.Join(t.TempDir(), "service.xsd")
		schema := doc.Root.At("types", "schema")
		schema.Set("xmlns:xs", "http://www.w3.org/2001/XMLSchema")
		if err := os.WriteFile(file, schema.AppendTo([]byte(xmltree.Declaration)), 0o600); err != nil {
			t.Fatal(err)
		}
		form, err := xsd.Compile(xsd.Source{Files: []string{file}})
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, raw)
		}
		described, err := structure.Parse(form)
		if err != nil {
			t.Fatal(err)
		}
		m, err := soap.Read([]byte(call), xmltree.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if flaw := described.First(m.Content); flaw != nil {
			t.Errorf("%s: %v", path, flaw)
		}
		if flaw := described.First(o.post(t, path, call).Content); flaw != nil {
			t.Errorf("the answer of %s: %v", path, flaw)
		}
		m.Content.Add(xmltree.New("other"))
		if described.First(m.Content) == nil {
			t.Errorf("%s describes anything", path)
		}
	}
}

// SAT's samples are sealed over what the double takes for their original string.
func TestOfficialSamplesHaveOurOriginalString(t *testing.T) {
	list, err := filepath.Glob(filepath.Join(needs.Schemas(t, "mx-cfdi", "examples"), "*.xml"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, path := range list {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(satwire.SpacePagos)) {
			continue // the double stamps no payments
		}
		der, err := base64.StdEncoding.DecodeString(attribute(raw, "Certificado"))
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(der)
		if err != nil {
			continue // some of SAT's test certificates are too sloppy for Go
		}
		text, err := sat.Original(raw)
		if err != nil {
			t.Fatal(err)
		}
		signature, err := base64.StdEncoding.DecodeString(attribute(raw, "Sello"))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		if err := rsa.VerifyPKCS1v15(leaf.PublicKey.(*rsa.PublicKey), crypto.SHA256, sum[:], signature); err != nil {
			t.Errorf("%s: %v\n%s", filepath.Base(path), err, text)
		}
		checked++
	}
	if checked == 0 {
		t.Errorf("none of %d samples could be checked", len(list))
	}
}

func attribute(raw []byte, name string) string {
	found := regexp.MustCompile(`\s` + name + `="([^"]*)"`).FindSubmatch(raw)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// The double answers every call in the protocol it came in, and registers
// nothing that it does not say it stamped.
func FuzzDouble(f *testing.F) {
	desk, err := authority.OpenDesk(f.TempDir(), "MX")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = desk.Close() })
	double := seal().New(desk)
	paths := []string{satwire.PathSOAPStamp, satwire.PathSOAPCancel, satwire.PathSOAPList, satwire.PathRESTLogin,
		satwire.PathRESTStamp, satwire.PathRESTCancel,
		satwire.PathState, satwire.CertificatePath("30001000000400002434")}
	form := "multipart/form-data; boundary=b"
	f.Add(uint8(0), "text/xml", []byte(stampCall("stamp", voucher(f, "Z-1"))))
	f.Add(uint8(0), "text/xml", []byte(stampCall("stamp", voucher(f, "Z-2", "I", "P"))))
	f.Add(uint8(1), "text/xml", []byte(soapCall(satwire.SpaceSOAPCancel, "cancel_signature",
		`<xml>PGEvPg==</xml><username>u</username><password>p</password>`)))
	f.Add(uint8(2), "text/xml", []byte(soapCall(satwire.SpaceSOAPList, "report_uuid",
		`<taxpayer_id>EKU9003173C9</taxpayer_id><date_from>2026-01-01T00:00:00</date_from><date_to>x</date_to>`)))
	f.Add(uint8(3), "application/json", []byte(`{"user":"u","password":"p"}`))
	f.Add(uint8(4), form, []byte("--b\r\nContent-Disposition: form-data; name=\"xml\"; filename=\"xml\"\r\n\r\n<a/>\r\n--b--\r\n"))
	f.Add(uint8(6), "text/xml", []byte(soapCall(satwire.SpaceState, "Consulta",
		`<expresionImpresa>?id=A&amp;re=B&amp;rr=C&amp;tt=1.0</expresionImpresa>`)))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, path uint8, media string, body []byte) {
		before, err := desk.Registrations()
		if err != nil {
			t.Fatal(err)
		}
		method, at := http.MethodPost, paths[int(path)%len(paths)]
		if strings.HasPrefix(at, "/rccf/") {
			method = http.MethodGet
		}
		r := httptest.NewRequest(method, at, bytes.NewReader(body))
		r.Header["Content-Type"] = []string{media}
		r.Header.Set("Authorization", "Bearer x")
		w := httptest.NewRecorder()
		double.ServeHTTP(w, r)
		switch kind := w.Header().Get("Content-Type"); {
		case strings.Contains(kind, "json") && !json.Valid(w.Body.Bytes()):
			t.Errorf("%s answers %q", at, w.Body)
		case strings.Contains(kind, "xml"):
			wellFormed(t, w.Body.Bytes())
		}
		after, err := desk.Registrations()
		if err != nil || len(after) > len(before)+1 || len(after) > len(before) && w.Code != http.StatusOK {
			t.Errorf("%d registrations, then %d with the answer %d, %v", len(before), len(after), w.Code, err)
		}
	})
}

func wellFormed(t *testing.T, text []byte) {
	t.Helper()
	for dec := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v: %q", err, text)
		}
	}
}

// A request counts only with a signature; whatever cannot be read names nobody.
func FuzzRequest(f *testing.F) {
	f.Add(fmt.Appendf(nil, `<Cancelacion xmlns=%q RfcEmisor="X"><Folios><Folio UUID="A" Motivo="02"/></Folios><Signature xmlns=%q/></Cancelacion>`, satwire.SpaceCancel, satwire.SpaceSignature))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, leaf, err := sat.ReadRequest(raw); err == nil && leaf == nil {
			t.Errorf("nobody signed %q", raw)
		}
	})
}

func FuzzExpression(f *testing.F) {
	f.Add("?id=A&re=H&amp;E951128469&rr=X&tt=1.0&fe=abc==")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		if id := sat.Expression(text, "id"); !strings.Contains(strings.ReplaceAll(text, "&amp;", "&"), id) &&
			!strings.Contains(text, "\x00") {
			t.Errorf("%q has the id %q", text, id)
		}
	})
}

// An ampersand of an RFC is written as in XML; a plain one separates, so that
// an expression that does not escape it is of no voucher.
func TestPartsOfAnExpressionAreFoundByTheirNames(t *testing.T) {
	const text = "?id=A&re=H&amp;E951128469&rr=X&tt=1.0&fe=abc=="
	if got := sat.Expression("?id=A&re=H&E951128469&rr=X", "re"); got != "H" {
		t.Errorf("a plain ampersand: %q", got)
	}
	for name, want := range map[string]string{"id": "A", "re": "H&E951128469", "rr": "X", "tt": "1.0", "fe": "abc=="} {
		if got := sat.Expression(text, name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}
