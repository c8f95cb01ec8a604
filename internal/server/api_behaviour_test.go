package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tributary/internal/account"
)

func TestTheKeyIsTakenFromThreeHeaders(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as("")
	for _, h := range [][2]string{{"Authorization", "Bearer " + demoKey}, {"Authorization", "bearer " + demoKey},
		{"X-Api-Key", demoKey}, {"Ocp-Apim-Subscription-Key", demoKey}} {
		c.want(t, 200, "GET", "/v1/countries/XX", nil, h[0], h[1])
	}
	var first answer
	other := "trb_test_demo_" + strings.Repeat("x", 43)
	for i, headers := range [][]string{nil, {"Authorization", "Bearer"}, {"Authorization", "Bearer " + other},
		{"Authorization", "Basic " + demoKey}, {"X-Api-Key", "trb_test_nobody_" + strings.Repeat("x", 43)},
		{"X-Api-Key", strings.Replace(demoKey, "test", "live", 1)},
		{"Ocp-Apim-Subscription-Key", "x"}, {"X-Api-Key", demoKey + "0"}, {"Cookie", "key=" + demoKey}} {
		got := c.want(t, 401, "GET", "/v1/countries/XX?api_key="+demoKey, nil, headers...)
		if i == 0 {
			first = got
		}
		if string(got.body) != string(first.body) || got.code(t) != "unauthenticated" ||
			got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%v is refused with %s %v, the first with %s", headers, got.body, got.header, first.body)
		}
	}
	for _, headers := range [][]string{{"Authorization", "Bearer " + demoKey, "X-Api-Key", p.stranger},
		{"X-Api-Key", demoKey, "Ocp-Apim-Subscription-Key", other}} {
		if got := c.want(t, 401, "GET", "/v1/countries/XX", nil, headers...); !strings.Contains(string(got.body),
			"two different") {
			t.Errorf("two different keys: %s", got.body)
		}
	}
	// the same one twice
	c.want(t, 200, "GET", "/v1/countries/XX", nil, "Authorization", "Bearer "+demoKey, "X-Api-Key", demoKey)
	for _, path := range []string{"/openapi.json", "/docs/index.html", "/healthz", "/readyz"} {
		c.want(t, 200, "GET", path, nil)
	}
	if got := c.want(t, 404, "GET", "/v1/nothing", nil); got.code(t) != "not_found" {
		t.Errorf("unknown path: %s", got.body)
	}
	if got := c.want(t, 405, "DELETE", "/v1/transactions", nil); got.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow %q", got.header.Get("Allow"))
	}
}

func TestEveryRouteButTheOpenOnesNeedsAKey(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c, d := p.as(""), describedBy(t, p)
	for path, methods := range d.doc["paths"].(object) {
		for method, op := range methods.(object) {
			security, own := op.(object)["security"].([]any)
			filled := strings.NewReplacer("{code}", "XX", "{format}", "pdf", "{page}", "site.css").Replace(path)
			filled = replaceParams(filled, strings.Repeat("0", 32))
			var body any
			if op.(object)["requestBody"] != nil {
				body = "{}"
			}
			got := c.do(t, strings.ToUpper(method), filled, body)
			if open := own && (len(security) == 0 || len(security[0].(object)) == 0); open == (got.status == 401) {
				t.Errorf("%s %s without a key answers %d, described as open: %t", method, path, got.status, open)
			}
		}
	}
}

func replaceParams(path, with string) string {
	for strings.Contains(path, "{") {
		from := strings.Index(path, "{")
		path = path[:from] + with + path[from+strings.Index(path[from:], "}")+1:]
	}
	return path
}

func TestABodyOfExactlyOneMiBPassesTheLimit(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as(demoKey)
	for _, path := range []string{"/v1/transactions/validate", "/onboarding/v2/companies",
		"/lookup/v2/single-validations"} {
		text := `{"padding":"` + strings.Repeat("x", 1<<20-len(`{"padding":""}`)) + `"}`
		if len(text) != 1<<20 {
			t.Fatal(len(text))
		}
		if got := c.want(t, 400, "POST", path, text); got.code(t) == "body_too_large" {
			t.Errorf("%s refuses a body of 1 MiB: %s", path, got.body)
		}
		c.want(t, 413, "POST", path, text+" ")
		chunked := c.request(t, "POST", path, text+" ")
		chunked.ContentLength = -1 // the length is not announced
		if got := exchange(t, chunked); got.status != 413 || got.code(t) != "body_too_large" {
			t.Errorf("%s takes a chunked body past the limit: %d %s", path, got.status, got.body)
		}
	}
}

func TestBodiesMustBeJSON(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as(demoKey)
	good := p.sale(t, "media", nil)
	for media, status := range map[string]int{"application/json": 200, "application/json; charset=utf-8": 200,
		"APPLICATION/JSON": 200, "text/plain": 415, "application/xml": 415, "": 415, "application/json/x": 415,
		"application/jsonp": 415, "multipart/form-data; boundary=x": 415, ";": 415} {
		got := c.want(t, status, "POST", "/v1/transactions/validate", good, "Content-Type", media)
		if status == 415 && got.code(t) != "media_type_unsupported" {
			t.Errorf("%s: %s", media, got.body)
		}
	}
}

// TestBrokenJSONIsRefusedWithItsPosition sends the same to every reader of bodies.
func TestBrokenJSONIsRefusedWithItsPosition(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as(demoKey)
	deep := func(n int) string {
		return `{"x":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	for _, r := range readers(t, p) {
		for _, b := range []struct {
			body, position string
		}{
			{"", ""}, {"{", ""}, {`{"a":1,}`, "byte 7"}, {"{\n  \"a\": 1,\n  \"a\": 2\n}", "line 3"},
			{`{"a":{"b":1,"b":2}}`, "byte"}, {deep(33), "32"},
			{`[]`, ""}, {`null`, ""}, {`"x"`, ""}, {`{} {}`, "byte"}, {"{\"a\":\"\xff\"}", "byte 6"}, {`{"a":NaN}`, "byte"},
			{`{"a":01}`, "byte"}, {`{'a':1}`, "byte 1"}, {`{"a":"` + "\n" + `"}`, "byte"}, {"\ufeff{}", ""},
		} {
			got := c.want(t, 400, r.method, r.path, b.body)
			fault := got.json(t)["errors"].([]any)[0].(object)
			if fault["code"] != "json_not_valid" || !strings.Contains(fault["message"].(string), b.position) ||
				!strings.HasPrefix(fault["message"].(string), "line ") {
				t.Errorf("%s: %q is refused with %v", r.schema, b.body, fault)
			}
		}
		if got := c.do(t, r.method, r.path, deep(32)); got.status == 400 && got.code(t) == "json_not_valid" {
			t.Errorf("%s: a body 32 deep is refused: %s", r.schema, got.body)
		}
	}
}

func TestAtMostAHundredFaultsAreListedAndTheRestCounted(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as(demoKey)
	many := make([]any, 300)
	for i := range many {
		many[i] = object{}
	}
	for path, body := range map[string]object{"/v1/transactions/validate": p.sale(t, "faults",
		object{"items": many, "payments": nil}), "/lookup/v2/batch-validations": {"validations": many}} {
		got := c.want(t, 400, "POST", path, body).json(t)
		if n := len(got["errors"].([]any)); n != 100 || !strings.Contains(got["message"].(string), "first 100") ||
			!strings.ContainsAny(got["message"].(string), "16") {
			t.Errorf("%s lists %d faults: %v", path, n, got["message"])
		}
	}
}

func TestTheRateLimitAnswers429WithRetryAfter(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	key, err := p.newClient("three-at-once", account.Rate{PerSecond: 1, Burst: 3}) // nobody else may spend its three
	if err != nil {
		t.Fatal(err)
	}
	c := p.as(key)
	seen := map[int]int{}
	for range 20 {
		got := c.do(t, "GET", "/v1/countries/XX", nil)
		seen[got.status]++
		if got.status == 429 && (got.code(t) != "rate_limited" || got.header.Get("Retry-After") != "1") {
			t.Errorf("429 with %v %s", got.header, got.body)
		}
	}
	if seen[200] < 3 || seen[429] == 0 || seen[200]+seen[429] != 20 {
		t.Errorf("of 20 calls with a burst of 3: %v", seen)
	}
	p.as(demoKey).want(t, 200, "GET", "/v1/countries/XX", nil) // nobody else is slowed down
}

func TestALargeBodyCostsMoreOfTheRateLimit(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as(p.weighed) // a hundred requests, one more per second
	large := object{"padding": strings.Repeat("x", 1<<20-100)}
	served := 0
	for ; c.do(t, "POST", "/v1/transactions/validate", large).status != 429; served++ {
		if served > 50 {
			t.Fatal("fifty bodies of a mebibyte passed a limit of a hundred requests")
		}
	}
	if served < 6 {
		t.Errorf("%d bodies of a mebibyte were served, each stands for sixteen requests", served)
	}
}

func TestListsNarrowAndContinue(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as(p.stranger) // nobody else of the tests submits for it here
	var ops []string
	for i := range 7 {
		ops = append(ops, c.submit(t, "/v1/transactions", p.sale(t, fmt.Sprintf("list-%d", i), object{
			"transaction_date": fmt.Sprintf("2026-03-0%dT10:00:00.5Z", i+1), "country_code": []string{"XX", "IE"}[i%2],
			"transaction_number": fmt.Sprintf("L-%d", i/2), "supplier": object{"id": fmt.Sprintf("s-%d", i%3)}})))
	}
	slices.Reverse(ops) // newest first
	list := func(query string) (ids []string, next any) {
		t.Helper()
		page := c.want(t, 200, "GET", "/v1/transactions?"+query, nil).json(t)
		for _, r := range page["data"].([]any) {
			ids = append(ids, r.(object)["operation_id"].(string))
		}
		return ids, page["next_cursor"]
	}
	at := func(indices ...int) (ids []string) {
		for _, i := range indices {
			ids = append(ids, ops[6-i])
		}
		return ids
	}
	for query, want := range map[string][]string{
		"": ops, "limit=100": ops, "limit=7": ops, "status=PROCESSING": ops, "status=SUCCESS": nil,
		"country_code=ie": at(5, 3, 1), "supplier_id=s-2": at(5, 2), "transaction_number=L-1": at(3, 2),
		"from=2026-03-06": at(6, 5), "to=2026-03-02": at(1, 0),
		"from=2026-03-02T10:00:00Z&to=2026-03-03T10:00:00Z": at(2, 1), "to=2026-03-01T09:59:59Z": nil,
		"to=2026-03-01T12:00:00%2B02:00":                  at(0),
		"country_code=XX&supplier_id=s-0&from=2026-03-02": at(6), "transaction_number=nothing": nil,
		"direction=SENT": ops, "direction=ALL": ops, "direction=RECEIVED": nil,
	} {
		if got, next := list(query); !slices.Equal(got, want) || next != nil {
			t.Errorf("%q lists %v and goes on at %v, want %v", query, got, next, want)
		}
	}
	var walked []string
	for query := "limit=2"; ; {
		ids, next := list(query)
		walked = append(walked, ids...)
		if next == nil {
			break
		}
		query = "limit=2&cursor=" + next.(string)
	}
	if !slices.Equal(walked, ops) {
		t.Errorf("pages of 2 give %v, want %v", walked, ops)
	}
	if got, next := list("limit=1"); len(got) != 1 || next == nil {
		t.Errorf("a page of 1 has %d entries, next %v", len(got), next)
	}
	for _, path := range []string{"/v1/transactions", "/onboarding/v2/companies", "/v1/webhooks/events", "/v1/series"} {
		for _, query := range []string{"limit=0", "limit=101", "limit=-1", "limit=x", "limit=1.5",
			"limit=99999999999999999999", "cursor=x", "cursor=%21", "cursor=bm90aGluZw", "unknown=1", "limit=1&limit=2",
			"cursor=%00", "cursor=" + strings.Repeat("QUFB", 100), "%zz"} {
			if got := c.want(t, 400, "GET", path+"?"+query, nil); got.code(t) != "field_not_valid" {
				t.Errorf("%s?%s: %s", path, query, got.body)
			}
		}
		c.want(t, 200, "GET", path+"?limit=1", nil)
		c.want(t, 200, "GET", path+"?limit=100", nil)
	}
	for _, query := range []string{"direction=sent", "direction=BOTH", "status=success",
		"status=DONE", "from=yesterday", "to=2026-02-30", "country_code=ESP",
		"supplier_id=%00", "transaction_number=%ff"} {
		c.want(t, 400, "GET", "/v1/transactions?"+query, nil)
	}
}

// TestNothingServerSideCanBeSetByABody sends members that only answers have.
func TestNothingServerSideCanBeSetByABody(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as(demoKey)
	op := c.submit(t, "/v1/transactions", p.sale(t, "mass-assignment",
		object{"status": "SUCCESS", "operation_id": "x", "unique_transaction_number": "U",
			"reported_at": "2026-01-01T00:00:00Z", "qr_code": "q", "client_id": "stranger"}))
	r := c.want(t, 200, "GET", "/v1/transactions/"+op, nil).json(t)
	if r["status"] != "PROCESSING" || r["operation_id"] != op || r["unique_transaction_number"] != nil ||
		r["total_amount"] != json.Number("22710") || r["reported_at"] != nil || r["qr_code"] != nil {
		t.Errorf("result %v", r)
	}
	// compared, never taken
	c.want(t, http.StatusBadRequest, "POST", "/v1/transactions", p.sale(t, "own-total", object{"total_amount": 1}))
	if n := len(r["errors"].([]any)); n != 6 {
		t.Errorf("%d warnings of unknown members: %v", n, r["errors"])
	}
	if got := p.as(p.stranger).do(t, http.MethodGet, "/v1/transactions/"+op, nil); got.status != 404 {
		t.Errorf("the named client sees it: %d", got.status)
	}
}
