package server_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Codes of a country stand on paper with the words that people know.
func TestCodesOnPaperHaveTheirWords(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	business := func(name, place, number string) object {
		return object{"legal_name": name, "type": "BUSINESS", "tax_information": object{"tax_number": number, "regime": "VAT"},
			"address": object{"country_code": place, "city": "City", "postal_code": "1000", "address_line_1": "Street 1"}}
	}
	for code, sold := range map[string]struct {
		change object
		says   []string
	}{
		"ES": {object{"customer": business("Green Inc", "US", "12-3456789"), "items": []any{object{"number": 1, "name": "Té",
			"quantity": 1, "unit_price": 1000, "tax_breakdowns": []any{object{"rate": 0, "regime": "VAT", "code": "E2-02"}}}}},
			[]string{"E2-02 –", "exenta,"}},
		"MX": {nil, []string{"PPD – pago en parcialidades o diferido", "99 – por definir", "G03 – gastos en general"}},
		"PL": {object{"customer": business("Blau GmbH", "DE", "DE123456788"), "items": []any{object{"number": 1, "name": "Krzesło",
			"quantity": 1, "unit_price": 1000, "tax_breakdowns": []any{object{"rate": 0, "regime": "VAT", "code": "0WDT"}}}}},
			[]string{"0WDT –", "wewnątrzwspólnotowa"}},
		"IT": {object{"items": []any{object{"number": 1, "name": "Visita", "type": "SERVICES", "quantity": 1, "unit_price": 1000,
			"tax_breakdowns": []any{object{"rate": 0, "regime": "VAT", "code": "N4"}}}},
			"payments": []any{object{"type": "CARD", "code": "MP08", "amount": 1000}}},
			[]string{"MP08 – carta di pagamento", "N4 –", "Esente"}},
		"HU": {object{"items": []any{object{"number": 1, "name": "Óra", "type": "SERVICES", "quantity": 1, "unit_price": 100000,
			"tax_breakdowns": []any{object{"rate": 0, "regime": "VAT", "code": "TAM"}}}}}, []string{"TAM –"}},
	} {
		sale := p.abroad(t, realAuthorities(t)[code], code+"-1-WORDS")
		delete(sale, "payments")
		for member, value := range sold.change {
			sale[member] = value
		}
		got := c.outcome(t, c.submit(t, "/v1/transactions", sale))
		if got["status"] != "SUCCESS" {
			t.Errorf("%s: %v", code, got["errors"])
			continue
		}
		text := strings.Join(onPaperWords(t, c, got), " ")
		for _, want := range sold.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %s", code, want, text)
			}
		}
	}
}

// A Polish sale that is taxed on its margin shows neither rate, net nor tax.
func TestAPolishMarginShowsNoTax(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	sale := p.abroad(t, realAuthorities(t)["PL"], "PL-MARGIN")
	delete(sale, "payments")
	sale["items"] = []any{object{"number": 1, "name": "Samochód", "quantity": 1, "unit_price": 1_000_000,
		"tax_breakdowns": []any{object{"rate": 0, "regime": "VAT", "code": "MU"}}}}
	got := c.outcome(t, c.submit(t, "/v1/transactions", sale))
	if got["status"] != "SUCCESS" {
		t.Fatal(got["errors"])
	}
	words := onPaperWords(t, c, got)
	if text := strings.Join(words, " "); !strings.Contains(text, "procedura marży") || !strings.Contains(text, "Samochód") {
		t.Errorf("%s", text)
	}
	for _, word := range words {
		if word == "VAT" || word == "%" || word == "Netto" || word == "netto" || strings.HasSuffix(word, "%") {
			t.Errorf("%s is on the page: %v", word, words)
		}
	}
}

// Files, allowances and charges of the client: counted, filed where the country has
// a place, kept and handed out, never shown inside our pages.
func TestFilesAllowancesAndChargesOfTheClient(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	sale := p.abroad(t, realAuthorities(t)["IT"], "IT-1-FILES")
	delete(sale, "payments")
	tax := []any{object{"rate": 22, "regime": "VAT", "application_mode": "ADD_TO_UNIT_PRICE"}}
	sale["items"] = []any{object{"number": 1, "name": "Sedia", "quantity": 2, "unit_price": 10000, "tax_breakdowns": tax}}
	sale["allowances"] = []any{object{"rate": 10, "reason": "Sconto fedeltà", "tax_breakdowns": tax}}
	sale["charges"] = []any{object{"amount": 1500, "reason": "Trasporto", "tax_breakdowns": tax}}
	content := strings.Repeat("giorno,ore\n", 150_000) // more than a body without attachments may have
	sale["attachments"] = []any{object{"name": "ore.csv", "type": "text/csv",
		"content": base64.StdEncoding.EncodeToString([]byte(content))}}
	got := c.outcome(t, c.submit(t, "/v1/transactions", sale))
	// 200.00 − 20.00 + 15.00, and 22 % of it.
	if got["status"] != "SUCCESS" || fmt.Sprintf("%v %v", got["total_net_amount"], got["total_tax_amount"]) != "19500 4290" {
		t.Fatalf("%v %v %v %v", got["status"], got["total_net_amount"], got["total_tax_amount"], got["errors"])
	}
	allowance, charge := got["allowances"].([]any)[0].(object), got["charges"].([]any)[0].(object)
	if fmt.Sprintf("%v %v %v %v", allowance["amount"], allowance["rate"], allowance["net_price"], charge["amount"]) != "2000 10 2000 1500" ||
		len(got["items"].([]any)) != 1 {
		t.Errorf("%v %v", allowance, charge)
	}
	checkPrinted(t, c, got, "Sconto", "Trasporto", "ore.csv")
	found := false
	for _, entry := range got["attachments"].([]any) {
		at := entry.(object)
		path := "/invoicing/v1/invoices/" + at["resource_id"].(string) + "/" + strings.ToLower(at["type"].(string))
		switch at["kind"] {
		case "CLIENT":
			found = true
			file := c.want(t, http.StatusOK, http.MethodGet, path, nil)
			if string(file.body) != content || at["name"] != "ore.csv" || file.header.Get("Content-Type") != "text/csv" ||
				!strings.HasPrefix(file.header.Get("Content-Disposition"), "attachment") {
				t.Errorf("%v %v, %d bytes", at, file.header, len(file.body))
			}
		case "REPORT":
			report := string(c.want(t, http.StatusOK, http.MethodGet, path, nil).body)
			for _, want := range []string{"<TipoCessionePrestazione>SC<", "<TipoCessionePrestazione>AC<",
				"<NomeAttachment>ore.csv<", "<ImportoTotaleDocumento>237.90<"} {
				if !strings.Contains(report, want) {
					t.Errorf("no %s in the report", want)
				}
			}
		}
	}
	if !found {
		t.Errorf("the file is not listed: %v", got["attachments"])
	}
	delete(sale, "attachments")
	sale["note"] = strings.Repeat("a", 1<<20)
	c.want(t, http.StatusRequestEntityTooLarge, http.MethodPost, "/v1/transactions", sale)
}

// What the company's own regime decides is told at submit: a flat-rate seller in
// Italy charges no VAT, and nobody sells to itself. The same sale without VAT is filed.
func TestFaultsOfAFlatRateSellerAreFoundAtSubmit(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	flat, _ := c.onboard(t, object{"meta": object{"country_code": "IT", "language_code": "IT", "external_id": "flat-rate"},
		"legal_name": "Studio Forfettario", "company_number": "1", "settings": object{"fiscal_regime": "RF19"},
		"address":         object{"country_code": "IT", "city": "Roma", "postal_code": "00184", "address_line_1": "Via Roma 1", "province": "RM"},
		"tax_information": object{"tax_number": "07643520567"}})
	sale := p.abroad(t, realAuthorities(t)["IT"], "IT-FLAT-1")
	delete(sale, "payments")
	sale["supplier"] = object{"id": flat}
	item := func(tax object) []any {
		return []any{object{"number": 1, "name": "Consulenza", "type": "SERVICES", "quantity": 1, "unit_price": 10000,
			"tax_breakdowns": []any{tax}}}
	}
	sale["items"] = item(object{"rate": 22, "regime": "VAT"})
	for _, path := range []string{"/v1/transactions", "/v1/transactions/validate"} {
		if said := string(c.want(t, http.StatusBadRequest, "POST", path, sale).body); !strings.Contains(said, "flat-rate business (RF19)") ||
			!strings.Contains(said, `"items.0.tax_breakdowns"`) {
			t.Errorf("%s: %s", path, said)
		}
	}
	sale["items"] = item(object{"rate": 0, "regime": "VAT", "type": "OUTSIDE", "code": "N2.2"})
	if got := c.outcome(t, c.submit(t, "/v1/transactions", sale)); got["status"] != "SUCCESS" {
		t.Errorf("without VAT: %v", got["errors"])
	}
	sale["transaction_id"], sale["transaction_number"] = "IT-SELF-1", "IT-SELF-1"
	sale["customer"].(object)["tax_information"] = object{"tax_number": "07643520567"}
	if said := string(c.want(t, http.StatusBadRequest, "POST", "/v1/transactions", sale).body); !strings.Contains(said, "the company's own") {
		t.Errorf("to itself: %s", said)
	}
}
