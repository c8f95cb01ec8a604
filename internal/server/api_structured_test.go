package server_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tributary/internal/country/en16931"
	"tributary/internal/country/packtest"
	"tributary/internal/needs"
)

// german is a company that makes invoices as data, and a sale of it to a business.
func german(t *testing.T, c *caller, name string, settings object) func(id string, changes object) object {
	t.Helper()
	body := object{
		"meta": object{"country_code": "DE", "language_code": "DE", "external_id": name}, "legal_name": "Rot " + name,
		"company_number": "HRB 4711",
		"address": object{"country_code": "DE", "city": "Berlin", "postal_code": "10115",
			"address_line_1": "Hauptstr. 1"},
		"tax_information": object{"tax_number": "DE" + map[string]string{"hybrid": "811569869", "public": "129273398",
			"asked": "136695976"}[name]},
	}
	if settings != nil {
		body["settings"] = settings
	}
	supplier, _ := c.onboard(t, body)
	return func(id string, changes object) object {
		sale := object{
			"country_code": "DE", "currency_code": "EUR", "language_code": "DE", "transaction_date": "2026-11-15T10:00:00Z",
			"transaction_id": id, "transaction_number": "N-" + id,
			"supplier": object{"id": supplier}, "due_date": "2026-12-01", "order_reference": "PO-7",
			"customer": object{"legal_name": "Blau GmbH", "type": "BUSINESS",
				"tax_information": object{"tax_number": "DE136695976"},
				"address": object{"country_code": "DE", "city": "Bonn", "postal_code": "53111",
					"address_line_1": "Am Markt 2"}},
			"items": []any{object{"number": 1, "name": "Stuhl", "quantity": 3, "unit": "Stück", "unit_price": 7570,
				"tax_breakdowns": []any{object{"rate": 19, "regime": "VAT"}}}},
		}
		for k, v := range changes {
			sale[k] = v
		}
		return sale
	}
}

// report is the REPORT attachment of a result, over HTTP.
func (c *caller) report(t *testing.T, result object) []byte {
	t.Helper()
	for _, a := range result["attachments"].([]any) {
		if a := a.(object); a["kind"] == "REPORT" {
			if a["type"] != "XML" {
				t.Errorf("the report is of type %v", a["type"])
			}
			return c.want(t, 200, "GET", "/invoicing/v1/invoices/"+a["resource_id"].(string)+"/xml", nil).body
		}
	}
	return nil
}

// Between German businesses the PDF is the invoice: people read its pages, and
// machines the data inside of it, which is the REPORT attachment byte for byte.
func TestAGermanSaleIsAHybridInvoice(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	sale := german(t, c, "hybrid", object{"iban": "DE89 3704 0044 0532 0130 00", "payment_days": 14})
	op := c.submit(t, "/v1/transactions", sale("hybrid-1", nil))
	result := c.outcome(t, op)
	if result["status"] != "SUCCESS" || fmt.Sprint(result["rounding_amount"]) != "0" ||
		len(result["errors"].([]any)) != 0 {
		t.Fatalf("%v %v %v", result["status"], result["rounding_amount"], result["errors"])
	}
	document := c.report(t, result)
	d, unknown, err := en16931.Read(document)
	if err != nil || len(unknown) > 0 || d.Specification != "urn:cen.eu:en16931:2017" ||
		d.Totals.Due.String() != "227.10" || d.DueDate != "2026-12-01" ||
		d.OrderReference != "PO-7" || d.Payment.Means[0].Account.ID != "DE89370400440532013000" ||
		d.Buyer.Electronic.ID != "DE136695976" {
		t.Errorf("%v %v %+v", err, unknown, d)
	}
	pdf := filepath.Join(t.TempDir(), "invoice.pdf")
	if err := os.WriteFile(pdf, c.visual(t, op), 0o600); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(t.TempDir(), "factur-x.xml")
	if out, err := exec.Command("pdfdetach", "-savefile", "factur-x.xml", "-o", inside, pdf).CombinedOutput(); err != nil {
		t.Fatalf("pdfdetach: %v %s", err, out)
	}
	if got, err := os.ReadFile(inside); err != nil || !bytes.Equal(got, document) {
		t.Errorf("the PDF carries other data than the report: %v, %d and %d bytes", err, len(got), len(document))
	}
	info, err := exec.Command("pdfinfo", "-meta", pdf).Output()
	for _, want := range []string{"urn:factur-x:pdfa:CrossIndustryDocument:invoice:1p0#", "EN 16931", "factur-x.xml"} {
		if err != nil || !strings.Contains(string(info), want) {
			t.Errorf("the metadata lack %q: %v", want, err)
		}
	}
	rules := needs.Schemas(t, "factur-x", "xslt", "FACTUR-X_EN16931.xslt")
	if v := packtest.Judge(t, []packtest.Trial{{Rules: rules, Document: document}})[0]; len(v.Errors) > 0 || v.Fired == 0 {
		t.Errorf("the official rules refuse it: %v", v.Texts)
	}
	credit := c.outcome(t, c.submit(t, "/v1/transactions/credit",
		example(t, "credit", object{"country_code": "DE", "transaction_id": "hybrid-1-c", "transaction_number": "H1-C",
			"reference_transaction_id": "hybrid-1"})))
	d, _, err = en16931.Read(c.report(t, credit))
	if credit["status"] != "SUCCESS" || err != nil || d.TypeCode != "381" || len(d.Preceding) != 1 ||
		d.Preceding[0].Number != "N-hybrid-1" || d.Totals.Due.String() != "227.10" {
		t.Errorf("credit: %v %v %v %+v", credit["status"], credit["errors"], err, d)
	}
}

// In Belgium tax is computed on the sum of a rate. Paper says what the data
// says: that tax, the total with it, and the rounding that brings it to what is paid.
func TestPaperRoundsAsTheDataDoes(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	supplier, _ := c.onboard(t, object{
		"meta": object{"country_code": "BE", "language_code": "NL", "external_id": "rounds"}, "legal_name": "Afronding NV",
		"company_number": "0403170701",
		"address": object{"country_code": "BE", "city": "Brussel", "postal_code": "1000",
			"address_line_1": "Voorbeeldstraat 3"}, "tax_information": object{"tax_number": "BE0403170701"},
	})
	var items []any
	for i := range 10 { // 1.02 and 0.21 of tax each; 21 % of 10.20 are 2.14
		items = append(items, object{"number": i + 1, "name": "Thee", "quantity": 1, "unit_price": 102,
			"tax_breakdowns": []any{object{"rate": 21, "regime": "VAT", "application_mode": "ADD_TO_UNIT_PRICE"}}})
	}
	op := c.submit(t, "/v1/transactions", object{
		"country_code": "BE", "currency_code": "EUR", "language_code": "NL", "transaction_date": "2026-11-15T10:00:00Z",
		"transaction_id": "rounds-1", "transaction_number": "R-1",
		"supplier": object{"id": supplier}, "items": items, "order_reference": "PO-7",
		"customer": object{"legal_name": "Exemple SA", "type": "BUSINESS", "entity_number": "0202239951",
			"tax_information": object{"tax_number": "BE0202239951"},
			"address": object{"country_code": "BE", "city": "Liège", "postal_code": "4000",
				"address_line_1": "Rue de l'Exemple 1"}},
	})
	result := c.outcome(t, op)
	d, _, err := en16931.Read(c.report(t, result))
	if result["status"] != "SUCCESS" || err != nil || fmt.Sprint(result["rounding_amount"]) != "-4" {
		t.Fatalf("%v %v %v %v", result["status"], result["errors"], result["rounding_amount"], err)
	}
	paper := onPaper(t, c.visual(t, op))
	for _, want := range []en16931.Decimal{d.Totals.Net, d.Totals.Tax, d.Totals.Gross, d.Totals.Rounding, d.Totals.Due,
		d.Breakdown[0].Tax} {
		if !slices.Contains(paper, want.String()) {
			t.Errorf("the data has %s, paper has %v", want, paper)
		}
	}
	if slices.Contains(paper, "2.10") {
		t.Errorf("paper has the tax of the lines: %v", paper)
	}
}

// A routing identifier makes it an XRechnung; what the company's settings lack
// for that ends in a failure that names the setting.
func TestAPublicBuyerGetsAnXRechnung(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	sale := german(t, c, "public", nil)
	changes := object{"buyer_reference": "04011000-12345-03"}
	r := c.outcome(t, c.submit(t, "/v1/transactions", sale("public-1", changes)))
	if r["status"] != "FAILURE" || !strings.Contains(fmt.Sprint(r["errors"]), "settings.contact_name") ||
		!strings.Contains(fmt.Sprint(r["errors"]), "BR-DE-2") {
		t.Errorf("without a contact: %v %v", r["status"], r["errors"])
	}
	sale = german(t, c, "asked", object{"contact_name": "Kasse", "contact_phone": "+49 30 123456",
		"contact_email": "kasse@example.com"})
	r = c.outcome(t, c.submit(t, "/v1/transactions", sale("public-2", changes)))
	d, _, err := en16931.Read(c.report(t, r))
	if r["status"] != "SUCCESS" || err != nil || !strings.HasSuffix(d.Specification, "xrechnung_3.0") ||
		d.BuyerReference != "04011000-12345-03" || d.Buyer.Electronic.Scheme != "0204" {
		t.Errorf("%v %v %v %+v", r["status"], r["errors"], err, d)
	}
	// The print is a plain document: nobody expects data inside of it.
	if bytes.Contains(c.visual(t, r["operation_id"].(string)), []byte("factur-x.xml")) {
		t.Error("the PDF of an XRechnung carries a Factur-X")
	}
}

// What the official rules would refuse is refused at once, with the client's
// own path and the rule's name; a consumer is owed no structured invoice.
func TestRulesAreCheckedAtSubmit(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	sale := example(t, "invoice", object{"country_code": "DE", "currency_code": "EUR", "transaction_id": "early",
		"payments": nil, "supplier": object{"id": "0123456789abcdef0123456789abcdef"},
		"customer": object{"legal_name": "Blau GmbH", "type": "BUSINESS", "address": object{"country_code": "DE"}},
		"items": []any{object{"number": 1, "name": "Stuhl", "quantity": 1, "unit_price": 100,
			"tax_breakdowns": []any{object{"rate": 0, "regime": "VAT", "type": "REVERSE"}}}}})
	faults := fmt.Sprint(c.want(t, 400, "POST", "/v1/transactions/validate", sale).json(t)["errors"])
	for _, want := range []string{"customer.tax_information.tax_number", "BR-AE-02", "field_required"} {
		if !strings.Contains(faults, want) {
			t.Errorf("%s is not in %s", want, faults)
		}
	}
	sale["customer"] = object{"legal_name": "Jane Doe", "type": "INDIVIDUAL"}
	c.want(t, 200, "POST", "/v1/transactions/validate", sale)
}
