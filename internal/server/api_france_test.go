package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/ledger"
)

// A French sale is deposited, made available and approved; what the platform got is
// inside of the PDF, and a sale to a buyer that no directory has is told by period, with a warning.
func TestAFrenchSalePassesFromDepositedToApproved(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	a := realAuthorities(t)["FR"]
	id := c.submit(t, "/v1/transactions", p.abroad(t, a, "FR-LIFE-205"))
	got := c.outcome(t, id)
	a.checkSuccess(t, c, "FR", got)
	for _, entry := range got["attachments"].([]any) {
		at := entry.(object)
		if at["kind"] == "REPORT" {
			report := string(c.want(t, 200, http.MethodGet, "/invoicing/v1/invoices/"+at["resource_id"].(string)+"/xml", nil).body)
			if !strings.Contains(report, ">FR-LIFE-205<") || !strings.Contains(report, ">801234568<") {
				t.Errorf("filed: %s", report)
			}
		}
	}
	entries := c.lifecycle(t, id, 2)
	for i, want := range []string{"203 Mise à disposition", "205 Approuvée"} {
		if e := entries[i].(object); e["code"].(string)+" "+e["name"].(string) != want {
			t.Errorf("entry %d is %v instead of %s", i, e, want)
		}
	}
	sale := p.abroad(t, a, "FR-UNLISTED")
	buyer := sale["customer"].(object)
	buyer["entity_number"] = "999000003"
	delete(buyer, "tax_information")
	told := c.outcome(t, c.submit(t, "/v1/transactions", sale))
	if words := text(t, told["errors"]); told["status"] != "SUCCESS" || !strings.Contains(words, "waits_for_period") ||
		!strings.Contains(words, "999000003") {
		t.Errorf("%v %v", told["status"], told["errors"])
	}
}

// frenchShop is a program with a company in France that brings no credentials: test
// keys meet the simulated platform without any.
func frenchShop(t *testing.T) (p *program, c *caller, shop string) {
	t.Helper()
	p = demoAt(t, dbtest.SQLiteURL(t), nil)
	c = p.as(demoKey)
	shop, _ = c.onboard(t, object{"meta": object{"country_code": "FR", "external_id": "shop-without-secrets"},
		"legal_name": "Boutique SARL", "company_number": "404833048", "tax_information": object{"tax_number": "FR83404833048"},
		"address": object{"country_code": "FR", "postal_code": "75002", "city": "Paris", "address_line_1": "1 rue"}})
	return p, c, shop
}

// frenchSale is a sale of one service, to nobody in particular or to a business.
func frenchSale(shop, id string, customer object) object {
	sale := object{"country_code": "FR", "currency_code": "EUR", "transaction_id": id, "transaction_number": id,
		"transaction_date": time.Now().UTC().Format(time.RFC3339), "supplier": object{"id": shop},
		"items": []any{object{"number": 1, "name": "Conseil", "type": "SERVICES", "quantity": 1, "unit_price": 12000,
			"tax_breakdowns": []any{object{"rate": 20, "regime": "VAT"}}}}}
	if customer != nil {
		sale["customer"] = customer
	}
	return sale
}

func frenchPayment(id, of string, amount int) object {
	return object{"country_code": "FR", "transaction_id": id, "transaction_date": time.Now().UTC().Format(time.RFC3339),
		"reference_transaction_id": of, "payments": []any{object{"type": "CARD", "amount": amount}}}
}

// told waits until an entry with a code is in a life cycle.
func (c *caller) told(t *testing.T, operation, code string) object {
	t.Helper()
	var found object
	eventually(t, code+" of "+operation, func() bool {
		for _, e := range c.want(t, http.StatusOK, "GET", "/v1/transactions/"+operation, nil).json(t)["lifecycle"].([]any) {
			if e := e.(object); e["code"] == code {
				found = e
			}
		}
		return found != nil
	})
	return found
}

// periodsOf are the periods of a company by the report that they are for.
func (p *program) periodsOf(t *testing.T, supplier string) map[string]ledger.Period {
	t.Helper()
	found := map[string]ledger.Period{}
	if err := p.DB().Read(t.Context(), func(r db.Reader) error {
		list, _, err := ledger.Periods(r, ledger.PeriodFilter{SupplierID: supplier, Limit: 10})
		for _, one := range list {
			found[one.Report] = one
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// Money for services is told as the law wants: of an invoice as a status, of what was
// sold to consumers in a report of payments beside that of the sales.
func TestMoneyReceivedInFranceIsTold(t *testing.T) {
	t.Parallel()
	p, c, shop := frenchShop(t)
	buyer := object{"legal_name": "Acheteur SAS", "type": "BUSINESS", "entity_number": "801234568",
		"address": object{"country_code": "FR", "city": "Lyon", "postal_code": "69001", "address_line_1": "2 place Bellecour"}}
	invoiced := c.outcome(t, c.submit(t, "/v1/transactions", frenchSale(shop, "FR-B2B", buyer)))
	if invoiced["status"] != "SUCCESS" || invoiced["tax_authority_id_1"] == nil {
		t.Fatalf("without secrets: %v", invoiced)
	}
	paid := c.outcome(t, c.submit(t, "/v1/transactions/payment", frenchPayment("FR-B2B-PAID", "FR-B2B", 12000)))
	status := string(c.report(t, paid))
	if paid["status"] != "SUCCESS" || paid["tax_authority_id_1"] == nil || !strings.Contains(status, ">212<") ||
		!strings.Contains(status, ">FR-B2B<") || !strings.Contains(status, `currencyID="EUR">120.00<`) {
		t.Fatalf("%v %s", paid, status)
	}
	sold := c.submit(t, "/v1/transactions", frenchSale(shop, "FR-B2C", nil))
	c.outcome(t, sold)
	money := c.submit(t, "/v1/transactions/payment", frenchPayment("FR-B2C-PAID", "FR-B2C", 12000))
	if got := c.outcome(t, money); got["status"] != "SUCCESS" || !strings.Contains(text(t, got["errors"]), "waits_for_period") {
		t.Fatalf("%v", got)
	}
	endPeriods(t, p, shop)
	for _, operation := range []string{sold, money} {
		if e := c.told(t, operation, "300"); e["source"] != "AUTHORITY" || e["severity"] != "INFO" {
			t.Errorf("%v", e)
		}
	}
	periods := p.periodsOf(t, shop)
	for report, want := range map[string]string{"": "<CategoryCode>TPS1<", "payments": "<Amount>120.00<"} {
		one := periods[report]
		if len(one.Documents) != 1 || one.State != ledger.PeriodDone {
			t.Fatalf("%q: %+v", report, one)
		}
		filed := string(c.report(t, c.want(t, 200, "GET", "/v1/transactions/"+one.Documents[0].OperationID, nil).json(t)))
		if !strings.Contains(filed, want) || !strings.Contains(filed, `schemeId="0238">0001<`) {
			t.Errorf("%q: %s", report, filed)
		}
	}
	goods := frenchSale(shop, "FR-GOODS", nil)
	delete(goods["items"].([]any)[0].(object), "type")
	c.outcome(t, c.submit(t, "/v1/transactions", goods))
	if got := c.outcome(t, c.submit(t, "/v1/transactions/payment", frenchPayment("FR-GOODS-PAID", "FR-GOODS", 12000))); got["status"] != "FAILURE" ||
		!strings.Contains(text(t, got["errors"]), "unsupported_operation") {
		t.Errorf("of goods: %v", got)
	}
}

// A report that the administration refuses behind the platform is a problem of its
// sales, which keep their success, and is made anew as a whole.
func TestAFrenchReportThatIsRefusedLaterIsMadeAnew(t *testing.T) {
	t.Parallel()
	p, c, shop := frenchShop(t)
	first := c.submit(t, "/v1/transactions", frenchSale(shop, "FR-ONE", nil))
	c.outcome(t, first)
	p.scripted(t, "fr", `{"outcome":"reject"}`)
	endPeriods(t, p, shop)
	if e := c.told(t, first, "301"); e["severity"] != "PROBLEM" || e["name"] != "Rejetée" || !strings.Contains(e["message"].(string), "REJ_PER") {
		t.Errorf("%v", e)
	}
	if got := c.want(t, 200, "GET", "/v1/transactions/"+first, nil).json(t); got["status"] != "SUCCESS" {
		t.Errorf("%v", got)
	}
	var raised []string
	if err := p.DB().Read(t.Context(), func(r db.Reader) error {
		all, err := alert.List(r, alert.Filter{Name: alert.PeriodRefused})
		for _, a := range all {
			raised = append(raised, a.Message)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(raised) != 1 || !strings.Contains(raised[0], "301") {
		t.Errorf("alerts: %q", raised)
	}
	if err := p.DB().Write(t.Context(), func(tx *db.Tx) error { // the pause before it is made anew
		tx.Wake("periods")
		return tx.Exec("UPDATE periods SET due_at = 1, retry_at = 1 WHERE supplier_id = $1 AND lease_until IS NULL", shop)
	}); err != nil {
		t.Fatal(err)
	}
	c.told(t, first, "300")
	one := p.periodsOf(t, shop)[""]
	var states []string
	for _, d := range one.Documents {
		states = append(states, d.State)
	}
	slices.Sort(states)
	if fmt.Sprint(states) != "[accepted failed]" || one.State != ledger.PeriodDone {
		t.Errorf("%v of %+v", states, one)
	}
}
