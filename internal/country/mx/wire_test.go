package mx_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/country/mx"
	"tributary/internal/mutate"
)

// against lets a channel talk to a handler of the test's own.
func against(t *testing.T, handler http.HandlerFunc) country.Channel {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return channelTo(t, server.URL)
}

func soap(result string) string {
	return `<?xml version='1.0' encoding='UTF-8'?><senv:Envelope xmlns:senv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:tns="http://facturacion.finkok.com/stamp" xmlns:s0="apps.services.soap.core.views"><senv:Body><tns:stampResponse><tns:stampResult>` +
		result + `</tns:stampResult></tns:stampResponse></senv:Body></senv:Envelope>`
}

func incident(code string) string {
	return soap(`<s0:xml></s0:xml><s0:Incidencias><s0:Incidencia><s0:CodigoError>` + code +
		`</s0:CodigoError><s0:MensajeIncidencia>palabras</s0:MensajeIncidencia></s0:Incidencia></s0:Incidencias>`)
}

func TestAnswersThatSayNothingAreNoOutcome(t *testing.T) {
	for _, c := range []struct {
		name, pac, kind, body string
		status                int
	}{
		{"503", "soap", "text/html", "<html>busy</html>", 503},
		{"page with 200", "soap", "text/html", "<html><body>Mantenimiento</body></html>", 200},
		{"SOAP fault", "soap", "text/xml",
			`<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><e:Fault><faultcode>e:Server</faultcode><faultstring>busy</faultstring></e:Fault></e:Body></e:Envelope>`, 500},
		{"SOAP fault with 200", "soap", "text/xml",
			`<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><e:Fault><faultstring>busy</faultstring></e:Fault></e:Body></e:Envelope>`, 200},
		{"cut", "soap", "text/xml", incident("CFDI40145")[:200], 200},
		{"neither voucher nor reason", "soap", "text/xml", soap(`<s0:xml></s0:xml>`), 200},
		{"a voucher that is none", "soap", "text/xml", soap(`<s0:xml>&lt;a/&gt;</s0:xml>`), 200},
		{"document type", "soap", "text/xml", `<!DOCTYPE a>` + incident("CFDI40145"), 200},
		{"rejection with the wrong status", "soap", "text/xml", incident("CFDI40145"), 502},
		{"503", "rest", "text/html", "<html>busy</html>", 503},
		{"page with 200", "rest", "text/html", "<html></html>", 200},
		{"500 in JSON", "rest", "application/json", `{"status":"error","message":"CO1000 - Error No Controlado."}`, 500},
		{"429", "rest", "application/json", `{"status":"error","message":"demasiadas"}`, 429},
		{"cut", "rest", "application/json", `{"status":"error","message":"CFDI40145 - no`, 400},
		{"success without a voucher", "rest", "application/json", `{"status":"success","data":{}}`, 200},
		{"other JSON", "rest", "application/json", `{"hello":1}`, 200},
	} {
		t.Run(c.pac+" "+c.name, func(t *testing.T) {
			ch := against(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "/authenticate") {
					fmt.Fprint(w, `{"data":{"token":"t","expires_in":9999999999},"status":"success"}`)
					return
				}
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			})
			f, err := ch.Prepare(draft("X-1", func(d *country.Draft) { d.Supplier = supplier(c.pac) }))
			if err != nil {
				t.Fatal(err)
			}
			r, err := ch.Send(t.Context(), []country.Filing{f}, credentials())
			if err == nil || errors.Is(err, country.ErrNotTaken) || errors.Is(err, country.ErrCredentials) {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

func TestAnswersThatSaySomething(t *testing.T) {
	send := func(t *testing.T, code string) (country.Receipt, error) {
		ch := against(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, incident(code)) })
		f, err := ch.Prepare(draft("X-1", nil))
		if err != nil {
			t.Fatal(err)
		}
		r, err := ch.Send(t.Context(), []country.Filing{f}, credentials())
		if err != nil {
			return country.Receipt{}, err
		}
		return r[0], nil
	}
	for _, code := range []string{"301", "302", "303", "305", "401", "402", "CFDI40145", "705"} {
		if r, err := send(t, code); err != nil || r.Outcome != country.Rejected || r.Faults[0].Message != code+": palabras" {
			t.Errorf("%s: %+v %v", code, r, err)
		}
	}
	if r, err := send(t, "708"); err != nil || r.Outcome != country.NotTaken {
		t.Errorf("SAT out of the provider's reach: %+v %v", r, err)
	}
	for _, code := range []string{"300", "304"} { // a wrong password, a certificate that was revoked
		if _, err := send(t, code); !errors.Is(err, country.ErrCredentials) || !errors.Is(err, country.ErrNotTaken) {
			t.Errorf("%s: %v", code, err)
		}
	}
	if _, err := send(t, "307"); err == nil || errors.Is(err, country.ErrNotTaken) {
		t.Errorf("stamped before, and nothing to show: %v", err)
	}
}

func TestRefusedUsersPauseTheSupplier(t *testing.T) {
	for _, pac := range []string{"soap", "rest"} {
		b := open(t)
		f := b.prepare(t, draft("X-1", func(d *country.Draft) { d.Supplier = supplier(pac) }))
		c := credentials()
		c.Username = "somebody-DENIED"
		if _, err := b.channel.Send(t.Context(), []country.Filing{f}, c); !errors.Is(err, country.ErrCredentials) ||
			b.held(t) != 0 {
			t.Errorf("%s: %v", pac, err)
		}
	}
	other := draft("X-2", func(d *country.Draft) { d.Supplier.TaxNumber = "URE180429TM6" })
	if _, err := channelTo(t, "http://127.0.0.1:1").Prepare(other); !errors.Is(err, country.ErrCredentials) {
		t.Errorf("another's certificate: %v", err)
	}
}

func TestSessionThatEndedIsOpenedAgain(t *testing.T) {
	logins := 0
	b := open(t)
	inner := against(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/authenticate") {
			logins++
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"data":{"token":"t%d","expires_in":9999999999},"status":"success"}`, logins)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") == "Bearer t1" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"status":"error","message":"El token ha expirado"}`)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"status":"error","message":"CFDI40145 - palabras","data":null}`)
	})
	f := b.prepare(t, draft("X-1", func(d *country.Draft) { d.Supplier = supplier("rest") }))
	for range 3 {
		r, err := inner.Send(t.Context(), []country.Filing{f}, credentials())
		if err != nil || r[0].Outcome != country.Rejected || r[0].Faults[0].Message != "CFDI40145: palabras" {
			t.Fatalf("%+v %v", r, err)
		}
	}
	if logins != 2 {
		t.Errorf("%d logins", logins)
	}
}

// A stamp is believed only when it is of our voucher and SAT's.
func TestForgedStampsAreNotBelieved(t *testing.T) {
	b := open(t)
	f := b.prepare(t, draft("X-1", nil))
	good := string(b.send(t, f).Document)
	for name, forged := range map[string]string{
		"another seal of SAT": strings.Replace(good, `SelloSAT="`, `SelloSAT="AAAA`, 1),
		"another UUID": strings.Replace(good, `UUID="`+folio(f.Report), `UUID="00000000-0000-0000-0000-000000000000`,
			1),
		"another voucher":     strings.Replace(good, `SelloCFD="`, `SelloCFD="AAAA`, 1),
		"unknown certificate": strings.Replace(good, `NoCertificadoSAT="3`, `NoCertificadoSAT="9`, 1),
		"no stamp":            string(f.Report),
	} {
		if forged == good {
			t.Fatalf("%s: nothing was forged", name)
		}
		ch := against(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/mx/rccf/") {
				resp, err := http.Get(b.url + r.URL.Path)
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				w.WriteHeader(resp.StatusCode)
				if _, err := io.Copy(w, resp.Body); err != nil {
					t.Error(err)
				}
				return
			}
			fmt.Fprint(w, soap(`<s0:xml>`+escaped(forged)+`</s0:xml>`))
		})
		r, err := ch.Send(t.Context(), []country.Filing{f}, credentials())
		if err == nil || errors.Is(err, country.ErrNotTaken) {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
}

func escaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

func TestLimitsTellASimulatorFromAProvider(t *testing.T) {
	at := country.Endpoint{BaseURL: "https://facturacion.finkok.com", Live: true, HTTP: http.DefaultClient}
	live, err := pack().Connect(at)
	if err != nil {
		t.Fatal(err)
	}
	simulated := channelTo(t, "http://127.0.0.1:1").Limits()
	if l := live.Limits(); l.Class != country.ByHash || l.VisibleAfter == 0 || l.PollEvery <= simulated.PollEvery ||
		simulated.VisibleAfter != 0 || l.PendingMax < 3*24*60*60*1e9 {
		t.Errorf("%+v %+v", l, simulated)
	}
	if _, err := pack().Connect(country.Endpoint{}); !errors.Is(err, country.ErrNoAddress) {
		t.Errorf("no address: %v", err)
	}
}

// Whatever is read as a stamped voucher has an original string, or complements
// whose rules are not known; the reader itself is fuzzed in xmltree.
func FuzzStamped(f *testing.F) {
	f.Add([]byte(`<cfdi:Comprobante xmlns:cfdi="http://www.sat.gob.mx/cfd/4" Sello="a&amp;b"><cfdi:Emisor Rfc="x"/></cfdi:Comprobante>`))
	f.Add([]byte(`<a><b c="d">e</b></a>`))
	f.Add([]byte(`<!DOCTYPE a><a/>`))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, err := mx.Original(raw)
		if err == nil && (!bytes.HasPrefix(text, []byte("||")) || !bytes.HasSuffix(text, []byte("||"))) {
			t.Errorf("%q has the original string %q", raw, text)
		}
		if mx.ReadStamped(raw) != nil {
			return
		}
		if stamp, err := mx.OriginalOfStamp(raw); err != nil || bytes.Count(stamp, []byte("|")) < 9 {
			t.Errorf("the stamp of %q has the original string %q, %v", raw, stamp, err)
		}
	})
}

func FuzzProducts(f *testing.F) {
	f.Add([]byte{0x4b, 0x04, 0x00})
	mutate.Corpus(f)
	f.Fuzz(func(_ *testing.T, raw []byte) { _ = mx.ReadProducts(raw) })
}

func TestCertificateNumberIsSATs(t *testing.T) {
	b := open(t)
	f := b.prepare(t, draft("X-1", nil))
	der, err := base64.StdEncoding.DecodeString(mx.Attribute(f.Report, "Certificado"))
	if err != nil || len(der) == 0 {
		t.Fatal(err)
	}
	if number := mx.Attribute(f.Report, "NoCertificado"); len(number) != 20 || strings.Trim(number, "0123456789") != "" {
		t.Errorf("a certificate that SAT did not issue is %q", number)
	}
	if r := b.send(t, f); !strings.HasPrefix(r.AuthorityID2, "3000100") {
		t.Errorf("SAT's own is %q", r.AuthorityID2)
	}
}

// BenchmarkVoucher is XML and original string without the signature,
// BenchmarkPrepare all of it.
func BenchmarkVoucher(b *testing.B) {
	for _, lines := range []int{1, 10, 100} {
		d := draft("B-1", func(d *country.Draft) {
			prices := make([]int64, lines)
			for i := range prices {
				prices[i] = int64(10000 + i)
			}
			d.Transaction.Items = items(prices...)
			for i := range d.Transaction.Items {
				d.Transaction.Items[i].Name = "Café"
			}
		})
		b.Run(fmt.Sprintf("%d-lines", lines), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := mx.Unsealed(d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPrepare(b *testing.B) {
	ch := channelTo(b, "http://127.0.0.1:1")
	d := draft("B-1", func(d *country.Draft) {
		d.Transaction.Items = items(1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000)
	})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ch.Prepare(d); err != nil {
			b.Fatal(err)
		}
	}
}
