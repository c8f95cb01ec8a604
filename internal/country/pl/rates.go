package pl

import (
	"regexp"
	"strings"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// column is a place in the sums of FA(3): P_13_x, with P_14_x where tax is due.
type column int

const (
	standard     column = iota // 23 %, before 2011 22 %
	reduced                    // 8 %, before 2011 7 %
	lowest                     // 5 %
	taxi                       // lump sum of taxis, 4 %, before 2011 3 %
	oneStop                    // tax of another member state, declared in the one stop shop
	zeroAtHome                 // 0 KR
	zeroIntraEU                // 0 WDT
	zeroExport                 // 0 EX
	exempt                     // zw
	outside                    // np I: the place of supply is not in Poland
	outsideToEU                // np II: services of art. 100 sec. 1 point 4
	reverse                    // oo: the buyer in Poland owes the tax
	onMargin                   // taxed on the margin: no rate, no tax on the invoice
	columnsCount = iota
)

// columns are the elements of each; no tax element where no tax is due. mark is
// the value of P_12 of one without tax; of a margin it is left out.
var columns = [columnsCount]struct{ net, tax, mark string }{
	standard:    {net: "P_13_1", tax: "P_14_1"},
	reduced:     {net: "P_13_2", tax: "P_14_2"},
	lowest:      {net: "P_13_3", tax: "P_14_3"},
	taxi:        {net: "P_13_4", tax: "P_14_4"},
	oneStop:     {net: "P_13_5", tax: "P_14_5"},
	zeroAtHome:  {net: "P_13_6_1", mark: "0 KR"},
	zeroIntraEU: {net: "P_13_6_2", mark: "0 WDT"},
	zeroExport:  {net: "P_13_6_3", mark: "0 EX"},
	exempt:      {net: "P_13_7", mark: "zw"},
	outside:     {net: "P_13_8", mark: "np I"},
	outsideToEU: {net: "P_13_9", mark: "np II"},
	reverse:     {net: "P_13_10", mark: "oo"},
	onMargin:    {net: "P_13_11"},
}

// Codes of a tax entry that decide more than its type.
const (
	codeOutsideToEU = "NP2"
	codeReverse     = "OO"
	codeTriangular  = "135" // goods that the second of three sells on (P_23)
)

// ground is a code of a tax entry without tax: the element that says it, where
// FA(3) has one, and the words that the law wants.
type ground struct{ code, kind, field, words, meaning string }

const marginField = "P_PMarzy_"

// triangular is what an invoice of the simplified procedure says (art. 136 sec. 1
// points 1 and 2); the VAT numbers of points 3 and 4 are those of the parties.
const triangular = "VAT: Faktura WE uproszczona na mocy art. 135-138 ustawy o ptu; podatek z tytułu dokonanej dostawy zostanie rozliczony przez ostatniego w kolejności podatnika podatku od wartości dodanej"

// grounds are all codes but 43.1.N. Sales that are taxed on their margin (VAT
// act, art. 119 and 120) show neither rate nor tax (art. 106e sec. 2 and 3).
var grounds = []ground{
	{"0KR", transaction.TaxZero, "", "", "0 % in Poland (0 KR)"},
	{"0WDT", transaction.TaxIntraEU, "", "", "0 %, intra-Community supply of goods (0 WDT)"},
	{"0EX", transaction.TaxExport, "", "", "0 %, export of goods (0 EX)"},
	{"NP1", transaction.TaxOutside, "", "", "place of supply outside Poland (np I)"},
	{codeNoSupply, transaction.TaxOutside, "", "",
		"no supply at all: a deposit (kaucja), damages; added to the total in Rozliczenie"},
	{codeOutsideToEU, transaction.TaxReverse, "", "",
		"services to a business of another member state, art. 100 sec. 1 point 4 (np II)"},
	{codeReverse, transaction.TaxReverse, "", "", "domestic reverse charge (oo)"},
	{codeTriangular, transaction.TaxReverse, "", triangular,
		"goods sold on by the second of three, art. 135: the buyer in another member state owes the tax (np I, P_23)"},
	{"ZW", transaction.TaxExempt, "", "", "exempt (zw) on the ground in the company's setting exemption_basis"},
	{"113", transaction.TaxExempt, "P_19A", "art. 113 ust. 1 i 9 ustawy o podatku od towarów i usług",
		"exempt, art. 113 sec. 1 and 9: small taxpayer"},
	{"82.3", transaction.TaxExempt, "P_19A",
		"przepisy wydane na podstawie art. 82 ust. 3 ustawy o podatku od towarów i usług", "exempt, decree under art. 82 sec. 3"},
	{"DIR", transaction.TaxExempt, "P_19B", "art. 132 dyrektywy 2006/112/WE", "exempt, art. 132 of directive 2006/112/EC"},
	{"MT", transaction.TaxExempt, marginField + "2", "procedura marży dla biur podróży",
		"taxed on the margin: travel agencies, art. 119 (P_PMarzy_2)"},
	{"MU", transaction.TaxExempt, marginField + "3_1", "procedura marży - towary używane",
		"taxed on the margin: used goods, art. 120 (P_PMarzy_3_1)"},
	{"MD", transaction.TaxExempt, marginField + "3_2", "procedura marży - dzieła sztuki",
		"taxed on the margin: works of art, art. 120 (P_PMarzy_3_2)"},
	{"MA", transaction.TaxExempt, marginField + "3_3", "procedura marży - przedmioty kolekcjonerskie i antyki",
		"taxed on the margin: collectors' items and antiques, art. 120 (P_PMarzy_3_3)"},
}

// groundOf is what a code stands for.
func groundOf(code string) (ground, bool) {
	code = strings.ToUpper(code)
	for _, g := range grounds {
		if g.code == code {
			return g, true
		}
	}
	if point, ok := strings.CutPrefix(code, "43.1."); ok && pointForm.MatchString(point) {
		return ground{code: code, kind: transaction.TaxExempt, field: "P_19A",
			words: "art. 43 ust. 1 pkt " + strings.ToLower(point) + " ustawy o podatku od towarów i usług"}, true
	}
	return ground{}, false
}

// onMargin reports whether sales are taxed on their margin.
func (g ground) onMargin() bool { return strings.HasPrefix(g.field, marginField) }

// pointForm is how a point of a law is numbered: 2, 18, 26, 33A.
var pointForm = regexp.MustCompile(`^[1-9][0-9]?[A-Z]?$`)

func reasonCodes() (all []country.Meaning) {
	for _, g := range grounds {
		all = append(all, country.Meaning{Code: g.code, Meaning: g.meaning})
	}
	return append(all, country.Meaning{Code: "43.1.N",
		Meaning: "exempt, art. 43 sec. 1 point N, for example 43.1.18 or 43.1.33A"})
}

// typeOf is the type of a tax entry that a code stands for.
func typeOf(code string) (string, bool) {
	g, known := groundOf(code)
	return g.kind, known
}

// classify derives the types that the client left open: from a code of the
// country first, then as everywhere.
func classify(f country.Facts, c country.Case) []transaction.Item {
	return country.ClassifyCodes(f, c, typeOf)
}

// columnOf is that of a rate.
var columnOf = map[string]column{"23": standard, "22": standard, "8": reduced, "7": reduced, "5": lowest, "4": taxi,
	"3": taxi}

// lineColumn is the column of a typed tax entry and the line's value of P_12.
// It is false for a rate that FA(3) does not have.
func lineColumn(tax transaction.Tax, d *document, services bool) (c column, mark string, ok bool) {
	if tax.Regime == regimeOSS {
		return oneStop, "", true
	}
	if !tax.Rate.IsZero() {
		mark = tax.Rate.MinimalString()
		c, ok = columnOf[mark]
		return c, mark, ok
	}
	c, _ = zeroColumn(tax, zeroCase{buyer: d.buyer, customer: d.Customer, day: d.Date, services: services})
	return c, columns[c].mark, true
}
