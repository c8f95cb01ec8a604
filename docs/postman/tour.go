package postman

import (
	"slices"
	"strings"
)

// tour is the order in which the requests can be sent one after another, each with
// ids that answers before it gave. A request that is not named follows at the end.
var tour = []string{
	"get /healthz", "get /readyz", "get /v1/me", "get /openapi.json", "get /docs", "get /docs/{page}",
	"get /v1/countries", "get /v1/countries/{code}",
	"get /onboarding/v2/companies", "post /onboarding/v2/companies", "get /onboarding/v2/jobs/{job_id}",
	"get /onboarding/v2/companies/{id}", "patch /onboarding/v2/companies/{id}", "delete /onboarding/v2/companies/{id}",
	"post /v1/transactions/validate", "post /v1/transactions", "get /v1/transactions/{operation_id}",
	"get /v1/transactions/history/{transaction_id}", "get /v1/transactions",
	"post /v1/transactions/adjustment", "post /v1/transactions/credit", "post /v1/transactions/cancellation",
	"post /v1/transactions/payment", "post /v1/transactions/backfill/reported", "post /v1/series", "get /v1/series",
	"get /invoicing/v1/invoices/{resource_id}/{format}",
	"get /v1/webhooks/events", "post /v1/webhooks/events/{webhook_id}/redeliver",
	"post /lookup/v2/single-validations", "get /lookup/v2/single-validations/{id}",
	"post /lookup/v2/batch-validations", "get /lookup/v2/batch-validations/{id}", "delete /lookup/v2/batch-validations/{id}",
}

// place is where a request stands on the tour.
func place(call string) int {
	if at := slices.Index(tour, call); at >= 0 {
		return at
	}
	return len(tour)
}

// known are the values of a path's parameters.
func known(path, name string) string {
	switch name {
	case "code":
		return "XX"
	case "page":
		return "index.html"
	case "id":
		for part, variable := range map[string]string{"companies": "company_id", "batch-": "batch_id", "single-": "validation_id"} {
			if strings.Contains(path, part) {
				return "{{" + variable + "}}"
			}
		}
	}
	return "{{" + name + "}}"
}

// chained is an example's body for one run of the tour: its ids are of the run, its
// supplier is the company that the list of companies gave.
func chained(body string) string {
	return strings.NewReplacer(
		"SUPPLIER_ID", "{{supplier_id}}", "3f2a1b4c5d6e7f8091a2b3c4d5e6f708", "{{supplier_id}}",
		"order-1001", "{{transaction_id}}", "order-1002", "{{transaction_id}}", "order-1003", "{{transaction_id}}",
		"INV-1001", "INV-{{run}}", "CR-1002", "CR-{{run}}", "ADJ-1001", "ADJ-{{run}}", "CA-1003", "CA-{{run}}", "old-77",
		"old-{{run}}", "OLD-77", "OLD-{{run}}", "seller-42", "seller-{{run}}", "F{YYYY}-", "P{{run}}-{YYYY}-",
	).Replace(body)
}

// before and after every request: a run has ids of its own; what is answered is
// asserted, and its ids are kept for the requests that follow.
const (
	before = `if (!pm.collectionVariables.get("run")) {
  const run = String(Date.now());
  pm.collectionVariables.set("run", run);
  pm.collectionVariables.set("transaction_id", "order-" + run);
}`
	after = `const closed = pm.request.method === "DELETE" || pm.request.url.getPath().endsWith("/response");
const late = closed && pm.response.code === 409; // it had ended; the example of a received document is too short to be read
pm.test("is answered as described", () => pm.expect(late || pm.response.code < 400, pm.response.text()).to.be.true);
let answer = {};
try { answer = pm.response.json(); } catch (e) { /* a page or a document */ }
for (const name of ["operation_id", "job_id", "batch_id", "validation_id"]) {
  const id = answer[name] || (answer.data || {})[name];
  if (typeof id === "string") pm.collectionVariables.set(name, id);
}
for (const one of Array.isArray(answer.data) ? answer.data : []) {
  if (one.webhook_id) pm.collectionVariables.set("webhook_id", one.webhook_id);
  const seller = one.meta && one.meta.external_id === "demo-XX";
  if (seller && !pm.collectionVariables.get("supplier_id")) pm.collectionVariables.set("supplier_id", one.id);
}`
)

// again repeats a request until what it asks for has ended.
func again(ended string) string {
	return `const tries = Number(pm.collectionVariables.get("tries") || 0);
const answered = pm.response.json();
if (!(` + ended + `) && tries < 100) {
  pm.collectionVariables.set("tries", tries + 1);
  pm.execution.setNextRequest(pm.info.requestId);
  setTimeout(() => {}, 100);
} else {
  pm.collectionVariables.set("tries", 0);
  pm.test("has ended", () => pm.expect(` + ended + `).to.be.true);
}`
}

// scripts are what a request does besides, by its call.
var scripts = map[string]string{
	"get /onboarding/v2/jobs/{job_id}": again(`Boolean(answered.errors || (answered.data || {}).id)`) + `
if ((answered.data || {}).id) pm.collectionVariables.set("company_id", answered.data.id);`,
	"get /v1/transactions/{operation_id}": again(`answered.status !== "PROCESSING"`) + `
if (answered.status !== "PROCESSING") pm.test("is filed", () => pm.expect(answered.status).to.equal("SUCCESS"));
for (const file of answered.attachments || []) {
  pm.collectionVariables.set("resource_id", file.resource_id);
  pm.collectionVariables.set("format", file.type.toLowerCase());
}`,
}
