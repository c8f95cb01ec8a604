package server_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"tributary/internal/country/identity"
	"tributary/internal/db"
	"tributary/internal/ledger"
)

// counterSale is a sale over the counter in Mexico.
func counterSale(supplier, id string) object {
	return object{"country_code": "MX", "currency_code": "MXN", "transaction_id": id, "transaction_number": id,
		"transaction_date": time.Now().Add(-time.Minute).UTC().Format(time.RFC3339),
		"supplier":         object{"id": supplier}, "payments": []any{object{"type": "CASH", "amount": 11600}},
		"items": []any{object{"number": 1, "name": "Té", "quantity": 1, "unit_price": 11600,
			"tax_breakdowns": []any{object{"rate": 16, "regime": "VAT"}}}}}
}

// endPeriods lets the periods of a company end, as midnight would.
func endPeriods(t *testing.T, p *program, supplier string) {
	t.Helper()
	if err := p.DB().Write(t.Context(), func(tx *db.Tx) error {
		tx.Wake("periods")
		return tx.Exec("UPDATE periods SET due_at = 1 WHERE supplier_id = $1 AND due_at IS NOT NULL AND lease_until IS NULL",
			supplier)
	}); err != nil {
		t.Fatal(err)
	}
}

// A shop in Mexico sells to the general public; the program is the whole one:
// sales succeed at once, are stamped in one global invoice, and one of them
// leaves it again when its customer asks for an invoice.
func TestAShopInMexicoFilesGlobalInvoices(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	file, password, err := identity.Test("MISC491214B86", "CECILIA MIRANDA SANCHEZ", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	shop, _ := c.onboard(t, object{"meta": object{"country_code": "MX", "external_id": "global-shop"},
		"legal_name": "CECILIA MIRANDA SANCHEZ", "type": "INDIVIDUAL",
		"address": object{"country_code": "MX", "postal_code": "01010", "city": "Ciudad de México",
			"address_line_1": "Calle 1"}, "tax_information": object{"tax_number": "MISC491214B86"},
		"settings": object{"global_invoice": "daily"},
		"tax_credentials": object{"certificate_base64": base64.StdEncoding.EncodeToString(file),
			"certificate_password": password, "username": "u", "password": "p"}})
	ops := map[string]string{}
	for _, id := range []string{"GLOBAL-1", "GLOBAL-2", "GLOBAL-3"} {
		ops[id] = c.submit(t, "/v1/transactions", counterSale(shop, id))
		got := c.outcome(t, ops[id])
		if got["status"] != "SUCCESS" || got["tax_authority_id_1"] != nil ||
			got["errors"].([]any)[0].(object)["code"] != "waits_for_period" {
			t.Fatalf("%v", got)
		}
		if id == "GLOBAL-1" {
			checkPrinted(t, c, got, "público en general", "factura global del periodo", "Lugar de expedición")
		}
	}
	// A refund before the period ends is no document of its own.
	refund := counterSale(shop, "GLOBAL-3R")
	refund["reference_transaction_id"] = "GLOBAL-3"
	for _, name := range []string{"supplier", "items", "payments", "currency_code"} {
		delete(refund, name)
	}
	if got := c.outcome(t, c.submit(t, "/v1/transactions/credit", refund)); got["status"] != "SUCCESS" ||
		got["tax_authority_id_1"] != nil {
		t.Fatalf("%v", got)
	}
	c.want(t, http.StatusConflict, "DELETE", "/onboarding/v2/companies/"+shop, nil)

	endPeriods(t, p, shop)
	c.lifecycle(t, ops["GLOBAL-2"], 1)
	var period ledger.Period
	read := func() {
		t.Helper()
		if err := p.DB().Read(t.Context(), func(r db.Reader) error {
			list, _, err := ledger.Periods(r, ledger.PeriodFilter{SupplierID: shop, Limit: 10})
			if err == nil && len(list) == 1 {
				period = list[0]
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if period.Sales != 2 || period.Gross != 23200 || period.State != ledger.PeriodDone || len(period.Documents) != 1 {
		t.Fatalf("%+v", period)
	}
	uuid := c.want(t, 200, "GET", "/v1/transactions/"+ops["GLOBAL-1"], nil).json(t)["tax_authority_id_1"]
	document := c.want(t, 200, "GET", "/v1/transactions/"+period.Documents[0].OperationID, nil).json(t)
	if uuid == nil || document["tax_authority_id_1"] != uuid || document["kind"] != "PERIOD" {
		t.Errorf("%v is not in %v", uuid, document)
	}
	voucher := c.report(t, document)
	for _, want := range []string{`NoIdentificacion="GLOBAL-1"`, `NoIdentificacion="GLOBAL-2"`, `Periodicidad="01"`,
		` Total="232.00"`} {
		if !bytes.Contains(voucher, []byte(want)) {
			t.Errorf("%s is not in %s", want, voucher)
		}
	}
	if bytes.Contains(voucher, []byte("GLOBAL-3")) {
		t.Error("what was given back is in the global invoice")
	}

	// A customer asks for an invoice.
	named := counterSale(shop, "GLOBAL-2F")
	named["reference_transaction_id"], named["reason"] = "GLOBAL-2", "04"
	named["customer"] = object{"legal_name": "UNIVERSIDAD ROBOTICA ESPAÑOLA", "type": "BUSINESS",
		"tax_information": object{"tax_number": "URE180429TM6", "regime": "601"},
		"address":         object{"country_code": "MX", "postal_code": "86991"}}
	invoiced := c.outcome(t, c.submit(t, "/v1/transactions/adjustment", named))
	if invoiced["status"] != "SUCCESS" || invoiced["tax_authority_id_1"] == nil ||
		bytes.Contains(c.report(t, invoiced), []byte("CfdiRelacionado")) {
		t.Fatalf("%v", invoiced)
	}
	entries := c.lifecycle(t, ops["GLOBAL-2"], 2)
	if last := entries[1].(object); last["code"] != "PERIOD_LEFT" {
		t.Errorf("%v", last)
	}
	c.lifecycle(t, ops["GLOBAL-1"], 2)
	read()
	if len(period.Documents) != 3 || period.Sales != 1 || period.Gross != 11600 || period.State != ledger.PeriodDone {
		t.Fatalf("%+v", period)
	}
	var states []string
	for _, d := range period.Documents {
		states = append(states, d.State)
	}
	if got := strings.Join(states, " "); got != "accepted accepted withdrawn" {
		t.Errorf("the new one, the withdrawal, the old one: %s", got)
	}
	withdrawal := c.want(t, 200, "GET", "/v1/transactions/"+period.Documents[1].OperationID, nil).json(t)
	if !bytes.Contains(c.report(t, withdrawal), []byte(`Motivo="04"`)) {
		t.Error("the global invoice was not cancelled for this reason")
	}
	if again := c.want(t, 200, "GET", "/v1/transactions/"+ops["GLOBAL-1"],
		nil).json(t)["tax_authority_id_1"]; again != uuid {
		t.Errorf("an id that was filled in changed from %v to %v", uuid, again)
	}
	for _, row := range c.want(t, 200, "GET", "/v1/transactions?limit=100&supplier_id="+shop,
		nil).json(t)["data"].([]any) {
		if row.(object)["kind"] == "PERIOD" || strings.HasPrefix(row.(object)["transaction_id"].(string), "period:") {
			t.Errorf("the service's own %v is listed", row.(object)["transaction_id"])
		}
	}
	c.want(t, http.StatusNoContent, "DELETE", "/onboarding/v2/companies/"+shop, nil)
}
