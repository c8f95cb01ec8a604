package server_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// possessions are ids of every kind that one client has.
func possessions(t testing.TB, p *program) (ids map[string]string, bodies map[string]object) {
	t.Helper()
	c := p.as(demoKey)
	op := c.submit(t, "/v1/transactions", p.sale(t, "owned", nil))
	result := c.outcome(t, op)
	if result["status"] != "SUCCESS" {
		t.Fatalf("the sale to be guessed at: %v", result["errors"])
	}
	company := example(t, "company", object{"meta": object{"country_code": "fr", "external_id": "owned-company"}, "tax_information": object{"tax_number": "FR83404833048", "regime": "VAT"}})
	_, job := c.onboard(t, company)
	batch := c.want(t, 202, "POST", "/lookup/v2/batch-validations", example(t, "batch", nil)).json(t)["batch_id"].(string)
	single := c.want(t, 202, "POST", "/lookup/v2/single-validations", example(t, "single", nil)).json(t)["validation_id"].(string)
	p.inbox.await(t, batch, 1)
	ids = map[string]string{
		"operation": op, "transaction": "owned", "company": p.Demo().Suppliers["XX"], "external id": "demo-XX", "job": job, "batch": batch, "single": single,
		"webhook": p.inbox.await(t, op, 1)[0].WebhookID,
	}
	for _, a := range result["attachments"].([]any) {
		ids["document "+a.(object)["kind"].(string)] = a.(object)["resource_id"].(string)
	}
	return ids, map[string]object{
		"CompanyPatch": example(t, "company-patch", nil),
	}
}

// unknown is an id of the same form that nobody has.
func unknown(id string) string {
	var b [20]byte
	rand.Read(b[:]) // never fails
	fresh := hex.EncodeToString(b[:])
	if len(id) == 36 && strings.Count(id, "-") == 4 {
		return id[:9] + fresh[:4] + id[13:15] + fresh[4:7] + id[18:24] + fresh[8:20]
	}
	return fresh[:min(len(id), len(fresh))]
}

// TestHardCase24ForeignIdsAreLikeUnknownOnes calls every described address with
// ids of every kind that another client has, and with ids that nobody has:
// status, headers and body must not tell them apart.
func TestHardCase24ForeignIdsAreLikeUnknownOnes(t *testing.T) {
	t.Parallel()
	p := busy(t)
	ids, bodies := possessions(t, p)
	stranger, d := p.as(p.stranger), describedBy(t, p)
	calls := 0
	for path, methods := range d.doc["paths"].(object) {
		if !strings.Contains(path, "{") || strings.Contains(path, "{asset}") || strings.Contains(path, "{code}") {
			continue
		}
		for method, op := range methods.(object) {
			queries := []string{""}
			for _, param := range list(op.(object)["parameters"]) {
				switch name := param.(object)["name"]; name {
				case "external-id":
					queries = append(queries, "?external-id=true")
				case "limit":
					queries = append(queries, "?limit=1")
				}
			}
			var body any
			if content, ok := op.(object)["requestBody"].(object); ok {
				reference := content["content"].(object)["application/json"].(object)["schema"].(object)["$ref"].(string)
				body = bodies[reference[strings.LastIndex(reference, "/")+1:]]
			}
			for _, format := range []string{"pdf", "json"} {
				if format == "json" && !strings.Contains(path, "{format}") {
					continue
				}
				for _, kind := range slices.Sorted(maps.Keys(ids)) {
					for _, query := range queries {
						ask := func(id string) string {
							full := replaceParams(strings.ReplaceAll(path, "{format}", format), url.PathEscape(id)) + query
							got := stranger.do(t, strings.ToUpper(method), full, body)
							for _, volatile := range []string{"X-Request-Id", "Date"} {
								got.header.Del(volatile)
							}
							got.header.Del("Content-Length") // of a body that repeats the id
							return fmt.Sprintf("%d %v %s", got.status, got.header, strings.ReplaceAll(string(got.body), id, "ID"))
						}
						foreign, nobodys := ask(ids[kind]), ask(unknown(ids[kind]))
						calls++
						if foreign != nobodys || !strings.HasPrefix(foreign, "404 ") {
							t.Errorf("%s %s%s with a foreign %s answers\n%s\nwith an unknown one\n%s", method, path, query, kind, foreign, nobodys)
						}
					}
				}
			}
		}
	}
	if calls < 100 {
		t.Errorf("only %d pairs of calls: the test does not see the addresses", calls)
	}
	for kind, id := range ids { // the owner is served: the ids were right
		path := map[string]string{"operation": "/v1/transactions/", "transaction": "/v1/transactions/history/", "company": "/onboarding/v2/companies/", "job": "/onboarding/v2/jobs/", "batch": "/lookup/v2/batch-validations/", "single": "/lookup/v2/single-validations/"}[kind]
		if path != "" {
			p.as(demoKey).want(t, 200, "GET", path+id, nil)
		}
	}
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// TestHardCase24ForeignReferencesFailLikeUnknownOnes submits with another
// client's supplier and original: accepted, then the failure of an unknown one.
func TestHardCase24ForeignReferencesFailLikeUnknownOnes(t *testing.T) {
	t.Parallel()
	p := busy(t)
	owner, stranger := p.as(demoKey), p.as(p.stranger)
	theirs := owner.submit(t, "/v1/transactions", p.sale(t, "shared-id", nil))
	owner.outcome(t, theirs)
	outcomes := map[string][]string{}
	try := func(what, path string, body object, secret string) {
		t.Helper()
		op := stranger.submit(t, path, body)
		r := stranger.outcome(t, op)
		var faults []string
		for _, f := range r["errors"].([]any) {
			f := f.(object)
			faults = append(faults, strings.ReplaceAll(fmt.Sprint(f["code"], " ", f["field"], " ", f["message"], " ", f["type"]), secret, "ID"))
		}
		outcomes[what] = append(outcomes[what], fmt.Sprint(r["status"], faults, r["supplier"].(object)["external_id"]))
	}
	foreign, nobodys := p.Demo().Suppliers["XX"], strings.Repeat("e", 32)
	try("supplier", "/v1/transactions", p.sale(t, "s-1", object{"supplier": object{"id": foreign}}), foreign)
	try("supplier", "/v1/transactions", p.sale(t, "s-2", object{"supplier": object{"id": nobodys}}), nobodys)
	for _, kind := range []string{"adjustment", "credit", "cancellation"} {
		for _, original := range []string{"shared-id", "nobodys-id"} {
			body := example(t, kind, object{"transaction_id": kind + "-of-" + original, "transaction_number": "F-" + kind + original, "reference_transaction_id": original})
			if kind == "adjustment" {
				body["supplier"] = object{"id": nobodys}
			}
			try(kind, "/v1/transactions/"+kind, body, original)
		}
	}
	for what, got := range outcomes {
		if got[0] != got[1] || !strings.HasPrefix(got[0], "FAILURE") || !strings.Contains(got[0], "_unknown") {
			t.Errorf("%s of another client: %s\nof nobody: %s", what, got[0], got[1])
		}
	}
	// One id in two clients is two transactions.
	own := stranger.submit(t, "/v1/transactions", p.sale(t, "shared-id", object{"supplier": object{"id": nobodys}}))
	if own == theirs {
		t.Error("another client's operation was answered")
	}
	stranger.outcome(t, own)
	if h := owner.want(t, 200, "GET", "/v1/transactions/history/shared-id", nil).json(t)["history"].([]any); len(h) != 1 {
		t.Errorf("the owner's history has %v", h)
	}
	if page := stranger.want(t, 200, "GET", "/v1/transactions?supplier_id="+foreign, nil).json(t)["data"].([]any); len(page) != 1 || page[0].(object)["transaction_id"] != "s-1" {
		t.Errorf("the list by a foreign supplier shows %v", page)
	}
}
