package server_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// filedAmounts is what a country's document says: the amounts that paper must repeat
// with their signs, in the order of the document.
type filedAmounts struct {
	must []string // totals and taxes: on every paper
	may  []string // of single lines: paper has them where it has that column
}

// amountsOf reads the amounts of a filed document by the names of the country's
// own format, without any code of the pack.
func amountsOf(t *testing.T, code string, report []byte) filedAmounts {
	t.Helper()
	if code == "XX" {
		var doc struct {
			Gross, Net, Tax json.Number
			Lines           []struct{ Gross, Net json.Number }
		}
		if err := json.Unmarshal(report, &doc); err != nil {
			t.Fatal(err)
		}
		out := filedAmounts{must: []string{cents(doc.Gross.String()), cents(doc.Net.String()), cents(doc.Tax.String())}}
		for _, l := range doc.Lines {
			out.must = append(out.must, cents(l.Gross.String()), cents(l.Net.String()))
		}
		return out
	}
	names := map[string][2][]string{
		"ES": {{"ImporteTotal", "CuotaTotal", "BaseImponibleOimporteNoSujeto", "CuotaRepercutida"}, nil},
		"PL": {{"P_15", "P_13_1", "P_14_1"}, {"P_11", "P_11A", "P_11Vat"}},
		"BE": {{"TaxAmount", "TaxExclusiveAmount", "TaxInclusiveAmount", "PayableAmount"},
			{"LineExtensionAmount", "PayableRoundingAmount"}},
		"HU": {{"invoiceGrossAmount", "invoiceNetAmount", "invoiceVatAmount", "vatRateNetAmount", "vatRateVatAmount"},
			{"lineNetAmount", "lineVatAmount", "lineGrossAmountNormal"}},
		"RO": {{"TaxAmount", "TaxExclusiveAmount", "TaxInclusiveAmount", "PayableAmount"},
			{"LineExtensionAmount", "PayableRoundingAmount"}},
		"FR": {{"TaxBasisTotalAmount", "TaxTotalAmount", "GrandTotalAmount", "DuePayableAmount"},
			{"LineTotalAmount", "RoundingAmount"}},
		"IT": {{"ImportoTotaleDocumento", "ImponibileImporto", "Imposta"}, {"PrezzoTotale", "Arrotondamento"}},
		"MX": {{"Comprobante/Total", "Impuestos/TotalImpuestosTrasladados"}, nil},
	}[code]
	var out filedAmounts
	d := xml.NewDecoder(bytes.NewReader(report))
	var path []string
	add := func(name, value string) {
		if slices.Contains(names[0], name) {
			out.must = append(out.must, value)
		}
		if slices.Contains(names[1], name) {
			out.may = append(out.may, value)
		}
	}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			path = append(path, token.Name.Local)
			for _, a := range token.Attr {
				add(token.Name.Local+"/"+a.Name.Local, a.Value)
			}
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			if len(path) > 0 {
				add(path[len(path)-1], string(token))
			}
		}
	}
}

// cents writes minor units with two decimals.
func cents(minor string) string {
	sign := ""
	if strings.HasPrefix(minor, "-") {
		sign, minor = "-", minor[1:]
	}
	for len(minor) < 3 {
		minor = "0" + minor
	}
	return sign + minor[:len(minor)-2] + "." + minor[len(minor)-2:]
}

var printedAmount = regexp.MustCompile(`[−-]?[0-9]{1,3}(?:[., \x{00A0}][0-9]{3})*[.,][0-9]{2}`)

// onPaper extracts every amount with two decimals from a document, in the
// notation of a filing.
func onPaper(t *testing.T, pdf []byte) []string {
	t.Helper()
	path := needs.Tool(t, "pdftotext", "poppler-utils")
	cmd := exec.CommandContext(t.Context(), path, "-layout", "-", "-")
	cmd.Stdin = bytes.NewReader(pdf)
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, word := range strings.FieldsFunc(strings.ReplaceAll(string(text), "−€", "−"), func(r rune) bool {
		return strings.ContainsRune(" \n\t\f|()$€", r)
	}) {
		if word = strings.TrimRight(word, ".,:;"); printedAmount.FindString(word) != word {
			continue
		}
		sign := ""
		if strings.HasPrefix(word, "−") || strings.HasPrefix(word, "-") {
			sign, word = "-", strings.TrimLeft(word, "−-")
		}
		digits := strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, word)
		found = append(found, sign+cents(digits))
	}
	return found
}

// opposite returns an amount with the other sign.
func opposite(amount string) string {
	if rest, ok := strings.CutPrefix(amount, "-"); ok {
		return rest
	}
	return "-" + amount
}

// What was filed and what a person reads may differ in nothing, least of all in
// a sign: every authority, every kind of document, both directions.
func TestPaperSaysWhatWasFiled(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	authorities := realAuthorities(t)
	authorities["XX"] = realAuthority{world.Reference(transaction.ReferenceCode, country.ByNumber)}
	for code, a := range authorities {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			sale := func(id string, price int) object {
				body := p.abroad(t, a, code+"-PAPER1-"+id)
				taxes := body["items"].([]any)[0].(object)["tax_breakdowns"]
				item := func(number, quantity, price int) object {
					return object{"number": number, "name": "Pluma", "quantity": quantity, "unit_price": price,
						"tax_breakdowns": taxes}
				}
				body["items"] = []any{item(1, 3, price), item(2, 2, 2*price+1)}
				body["language_code"] = strings.ToLower(a.Facts.Languages[0])
				return body
			}
			check := func(name, path string, body object, negative bool) {
				t.Helper()
				got := c.outcome(t, c.submit(t, path, body))
				if got["status"] != "SUCCESS" {
					t.Fatalf("%s: %v", name, got["errors"])
				}
				files := map[string][]byte{}
				for _, entry := range got["attachments"].([]any) {
					at := entry.(object)
					files[at["kind"].(string)] = c.want(t, 200, "GET",
						"/invoicing/v1/invoices/"+at["resource_id"].(string)+"/"+strings.ToLower(at["type"].(string)), nil).body
				}
				comparePaper(t, name, amountsOf(t, code, files["REPORT"]), onPaper(t, files["VISUAL"]), negative)
			}
			returned := code == "ES" || code == "PL" || code == "HU" // where a credit is filed as what it takes back
			check("invoice", "/v1/transactions", sale("I", 4321), false)
			credit := object{"country_code": code, "transaction_date": time.Now().UTC().Format(time.RFC3339),
				"transaction_id": code + "-PAPER1-C", "transaction_number": code + "-PAPER1-C",
				"reference_transaction_id": code + "-PAPER1-I"}
			check("credit", "/v1/transactions/credit", credit, returned)
			check("second invoice", "/v1/transactions", sale("J", 9999), false)
			up, down := sale("U", 1234), sale("D", -1111)
			up["reference_transaction_id"], down["reference_transaction_id"] = code+"-PAPER1-J", code+"-PAPER1-J"
			check("adjustment", "/v1/transactions/adjustment", up, false)
			check("negative adjustment", "/v1/transactions/adjustment", down, code != "MX" && code != "IT")
		})
	}
}

// comparePaper wants what was filed on paper, and nothing on paper with the
// sign that was not filed.
func comparePaper(t *testing.T, name string, filed filedAmounts, paper []string, negative bool) {
	t.Helper()
	if len(filed.must) < 2 {
		t.Fatalf("%s: the filing has amounts %v", name, filed.must)
	}
	for _, want := range filed.must {
		if !slices.Contains(paper, want) {
			t.Errorf("%s: %s was filed, paper has %v", name, want, paper)
		}
		if strings.HasPrefix(want, "-") != negative {
			t.Errorf("%s: %s was filed, negative should be %v", name, want, negative)
		}
	}
	everything := append(slices.Clone(filed.must), filed.may...)
	prices := 0
	for _, seen := range paper {
		if seen == "0.00" {
			continue // no sign
		}
		if slices.Contains(everything, opposite(seen)) && !slices.Contains(everything, seen) {
			t.Errorf("%s: paper has %s, %s was filed", name, seen, opposite(seen))
		}
		if strings.HasPrefix(seen, "-") != negative && !slices.Contains(filed.may, seen) { // a rounding has a sign of its own
			prices++ // unit prices alone are positive where amounts are not: two on each paper
		}
	}
	if prices != 0 && (!negative || prices > 2) {
		t.Errorf("%s: %d amounts of %v have the other sign", name, prices, paper)
	}
}
