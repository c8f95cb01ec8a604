package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// paid is a report of a payment for one sale.
func paid(id, of string, amount int64) object {
	return object{"country_code": "MX", "transaction_id": id,
		"transaction_date":         time.Now().Add(-time.Minute).UTC().Format(time.RFC3339),
		"reference_transaction_id": of, "payments": []any{object{"type": "TRANSFER", "amount": amount,
			"reference": "SPEI 7"}}}
}

// onPaperWords are the words of the document for people.
func onPaperWords(t *testing.T, c *caller, got object) []string {
	t.Helper()
	for _, entry := range got["attachments"].([]any) {
		if at := entry.(object); at["kind"] == "VISUAL" {
			read := exec.CommandContext(t.Context(), "pdftotext", "-layout", "-", "-")
			read.Stdin = bytes.NewReader(c.want(t, 200, http.MethodGet,
				"/invoicing/v1/invoices/"+at["resource_id"].(string)+"/pdf", nil).body)
			text, err := read.Output()
			if err != nil {
				t.Fatal(err)
			}
			return strings.Fields(string(text))
		}
	}
	t.Fatal("nothing is printed")
	return nil
}

// A Mexican sale on credit is paid in two parts; the program is the whole one:
// receipts are stamped, shown, printed, and taken back.
func TestASaleInMexicoIsPaidInParts(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	a := realAuthorities(t)["MX"]
	sale := p.abroad(t, a, "MX-PAID")
	sold := c.submit(t, "/v1/transactions", sale)
	first := c.submit(t, "/v1/transactions/payment", paid("MX-PAID-1", "MX-PAID", 10000)) // waits for the sale
	total, err := c.outcome(t, sold)["total_amount"].(json.Number).Int64()
	if err != nil {
		t.Fatal(err)
	}
	got := c.outcome(t, first)
	a.checkSuccess(t, c, "first part", got)
	if got["kind"] != "PAYMENT" || got["total_amount"] != json.Number("10000") || got["latest_by"] != nil {
		t.Errorf("%v", got)
	}
	for _, entry := range got["attachments"].([]any) {
		at := entry.(object)
		body := c.want(t, 200, http.MethodGet,
			"/invoicing/v1/invoices/"+at["resource_id"].(string)+"/"+strings.ToLower(at["type"].(string)), nil).body
		if at["kind"] == "REPORT" && !bytes.Contains(body, []byte(`NumParcialidad="1"`)) {
			t.Errorf("%s: %.300s", at["kind"], body)
		}
	}
	checkPrinted(t, c, got, "Recibo electrónico de pago", "Documento pagado, parcialidad", "242.00, 100.00, 142.00")
	if slices.Contains(onPaperWords(t, c, got), "Rectifica") {
		t.Error("a payment is printed as a correction")
	}
	if over := c.outcome(t, c.submit(t, "/v1/transactions/payment",
		paid("MX-PAID-2", "MX-PAID", total))); over["status"] != "FAILURE" ||
		over["errors"].([]any)[0].(object)["code"] != "reference_exceeded" {
		t.Errorf("more than is owed: %v", over["errors"])
	}
	rest := c.outcome(t, c.submit(t, "/v1/transactions/payment", paid("MX-PAID-3", "MX-PAID", total-10000)))
	a.checkSuccess(t, c, "the rest", rest)
	cancel := func(id, of string) object {
		body := paid(id, of, 1)
		delete(body, "payments")
		body["reason"] = "02"
		return c.outcome(t, c.submit(t, "/v1/transactions/cancellation", body))
	}
	if refused := cancel("MX-PAID-4", "MX-PAID"); refused["status"] != "FAILURE" ||
		!strings.Contains(refused["errors"].([]any)[0].(object)["message"].(string), rest["tax_authority_id_1"].(string)) &&
			!strings.Contains(refused["errors"].([]any)[0].(object)["message"].(string), got["tax_authority_id_1"].(string)) {
		t.Errorf("a paid sale is cancelled: %v", refused["errors"])
	}
	if done := cancel("MX-PAID-5", "MX-PAID-3"); done["status"] != "SUCCESS" {
		t.Errorf("a payment is not cancelled: %v", done["errors"])
	}
	a.checkSuccess(t, c, "paid again", c.outcome(t,
		c.submit(t, "/v1/transactions/payment", paid("MX-PAID-6", "MX-PAID", total-10000))))
	original := c.want(t, 200, http.MethodGet, "/v1/transactions/"+sold, nil).json(t)
	if n := len(original["corrections"].([]any)); n != 3 {
		t.Errorf("%d corrections: %v", n, original["corrections"])
	}
	elsewhere := paid("XX-PAID", "MX-PAID", 1)
	elsewhere["country_code"] = "XX"
	if no := c.want(t, http.StatusBadRequest, http.MethodPost, "/v1/transactions/payment",
		elsewhere); !bytes.Contains(no.body, []byte("unsupported_operation")) {
		t.Errorf("%s", no.body)
	}
}

// A sale in dollars is paid in pesos: the report names its currency, and what was
// paid of the sale in the sale's own.
func TestDollarsInMexicoArePaidInPesos(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	a := realAuthorities(t)["MX"]
	sale := p.abroad(t, a, "MX-USD")
	sale["currency_code"], sale["exchange_rate"] = "USD", json.Number("18.5")
	total, err := c.outcome(t, c.submit(t, "/v1/transactions", sale))["total_amount"].(json.Number).Int64()
	if err != nil {
		t.Fatal(err)
	}
	pesos := paid("MX-USD-1", "", total*20)
	delete(pesos, "reference_transaction_id")
	pesos["currency_code"], pesos["references"] = "MXN", []any{object{"transaction_id": "MX-USD", "amount": total}}
	got := c.outcome(t, c.submit(t, "/v1/transactions/payment", pesos))
	a.checkSuccess(t, c, "pesos", got)
	if sum, err := got["total_amount"].(json.Number).Int64(); err != nil || sum != total*20 ||
		got["currency_code"] != "MXN" {
		t.Errorf("%v %v", got["total_amount"], got["currency_code"])
	}
	for _, entry := range got["attachments"].([]any) {
		if at := entry.(object); at["kind"] == "REPORT" {
			body := c.want(t, 200, http.MethodGet, "/invoicing/v1/invoices/"+at["resource_id"].(string)+"/xml", nil).body
			if !bytes.Contains(body, []byte(`MonedaDR="USD" EquivalenciaDR="0.0500000000"`)) ||
				!bytes.Contains(body, []byte(`ImpSaldoInsoluto="0.00"`)) {
				t.Errorf("%.2000s", body)
			}
		}
	}
	checkPrinted(t, c, got, "0.00 USD, equivalencia 0.0500000000")
	again := paid("MX-USD-2", "MX-USD", 1)
	if more := c.outcome(t, c.submit(t, "/v1/transactions/payment", again)); more["status"] != "FAILURE" {
		t.Errorf("a sale that is paid takes more: %v", more)
	}
}
