package server_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tributary/internal/needs"
)

// TestEveryRouteAnswersAsDescribed calls every described operation for each
// answer of success; a route that is new in the table fails until it is called here.
func TestEveryRouteAnswersAsDescribed(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c, d := p.as(demoKey), describedBy(t, p)
	called := map[string]bool{}
	call := func(status int, method, path string, body any) answer {
		t.Helper()
		got := c.want(t, status, method, path, body)
		at, m, found := d.operation(c.request(t, method, path, nil))
		if !found {
			t.Errorf("%s %s is not described", method, path)
		}
		called[m+" "+at] = true
		if bare, _, _ := strings.Cut(path, "?"); method == "GET" && status == 200 {
			c.do(t, method, bare+"?unknown=1", nil) // a refusal is described, too
		}
		return got
	}
	supplier := object{"id": p.Demo().Suppliers["XX"]}
	op := call(202, "POST", "/v1/transactions", p.sale(t, "routes", nil)).json(t)["operation_id"].(string)
	event := p.inbox.await(t, op, 1)[0]
	result := call(200, "GET", "/v1/transactions/"+op, nil).json(t)
	call(200, "POST", "/v1/transactions/validate", p.sale(t, "routes", nil))
	call(200, "GET", "/v1/transactions?limit=100", nil)
	call(200, "GET", "/v1/transactions/history/routes", nil)
	call(202, "POST", "/v1/transactions/adjustment",
		example(t, "adjustment", object{"supplier": supplier, "transaction_id": "routes-a", "transaction_number": "R-a",
			"reference_transaction_id": "routes"}))
	call(202, "POST", "/v1/transactions/credit",
		example(t, "credit", object{"transaction_id": "routes-c", "transaction_number": "R-c",
			"reference_transaction_id": "routes"}))
	call(202, "POST", "/v1/transactions/cancellation",
		example(t, "cancellation", object{"transaction_id": "routes-x", "transaction_number": "R-x",
			"reference_transaction_id": "routes"}))
	call(202, "POST", "/v1/transactions/payment",
		example(t, "payment", object{"transaction_id": "routes-p", "reference_transaction_id": "routes"}))
	call(202, "POST", "/v1/transactions/backfill/reported",
		example(t, "backfill", object{"transaction_id": "routes-b", "transaction_number": "R-b"}))
	called["post /v1/transactions/received"] = true // by upload
	sent := c.outcome(t, call(202, "POST", "/v1/transactions", belgian(t, c, "answered routes", "0403053608")("R-be", nil)).json(t)["operation_id"].(string))
	document := c.upload(t, "application/xml", c.report(t, sent))
	c.read(t, document)
	call(202, "POST", "/v1/transactions/"+document+"/response", example(t, "response", nil))
	call(201, "POST", "/v1/series", object{"supplier_id": p.Demo().Suppliers["GB"], "pattern": "R-{N:3}"})
	call(200, "GET", "/v1/series", nil)
	call(200, "GET", "/v1/me", nil)
	call(200, "GET", "/v1/countries", nil)
	call(200, "GET", "/v1/countries/XX", nil)
	job := call(202, "POST", "/onboarding/v2/companies",
		example(t, "company", object{"meta": object{"country_code": "XX", "external_id": "routes"},
			"tax_information": object{"tax_number": "XX-ROUTES"}})).json(t)["data"].(object)["job_id"].(string)
	call(200, "GET", "/onboarding/v2/jobs/"+job, nil)
	call(200, "GET", "/onboarding/v2/companies?limit=100", nil)
	call(200, "GET", "/onboarding/v2/companies/"+p.Demo().Suppliers["GB"], nil)
	call(202, "PATCH", "/onboarding/v2/companies/"+p.Demo().Suppliers["GB"], object{"company_number": "routes"})
	call(204, "DELETE", "/onboarding/v2/companies/"+c.onboarded(t, "routes-closed", "XX"), nil)
	batch := call(202, "POST", "/lookup/v2/batch-validations", example(t, "batch", nil)).json(t)["batch_id"].(string)
	call(200, "GET", "/lookup/v2/batch-validations/"+batch, nil)
	if got := c.do(t, "DELETE", "/lookup/v2/batch-validations/"+batch, nil); got.status != 204 && got.status != 409 {
		t.Errorf("cancel answers %d", got.status)
	}
	called["delete /lookup/v2/batch-validations/{id}"] = true
	single := call(202, "POST", "/lookup/v2/single-validations",
		example(t, "single", nil)).json(t)["validation_id"].(string)
	call(200, "GET", "/lookup/v2/single-validations/"+single, nil)
	call(200, "GET", "/v1/webhooks/events?limit=100", nil)
	call(202, "POST", "/v1/webhooks/events/"+event.WebhookID+"/redeliver", nil)
	for _, a := range result["attachments"].([]any) {
		call(200, "GET", "/invoicing/v1/invoices/"+a.(object)["resource_id"].(string)+"/"+strings.ToLower(a.(object)["type"].(string)), nil)
	}
	for _, path := range []string{"/openapi.json", "/docs/index.html", "/docs/site.css", "/docs/site.js",
		"/docs/icon.svg", "/docs/search.html?q=webhook", "/healthz", "/readyz"} {
		call(200, "GET", path, nil)
	}
	call(303, "GET", "/docs", nil)
	for path, methods := range d.doc["paths"].(object) {
		for method := range methods.(object) {
			if !called[method+" "+path] {
				t.Errorf("%s %s is described but was not called", method, path)
			}
		}
	}
}

// TestTheREADMEsLinesWork runs the lines of the third terminal against a
// program started as the first terminal starts it.
func TestTheREADMEsLinesWork(t *testing.T) {
	t.Parallel()
	needs.Tool(t, "curl", "curl")
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(readme), "## Ten minutes with the demo")
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, 3)
	if !found || len(blocks) != 3 || !strings.Contains(blocks[0][1], demoKey) || !strings.Contains(blocks[2][1], demoKey) {
		t.Fatalf("the README has changed: %d blocks of code", len(blocks))
	}
	p := busy(t)
	const base = "BASE=http://127.0.0.1:8080"
	if !strings.Contains(blocks[2][1], base) {
		t.Fatalf("the README's lines do not begin with %s", base)
	}
	run := exec.CommandContext(t.Context(), "sh", "-eu", "-c", strings.Replace(blocks[2][1], base, "BASE="+p.URL(), 1))
	run.Dir = "../.."
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	accepted := regexp.MustCompile(`\{"operation_id":"([0-9a-f-]{36})"\}`).FindAllSubmatch(out, -1)
	if len(accepted) != 7 {
		t.Fatalf("%d submissions were accepted, want 7:\n%s", len(accepted), out)
	}
	c := p.as(demoKey)
	var outcomes []string
	for _, op := range accepted {
		r := c.outcome(t, string(op[1]))
		outcomes = append(outcomes, r["transaction_id"].(string)+" "+r["kind"].(string)+" "+r["status"].(string))
		t.Log(outcomes[len(outcomes)-1], r["errors"])
	}
	want := []string{"order-1001 INVOICE SUCCESS", "order-1002 INVOICE FAILURE", "order-1002 INVOICE SUCCESS",
		"order-1001-adjustment ADJUSTMENT SUCCESS", "order-1002-credit CREDIT SUCCESS", "order-1003 INVOICE SUCCESS",
		"order-1003-cancellation CANCELLATION SUCCESS"}
	if !slices.Equal(outcomes, want) {
		t.Errorf("outcomes\n%s\nwant\n%s\noutput\n%s", strings.Join(outcomes, "\n"), strings.Join(want, "\n"), out)
	}
	if !strings.Contains(string(out), `"history":[`) || !strings.Contains(string(out), `"next_cursor":`) {
		t.Errorf("history or list is missing:\n%s", out)
	}
}
