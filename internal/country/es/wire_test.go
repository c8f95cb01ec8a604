package es_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority/aeat"
	"tributary/internal/country"
	"tributary/internal/country/es"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// answering is a channel to a server that answers as told.
func answering(t *testing.T, serve http.HandlerFunc) country.Channel {
	t.Helper()
	server := httptest.NewServer(serve)
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{es.Pack()},
		Addresses: map[string]country.Addresses{"ES": {Test: server.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { atlas.Close(); server.Close() })
	ch, err := atlas.Channel("ES", false)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func soapFault(side, text string) string {
	return `<?xml version="1.0"?><env:Envelope xmlns:env="http://schemas.xmlsoap.org/soap/envelope/"><env:Body><env:Fault><faultcode>env:` + side +
		`</faultcode><faultstring>` + text + `</faultstring></env:Fault></env:Body></env:Envelope>`
}

// genuine is the double's answer to a filing, to be spoilt.
func genuine(t *testing.T, f country.Filing) string {
	t.Helper()
	_, answer := open(t, patient(0, 100)).post(es.Envelope(supplier, nif, false, record(t, f)), credentials())
	return answer
}

// Outcome is data, error is ignorance: what is not AEAT's clean word on a
// record decides nothing about it.
func TestAnswersThatSayNothingAreNoOutcome(t *testing.T) {
	f := open(t, es.Pack()).prepare(byName(t, "business"), country.Link{})
	good := genuine(t, f)
	for _, row := range []struct {
		name     string
		status   int
		body     string
		notTaken bool
		creds    bool
	}{
		{name: "503 page", status: 503, body: "<html><body>Service Unavailable</body></html>"},
		{name: "maintenance page", status: 200, body: "<!DOCTYPE html><html><body>Mantenimiento</body></html>"},
		{name: "nothing", status: 200},
		{name: "internal error", status: 500,
			body: soapFault("Server", "Codigo[102].Error interno en el servidor, Id. Error: 1")},
		{name: "busy without a code", status: 500, body: soapFault("Server", "busy")},
		{name: "service not active", status: 500, body: soapFault("Server", "Codigo[4134].Servicio no activo."),
			notTaken: true},
		{name: "suspended", status: 200, body: soapFault("Server", "Codigo[4141].suspendido"), notTaken: true},
		{name: "not the holder", status: 500,
			body: soapFault("Client", "Codigo[4112].El titular del certificado debe ser Obligado Emisión"), creds: true},
		{name: "forbidden", status: 403, body: "<html>No se detecta certificado</html>", creds: true},
		{name: "unauthorized", status: 401, creds: true},
		{name: "truncated", status: 200, body: good[:len(good)-60]},
		{name: "redirect", status: 302, body: good},
		{name: "good body, bad status", status: 502, body: good},
		{name: "no line", status: 200, body: cut(good, "<sfR:RespuestaLinea>", "</sfR:RespuestaLinea>\n")},
		{name: "line of another", status: 200,
			body: strings.Replace(good, "NumSerieFactura>A-1<", "NumSerieFactura>A-2<", 1)},
		{name: "unknown state", status: 200, body: strings.Replace(good, "EstadoRegistro>Correcto<",
			"EstadoRegistro>Quizas<", 1)},
		{name: "unknown overall state", status: 200,
			body: strings.Replace(good, "EstadoEnvio>Correcto<", "EstadoEnvio>Quizas<", 1)},
		{name: "accepted without CSV", status: 200, body: cut(good, "<sfR:CSV>", "</sfR:CSV>\n")},
		{name: "wait is no number", status: 200,
			body: strings.Replace(good, "TiempoEsperaEnvio>0<", "TiempoEsperaEnvio>soon<", 1)},
		{name: "another answer", status: 200, body: strings.ReplaceAll(good, "RespuestaRegFactu", "RespuestaOtra")},
		{name: "another namespace", status: 200, body: strings.Replace(good, "RespuestaSuministro.xsd", "Otra.xsd", 1)},
		{name: "DOCTYPE", status: 200, body: strings.Replace(good, "<soapenv:Envelope",
			`<!DOCTYPE a [<!ENTITY b "c">]><soapenv:Envelope`, 1)},
		{name: "endless", status: 200, body: good + strings.Repeat(" ", 9<<20)},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.body == good && row.status == 200 {
				t.Fatal("nothing was spoilt")
			}
			ch := answering(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(row.status)
				_, _ = io.WriteString(w, row.body)
			})
			receipts, err := ch.Send(t.Context(), []country.Filing{f}, credentials())
			if err == nil {
				t.Fatalf("an outcome: %s", asJSON(receipts))
			}
			if errors.Is(err, country.ErrNotTaken) != row.notTaken || errors.Is(err, country.ErrCredentials) != row.creds {
				t.Errorf("%v", err)
			}
		})
	}
}

// AEAT's own trouble is no decision about a record, also where it comes as one.
func TestTechnicalErrorOfAEATIsNoRejection(t *testing.T) {
	f := open(t, es.Pack()).prepare(byName(t, "business"), country.Link{})
	good := genuine(t, f)
	for code, outcome := range map[string]country.Outcome{"3500": country.NotTaken, "3501": country.NotTaken,
		"1241": country.NotTaken, "1105": country.Rejected} {
		refused := strings.Replace(good, "EstadoRegistro>Correcto</sfR:EstadoRegistro>",
			"EstadoRegistro>Incorrecto</sfR:EstadoRegistro><sfR:CodigoErrorRegistro>"+code+"</sfR:CodigoErrorRegistro>", 1)
		ch := answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, refused) })
		receipts, err := ch.Send(t.Context(), []country.Filing{f}, credentials())
		if err != nil || receipts[0].Outcome != outcome {
			t.Errorf("%s: %s %v", code, asJSON(receipts), err)
		}
	}
}

func cut(text, from, to string) string {
	head, rest, _ := strings.Cut(text, from)
	_, tail, _ := strings.Cut(rest, to)
	return head + tail
}

func TestCredentialsThatDoNotOpenPauseTheSupplier(t *testing.T) {
	ch := answering(t, func(http.ResponseWriter, *http.Request) { t.Error("a call was made") })
	f := open(t, es.Pack()).prepare(byName(t, "business"), country.Link{})
	wrong := credentials()
	wrong.Password = "wrong"
	for _, c := range []country.Credentials{{}, wrong} {
		if _, err := ch.Send(t.Context(), []country.Filing{f}, c); !errors.Is(err, country.ErrCredentials) {
			t.Errorf("send: %v", err)
		}
		if _, err := ch.Find(t.Context(), f, c); !errors.Is(err, country.ErrCredentials) {
			t.Errorf("find: %v", err)
		}
	}
}

// One record that AEAT's schema refuses must not stop the others.
func TestUnreadableRecordIsSingledOut(t *testing.T) {
	o := open(t, patient(0, 100))
	var filings []country.Filing
	var last country.Link
	for i := range 9 {
		f := o.prepare(fresh(draft(fmt.Sprintf("P-%d", i), nil, line("Café", 121, "21"))), last)
		if i == 5 {
			f.Report = bytes.Replace(f.Report, []byte("<sf:TipoFactura>F2</sf:TipoFactura>\n"), nil, 1)
		}
		filings, last = append(filings, f), f.Link
	}
	var outcomes []country.Outcome
	for len(filings) > 0 {
		receipts := o.send(filings...)
		if len(receipts) != len(filings) {
			t.Fatalf("%d receipts of %d", len(receipts), len(filings))
		}
		taken := 0
		for _, r := range receipts {
			if r.Outcome == country.NotTaken {
				break
			}
			outcomes = append(outcomes, r.Outcome)
			taken++
			if r.Outcome == country.Rejected && !strings.Contains(r.Faults[0].Message, "4102") {
				t.Errorf("%s", asJSON(r))
			}
		}
		if taken == 0 {
			t.Fatal("nothing moves")
		}
		filings = filings[taken:]
	}
	want := "[accepted accepted accepted accepted accepted rejected accepted accepted accepted]"
	if got := fmt.Sprint(outcomes); got != want {
		t.Errorf("%s", got)
	}
}

// Over TLS the certificate of the supplier is what identifies the call.
func TestCallsAreMadeOverMutualTLS(t *testing.T) {
	seen := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			seen <- r.TLS.PeerCertificates[0].Subject.SerialNumber
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	ch, err := es.Pack().Connect(country.Endpoint{BaseURL: server.URL, HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, es.Pack()).prepare(byName(t, "business"), country.Link{})
	if _, err := ch.Send(t.Context(), []country.Filing{f}, credentials()); err == nil ||
		errors.Is(err, country.ErrNotTaken) {
		t.Errorf("%v", err)
	}
	if got := <-seen; got != nif {
		t.Errorf("the certificate of %q", got)
	}
	if l := ch.Limits(); l.VisibleAfter == 0 || l.Batch != 1000 || !l.Chain || l.Class != country.ByChain {
		t.Errorf("%+v", l)
	}
}

func TestRefusedHandshakeIsAMatterOfCredentials(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13} // trusts nobody
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ch, err := es.Pack().Connect(country.Endpoint{BaseURL: server.URL, HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, es.Pack()).prepare(byName(t, "business"), country.Link{})
	if _, err := ch.Send(t.Context(), []country.Filing{f}, credentials()); !errors.Is(err, country.ErrCredentials) {
		t.Errorf("%v", err)
	}
}

func TestSendRefusesWhatIsNotOneCall(t *testing.T) {
	o := open(t, es.Pack())
	f := o.prepare(byName(t, "business"), country.Link{})
	other := f
	other.Supplier = "A28015865"
	if _, err := o.channel.Send(t.Context(), []country.Filing{f, other}, credentials()); err == nil {
		t.Error("two suppliers in one call")
	}
	other.Extra = []byte("{")
	if _, err := o.channel.Send(t.Context(), []country.Filing{other}, credentials()); err == nil {
		t.Error("a filing of nobody")
	}
	if receipts, err := o.channel.Send(t.Context(), nil, credentials()); err != nil || len(receipts) != 0 {
		t.Errorf("nothing to send: %v %v", receipts, err)
	}
	if _, err := o.channel.Poll(t.Context(), f, country.Receipt{}, credentials()); err == nil {
		t.Error("there is nothing to poll")
	}
	if len(o.registrations()) != 0 {
		t.Error("something was registered")
	}
}

// A duplicate is ours or another's by its huella; where nobody can say, it stays open.
func TestDuplicatesAreToldApartByTheirHuella(t *testing.T) {
	o := open(t, patient(0, 100))
	f := o.prepare(byName(t, "business"), country.Link{})
	first := o.send(f)[0]
	again := o.send(f)[0]
	if !again.Duplicate || again.Outcome != country.Accepted || again.SHA256 != f.SHA256 || again.AuthorityID1 != "" {
		t.Errorf("ours: %s", asJSON(again))
	}
	if len(again.Faults) != 1 || again.Faults[0].Code != fault.AuthorityIDUnavailable ||
		again.Faults[0].Type != fault.Warning {
		t.Errorf("the lost CSV is not told: %+v", again.Faults)
	}
	if first.AuthorityID1 == "" || first.Duplicate {
		t.Errorf("first: %s", asJSON(first))
	}
	other := byName(t, "business")
	other.Transaction.Items[0].UnitPrice, other.Now = 24200, other.Now.Add(time.Second)
	other.Totals, _ = transaction.Calculate(other.Transaction.Items)
	g := o.prepare(other, f.Link)
	if r := o.send(g)[0]; !r.Duplicate || r.SHA256 == g.SHA256 || r.SHA256 == "" {
		t.Errorf("another's: %s", asJSON(r))
	}
	o.script(`[{"outcome":"unavailable","on":"query"}]`)
	if r := o.send(f)[0]; !r.Duplicate || r.SHA256 != "" {
		t.Errorf("nobody can say: %s", asJSON(r))
	}
	if len(o.registrations()) != 1 {
		t.Error("a duplicate was registered")
	}
}

// The receipt of a record holds nothing of the others that went with it.
func TestReceiptSpeaksOfItsOwnRecordAlone(t *testing.T) {
	xsd := schema(t)
	o := open(t, patient(0, 100))
	a := o.prepare(byName(t, "business"), country.Link{})
	b := o.prepare(byName(t, "several rates"), a.Link)
	rejected := byName(t, "simplified")
	rejected.Transaction.Number = "T-REJECT"
	c := o.prepare(rejected, b.Link)
	receipts := o.send(a, b, c)
	for i, f := range []country.Filing{a, b, c} {
		text := string(receipts[i].Document)
		if !strings.Contains(text, "NumSerieFactura>"+f.Number+"<") || strings.Count(text, "RespuestaLinea>") != 2 {
			t.Errorf("%s", text)
		}
		if i < 2 && (!strings.Contains(text, receipts[i].AuthorityID1) || receipts[i].At.IsZero()) {
			t.Errorf("no CSV or time: %s", text)
		}
	}
	if r := receipts[2]; r.Outcome != country.Rejected || len(r.Faults) != 1 ||
		r.Faults[0].Message != "1109: "+aeat.Message("1109") || r.Faults[0].Type != fault.TaxAuthority {
		t.Errorf("%s", asJSON(r))
	}
	found, err := o.channel.Find(t.Context(), a, credentials())
	if err != nil {
		t.Fatal(err)
	}
	xsd.AllConform(t, [][]byte{receipts[0].Document, receipts[1].Document, receipts[2].Document, found.Document},
		func(r []byte) []byte {
			r = bytes.Replace(r, []byte("<sfR:EstadoEnvio>"), []byte("<sfR:EstadoEnvio>No"), 1)
			return bytes.Replace(r, []byte("ConDatos"), []byte("Algo"), 1)
		})
}

func TestCancelledCallIsNoOutcome(t *testing.T) {
	o := open(t, es.Pack())
	f := o.prepare(byName(t, "business"), country.Link{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.channel.Send(ctx, []country.Filing{f}, credentials()); err == nil {
		t.Error("a cancelled call has an outcome")
	}
}
