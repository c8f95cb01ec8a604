package mx_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tributary/internal/country"
)

// Whatever a provider answers, a voucher counts as stamped only with a stamp that
// SAT signed for it; and an answer is an outcome or an error, never neither.
func FuzzAnswers(f *testing.F) {
	b := open(f)
	statuses := []int{http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusInternalServerError}
	status, body, rest := 0, []byte(nil), false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/mx/rccf/"):
			resp, err := http.Get(b.url + r.URL.Path)
			if err != nil {
				return
			}
			defer resp.Body.Close() //nolint:errcheck // only read
			w.WriteHeader(resp.StatusCode)
			_, _ = io.Copy(w, resp.Body)
		case strings.HasSuffix(r.URL.Path, "/authenticate"):
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"data":{"token":"t","expires_in":9999999999},"status":"success"}`)
		default:
			if rest {
				w.Header().Set("Content-Type", "application/json")
			}
			w.WriteHeader(status)
			_, _ = w.Write(body)
		}
	}))
	f.Cleanup(server.Close)
	ch := channelTo(f, server.URL)
	filings := map[bool]country.Filing{}
	for rest, pac := range map[bool]string{false: "soap", true: "rest"} {
		filings[rest] = b.prepare(f, draft("X-1", func(d *country.Draft) { d.Supplier = supplier(pac) }))
	}
	good := string(b.send(f, filings[false]).Document)
	f.Add(uint8(0), false, []byte(soap(`<s0:xml>`+escaped(strings.Replace(good, `SelloSAT="`, `SelloSAT="AAAA`, 1))+`</s0:xml>`)))
	f.Add(uint8(0), false, []byte(incident("CFDI40145")))
	f.Add(uint8(1), true, []byte(`{"status":"error","message":"CFDI40145 - x","messageDetail":"y"}`))
	f.Add(uint8(0), true, []byte(`{"status":"success","data":{"cfdi":"<a/>"}}`))
	f.Fuzz(func(t *testing.T, which uint8, byREST bool, text []byte) {
		if bytes.Contains(text, []byte("cfdi:Comprobante")) && strings.Contains(string(text), escaped(good)) {
			t.Skip("the stamp itself")
		}
		status, body, rest = statuses[int(which)%len(statuses)], text, byREST
		receipts, err := ch.Send(t.Context(), []country.Filing{filings[byREST]}, credentials())
		if err == nil && (len(receipts) != 1 || receipts[0].Outcome == "" || receipts[0].Outcome == country.Accepted) {
			t.Errorf("%d %q gives %+v", status, text, receipts)
		}
		if err == nil && receipts[0].Outcome == country.Rejected && len(receipts[0].Faults) == 0 {
			t.Errorf("%d %q is a rejection without a reason", status, text)
		}
		list, err := ch.(country.Register).Registered(t.Context(), supplier("soap"), country.Day{Year: 2026, Month: 1, Day: 1}, credentials())
		if err == nil && !byREST && status != http.StatusOK {
			t.Errorf("%d %q gives the list %v", status, text, list)
		}
	})
}

// The double answers every call in the protocol it came in, and registers
// nothing that it does not say it stamped.
func FuzzDouble(f *testing.F) {
	simulators, err := country.NewSimulators(f.TempDir(), pack())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = simulators.Close() })
	desk, _ := simulators.Desk("MX")
	paths := []string{"/servicios/soap/stamp", "/servicios/soap/cancel", "/servicios/soap/utilities", "/v2/security/authenticate", "/v4/cfdi33/stamp/v4", "/cfdi33/cancel/xml",
		"/ConsultaCFDIService.svc", "/rccf/300010/000004/00/00/24/30001000000400002434.cer"}
	form := "multipart/form-data; boundary=b"
	f.Add(uint8(0), "text/xml", []byte(soapCall("stamp", `<q:xml>AAAA</q:xml><q:username>pac@example.com</q:username><q:password>a password</q:password>`)))
	f.Add(uint8(1), "text/xml", []byte(soapCall("cancel_signature", `<q:xml>PGEvPg==</q:xml><q:username>u</q:username><q:password>p</q:password>`)))
	f.Add(uint8(2), "text/xml", []byte(soapCall("report_uuid", `<q:taxpayer_id>EKU9003173C9</q:taxpayer_id><q:date_from>2026-01-01T00:00:00</q:date_from><q:date_to>x</q:date_to>`)))
	f.Add(uint8(3), "application/json", []byte(`{"user":"u","password":"p"}`))
	f.Add(uint8(4), form, []byte("--b\r\nContent-Disposition: form-data; name=\"xml\"; filename=\"xml\"\r\n\r\n<a/>\r\n--b--\r\n"))
	f.Add(uint8(6), "text/xml", []byte(soapCall("Consulta", `<q:expresionImpresa>?id=A&amp;re=B&amp;rr=C&amp;tt=1.0</q:expresionImpresa>`)))
	f.Fuzz(func(t *testing.T, path uint8, media string, body []byte) {
		before, err := desk.Registrations()
		if err != nil {
			t.Fatal(err)
		}
		method, at := http.MethodPost, paths[int(path)%len(paths)]
		if strings.HasPrefix(at, "/rccf/") {
			method = http.MethodGet
		}
		r := httptest.NewRequest(method, "/mx"+at, bytes.NewReader(body))
		r.Header["Content-Type"] = []string{media}
		r.Header.Set("Authorization", "Bearer x")
		w := httptest.NewRecorder()
		simulators.ServeHTTP(w, r)
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

func soapCall(method, args string) string {
	return `<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:q="http://facturacion.finkok.com/stamp"><soapenv:Header/><soapenv:Body><q:` +
		method + `>` + args + `</q:` + method + `></soapenv:Body></soapenv:Envelope>`
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
