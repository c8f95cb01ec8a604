package server_test

import (
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"

	"tributary/internal/account"
	"tributary/internal/audit"
)

// TestASaleTravelsThroughTheAPI is the journey of docs/specification.md: submit, result by
// webhook, history, resubmission, corrections.
func TestASaleTravelsThroughTheAPI(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	first := c.submit(t, "/v1/transactions", p.sale(t, "journey-1", nil))
	result := c.outcome(t, first)
	if result["status"] != "SUCCESS" || fmt.Sprintf("%v %v %v", result["total_amount"], result["total_net_amount"],
		result["total_tax_amount"]) != "22710 18168 4542" ||
		result["kind"] != "INVOICE" || result["business_model"] != "B2C" || result["tax_authority_id_1"] == nil ||
		result["unique_transaction_number"] == nil {
		t.Errorf("result %v", result)
	}
	if again := c.submit(t, "/v1/transactions", p.sale(t, "journey-1", nil)); again != first {
		t.Errorf("a resubmission after success is operation %s, want %s", again, first)
	}
	events := p.inbox.await(t, first, 2)
	if events[0].WebhookID == events[1].WebhookID {
		t.Error("the resubmission's event is not a new one")
	}

	failed := c.submit(t, "/v1/transactions", p.sale(t, "journey-2", object{"transaction_number": "J2-REJECT"}))
	if r := c.outcome(t, failed); r["status"] != "FAILURE" ||
		r["errors"].([]any)[0].(object)["code"] != "authority_rejected" {
		t.Errorf("result of what was rejected: %v %v", r["status"], r["errors"])
	}
	mended := c.submit(t, "/v1/transactions", p.sale(t, "journey-2", object{"transaction_number": "J2"}))
	if r := c.outcome(t, mended); r["status"] != "SUCCESS" {
		t.Errorf("result after fixing: %v %v", r["status"], r["errors"])
	}
	history := c.want(t, 200, "GET", "/v1/transactions/history/journey-2", nil).json(t)["history"]
	if want := fmt.Sprint([]any{object{"operation_id": failed, "status": "FAILURE"},
		object{"operation_id": mended, "status": "SUCCESS"}}); fmt.Sprint(history) != want {
		t.Errorf("history %v, want %s", history, want)
	}

	third := c.submit(t, "/v1/transactions", p.sale(t, "journey-3", nil))
	for path, body := range map[string]object{
		"adjustment": example(t, "adjustment",
			object{"supplier": object{"id": p.Demo().Suppliers["XX"]}, "transaction_id": "journey-1-a",
				"transaction_number": "J1-A", "reference_transaction_id": "journey-1"}),
		"credit": example(t, "credit", object{"transaction_id": "journey-2-c", "transaction_number": "J2-C",
			"reference_transaction_id": "journey-2"}),
		"cancellation": example(t, "cancellation",
			object{"transaction_id": "journey-3-x", "transaction_number": "J3-X", "reference_transaction_id": "journey-3"}),
	} {
		op := c.submit(t, "/v1/transactions/"+path, body)
		r := c.outcome(t, op)
		if r["status"] != "SUCCESS" || r["kind"] != strings.ToUpper(path) ||
			!strings.HasPrefix(fmt.Sprint(r["total_amount"]), "-") {
			t.Errorf("%s: %v %v of %v, errors %v", path, r["status"], r["kind"], r["total_amount"], r["errors"])
		}
	}
	for op, kind := range map[string]string{first: "ADJUSTMENT", mended: "CREDIT", third: "CANCELLATION"} {
		r := c.want(t, 200, "GET", "/v1/transactions/"+op, nil).json(t)
		if list := r["corrections"].([]any); r["status"] != "SUCCESS" || len(list) != 1 ||
			list[0].(object)["kind"] != kind || list[0].(object)["status"] != "SUCCESS" {
			t.Errorf("corrections of %v: %v", r["transaction_id"], list)
		}
	}
	backfilled := c.submit(t, "/v1/transactions/backfill/reported",
		example(t, "backfill", object{"transaction_id": "journey-old"}))
	if r := c.outcome(t, backfilled); r["status"] != "SUCCESS" || r["tax_authority_id_1"] != "A-77" {
		t.Errorf("backfill: %v %v", r["status"], r["errors"])
	}
}

// TestWhatStructuredInvoicesCarryIsEchoed sends every optional member of the
// payload; a credit shows the references of its original.
func TestWhatStructuredInvoicesCarryIsEchoed(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	head := object{
		"buyer_reference": "04011000-12345-03", "order_reference": "PO-7", "contract_reference": "C-1",
		"project_reference": "P-9",
		"due_date":          "2026-04-30", "delivery_date": "2026-03-30", "payment_terms": "2 % in ten days\n30 days net",
	}
	customer := object{
		"legal_name": "Jane Doe", "type": "INDIVIDUAL", "email": "jane@example.com", "phone": "+353 1 234 5678",
		"electronic_address": object{"scheme": "EM", "id": "jane@example.com"},
		"tax_information":    object{"fiscal_code": "RSSMRA85T10A562S", "use": "G03"},
	}
	classes := []any{object{"scheme": "CPV", "code": "30213100"}}
	changes := object{
		"customer": customer, "payments": []any{object{"type": "TRANSFER", "amount": 22710,
			"iban": "DE89 3704 0044 0532 0130 00", "reference": "RF18"}},
		"items": []any{object{"number": 1, "name": "Tea", "quantity": 3, "unit_price": 7570, "classification": classes,
			"tax_breakdowns": []any{object{"rate": 25, "regime": "VAT"}}}},
	}
	maps.Copy(changes, head)
	r := c.outcome(t, c.submit(t, "/v1/transactions", p.sale(t, "echo-1", changes)))
	if r["status"] != "SUCCESS" || len(r["errors"].([]any)) != 0 {
		t.Fatalf("%v %v", r["status"], r["errors"])
	}
	for name, want := range head {
		if r[name] != want {
			t.Errorf("%s is echoed as %v", name, r[name])
		}
	}
	got := r["customer"].(object)
	for _, name := range []string{"email", "phone", "electronic_address"} {
		if fmt.Sprint(got[name]) != fmt.Sprint(customer[name]) {
			t.Errorf("customer.%s is echoed as %v", name, got[name])
		}
	}
	if tax := got["tax_information"].(object); tax["fiscal_code"] != "RSSMRA85T10A562S" || tax["use"] != "G03" ||
		tax["tax_number"] != nil {
		t.Errorf("tax_information %v", tax)
	}
	if paid := r["payments"].([]any)[0].(object); paid["iban"] != "DE89 3704 0044 0532 0130 00" ||
		paid["reference"] != "RF18" {
		t.Errorf("payment %v", paid)
	}
	if item := r["items"].([]any)[0].(object); fmt.Sprint(item["classification"]) != fmt.Sprint(classes) {
		t.Errorf("item %v", item)
	}
	credit := c.outcome(t, c.submit(t, "/v1/transactions/credit",
		example(t, "credit", object{"transaction_id": "echo-1-c", "transaction_number": "E1-C",
			"reference_transaction_id": "echo-1"})))
	if credit["buyer_reference"] != head["buyer_reference"] || credit["order_reference"] != head["order_reference"] ||
		credit["due_date"] != nil {
		t.Errorf("credit %v", credit)
	}
}

// TestTotalsOfTheClientAreRefusedOrWarnedOf changes the client's configuration
// while the program runs.
func TestTotalsOfTheClientAreRefusedOrWarnedOf(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	key, err := p.newClient("totals", account.Rate{})
	if err != nil {
		t.Fatal(err)
	}
	c := p.as(key)
	c.want(t, 200, "POST", "/v1/transactions/validate",
		p.sale(t, "totals", object{"total_amount": 22710, "total_net_amount": 18168, "total_tax_amount": 4542}))
	wrong := p.sale(t, "totals", object{"total_amount": 22711})
	refused := c.want(t, 400, "POST", "/v1/transactions/validate", wrong).json(t)["errors"].([]any)
	if f := refused[0].(object); len(refused) != 1 || f["code"] != "validation_match_invalid" ||
		f["field"] != "total_amount" || f["type"] != "validation" {
		t.Errorf("refused with %v", refused)
	}
	if _, err := p.Accounts().Configure(t.Context(), audit.Actor{Name: "test"}, "totals", func(c *account.Config) error {
		c.Totals = account.TotalsWarn
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	taken := c.want(t, 200, "POST", "/v1/transactions/validate", wrong).json(t)
	warned := taken["warnings"].([]any)
	if f := warned[0].(object); len(warned) != 1 || f["code"] != "validation_match_invalid" ||
		f["field"] != "total_amount" || f["type"] != "warning" {
		t.Errorf("warned with %v", warned)
	}
	if totals := taken["totals"].(object); fmt.Sprint(totals["total_amount"]) != "22710" {
		t.Errorf("totals %v", totals)
	}
}

func TestValidateStoresNothing(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as(demoKey)
	got := c.want(t, 200, "POST", "/v1/transactions/validate", p.sale(t, "validated", object{"colour": "red"})).json(t)
	totals := got["totals"].(object)
	if got["valid"] != true || fmt.Sprintf("%v %v %v %v", totals["total_amount"], totals["total_net_amount"],
		totals["total_tax_amount"], totals["total_withheld_amount"]) != "22710 18168 4542 0" {
		t.Errorf("validated %v", got)
	}
	if w := got["warnings"].([]any); len(w) != 1 || w[0].(object)["code"] != "field_unknown" ||
		w[0].(object)["field"] != "colour" {
		t.Errorf("warnings %v", w)
	}
	c.want(t, 404, "GET", "/v1/transactions/history/validated", nil)
	bad := c.want(t, 400, "POST", "/v1/transactions/validate",
		p.sale(t, "", object{"currency_code": "???", "items": []any{object{"number": 0}}}))
	fields := map[string]string{}
	for _, f := range bad.json(t)["errors"].([]any) {
		f := f.(object)
		fields[f["field"].(string)] = f["code"].(string)
		if !strings.HasPrefix(f["message"].(string), f["field"].(string)+" ") || f["type"] != "validation" {
			t.Errorf("fault %v does not begin with its path", f)
		}
	}
	for field, code := range map[string]string{"transaction_id": "field_required", "currency_code": "field_not_valid",
		"items.0.number": "field_not_valid", "items.0.name": "field_required", "items.0.quantity": "field_required",
		"items.0.unit_price": "field_required"} {
		if fields[field] != code {
			t.Errorf("%s: %q, want %s; all: %v", field, fields[field], code, fields)
		}
	}
}

// TestHistoryKnowsIdsOfAnyPrintableCharacters sends ids that are hard on addresses.
func TestHistoryKnowsIdsOfAnyPrintableCharacters(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	key, err := p.newClient("history", account.Rate{}) // other tests use some of these ids
	if err != nil {
		t.Fatal(err)
	}
	c := p.as(key)
	for _, id := range []string{"a/b", "/", "//", "a%2Fb", "%", "100%", `quo"te'd`, "ünïcode-日本", "a b", "?x=1", "#x",
		"a+b", "..", ".", "history", "😀", strings.Repeat("z", 150), "<b>&amp;", `back\slash`, ";", "x"} {
		escaped := strings.ReplaceAll(url.PathEscape(id), ".", "%2E")
		unknown := c.want(t, 404, "GET", "/v1/transactions/history/"+escaped, nil).json(t)
		if unknown["transaction_id"] != id || len(unknown) != 2 {
			t.Errorf("unknown id %q is answered %v", id, unknown)
		}
		op := c.submit(t, "/v1/transactions", p.sale(t, id, object{"transaction_number": "N"}))
		history := c.want(t, 200, "GET", "/v1/transactions/history/"+escaped, nil).json(t)["history"].([]any)
		if len(history) != 1 || history[0].(object)["operation_id"] != op || history[0].(object)["status"] != "PROCESSING" {
			t.Errorf("history of %q: %v", id, history)
		}
	}
	for _, broken := range []string{"%00", "a%00b", "%FF", "%C3%28"} {
		if got := c.want(t, 404, "GET", "/v1/transactions/history/"+broken, nil).json(t); got["transaction_id"] == nil {
			t.Errorf("%s is answered %v", broken, got)
		}
	}
}

func TestAResultHasAllItsMembersWhileItIsProcessed(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as(demoKey)
	op := c.submit(t, "/v1/transactions", p.sale(t, "in-progress", object{"note": "<b>x</b>"}))
	r := c.want(t, 200, "GET", "/v1/transactions/"+op, nil).json(t) // the schema requires every member
	if r["status"] != "PROCESSING" || r["unique_transaction_number"] != nil || r["note"] != "<b>x</b>" ||
		len(r["errors"].([]any)) != 0 || len(r["attachments"].([]any)) != 0 {
		t.Errorf("result %v", r)
	}
	if fmt.Sprint(r["total_amount"]) != "22710" || fmt.Sprint(r["items"].([]any)[0].(object)["net_price"]) != "18168" {
		t.Errorf("amounts %v %v", r["total_amount"], r["items"])
	}
}

func TestCountriesShowTheFactsThatValidationReads(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as(demoKey)
	all := c.want(t, 200, "GET", "/v1/countries", nil).json(t)
	list := all["data"].([]any)
	if len(list) < 250 || all["next_cursor"] != nil {
		t.Errorf("%d countries on one page, next %v", len(list), all["next_cursor"])
	}
	for _, code := range []string{"XX", "xx", "ES", "ie"} {
		got := c.want(t, 200, "GET", "/v1/countries/"+code, nil).json(t)
		if got["country_code"] != strings.ToUpper(code) || len(got["legal_sources"].([]any)) == 0 ||
			len(got["use_cases"].([]any)) == 0 {
			t.Errorf("%s: %v", code, got)
		}
	}
	for _, code := range []string{"QQ", "E", "ESP", "%00", "..%2f"} {
		c.want(t, 404, "GET", "/v1/countries/"+code, nil)
	}
}
