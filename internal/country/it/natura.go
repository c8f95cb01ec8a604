package it

import (
	"slices"
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// natura is a reason for which a line bears no VAT (list of FatturaPA 1.2.3;
// plain N2, N3 and N6 are refused since 2021).
type natura struct {
	code  string
	kind  string // of the tax entry
	stamp bool   // stamp duty may be due on it (DPR 642/72, tariff, article 13)
	law   string // RiferimentoNormativo
	means string
}

func naturas() []natura {
	return []natura{
		{"N1", transaction.TaxZero, true, "Escluso ex art. 15 DPR 633/72", "excluded from the taxable amount (art. 15)"},
		{"N2.1", transaction.TaxOutside, true, "Non soggetto ad IVA ex artt. da 7 a 7-septies DPR 633/72",
			"not subject: place of supply abroad (arts. 7 to 7-septies)"},
		{"N2.2", transaction.TaxOutside, true, "Non soggetto ad IVA", "not subject, other cases (flat-rate regime among them)"},
		{"N3.1", transaction.TaxExport, false, "Non imponibile ex art. 8 c. 1 lett. a) e b) DPR 633/72",
			"export of goods (art. 8)"},
		{"N3.2", transaction.TaxIntraEU, false, "Non imponibile ex art. 41 DL 331/93",
			"intra-Community supply (art. 41 DL 331/93)"},
		{"N3.3", transaction.TaxExport, false, "Non imponibile ex art. 71 DPR 633/72", "supply to San Marino (art. 71)"},
		{"N3.4", transaction.TaxExport, false, "Non imponibile ex artt. 8-bis e 9 DPR 633/72",
			"treated as export (arts. 8-bis, 9)"},
		{"N3.5", transaction.TaxExport, true, "Non imponibile ex art. 8 c. 1 lett. c) DPR 633/72",
			"upon a declaration of intent (art. 8 c. 1 c)"},
		{"N3.6", transaction.TaxExport, true, "Non imponibile, operazione che non concorre al plafond",
			"not taxable, does not count towards the ceiling"},
		{"N4", transaction.TaxExempt, true, "Esente ex art. 10 DPR 633/72", "exempt (art. 10)"},
		{"N5", transaction.TaxExempt, false, "Regime del margine", "margin scheme, VAT not shown"},
		{"N6.1", transaction.TaxReverse, false, "Inversione contabile ex art. 74 c. 7 e 8 DPR 633/72", "reverse charge: scrap"},
		{"N6.2", transaction.TaxReverse, false, "Inversione contabile ex art. 17 c. 5 DPR 633/72",
			"reverse charge: gold and silver"},
		{"N6.3", transaction.TaxReverse, false, "Inversione contabile ex art. 17 c. 6 lett. a) DPR 633/72",
			"reverse charge: subcontracting in building"},
		{"N6.4", transaction.TaxReverse, false, "Inversione contabile ex art. 17 c. 6 lett. a-bis) DPR 633/72",
			"reverse charge: sale of buildings"},
		{"N6.5", transaction.TaxReverse, false, "Inversione contabile ex art. 17 c. 6 lett. b) DPR 633/72",
			"reverse charge: mobile phones"},
		{"N6.6", transaction.TaxReverse, false, "Inversione contabile ex art. 17 c. 6 lett. c) DPR 633/72",
			"reverse charge: electronic products"},
		{"N6.7", transaction.TaxReverse, false, "Inversione contabile ex art. 17 c. 6 lett. a-ter) DPR 633/72",
			"reverse charge: building trade"},
		{"N6.8", transaction.TaxReverse, false,
			"Inversione contabile ex art. 17 c. 6 lett. d-bis, d-ter, d-quater) DPR 633/72", "reverse charge: energy"},
		{"N6.9", transaction.TaxReverse, false, "Inversione contabile ex art. 17 DPR 633/72", "reverse charge: other cases"},
		{"N7", transaction.TaxOutside, false, "IVA assolta in altro stato UE ex art. 74-sexies DPR 633/72",
			"VAT paid in another member state (OSS)"},
	}
}

func naturaOf(code string) (natura, bool) {
	for _, n := range naturas() {
		if n.code == strings.ToUpper(code) {
			return n, true
		}
	}
	return natura{}, false
}

// lawOf is RiferimentoNormativo of a sum: what frees it of tax, or who pays it.
func (d *invoice) lawOf(g group) string {
	n, known := naturaOf(g.natura)
	switch {
	case n.code == "N2.2" && d.regime == regimeFlat:
		return "Regime forfettario ex art. 1 commi 54-89 L. 190/2014"
	case n.code == "N2.2" && d.regime == regimeMinimal:
		return "Regime di vantaggio ex art. 27 c. 1 e 2 DL 98/2011"
	case known:
		return n.law
	case g.due == dueByBuyer:
		return "Scissione dei pagamenti ex art. 17-ter DPR 633/72"
	}
	return ""
}

// When VAT is due, a code of taxed entries.
const (
	dueAtOnce    = "I"
	dueOnPayment = "D"
	dueByBuyer   = "S" // split payment
)

func reasonCodes() []country.Meaning {
	all := []country.Meaning{
		{Code: dueAtOnce, Meaning: "taxed: VAT is due at once (esigibilità immediata)"},
		{Code: dueOnPayment, Meaning: "taxed: VAT is due on payment (esigibilità differita)"},
		{Code: dueByBuyer, Meaning: "taxed: the buyer pays the VAT to the treasury (scissione dei pagamenti, art. 17-ter)"},
	}
	for _, n := range naturas() {
		all = append(all, country.Meaning{Code: n.code, Meaning: n.means})
	}
	return all
}

// classify derives the types that the client left open: from a code first, then
// as everywhere.
func classify(f country.Facts, c country.Case) []transaction.Item {
	return country.ClassifyCodes(f, c, func(code string) (string, bool) {
		n, known := naturaOf(code)
		return n.kind, known
	})
}

// exemptions checks the lines of a document whose items are typed; sent are the
// items as they came.
func exemptions(sent, typed []transaction.Item, s supply) (found []fault.Fault) {
	for i := range typed {
		if j := typed[i].OnlyTax(); j >= 0 && !typed[i].Taxes[j].Rate.IsZero() {
			if c := strings.ToUpper(typed[i].Taxes[j].Code); c != "" && dueOf(c, "") == "" {
				found = append(found, fault.At(sale.TaxPath(i, j, "code"), fault.FieldNotValid,
					"of a taxed line must be I, D or S: a Natura stands on lines without tax (00401)"))
			}
		}
	}
	for e := range sale.Untaxed(sent, typed) {
		const choices = "must say why there is no tax: EXEMPT (N4), OUTSIDE (N2.2), REVERSE (N6.9), ZERO (N1), or a code N1 to N7 (00400)"
		if e.Open && s.bought {
			found = append(found, e.Fault("type", fault.FieldRequired, choices))
			continue
		}
		if asked := e.Asked(choices); asked != nil {
			found = append(found, asked...)
			continue
		}
		s.services = e.Services
		found = append(found, exemption(e, s)...)
	}
	return found
}

func exemption(e sale.Entry, s supply) []fault.Fault {
	if e.Code != "" {
		meant, known := naturaOf(e.Code)
		switch {
		case slices.Contains([]string{"N2", "N3", "N6"}, strings.ToUpper(e.Code)):
			return []fault.Fault{e.Fault("code", fault.FieldNotValid,
				"must say which: plain N2, N3 and N6 are refused since 2021 (00445)")}
		case !known:
			return []fault.Fault{e.Fault("code", fault.FieldNotValid, "must be one of %s", strings.Join(codes(), ", "))}
		case meant.kind != e.Type:
			return []fault.Fault{e.Fault("code", fault.ValidationMatchInvalid, "means %s, but the entry is %s", meant.kind, e.Type)}
		}
	}
	if _, flaw := s.natura(e.Tax); flaw != "" {
		return []fault.Fault{e.Misfit(flaw)}
	}
	return nil
}

func codes() []string {
	var all []string
	for _, n := range naturas() {
		all = append(all, n.code)
	}
	return all
}
