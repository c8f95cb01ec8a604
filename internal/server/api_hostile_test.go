package server_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tributary/internal/db/dbtest"
	"tributary/internal/mutate"
	"tributary/internal/needs"
)

// hostileBodies is how many mutated bodies are sent over the network.
func hostileBodies() int {
	if needs.IsLong() {
		return 100_000
	}
	return 400
}

// nasty are texts that a mutation puts somewhere.
var nasty = sync.OnceValue(func() []string {
	return []string{"", "null", "true", "{}", "[]", `"\u0000"`, `"\ud800"`, `"\uffff"`, `"` + "\u202e" + `"`, "1e400",
		"-1e400", "1e-400", "-0", "0.00000000000000001", "9223372036854775808", "18446744073709551616", "-9007199254740992",
		"NaN", "Infinity", "0x10", "01", "1.", ".5",
		strings.Repeat("[", 100), strings.Repeat(`{"a":`, 40), `"` + strings.Repeat("x", 5000) + `"`,
		strings.Repeat("9", 400), "]]>", "<script>", "\x00", "\xff", "\ufeff", `\`, `"`, ",", ":",
		"'; DROP TABLE operations; --", "${jndi:x}", "%s%n", `{"__proto__":1}`, `"2026-02-30T00:00:00Z"`}
})

// mutated is a body that began as a good one.
func mutated(r *rand.Rand, good []byte, others [][]byte) []byte {
	body := slices.Clone(good)
	valuesOnly := r.IntN(2) == 0 // half of the bodies mostly stay JSON
	for range 1 + r.IntN(4) {
		if len(body) == 0 {
			break
		}
		at := r.IntN(len(body))
		to := min(len(body), at+1+r.IntN(20))
		how := r.IntN(8)
		if valuesOnly {
			how = 5
		}
		switch how {
		case 0:
			body[at] ^= 1 << r.IntN(8)
		case 1:
			body = body[:at] // cut off
		case 2:
			body = slices.Delete(body, at, to)
		case 3:
			body = slices.Insert(body, at, body[at:to:to]...)
		case 4:
			text := nasty()[r.IntN(len(nasty()))]
			body = slices.Insert(body, at, []byte(text)...)
		case 5: // a value becomes another
			if colon := bytes.IndexByte(body[at:], ':'); colon >= 0 {
				from := at + colon + 1
				end := from + max(0, bytes.IndexAny(body[from:], ",}]"))
				body = slices.Replace(body, from, end, []byte(nasty()[r.IntN(len(nasty()))])...)
			}
		case 6:
			body[at] = byte(r.IntN(256))
		case 7:
			other := others[r.IntN(len(others))]
			body = append(body[:at:at], other[r.IntN(len(other)):]...)
		}
	}
	return body
}

// judge checks that an answer to anything at all is a refusal in its shape or an acceptance.
func judge(t testing.TB, status int, header http.Header, body []byte) {
	t.Helper()
	ok := status == 200 || status == 202 || status >= 400 && status < 500 ||
		status == 503 && header.Get("Retry-After") != ""
	var refusal struct {
		Message string
		Errors  []struct{ Code, Message, Type string }
	}
	err := json.Unmarshal(body, &refusal)
	if status >= 400 && (err != nil || refusal.Message == "" || len(refusal.Errors) == 0 || len(refusal.Errors) > 100) ||
		err != nil || !ok {
		t.Errorf("status %d, body %.300q", status, body)
	}
	if status == 500 || bytes.Contains(body, []byte("goroutine ")) || bytes.Contains(body, []byte(".go:")) {
		t.Errorf("internals are shown: %.300q", body)
	}
}

// TestHostileBodiesAreNeverAnError sends mutated bodies to every reader of the running program.
func TestHostileBodiesAreNeverAnError(t *testing.T) {
	t.Parallel()
	bombard(t, quiet(t), hostileBodies())
}

// handledBodies is how many are given to the handler without a network.
func handledBodies() int {
	if needs.IsLong() {
		return 1_000_000
	}
	return 4_000
}

// TestMutatedBodiesAreJudgedInProcess is the many of them: readers that store
// nothing, without connections.
func TestMutatedBodiesAreJudgedInProcess(t *testing.T) {
	t.Parallel()
	n := handledBodies()
	p := quiet(t)
	var bodies [][]byte
	for _, r := range readers(t, p) {
		text, err := json.Marshal(r.full)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, text)
	}
	handler := p.Handler()
	var good, bad atomic.Int64
	inParts(t, n, func(t *testing.T, i int) {
		body := mutated(rand.New(rand.NewPCG(29, uint64(i))), bodies[i%len(bodies)], bodies)
		request := httptest.NewRequest("POST", "/v1/transactions/validate", bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Api-Key", demoKey)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request)
		if w.Code == http.StatusOK {
			good.Add(1)
		} else {
			bad.Add(1)
		}
		if judge(t, w.Code, w.Header(), w.Body.Bytes()); t.Failed() {
			t.Fatalf("with %q", body)
		}
	})
	if t.Logf("%d accepted, %d refused", good.Load(), bad.Load()); good.Load() < int64(n/1000) || bad.Load() < int64(n/2) {
		t.Error("the bodies are not hostile, or only that")
	}
}

// TestHostileTextIsNeverAnErrorOnPostgreSQL does the same in short on the other
// engine, which stores neither NUL nor broken UTF-8, wherever they stand.
func TestHostileTextIsNeverAnErrorOnPostgreSQL(t *testing.T) {
	t.Parallel()
	p, err := start(false, dbtest.MigratedURL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	bombard(t, p, 200)
	c := p.as(demoKey)
	for _, text := range []string{"%00", "a%00b", "%FF", "%C3%28", "%ED%A0%80", "%F0%9F%98%80", "'", "%25"} {
		for _, path := range []string{"/v1/transactions/", "/v1/transactions/history/", "/onboarding/v2/companies/",
			"/onboarding/v2/jobs/", "/lookup/v2/batch-validations/", "/lookup/v2/single-validations/", "/v1/countries/"} {
			c.want(t, 404, "GET", path+text, nil)
		}
		c.want(t, 404, "GET", "/onboarding/v2/companies/"+text+"?external-id=true", nil)
		c.want(t, 404, "PATCH", "/onboarding/v2/companies/"+text, "{}")
		c.want(t, 404, "DELETE", "/lookup/v2/batch-validations/"+text, nil)
		c.want(t, 404, "POST", "/v1/webhooks/events/"+text+"/redeliver", nil)
		c.want(t, 404, "GET", "/invoicing/v1/invoices/"+text+"/pdf", nil)
		for _, name := range []string{"supplier_id", "transaction_number", "cursor", "status", "from", "country_code", "%00",
			"%FF"} {
			if got := c.do(t, "GET", "/v1/transactions?"+name+"="+text, nil); got.status != 200 && got.status != 400 {
				t.Errorf("%s=%s answers %d", name, text, got.status)
			}
		}
	}
}

// bombard sends mutated bodies to every reader of a program.
func bombard(t *testing.T, p *program, n int) {
	t.Helper()
	c := p.as(demoKey)
	all := readers(t, p)
	var bodies [][]byte
	for _, r := range all {
		text, err := json.MarshalIndent(r.full, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, text)
	}
	var mu sync.Mutex
	statuses := map[int]int{}
	inParts(t, n, func(t *testing.T, i int) {
		which := i % len(all)
		path := all[which].path
		if all[which].schema == "Transaction" && i%2 == 0 {
			path = "/v1/transactions"
		}
		body := mutated(rand.New(rand.NewPCG(23, uint64(i))), bodies[which], bodies)
		got := exchange(t, c.request(t, all[which].method, path, body))
		mu.Lock()
		statuses[got.status]++
		mu.Unlock()
		judge(t, got.status, got.header, got.body)
		if t.Failed() {
			t.Fatalf("%s %s with %q", all[which].method, path, body)
		}
	})
	t.Logf("%d bodies: %v", n, statuses)
	if statuses[400] < n/2 || statuses[202] < n/100 {
		t.Errorf("%v: the bodies are not hostile, or only that", statuses)
	}
	c.want(t, 200, "GET", "/readyz", nil)
}

// FuzzTheHandler feeds any body to any reader, in process. Run it with
// -fuzzminimizetime=10x: the rest of the program makes coverage restless, and
// the fuzzer would spend its time on shortening what is not interesting.
func FuzzTheHandler(f *testing.F) {
	p := quiet(f)
	all := readers(f, p)
	for i, r := range all {
		text, err := json.Marshal(r.full)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), text)
		f.Add(uint8(i), text[:len(text)/2])
		f.Add(uint8(i), []byte(strings.Repeat(`{"items":[`, 20)))
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		r := all[int(which)%len(all)]
		request := httptest.NewRequest(r.method, r.path, bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Api-Key", demoKey)
		w := httptest.NewRecorder()
		p.Handler().ServeHTTP(w, request)
		judge(t, w.Code, w.Header(), w.Body.Bytes())
	})
}

// TestHardCase23ContentAttacksAreRefusedByRuleOrKeptAsText sends the texts and
// numbers of the case; what is accepted comes back exactly as it was sent.
func TestHardCase23ContentAttacksAreRefusedByRuleOrKeptAsText(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as(demoKey)
	for i, note := range []string{`<script>alert(1)</script>`, `<img src=http://169.254.169.254/>`,
		`<iframe src="file:///etc/passwd">`, `<style>@import url(http://x)</style>`, `<svg onload=x>`, "]]>",
		strings.Repeat("x", 3000)} {
		op := c.submit(t, "/v1/transactions", p.sale(t, "attack-"+strconv.Itoa(i), object{"note": note}))
		if r := c.want(t, 200, "GET", "/v1/transactions/"+op, nil).json(t); r["note"] != note {
			t.Errorf("note %q is kept as %q", note, r["note"])
		}
	}
	item := func(changes object) object {
		one := object{"number": 1, "name": "x", "quantity": 1, "unit_price": 100}
		for k, v := range changes {
			one[k] = v
		}
		return p.sale(t, "refused", object{"items": []any{one}, "payments": nil})
	}
	for field, body := range map[string]object{
		"note":               p.sale(t, "refused", object{"note": "a\u202eb"}),
		"transaction_id":     p.sale(t, "x\x00y", nil),
		"transaction_number": p.sale(t, "refused", object{"transaction_number": "\ufffe"}),
		"customer.address.city": p.sale(t, "refused",
			object{"customer": object{"legal_name": "x", "type": "INDIVIDUAL", "address": object{
				"country_code": "IE", "city": strings.Repeat("x", 1_000_00)}}}),
		"items.0.quantity":   item(object{"quantity": num("1e400")}),
		"items.0.unit_price": item(object{"unit_price": num("9007199254740992")}),
		"items.0.name":       item(object{"name": "line\nbreak"}),
		"items":              p.sale(t, "refused", object{"items": slices.Repeat([]any{object{}}, 100_000), "payments": nil}),
	} {
		got := c.want(t, 400, "POST", "/v1/transactions", body)
		found := false
		for _, f := range got.json(t)["errors"].([]any) {
			found = found || f.(object)["field"] == field
		}
		if !found && field != "items" { // its faults are past the hundredth
			t.Errorf("%s: %.400s", field, got.body)
		}
	}
	for _, quantity := range []string{"-0", "0.12345678901234567", "-1"} {
		c.want(t, 400, "POST", "/v1/transactions", item(object{"quantity": num(quantity)}))
	}
	c.want(t, 404, "GET", "/v1/transactions/history/refused", nil) // nothing half-stored
}
