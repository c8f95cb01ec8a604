package aeat_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/authority/aeat"
	"tributary/internal/country/identity"
	"tributary/internal/leaks"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/official"
	"tributary/internal/official/aeatwire"
	"tributary/internal/official/xsd"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
	"tributary/internal/xmltree/structure"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const nif = "89890001K"

// call is a record of a simplified invoice as another program would write it:
// with other prefixes than ours, on one line, signed with a huella that is
// computed right here. Values may be replaced; the huella is of the result.
func call(number string, replace ...string) string {
	at := time.Now().UTC().Truncate(time.Second).Format("2006-01-02T15:04:05+00:00")
	day := time.Now().UTC().Format("02-01-2006")
	text := strings.NewReplacer(replace...).Replace(fmt.Sprintf(
		`<t:RegistroAlta><t:IDVersion>1.0</t:IDVersion><t:IDFactura><t:IDEmisorFactura>`+nif+
			`</t:IDEmisorFactura><t:NumSerieFactura>%s</t:NumSerieFactura>`+
			`<t:FechaExpedicionFactura>%s</t:FechaExpedicionFactura></t:IDFactura><t:NombreRazonEmisor>Otro Programa SL</t:NombreRazonEmisor><t:TipoFactura>F2</t:TipoFactura>`+
			`<t:DescripcionOperacion>Café</t:DescripcionOperacion><t:Desglose><t:DetalleDesglose><t:ClaveRegimen>01</t:ClaveRegimen><t:CalificacionOperacion>S1</t:CalificacionOperacion>`+
			`<t:TipoImpositivo>21</t:TipoImpositivo><t:BaseImponibleOimporteNoSujeto>100</t:BaseImponibleOimporteNoSujeto><t:CuotaRepercutida>21</t:CuotaRepercutida>`+
			`</t:DetalleDesglose></t:Desglose><t:CuotaTotal>21</t:CuotaTotal><t:ImporteTotal>121</t:ImporteTotal><t:Encadenamiento><t:PrimerRegistro>S</t:PrimerRegistro></t:Encadenamiento>`+
			`<t:SistemaInformatico><t:NombreRazon>Otro Programa SL</t:NombreRazon><t:NIF>A28015865</t:NIF><t:NombreSistemaInformatico>Otro</t:NombreSistemaInformatico>`+
			`<t:IdSistemaInformatico>77</t:IdSistemaInformatico><t:Version>1</t:Version><t:NumeroInstalacion>1</t:NumeroInstalacion><t:TipoUsoPosibleSoloVerifactu>N</t:TipoUsoPosibleSoloVerifactu>`+
			`<t:TipoUsoPosibleMultiOT>S</t:TipoUsoPosibleMultiOT><t:IndicadorMultiplesOT>S</t:IndicadorMultiplesOT></t:SistemaInformatico>`+
			`<t:FechaHoraHusoGenRegistro>%s</t:FechaHoraHusoGenRegistro><t:TipoHuella>01</t:TipoHuella><t:Huella>HUELLA</t:Huella></t:RegistroAlta>`, number, day, at))
	sum := sha256.Sum256([]byte("IDEmisorFactura=" + nif + "&NumSerieFactura=" + number + "&FechaExpedicionFactura=" + day + "&TipoFactura=F2&CuotaTotal=21&ImporteTotal=121&Huella=&FechaHoraHusoGenRegistro=" + at))
	text = strings.Replace(text, "HUELLA", fmt.Sprintf("%X", sum), 1)
	return `<S:Envelope xmlns:S="` + soap.Space11 + `"><S:Body><RegFactuSistemaFacturacion xmlns="` + aeatwire.SpaceCall +
		`" xmlns:t="` + aeatwire.SpaceInfo + `"><Cabecera><t:ObligadoEmision>` +
		`<t:NombreRazon>Otro Programa SL</t:NombreRazon><t:NIF>` + nif +
		`</t:NIF></t:ObligadoEmision></Cabecera><RegistroFactura>` + text +
		`</RegistroFactura></RegFactuSistemaFacturacion></S:Body></S:Envelope>`
}

// office is a double over real HTTP, and a certificate.
type office struct {
	t      testing.TB
	desk   *authority.Desk
	server *httptest.Server
	leaf   string
}

func open(t testing.TB) *office {
	t.Helper()
	desk, err := authority.OpenDesk(t.TempDir(), "ES")
	if err != nil {
		t.Fatal(err)
	}
	o := &office{t: t, desk: desk, server: httptest.NewServer(aeat.Habits{Page: 10}.New(desk)), leaf: certificate(t)}
	t.Cleanup(func() {
		o.server.Close()
		if err := desk.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

func certificate(t testing.TB) string {
	t.Helper()
	header, err := certified()
	if err != nil {
		t.Fatal(err)
	}
	return header
}

// certified makes one certificate for all tests: a key takes a while.
var certified = sync.OnceValues(func() (string, error) {
	file, password, err := identity.Test(nif, "Otro Programa SL", time.Now())
	if err != nil {
		return "", err
	}
	id, err := identity.NewKeeper().Open(identity.PKCS12{File: file, Password: password}, time.Now())
	if err != nil {
		return "", err
	}
	return ":" + base64.StdEncoding.EncodeToString(id.Leaf.Raw) + ":", nil
})

func (o *office) post(body string) *soap.Envelope {
	o.t.Helper()
	r, err := http.NewRequest(http.MethodPost, o.server.URL+aeatwire.ServicePath, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	r.Header.Set("Client-Cert", o.leaf)
	m, err := soap.Read(o.do(r), xmltree.Limits{})
	if err != nil {
		o.t.Fatal(err)
	}
	return m
}

func (o *office) do(r *http.Request) []byte {
	o.t.Helper()
	resp, err := o.server.Client().Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return body
}

func (o *office) held() int {
	o.t.Helper()
	all, err := o.desk.Registrations()
	if err != nil {
		o.t.Fatal(err)
	}
	return len(all)
}

func TestRecordsOfAnotherProgramAreTakenAndAnsweredByTheSchema(t *testing.T) {
	o := open(t)
	m := o.post(call("T-1"))
	if flaw := official.Verifactu.Schema().First(m.Content); flaw != nil {
		t.Errorf("the answer does not fit the schema: %v", flaw)
	}
	if got := m.Content.Value("EstadoEnvio"); got != aeatwire.StateCorrect || m.Content.Value("CSV") == "" ||
		o.held() != 1 {
		t.Errorf("state %s, %d held: %s", got, o.held(), m.Document.Source)
	}
	query := `<S:Envelope xmlns:S="` + soap.Space11 + `"><S:Body><c:ConsultaFactuSistemaFacturacion xmlns:c="` +
		aeatwire.SpaceQuery + `" xmlns="` + aeatwire.SpaceInfo + `"><c:Cabecera><IDVersion>1.0</IDVersion>` +
		`<ObligadoEmision><NombreRazon>Otro Programa SL</NombreRazon><NIF>` + nif +
		`</NIF></ObligadoEmision></c:Cabecera><c:FiltroConsulta><c:PeriodoImputacion><Ejercicio>` +
		time.Now().UTC().Format("2006") +
		`</Ejercicio><Periodo>` + time.Now().UTC().Format("01") +
		`</Periodo></c:PeriodoImputacion></c:FiltroConsulta></c:ConsultaFactuSistemaFacturacion></S:Body></S:Envelope>`
	list := o.post(query)
	if flaw := official.Verifactu.Schema().First(list.Content); flaw != nil {
		t.Errorf("the list does not fit the schema: %v", flaw)
	}
	if got := list.Content.Value("RegistroRespuestaConsultaFactuSistemaFacturacion", "IDFactura",
		"NumSerieFactura"); got != "T-1" {
		t.Errorf("the list has %q: %s", got, list.Document.Source)
	}
}

func TestStructureRefusesTheCallAndTextsTheirRecord(t *testing.T) {
	for name, c := range map[string]struct {
		replace [2]string
		fault   string // in a fault
		code    string // of the record
	}{
		"element missing": {[2]string{"<t:TipoFactura>F2</t:TipoFactura>", ""}, "4102", ""},
		"order": {[2]string{"<t:CuotaTotal>21</t:CuotaTotal><t:ImporteTotal>121</t:ImporteTotal>",
			"<t:ImporteTotal>121</t:ImporteTotal><t:CuotaTotal>21</t:CuotaTotal>"}, "4102", ""},
		"other namespace":      {[2]string{"<t:Desglose>", `<t:Desglose xmlns:t="urn:x">`}, "4102", ""},
		"unknown attribute":    {[2]string{"<t:Desglose>", `<t:Desglose x="1">`}, "4102", ""},
		"text between":         {[2]string{"<t:Desglose>", `<t:Desglose>x`}, "4102", ""},
		"value of a list":      {[2]string{"<t:ClaveRegimen>01<", "<t:ClaveRegimen>12<"}, "", "1246"},
		"blank around a value": {[2]string{"<t:TipoFactura>F2<", "<t:TipoFactura> F2<"}, "", "1106"},
		"long text":            {[2]string{">Café<", ">" + strings.Repeat("x", 501) + "<"}, "", "1100"},
		"text at its limit":    {[2]string{">Café<", ">" + strings.Repeat("x", 500) + "<"}, "", ""},
		"country": {[2]string{"<t:NIF>A28015865</t:NIF>",
			"<t:IDOtro><t:CodigoPais>ZZ</t:CodigoPais><t:IDType>04</t:IDType><t:ID>1</t:ID></t:IDOtro>"}, "", "1101"},
		"check digit": {[2]string{"A28015865", "A28015866"}, "", "1123"},
		"empty name":  {[2]string{"<t:NombreRazonEmisor>Otro Programa SL<", "<t:NombreRazonEmisor><"}, "", "1100"},
		"instant":     {[2]string{"+00:00</t:FechaHora", "</t:FechaHora"}, "", "1244"},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t)
			m := o.post(call("T-1", c.replace[0], c.replace[1]))
			switch {
			case c.fault != "" && (m.Fault == nil ||
				!strings.Contains(m.Fault.Reason, "Codigo["+c.fault+"]."+aeat.Message(c.fault))):
				t.Errorf("no fault %s: %s", c.fault, m.Document.Source)
			case c.fault == "" && m.Fault != nil:
				t.Errorf("a fault: %v", m.Fault)
			case c.fault == "" && m.Content.Value("RespuestaLinea", "CodigoErrorRegistro") != c.code:
				t.Errorf("the code is not %q: %s", c.code, m.Document.Source)
			}
			if want := c.fault == "" && c.code == ""; (o.held() == 1) != want {
				t.Errorf("%d are held", o.held())
			}
		})
	}
}

// AEAT, "Detalle de las especificaciones técnicas para generación de la huella",
// 0.1.2, section 6: the three examples.
func TestHuellasAreThoseOfTheOfficialPaper(t *testing.T) {
	const first, second = "3C464DAF61ACB827C65FDA19F352A4E3BDC2C640E9E9FC4CC058073F38F12F60",
		"F7B94CFD8924EDFF273501B01EE5153E4CE8F259766F88CF6ACB8935802A2B97"
	alta := `<r><IDFactura><IDEmisorFactura>89890001K</IDEmisorFactura><NumSerieFactura>%s</NumSerieFactura><FechaExpedicionFactura>01-01-2024</FechaExpedicionFactura></IDFactura>` +
		`<TipoFactura>F1</TipoFactura><CuotaTotal>12.35</CuotaTotal><ImporteTotal>123.45</ImporteTotal><Encadenamiento>%s</Encadenamiento><FechaHoraHusoGenRegistro>%s</FechaHoraHusoGenRegistro></r>`
	link := `<RegistroAnterior><Huella>%s</Huella></RegistroAnterior>`
	for _, c := range []struct {
		text    string
		cancels bool
		want    string
	}{
		{fmt.Sprintf(alta, "12345678/G33", "<PrimerRegistro>S</PrimerRegistro>", "2024-01-01T19:20:30+01:00"), false, first},
		{fmt.Sprintf(alta, "12345679/G34", fmt.Sprintf(link, first), "2024-01-01T19:20:35+01:00"), false, second},
		{`<r><IDFactura><IDEmisorFacturaAnulada>89890001K</IDEmisorFacturaAnulada><NumSerieFacturaAnulada>12345679/G34</NumSerieFacturaAnulada><FechaExpedicionFacturaAnulada>01-01-2024</FechaExpedicionFacturaAnulada></IDFactura>` +
			`<Encadenamiento>` + fmt.Sprintf(link, second) +
			`</Encadenamiento><FechaHoraHusoGenRegistro>2024-01-01T19:20:40+01:00</FechaHoraHusoGenRegistro></r>`, true,
			"177547C0D57AC74748561D054A9CEC14B4C4EA23D1BEFD6F2E69E3A388F90C68"},
	} {
		doc, err := xmltree.Read([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := aeat.HuellaOf(doc.Root, c.cancels); got != c.want {
			t.Errorf("%s instead of %s", got, c.want)
		}
	}
}

// A client makes its calls from the description alone: it must name the real
// operations and bring schemas that mean what the official ones mean.
func TestServiceDescribesItself(t *testing.T) {
	o := open(t)
	get := func(address string) []byte {
		r, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		return o.do(r)
	}
	address := o.server.URL + aeatwire.ServicePath
	doc, err := xmltree.Read(get(address + "?wsdl"))
	if err != nil {
		t.Fatal(err)
	}
	if got := doc.Root.At("service", "port", "address").Attr("location"); got != address {
		t.Errorf("the service is said to be at %s", got)
	}
	dir := t.TempDir()
	source := xsd.Source{Map: map[string]string{address + "?xsd=": dir + string(filepath.Separator)}}
	for _, i := range doc.Root.At("types", "schema").All("import") {
		_, name, _ := strings.Cut(i.Attr("schemaLocation"), "?xsd=")
		source.Files = append(source.Files, filepath.Join(dir, name))
		save(t, filepath.Join(dir, name), get(i.Attr("schemaLocation")))
	}
	save(t, filepath.Join(dir, "xmldsig-core-schema.xsd"), get(address+"?xsd=xmldsig-core-schema.xsd"))
	form, err := xsd.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	served, err := structure.Parse(form)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{call("T-1"), call("T-1", "F2", "F9"),
		call("T-1", "<t:TipoFactura>F2</t:TipoFactura>", "")} {
		m, err := soap.Read([]byte(part), xmltree.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if ours, theirs := served.First(m.Content),
			official.Verifactu.Schema().First(m.Content); (ours == nil) != (theirs == nil) {
			t.Errorf("the served schema says %v, the official one %v", ours, theirs)
		}
	}
	r := httptest.NewRequest(http.MethodGet, aeatwire.ServicePath+"?xsd=absent.xsd", nil)
	w := httptest.NewRecorder()
	aeat.New(o.desk).ServeHTTP(w, r)
	if w.Code != http.StatusNotFound {
		t.Errorf("status %d for a schema that is not there", w.Code)
	}
}

func save(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// meaning lists what a WSDL says about the binding of verifiable systems.
func meaning(t *testing.T, text []byte) []string {
	t.Helper()
	doc, err := xmltree.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	resolved := func(e *xmltree.Element, qname string) string {
		prefix, local, _ := strings.Cut(qname, ":")
		space, _ := e.SpaceOf(prefix)
		return "{" + space + "}" + local
	}
	all := []string{"target " + doc.Root.Attr("targetNamespace")}
	for _, m := range doc.Root.All("message") {
		part := m.At("part")
		all = append(all, "message "+m.Attr("name")+" "+part.Attr("name")+" "+resolved(part, part.Attr("element")))
	}
	for _, p := range doc.Root.All("portType") {
		if p.Attr("name") != "sfPortTypeVerifactu" {
			continue
		}
		for _, op := range p.All("operation") {
			all = append(all, "operation "+op.Attr("name")+" "+resolved(op, op.At("input").Attr("message"))+" "+resolved(op, op.At("output").Attr("message")))
		}
	}
	for _, b := range doc.Root.All("binding") {
		if b.Attr("name") != "sfVerifactu" {
			continue
		}
		all = append(all, "binding "+resolved(b, b.Attr("type"))+" "+b.At("binding").Attr("style")+" "+b.At("binding").Attr("transport"))
		for _, op := range b.All("operation") {
			all = append(all, "bound "+op.Attr("name")+" "+op.At("operation").Attr("soapAction")+" "+op.At("input", "body").Attr("use")+" "+op.At("output", "body").Attr("use"))
		}
	}
	return all
}

func TestDescriptionMeansWhatTheOfficialOneMeans(t *testing.T) {
	theirs, err := os.ReadFile(needs.Schemas(t, "es-verifactu", "SistemaFacturacion.wsdl"))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := os.ReadFile("service.wsdl")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, line := range meaning(t, theirs) {
		count[line]++
	}
	for _, line := range meaning(t, ours) {
		count[line]--
	}
	for line, n := range count {
		if n != 0 {
			t.Errorf("%d more in the official description: %s", n, line)
		}
	}
}

// FuzzDouble: the double answers every call with XML, and registers nothing that
// it did not accept.
func FuzzDouble(f *testing.F) {
	f.Add([]byte(call("T-1")))
	f.Add([]byte(call("T-1", "F2", "F9")))
	leaf := certificate(f)
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, source []byte) {
		desk, err := authority.OpenDesk(t.TempDir(), "ES")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = desk.Close() }()
		r := httptest.NewRequest(http.MethodPost, aeatwire.ServicePath, bytes.NewReader(source))
		r.Header.Set("Client-Cert", leaf)
		w := httptest.NewRecorder()
		aeat.Habits{Page: 1}.New(desk).ServeHTTP(w, r)
		m, err := soap.Read(w.Body.Bytes(), xmltree.Limits{})
		if err != nil {
			t.Fatalf("the answer is no envelope: %v\n%s", err, w.Body)
		}
		held, err := desk.Registrations()
		if err != nil {
			t.Fatal(err)
		}
		accepted := 0
		if m.Fault == nil {
			for _, l := range m.Content.All("RespuestaLinea") {
				if l.Value("EstadoRegistro") != aeatwire.StateRefused {
					accepted++
				}
			}
		}
		if len(held) > accepted {
			t.Errorf("%d registered, %d accepted", len(held), accepted)
		}
	})
}
