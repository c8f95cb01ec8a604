package server_test

import (
	"net/http"
	"strings"
	"testing"

	"tributary/internal/db"
)

// A customer may be a company of the client's own: its facts are those of the
// moment at which the sale was accepted, and are filed, printed, shown and found.
func TestACustomerIsACompanyOfTheClient(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	buyer := example(t, "company", object{"legal_name": "Käufer & Söhne KG", "tax_credentials": nil})
	buyer["meta"].(object)["country_code"], buyer["meta"].(object)["external_id"] = "XX", "a buyer"
	buyer["tax_information"].(object)["tax_number"] = "XX445566778"
	id, _ := c.onboard(t, buyer)
	sold := p.sale(t, "BY-ID-1", object{"customer": object{"id": id, "email": "books@example.com"}})
	operation := c.submit(t, "/v1/transactions", sold)
	got := c.outcome(t, operation)
	customer, _ := got["customer"].(object)
	if got["status"] != "SUCCESS" || customer["id"] != id || customer["legal_name"] != "Käufer & Söhne KG" ||
		customer["type"] != "BUSINESS" || customer["email"] != "books@example.com" || got["business_model"] != "B2B" {
		t.Fatalf("%v %v %v", got["status"], got["errors"], customer)
	}
	if number := customer["tax_information"].(object)["tax_number"]; number != "XX445566778" {
		t.Errorf("tax number %v", number)
	}
	checkPrinted(t, c, got, "Käufer & Söhne KG")
	p.settles(t, "SELECT count(*) FROM filings WHERE operation_id = '"+operation+"' AND cast(report AS text) LIKE '%Söhne KG%'", 1)
	// What becomes of the company later changes nothing of what was issued.
	c.want(t, http.StatusNoContent, "DELETE", "/onboarding/v2/companies/"+id, nil)
	if again := c.want(t, http.StatusOK, "GET", "/v1/transactions/"+operation,
		nil).json(t)["customer"].(object); again["legal_name"] != "Käufer & Söhne KG" {
		t.Errorf("shown later as %v", again)
	}
	credit := object{"country_code": "XX", "transaction_id": "BY-ID-C", "transaction_number": "BY-ID-C",
		"reference_transaction_id": "BY-ID-1", "transaction_date": sold["transaction_date"]}
	if back := c.outcome(t, c.submit(t, "/v1/transactions/credit", credit)); back["status"] != "SUCCESS" ||
		back["customer"].(object)["legal_name"] != "Käufer & Söhne KG" {
		t.Errorf("credited: %v %v", back["status"], back["errors"])
	}
	for name, customer := range map[string]object{"closed": {"id": id}, "nobody's": {"id": strings.Repeat("0", 32)}} {
		failed := c.outcome(t, c.submit(t, "/v1/transactions", p.sale(t, "BY-ID-"+name, object{"customer": customer})))
		if failed["status"] != "FAILURE" || !strings.Contains(text(t, failed["errors"]),
			"customer.id is not the id of a company") {
			t.Errorf("%s: %v %v", name, failed["status"], failed["errors"])
		}
	}
	p.settles(t, "SELECT count(*) FROM bodies WHERE customer IS NOT NULL AND operation_id = '"+operation+"'", 1)
}

// Which facts a country wants of a customer is found when its company is looked up.
func TestACompanyThatCannotBuyEndsInFailure(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	person := example(t, "company", object{"legal_name": "Ana Persona", "type": "INDIVIDUAL", "tax_credentials": nil,
		"tax_information": nil})
	person["meta"].(object)["country_code"], person["meta"].(object)["external_id"] = "PT", "a person"
	id, _ := c.onboard(t, person)
	if shown := c.want(t, http.StatusOK, "GET", "/onboarding/v2/companies/"+id,
		nil).json(t); shown["type"] != "INDIVIDUAL" || shown["tax_information"].(object)["tax_number"] != "" {
		t.Errorf("shown as %v", shown)
	}
	fits := c.outcome(t, c.submit(t, "/v1/transactions", p.sale(t, "BY-ID-P", object{"customer": object{"id": id}})))
	if fits["status"] != "SUCCESS" || fits["business_model"] != "B2C" ||
		fits["customer"].(object)["type"] != "INDIVIDUAL" {
		t.Errorf("%v %v", fits["status"], fits["errors"])
	}
	business := example(t, "company", object{"legal_name": "Sin Domicilio SL", "tax_credentials": nil})
	business["meta"].(object)["country_code"], business["meta"].(object)["external_id"] = "XX", "no street"
	business["tax_information"].(object)["tax_number"] = "XX1"
	business["address"] = object{"country_code": "ES"}
	nowhere, _ := c.onboard(t, business)
	var spanish string
	if err := p.DB().Read(t.Context(), func(r db.Reader) error {
		return r.Row("SELECT company_id FROM companies WHERE external_id = 'demo-ES'").Scan(&spanish)
	}); err != nil {
		t.Fatal(err)
	}
	sold := p.sale(t, "BY-ID-ES", object{"country_code": "ES", "supplier": object{"id": spanish},
		"customer": object{"id": nowhere}, "payments": nil,
		"items": []any{object{"number": 1, "name": "Chair", "quantity": 1, "unit_price": 12100,
			"tax_breakdowns": []any{object{"rate": 21, "regime": "VAT"}}}}})
	failed := c.outcome(t, c.submit(t, "/v1/transactions", sold))
	if words := text(t, failed["errors"]); failed["status"] != "FAILURE" ||
		!strings.Contains(words, "customer.address.address_line_1") ||
		!strings.Contains(words, "customer.tax_information.tax_number") {
		t.Errorf("%v %v", failed["status"], failed["errors"])
	}
}

func TestACustomerIsNamedByIDOrByFacts(t *testing.T) {
	t.Parallel()
	c := quiet(t).as(demoKey)
	for name, member := range map[string]object{
		"legal_name": {"legal_name": "B"}, "type": {"type": "BUSINESS"}, "address": {"address": object{"country_code": "XX"}},
		"tax_information.tax_number": {"tax_information": object{"tax_number": "1"}}, "entity_number": {"entity_number": "1"},
	} {
		member["id"] = strings.Repeat("a", 32)
		refused := string(c.want(t, http.StatusBadRequest, "POST", "/v1/transactions",
			c.p.sale(t, "BOTH-"+name, object{"customer": member})).body)
		if !strings.Contains(refused, `"field":"customer.`+name+`"`) ||
			!strings.Contains(refused, "validation_match_invalid") {
			t.Errorf("%s: %s", name, refused)
		}
	}
	wrong := example(t, "company", object{"type": "COMPANY"})
	wrong["meta"].(object)["external_id"] = "of no kind"
	if refused := string(c.want(t, http.StatusBadRequest, "POST", "/onboarding/v2/companies",
		wrong).body); !strings.Contains(refused, "must be one of BUSINESS, INDIVIDUAL") {
		t.Errorf("a company of another kind: %s", refused)
	}
	spanish := example(t, "company", object{"type": "INDIVIDUAL", "tax_information": nil, "tax_credentials": nil})
	spanish["meta"].(object)["country_code"], spanish["meta"].(object)["external_id"] = "ES", "no NIF"
	if refused := string(c.want(t, http.StatusBadRequest, "POST", "/onboarding/v2/companies",
		spanish).body); !strings.Contains(refused, "tax_information.tax_number") {
		t.Errorf("a Spanish person without a number: %s", refused)
	}
}
