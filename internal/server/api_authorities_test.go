package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/transaction"
)

// realAuthority is a country with an authority of its own, as its example uses it.
type realAuthority struct{ country.Pack }

// realAuthorities are all of them: a new pack is tested here without a further line.
func realAuthorities(t *testing.T) map[string]realAuthority {
	t.Helper()
	packs, err := world.Packs()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]realAuthority{}
	for _, p := range packs {
		if p.Connect == nil || p.Code == transaction.ReferenceCode || p.Keeps(&country.Supplier{CountryCode: p.Code}) {
			continue
		}
		if p.Example == nil {
			t.Fatalf("%s has an authority and no example", p.Code)
		}
		all[p.Code] = realAuthority{p}
	}
	if len(all) < 3 {
		t.Fatalf("only %d authorities", len(all))
	}
	return all
}

// abroad is a sale of the country's demo supplier.
func (p *program) abroad(t *testing.T, a realAuthority, id string) object {
	t.Helper()
	supplier, ok := p.Demo().Suppliers[a.Code]
	if !ok {
		t.Fatalf("the demo has no supplier in %s", a.Code)
	}
	text, err := a.ExampleSale(country.SaleID{Transaction: id, Number: id, Supplier: supplier,
		Date: time.Now().Add(-time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	var body object
	if err := json.Unmarshal(text, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

func TestEachAuthorityFilesRejectsLosesAndRecovers(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	for code, a := range realAuthorities(t) {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			// By itself first: in one call with the lost one its answer would be lost as well.
			a.checkSuccess(t, c, code, c.outcome(t, c.submit(t, "/v1/transactions", p.abroad(t, a, code+"-E2E"))))
			ops := map[string]string{}
			for _, suffix := range []string{"-REJECT", "-LOST", "-OUTAGE"} {
				ops[suffix] = c.submit(t, "/v1/transactions", p.abroad(t, a, code+"-E2E"+suffix))
			}
			for suffix, op := range ops {
				got := c.outcome(t, op)
				if suffix == "-REJECT" {
					a.checkRefusal(t, got)
					continue
				}
				a.checkSuccess(t, c, code+suffix, got)
			}
			credit := object{"country_code": code, "transaction_date": time.Now().UTC().Format(time.RFC3339),
				"transaction_id": code + "-E2E-C", "transaction_number": code + "-E2E-C",
				"reference_transaction_id": code + "-E2E", "note": "returned"}
			a.checkSuccess(t, c, code+" credit", c.outcome(t, c.submit(t, "/v1/transactions/credit", credit)))
			cancel := maps.Clone(credit)
			cancel["transaction_id"], cancel["transaction_number"], cancel["reference_transaction_id"] = code+"-E2E-X",
				code+"-E2E-X", code+"-E2E-LOST"
			if a.Example.Reason != "" {
				cancel["reason"] = a.Example.Reason
			}
			if _, known := a.Facts.Correction(transaction.Cancellation); !known {
				c.want(t, http.StatusBadRequest, "POST", "/v1/transactions/cancellation", cancel)
			} else if got := c.outcome(t, c.submit(t, "/v1/transactions/cancellation", cancel)); got["status"] != "SUCCESS" {
				t.Errorf("cancellation: %v", got["errors"])
			}
			p.registeredOnce(t, code)
		})
	}
}

// TestDiscountsAreFiledEverywhere sells two for 121.00 each, 20.00 off, to
// every authority: none of them may hear of the full price, and where its
// document has a place for the discount it stands there.
func TestDiscountsAreFiledEverywhere(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	told := map[string][]string{
		"ES": {"<sf:ImporteTotal>222.00<", "<sf:BaseImponibleOimporteNoSujeto>183.47<"},
		"MX": {`Importe="208.62"`, `Descuento="17.24"`, `Total="222.00"`, `SubTotal="208.62"`},
		"PL": {"<P_9B>121.00</P_9B><P_10>20.00</P_10><P_11A>222.00</P_11A>", "<P_15>222.00</P_15>"},
	}
	for code, a := range realAuthorities(t) {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			sale := p.abroad(t, a, code+"-DISCOUNT-1")
			line := sale["items"].([]any)[0].(object)
			line["quantity"], line["unit_price"], line["discount"] = 2, 12100, object{"amount": 2000}
			sale["items"] = []any{line}
			delete(sale, "payments")
			got := c.outcome(t, c.submit(t, "/v1/transactions", sale))
			a.checkSuccess(t, c, code, got)
			item := got["items"].([]any)[0].(object)
			if fmt.Sprint(got["total_amount"]) != "22200" || fmt.Sprint(item["discount"]) != "map[amount:2000 rate:<nil>]" ||
				fmt.Sprint(item["net_price"]) != fmt.Sprint(got["total_net_amount"]) {
				t.Errorf("result %v of %v", got["total_amount"], item)
			}
			for _, entry := range got["attachments"].([]any) {
				at := entry.(object)
				if at["kind"] != "REPORT" {
					continue
				}
				report := string(c.want(t, 200, "GET", "/invoicing/v1/invoices/"+at["resource_id"].(string)+"/xml", nil).body)
				for _, want := range told[code] {
					if !strings.Contains(report, want) {
						t.Errorf("no %s in %s", want, report)
					}
				}
				if strings.Contains(report, "242.00") {
					t.Errorf("the full price is filed: %s", report)
				}
			}
		})
	}
}

func (a realAuthority) checkRefusal(t *testing.T, got object) {
	t.Helper()
	list := got["errors"].([]any)
	if got["status"] != "FAILURE" || len(list) == 0 || list[0].(object)["code"] != "authority_rejected" ||
		list[0].(object)["message"] == "" {
		t.Errorf("a refusal: %v %v", got["status"], list)
	}
}

func (a realAuthority) checkSuccess(t *testing.T, c *caller, what string, got object) {
	t.Helper()
	coded := !slices.Contains([]string{"HU", "IT", "RO"}, a.Code) // they give no code to print
	known, receipt := got["tax_authority_id_2"] != nil && (got["qr_code"] != nil) == coded, "RECEIPT/XML"
	if a.Code == "RO" {
		receipt = "RECEIPT/ZIP" // the document and the ministry's signature
	}
	if a.Code == "FR" { // a platform gives its flow one id, and no code
		known = got["tax_authority_id_1"] != nil && got["qr_code"] == nil
	}
	if !a.Reports() { // a network has no codes, and its answers are JSON
		known, receipt = got["tax_authority_id_1"] != nil && got["qr_code"] == nil, "RECEIPT/JSON"
	}
	if got["status"] != "SUCCESS" || !known {
		t.Fatalf("%s: %v, ids %v %v, code %v, errors %v", what, got["status"], got["tax_authority_id_1"],
			got["tax_authority_id_2"], got["qr_code"], got["errors"])
	}
	// both may be in the call whose answer is lost
	if got["tax_authority_id_1"] == nil && !strings.Contains(what, "LOST") && !strings.Contains(what, "OUTAGE") {
		t.Errorf("%s: no id", what)
	}
	kinds := []string{}
	for _, entry := range got["attachments"].([]any) {
		at := entry.(object)
		kinds = append(kinds, at["kind"].(string)+"/"+at["type"].(string))
		body := c.want(t, 200, "GET",
			"/invoicing/v1/invoices/"+at["resource_id"].(string)+"/"+strings.ToLower(at["type"].(string)), nil).body
		if at["kind"] == "REPORT" && !bytes.Contains(body, []byte(got["transaction_number"].(string))) {
			t.Errorf("%s: the report is another document: %.200s", what, body)
		}
	}
	slices.Sort(kinds)
	if !slices.Equal(kinds, []string{receipt, "REPORT/XML", "VISUAL/PDF"}) {
		t.Errorf("%s: attachments %v", what, kinds)
	}
}

// registeredOnce asks the simulated authority's own book.
func (p *program) registeredOnce(t *testing.T, code string) {
	t.Helper()
	times := map[string]int{}
	for _, entry := range p.book(t, code) {
		times[entry.(object)["number"].(string)]++
	}
	for _, suffix := range []string{"", "-LOST", "-OUTAGE", "-C"} {
		if n := times[code+"-E2E"+suffix]; n != 1 {
			t.Errorf("%s-E2E%s is registered %d times", code, suffix, n)
		}
	}
	if times[code+"-E2E-REJECT"] != 0 {
		t.Error("a refused document is registered")
	}
}

// book lists what a simulated authority holds.
func (p *program) book(t *testing.T, code string) []any {
	t.Helper()
	answer, err := http.Get(p.SimulatorsURL() + "/_control/" + strings.ToLower(code) + "/registrations")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var held object
	if err := json.NewDecoder(answer.Body).Decode(&held); err != nil {
		t.Fatal(err)
	}
	return held["registrations"].([]any)
}
