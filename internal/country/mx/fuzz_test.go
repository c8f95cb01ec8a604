package mx_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/mutate"
)

// Whatever a provider answers, a voucher counts as stamped only with a stamp that
// SAT signed for it; and an answer is an outcome or an error, never neither.
func FuzzAnswers(f *testing.F) {
	b := open(f)
	statuses := []int{http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusTooManyRequests,
		http.StatusInternalServerError}
	status, body, rest := 0, []byte(nil), false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/mx/rccf/"):
			resp, err := http.Get(b.url + r.URL.Path)
			if err != nil {
				return
			}
			defer resp.Body.Close()
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
	f.Add(uint8(0), false,
		[]byte(soap(`<s0:xml>`+escaped(strings.Replace(good, `SelloSAT="`, `SelloSAT="AAAA`, 1))+`</s0:xml>`)))
	f.Add(uint8(0), false, []byte(incident("CFDI40145")))
	f.Add(uint8(1), true, []byte(`{"status":"error","message":"CFDI40145 - x","messageDetail":"y"}`))
	f.Add(uint8(0), true, []byte(`{"status":"success","data":{"cfdi":"<a/>"}}`))
	mutate.Corpus(f)
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
		list, err := ch.(country.Register).Registered(t.Context(), supplier("soap"),
			country.Day{Year: 2026, Month: 1, Day: 1}, credentials())
		if err == nil && !byREST && status != http.StatusOK {
			t.Errorf("%d %q gives the list %v", status, text, list)
		}
	})
}
