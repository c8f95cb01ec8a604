package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/webhook"
)

// receives is a caller that is told of received documents.
func receives(t *testing.T, p *program) *caller {
	t.Helper()
	_, err := p.Accounts().Configure(t.Context(), audit.Actor{Name: "test"}, p.Demo().ClientID, func(c *account.Config) error {
		c.Webhooks.ByEvent = map[string]string{webhook.TransactionUpdated: account.WebhookCommon,
			webhook.TransactionReceived: account.WebhookCommon}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p.as(demoKey)
}

// trader is a German company of the client.
func trader(t *testing.T, c *caller, name, number string) (id string) {
	t.Helper()
	id, _ = c.onboard(t, object{"meta": object{"country_code": "DE", "language_code": "DE", "external_id": name},
		"legal_name": name + " GmbH", "company_number": "HRB 1", "tax_information": object{"tax_number": number},
		"address": object{"country_code": "DE", "city": "Berlin", "postal_code": "10115", "address_line_1": "Weg 1"}})
	return id
}

// sold is a sale of a trader to a business with a number.
func sold(t *testing.T, c *caller, supplier, id, to string) (operation string, document []byte) {
	t.Helper()
	operation = c.submit(t, "/v1/transactions", object{
		"country_code": "DE", "currency_code": "EUR", "language_code": "DE", "transaction_date": "2026-11-15T10:00:00Z",
		"transaction_id": id, "transaction_number": "N-" + id, "supplier": object{"id": supplier}, "due_date": "2026-12-01",
		"customer": object{"legal_name": "Blau GmbH", "type": "BUSINESS", "tax_information": object{"tax_number": to},
			"address": object{"country_code": "DE", "city": "Bonn", "postal_code": "53111", "address_line_1": "Am Markt 2"}},
		"items": []any{object{"number": 1, "name": "Stuhl", "quantity": 3, "unit_price": 7570,
			"tax_breakdowns": []any{object{"rate": 19, "regime": "VAT"}}}}})
	return operation, c.report(t, c.outcome(t, operation))
}

// upload hands a document over and answers its operation.
func (c *caller) upload(t *testing.T, media string, body []byte) string {
	t.Helper()
	return c.want(t, http.StatusAccepted, "POST", "/v1/transactions/received", body, "Content-Type",
		media).json(t)["operation_id"].(string)
}

// read waits until a received document was read.
func (c *caller) read(t *testing.T, operation string) object {
	t.Helper()
	for late := time.Now().Add(patience); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		if r := c.want(t, http.StatusOK, "GET", "/v1/transactions/"+operation, nil).json(t); r["status"] != "PROCESSING" {
			return r
		}
	}
	t.Fatalf("%s is not read", operation)
	return nil
}

func attachmentsOf(r object) map[string]object {
	all := map[string]object{}
	for _, a := range r["attachments"].([]any) {
		all[fmt.Sprint(a.(object)["kind"], "/", a.(object)["type"])] = a.(object)
	}
	return all
}

// One company of the client invoices another: both sides see the document, once, and the buyer's side says what it says.
func TestACompanyReceivesWhatAnotherSent(t *testing.T) {
	t.Parallel()
	engines(t, receivesWhatAnotherSent)
}

func receivesWhatAnotherSent(t *testing.T, p *program) {
	c := receives(t, p)
	seller, buyer := trader(t, c, "seller", "DE200000013"), trader(t, c, "buyer", "DE200000021")
	sent, document := sold(t, c, seller, "received-1", "DE200000021")
	op := c.upload(t, "application/xml", document)
	r := c.read(t, op)
	if r["status"] != "SUCCESS" || r["direction"] != "RECEIVED" || r["transaction_id"] != nil || r["kind"] != "INVOICE" ||
		r["transaction_number"] != "N-received-1" || fmt.Sprint(r["total_amount"], "/", r["total_net_amount"], " ", r["currency_code"]) !=
		"22710/19084 EUR" || len(r["items"].([]any)) != 1 || len(r["tax_summary"].([]any)) != 1 {
		t.Fatalf("%v", r)
	}
	from, to := r["supplier"].(object), r["customer"].(object)
	if from["id"] != seller || from["legal_name"] != "seller GmbH" || to["id"] != buyer || to["external_id"] != "buyer" ||
		to["legal_name"] != "Blau GmbH" {
		t.Errorf("from %v to %v", from, to)
	}
	files := attachmentsOf(r)
	original := c.want(t, 200, "GET", "/invoicing/v1/invoices/"+files["ORIGINAL/XML"]["resource_id"].(string)+"/xml", nil)
	if !bytes.Equal(original.body, document) || files["VISUAL/PDF"] == nil {
		t.Errorf("the original differs, or there is no PDF: %v", files)
	}
	for name, want := range map[string]string{"Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff"} {
		if got := original.header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if !strings.HasPrefix(original.header.Get("Content-Disposition"), "attachment;") {
		t.Errorf("the original is shown: %q", original.header.Get("Content-Disposition"))
	}
	if n := p.inbox.await(t, op, 1)[0]; n.EventType != webhook.TransactionReceived {
		t.Errorf("the event is %s", n.EventType)
	}
	if again := c.upload(t, "application/xml", document); again != op {
		t.Errorf("the same bytes are %s and %s", op, again)
	}
	related := func(r object) string { return fmt.Sprint(r["related"]) }
	if want := fmt.Sprint([]any{object{"operation_id": sent, "direction": "SENT", "relation": "SAME_DOCUMENT"}}); related(r) != want {
		t.Errorf("the buyer's side is related to %s", related(r))
	}
	theirs := c.want(t, 200, "GET", "/v1/transactions/"+sent, nil).json(t)
	if want := fmt.Sprint([]any{object{"operation_id": op, "direction": "RECEIVED", "relation": "SAME_DOCUMENT"}}); related(theirs) != want {
		t.Errorf("the seller's side is related to %s", related(theirs))
	}
	p.as(p.stranger).want(t, 404, "GET", "/v1/transactions/"+op, nil)
	p.as(p.stranger).want(t, 404, "GET", "/invoicing/v1/invoices/"+files["ORIGINAL/XML"]["resource_id"].(string)+"/xml", nil)
	if other := p.as(p.stranger).upload(t, "application/xml", document); other == op {
		t.Error("another client's bytes are this client's operation")
	}
	listsBoth(t, c, op, sent)
}

// listsBoth reads lists of each direction, page by page.
func listsBoth(t *testing.T, c *caller, received, sent string) {
	t.Helper()
	pages := func(query string) (ids []string) {
		for cursor := ""; ; {
			page := c.want(t, 200, "GET", "/v1/transactions?limit=1"+query+cursor, nil).json(t)
			for _, row := range page["data"].([]any) {
				ids = append(ids, row.(object)["operation_id"].(string))
			}
			if page["next_cursor"] == nil {
				return ids
			}
			cursor = "&cursor=" + page["next_cursor"].(string)
		}
	}
	const narrow = "&transaction_number=N-received-1"
	for query, want := range map[string][]string{"": {sent}, "&direction=SENT": {sent}, "&direction=RECEIVED": {received},
		"&direction=ALL": {received, sent}, "&direction=ALL&status=FAILURE": nil,
		"&direction=RECEIVED&country_code=DE&from=2026-11-15&to=2026-11-15": {received}, "&direction=RECEIVED&to=2026-11-14": nil} {
		if got := pages(narrow + query); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s lists %v, want %v", query, got, want)
		}
	}
}

// What is no document, or not for us, ends in FAILURE with its original kept; once the company is there, the same bytes
// are read under the same operation.
func TestWhatCannotBeReadIsKept(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := receives(t, p)
	for name, body := range map[string]string{"no invoice": "<a/>", "a document type": "<!DOCTYPE a []><a/>", "broken": "<a><b></a>",
		"a billion laughs":  `<!DOCTYPE Invoice [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><Invoice>&b;</Invoice>`,
		"as long as may be": "<a>" + strings.Repeat(" ", 20<<20-7) + "</a>"} {
		op := c.upload(t, "application/xml", []byte(body))
		r := c.read(t, op)
		file := attachmentsOf(r)["ORIGINAL/XML"]
		if r["status"] != "FAILURE" || len(r["errors"].([]any)) != 1 || file == nil {
			t.Errorf("%s: %v %v", name, r["status"], r["errors"])
			continue
		}
		if got := c.want(t, 200, "GET", "/invoicing/v1/invoices/"+file["resource_id"].(string)+"/xml", nil); string(got.body) != body {
			t.Errorf("%s: the original is %q", name, got.body)
		}
	}
	seller := trader(t, c, "seller of kept", "DE200000030")
	_, document := sold(t, c, seller, "kept-1", "DE200000048")
	op := c.upload(t, "application/xml", document)
	if r := c.read(t, op); r["status"] != "FAILURE" || !strings.Contains(fmt.Sprint(r["errors"]), "not_found") || r["total_amount"] == nil {
		t.Errorf("a document for nobody: %v %v", r["status"], r["errors"])
	}
	if n := p.count(t, "SELECT count(*) FROM alerts WHERE name = 'received_aside' AND subject = $1 AND message LIKE $2", p.Demo().ClientID,
		"%"+op); n != 1 {
		t.Errorf("the operator has %d alerts of it", n)
	}
	trader(t, c, "late", "DE200000048")
	if again := c.upload(t, "application/xml", document); again != op {
		t.Errorf("the same bytes are %s and %s", op, again)
	}
	for late := time.Now().Add(patience); c.read(t, op)["status"] != "SUCCESS"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("the document is not read again")
		}
	}
}

// A document that breaks the rules that it names is read all the same, and says so.
func TestBrokenRulesAreWarnings(t *testing.T) {
	t.Parallel()
	c := receives(t, busy(t))
	seller := trader(t, c, "seller of faults", "DE200000055")
	trader(t, c, "buyer of faults", "DE200000063")
	_, document := sold(t, c, seller, "faults-1", "DE200000063")
	wrong := regexp.MustCompile(`(TaxInclusiveAmount[^>]*>|GrandTotalAmount>)[0-9.]+`).ReplaceAll(document, []byte("${1}1.00"))
	r := c.read(t, c.upload(t, "application/xml", wrong))
	told := slices.ContainsFunc(r["errors"].([]any), func(e any) bool {
		f := e.(object)
		return f["code"] == "field_not_valid" && f["type"] == "warning" && strings.Contains(f["message"].(string), "rule BR-CO-15")
	})
	if r["status"] != "SUCCESS" || !told {
		t.Errorf("%v %v", r["status"], r["errors"])
	}
}

func TestUploadsAreRefusedClearly(t *testing.T) {
	t.Parallel()
	c := quiet(t).as(demoKey)
	for _, try := range []struct {
		media, body string
		status      int
		code        string
	}{
		{"text/plain", "<a/>", 415, "media_type_unsupported"}, {"", "<a/>", 415, "media_type_unsupported"},
		{"application/xml", "", 400, "field_not_valid"}, {"application/xml", "{}", 400, "field_not_valid"},
		{"application/pdf", "<a/>", 400, "field_not_valid"}, {"application/json", "{}", 415, "media_type_unsupported"},
		{"application/pdf", "%PDF-" + strings.Repeat(" ", 20<<20), 413, "body_too_large"},
	} {
		got := c.want(t, try.status, "POST", "/v1/transactions/received", try.body, "Content-Type", try.media)
		if got.code(t) != try.code {
			t.Errorf("%s %.10q: %s", try.media, try.body, got.code(t))
		}
	}
}
