package en16931_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tributary/internal/country/en16931"
)

// canonical gives rules that say the same one name: the standard repeats some,
// and the two syntaxes and Peppol name others apart.
func canonical(rule string) string {
	rule = strings.TrimPrefix(rule, "FX-SCH-A-")
	switch rule {
	case "BR-CO-21":
		return "BR-33"
	case "BR-CO-22":
		return "BR-38"
	case "BR-CO-23":
		return "BR-42"
	case "BR-CO-24":
		return "BR-44"
	case "BR-CO-19":
		return "BR-29"
	case "BR-CO-20":
		return "BR-30"
	case "BR-CL-17":
		return "BR-CL-18"
	case "PEPPOL-EN16931-CL002":
		return "BR-CL-19"
	case "PEPPOL-EN16931-CL003":
		return "BR-CL-20"
	case "PEPPOL-EN16931-CL006":
		return "BR-CL-06"
	case "PEPPOL-EN16931-CL001":
		return "BR-CL-24"
	case "PEPPOL-EN16931-CL007", "BR-CL-03":
		return "BR-CL-04"
	case "UBL-SR-46", "CII-SR-467", "CII-SR-468":
		return "UBL-SR-47"
	}
	return rule
}

// consequence reports official rules that fire as well when another one, which
// we find, is broken: the executable rules stumble over what is missing. The
// rules of Factur-X have names of their own for the same things.
func consequence(official, broken string) bool {
	if strings.HasPrefix(official, "FX-SCH-A-") {
		return true
	}
	switch official {
	case "UBL-DT-01", "UBL-SR-48", "UBL-SR-53", "UBL-SR-43":
		return true
	}
	return slices.Contains(map[string][]string{
		"BR-04":               {"CII-SR-014"},
		"BR-08":               {"BR-09"},
		"BR-17":               {"UBL-SR-19", "UBL-SR-20", "UBL-SR-21"},
		"BR-22":               {"PEPPOL-EN16931-R120"},
		"BR-24":               {"PEPPOL-EN16931-R120"},
		"BR-26":               {"PEPPOL-EN16931-R120", "BR-27"},
		"BR-45":               {"BR-CO-17", "BR-S-08", "BR-S-09"},
		"BR-46":               {"BR-CO-17", "BR-S-09"},
		"BR-50":               {"CII-SR-470"},
		"BR-53":               {"PEPPOL-EN16931-R054", "PEPPOL-EN16931-R055"},
		"BR-CL-05":            {"BR-CL-03"},
		"BR-CO-18":            {"BR-CO-14"},
		"BR-DE-23-a":          {"CII-SR-470"},
		"PEPPOL-EN16931-R005": {"BR-CO-15"},
	}[broken], official)
}

// unexecuted are rules that one syntax does not execute although it has them.
func unexecuted(c judged) bool {
	switch c.rule {
	case "BR-S-01", "BR-O-01", "BR-AF-01", "BR-AG-01", "BR-AF-08", "BR-AF-09", "BR-AG-08", "BR-AG-09":
		return c.profile.CII
	}
	return false
}

var profiles = []en16931.Profile{en16931.PeppolBIS(), en16931.XRechnung(false), en16931.XRechnung(true),
	en16931.FacturX()}

// wholeDocuments are accepted: each kind in each profile.
func wholeDocuments() (all []judged) {
	add := func(p en16931.Profile, name string, change func(d *en16931.Invoice)) {
		d := sample(p)
		change(d)
		all = append(all, judged{name: p.Code + " " + name, profile: p, doc: d})
	}
	for _, p := range profiles {
		add(p, "invoice", func(*en16931.Invoice) {})
		add(p, "credit note", credited)
		for _, k := range []string{"Z", "E", "AE", "K", "G", "O", "L", "M"} {
			add(p, "category "+k, func(d *en16931.Invoice) { categorised(d, k) })
		}
		add(p, "everything", func(d *en16931.Invoice) { everything(d, p) })
		add(p, "debit", func(d *en16931.Invoice) {
			d.Payment = en16931.Payment{Mandate: "M-1", Creditor: "DE98ZZZ09999999999",
				Means: []en16931.PaymentMeans{{Code: "59", DebitAccount: "DE89370400440532013000"}}}
		})
		add(p, "card", func(d *en16931.Invoice) {
			d.Payment = en16931.Payment{Means: []en16931.PaymentMeans{{Code: "48", Text: "Card",
				Card: en16931.Card{Number: "1234", Holder: "A. Buyer"}}}}
		})
		add(p, "negative line", func(d *en16931.Invoice) {
			d.Lines[0].Quantity, d.Lines[0].Net = d.Lines[0].Quantity.Neg(), d.Lines[0].Net.Neg()
			resettle(d)
		})
	}
	return all
}

// resettle sums a changed document up, at rule-made taxes.
func resettle(d *en16931.Invoice) {
	s := en16931.Settlement{Decimals: 2, ByCategory: true}
	for _, b := range d.Breakdown {
		s.Taxes = append(s.Taxes, en16931.CategoryTax{Category: b.Category, Rate: b.Rate, Reason: b.Reason,
			ReasonCode: b.ReasonCode})
	}
	s.Gross = -d.Settle(s) // a gross of 0 leaves all of it to the rounding amount
	d.Settle(s)
}

func credited(d *en16931.Invoice) {
	d.TypeCode = "381"
	d.Preceding = []en16931.Preceding{{Number: "R-2026-1", Date: "2026-10-01"}}
	d.ProjectReference, d.TenderReference = "P-1", "T-1"
}

// categorised turns everything in a document into one VAT category.
func categorised(d *en16931.Invoice, code string) {
	rate := dec("0")
	row := en16931.TaxSubtotal{Category: code, Reason: "because"}
	switch code {
	case "Z":
		row.Reason = ""
	case "L", "M":
		rate, row.Reason = dec("7"), ""
	case "S":
		rate, row.Reason = dec("19"), ""
	case "O":
		rate = en16931.Decimal{}
		d.Seller.VATID, d.Buyer.VATID = "", ""
	case "K":
		d.Delivery.Address = en16931.Address{City: "Wien", PostCode: "1010", Country: "AT"}
		row.ReasonCode = "VATEX-EU-IC"
	}
	for i := range d.Lines {
		d.Lines[i].Category, d.Lines[i].Rate = code, rate
	}
	for i := range d.Allowances {
		d.Allowances[i].Category, d.Allowances[i].Rate = code, rate
	}
	for i := range d.Charges {
		d.Charges[i].Category, d.Charges[i].Rate = code, rate
	}
	row.Rate = rate
	if code == "O" {
		row.Rate = dec("0") // Germany wants the rate in the breakdown all the same
	}
	d.Breakdown = []en16931.TaxSubtotal{row}
	resettle(d)
	if code == "O" {
		d.Breakdown[0].Rate = dec("0")
	}
}

// everything uses every term that a profile takes.
func everything(d *en16931.Invoice, p en16931.Profile) {
	d.TaxCurrency, d.Totals.TaxAccounting = "SEK", dec("400.00")
	d.TaxPointCode = "35"
	d.ProjectReference, d.ContractReference, d.OrderReference, d.SalesOrderReference = "P-1", "C-1", "O-1", "SO-1"
	d.ReceiptReference, d.DespatchReference, d.TenderReference = "RE-1", "DE-1", "T-1"
	d.Object = en16931.Identifier{ID: "OBJ", Scheme: "AAA"}
	d.AccountingReference = "4711"
	d.Notes = []en16931.Note{{Subject: "AAI", Text: "First <note> & \"more\""}, {Text: "Second"}}
	d.Preceding = []en16931.Preceding{{Number: "R-1", Date: "2026-01-02"}, {Number: "R-0"}}
	d.Seller.IDs = []en16931.Identifier{{ID: "S-1"}, {ID: "7300010000001", Scheme: "0088"}}
	d.Seller.TaxID, d.Seller.LegalForm = "30/123/45678", "Amtsgericht Berlin"
	d.Seller.Address.Line2, d.Seller.Address.Line3, d.Seller.Address.Subdivision = "Hinterhof", "3. OG", "Berlin"
	d.Buyer.TradeName, d.Buyer.IDs = "Rathaus", []en16931.Identifier{{ID: "B-1"}}
	d.Buyer.LegalID = en16931.Identifier{ID: "B-L-1"}
	d.Buyer.Contact = en16931.Contact{Name: "A. Buyer", Phone: "+49 228 1", Email: "b@example.com"}
	d.Payee = &en16931.Party{Name: "Factor AG", IDs: []en16931.Identifier{{ID: "F-1"}},
		LegalID: en16931.Identifier{ID: "HRB 9"}}
	d.TaxRepresentative = &en16931.Party{Name: "Tax GmbH", VATID: "DE129273398",
		Address: en16931.Address{City: "Köln", Country: "DE"}}
	d.Delivery = en16931.Delivery{Name: "Lager", Location: en16931.Identifier{ID: "7300010000001", Scheme: "0088"},
		Date:    "2026-11-14",
		Address: en16931.Address{Line1: "Weg 1", City: "Bonn", PostCode: "53111", Country: "DE"}}
	d.Period = en16931.Period{Start: "2026-11-01", End: "2026-11-30"}
	d.Payment.Means = append(d.Payment.Means,
		en16931.PaymentMeans{Code: "58", Account: en16931.Account{ID: "DE02120300000000202051"}})
	d.Documents = []en16931.Document{{Reference: "A-1", Description: "Time sheet", Content: []byte("%PDF-1.7"),
		MIME: "application/pdf", Filename: "time.pdf"},
		{Reference: "A-2", Location: "https://example.com/a2"}}
	l := &d.Lines[0]
	l.Note, l.Object, l.OrderLine, l.AccountingReference = "Mind the step",
		en16931.Identifier{ID: "L-OBJ", Scheme: "AAA"}, "3", "4712"
	l.Period = en16931.Period{Start: "2026-11-02", End: "2026-11-03"}
	l.Price = en16931.Price{Net: dec("636.13"), Discount: dec("10.00"), Gross: dec("646.13"), BaseQuantity: dec("10"),
		BaseUnit: "C62"}
	l.Item.BuyerID, l.Item.Origin = "BI-1", "AT"
	l.Item.Classes = []en16931.Class{{Code: "65434568", Scheme: "STL", Version: "1"}}
	l.Item.Attributes = []en16931.Attribute{{Name: "Colour", Value: "Red"}}
	if p.CII && p.German {
		d.Preceding = d.Preceding[:1] // D16B takes one, D22B many
	}
	if p.Peppol || p.CII && !p.German {
		d.Object.Scheme, l.Object.Scheme = "ABZ", "ABZ"
	}
}

func randomDocuments(count int) (all []judged) {
	for seed := range count {
		p := profiles[seed%len(profiles)]
		d := randomInvoice(rand.New(rand.NewPCG(uint64(seed), 7)), p, 1+seed%20)
		all = append(all, judged{name: fmt.Sprintf("%s random %d", p.Code, seed), profile: p, doc: d})
	}
	return all
}

// a break is one way to break a rule.
type breakage struct {
	rule    string
	profile en16931.Profile
	change  func(d *en16931.Invoice)
}

func brokenDocuments() (all []judged) {
	for _, b := range breakages() {
		d := sample(b.profile)
		b.change(d)
		all = append(all, judged{name: b.profile.Code + " without " + b.rule, profile: b.profile, doc: d, rule: b.rule})
	}
	return all
}

// Every rule that the source names is broken by some document here, and so
// compared with the official one.
func TestEveryRuleIsBrokenOnce(t *testing.T) {
	broken := map[string]bool{}
	for _, c := range brokenDocuments() {
		for _, f := range en16931.Check(c.doc, c.profile) {
			broken[f.Rule] = true
		}
	}
	names := regexp.MustCompile(`"((?:BR|PEPPOL|UBL|NO|DK|SE|NL)-[A-Z0-9-]*[0-9])"`)
	seen := 0
	for _, file := range []string{"rules.go", "rules_lines.go", "rules_totals.go", "rules_peppol.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range names.FindAllSubmatch(text, -1) {
			seen++
			if rule := string(m[1]); !broken[rule] {
				t.Errorf("no document breaks %s", rule)
			}
		}
	}
	for _, k := range []string{"S", "Z", "E", "AE", "IC", "G", "O", "AF", "AG"} {
		for n := 1; n <= 10; n++ {
			if rule := fmt.Sprintf("BR-%s-%02d", k, n); !broken[rule] {
				t.Errorf("no document breaks %s", rule)
			}
		}
	}
	if seen < 130 {
		t.Errorf("only %d names of rules were found", seen)
	}
}
