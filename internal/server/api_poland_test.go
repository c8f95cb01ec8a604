package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// A Polish sale of ten days ago is issued on the day it is filed, with its own
// day as the day of supply, and the client is told; the program is the whole one.
func TestLateSaleInPolandIsIssuedWhenItIsFiled(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	a := realAuthorities(t)["PL"]
	zone, err := time.LoadLocation("Europe/Warsaw")
	if err != nil {
		t.Fatal(err)
	}
	sale := p.abroad(t, a, "PL-LATE")
	then := time.Now().AddDate(0, 0, -10)
	sale["transaction_date"] = then.UTC().Format(time.RFC3339)
	first := time.Now().In(zone).Format(time.DateOnly)
	got := c.outcome(t, c.submit(t, "/v1/transactions", sale))
	last := time.Now().In(zone).Format(time.DateOnly)
	a.checkSuccess(t, c, "PL", got)
	told := false
	for _, e := range got["errors"].([]any) {
		told = told || e.(object)["code"] == "date_moved"
	}
	if !told {
		t.Errorf("the client is not told: %v", got["errors"])
	}
	for _, entry := range got["attachments"].([]any) {
		if at := entry.(object); at["kind"] == "REPORT" {
			report := string(c.want(t, 200, http.MethodGet, "/invoicing/v1/invoices/"+at["resource_id"].(string)+"/xml",
				nil).body)
			if !strings.Contains(report, "<P_1>"+first+"<") && !strings.Contains(report, "<P_1>"+last+"<") ||
				!strings.Contains(report, "<P_6>"+then.In(zone).Format(time.DateOnly)+"<") {
				t.Errorf("filed: %s", report)
			}
			return
		}
	}
	t.Error("there is no report")
}

// A zero that does not say which is refused before anything is stored.
func TestZeroThatDoesNotSayWhichIsRefusedInPoland(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	sale := p.abroad(t, realAuthorities(t)["PL"], "PL-ZERO")
	line := sale["items"].([]any)[0].(object)
	line["tax_breakdowns"] = []any{object{"rate": 0, "regime": "VAT"}}
	delete(sale, "payments")
	got := c.want(t, http.StatusBadRequest, http.MethodPost, "/v1/transactions", sale)
	if !strings.Contains(string(got.body), "items.0.tax_breakdowns.0.type") {
		t.Errorf("%s", got.body)
	}
}

// A company that leaves consumers out of KSeF gets a document for them and
// nothing at the authority, for their credits too; businesses are filed as ever,
// and so are persons who are businesses.
func TestConsumersInPolandStayOutsideKSeFWhereTheCompanySaysSo(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	a := realAuthorities(t)["PL"]
	const nip = "7010002062"
	company, _ := c.onboard(t, object{
		"meta":       object{"country_code": "PL", "language_code": "PL", "external_id": "PL-consumers"},
		"legal_name": "Sklep Sp. z o.o.",
		"address": object{"country_code": "PL", "city": "Warszawa", "postal_code": "00-001",
			"address_line_1": "ul. Prosta 1"},
		"tax_information": object{"tax_number": "PL" + nip},
		"tax_credentials": object{"password": "20251006-EC-0123456789-ABCDEF0123-4A|nip-" + nip + "|" +
			strings.Repeat("ab", 32)},
		"settings": object{"consumers": "document"},
	})
	login := c.want(t, 200, http.MethodGet, "/onboarding/v2/companies/"+company,
		nil).json(t)["credentials"].([]any)[0].(object)
	if login["kind"] != "login" || login["expires_at"] != "2026-12-31T23:00:00Z" {
		t.Errorf("the end of tokens is not told: %v", login)
	}
	sold := func(id string, customer object) object {
		t.Helper()
		sale := p.abroad(t, a, id)
		sale["supplier"] = object{"id": company}
		if customer != nil {
			sale["customer"] = customer
		}
		return c.outcome(t, c.submit(t, "/v1/transactions", sale))
	}
	home := object{"country_code": "PL", "city": "Kraków", "postal_code": "30-001", "address_line_1": "ul. Długa 2"}
	person := sold("PL-CONSUMER", object{"legal_name": "Łucja Ćwikła", "type": "INDIVIDUAL", "address": home})
	credit := c.outcome(t, c.submit(t, "/v1/transactions/credit",
		object{"country_code": "PL", "transaction_date": time.Now().UTC().Format(time.RFC3339),
			"transaction_id": "PL-CONSUMER-C", "transaction_number": "PL-CONSUMER-C", "reference_transaction_id": "PL-CONSUMER",
			"note": "zwrot"}))
	for _, got := range []object{person, credit} {
		kinds := ""
		for _, entry := range got["attachments"].([]any) {
			kinds += " " + entry.(object)["kind"].(string)
		}
		if got["status"] != "SUCCESS" || got["tax_authority_id_1"] != nil || kinds != " VISUAL" {
			t.Errorf("%v: %v %v%s %v", got["transaction_id"], got["status"], got["tax_authority_id_1"], kinds, got["errors"])
		}
	}
	a.checkSuccess(t, c, "a business", sold("PL-CONSUMER-B2B", nil))
	a.checkSuccess(t, c, "a person with a NIP",
		sold("PL-CONSUMER-NIP", object{"legal_name": "Jan Nowak", "type": "INDIVIDUAL", "address": home,
			"tax_information": object{"tax_number": "5265877635"}}))
}
