package pl

import (
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

// fields are the elements of a column; no tax element where no tax is due.
func (c column) fields() (net, tax string) {
	switch c {
	case standard:
		return "P_13_1", "P_14_1"
	case reduced:
		return "P_13_2", "P_14_2"
	case lowest:
		return "P_13_3", "P_14_3"
	case taxi:
		return "P_13_4", "P_14_4"
	case oneStop:
		return "P_13_5", "P_14_5"
	case onMargin:
		return "P_13_11", ""
	case zeroAtHome:
		return "P_13_6_1", ""
	case zeroIntraEU:
		return "P_13_6_2", ""
	case zeroExport:
		return "P_13_6_3", ""
	case exempt:
		return "P_13_7", ""
	case outside:
		return "P_13_8", ""
	case outsideToEU:
		return "P_13_9", ""
	}
	return "P_13_10", ""
}

// mark is the value of P_12 for a column without tax.
func (c column) mark() string {
	switch c {
	case zeroAtHome:
		return "0 KR"
	case zeroIntraEU:
		return "0 WDT"
	case zeroExport:
		return "0 EX"
	case exempt:
		return "zw"
	case outside:
		return "np I"
	case outsideToEU:
		return "np II"
	case onMargin:
		return "" // P_12 is left out
	}
	return "oo"
}

// The country's own codes of a tax entry. Codes of the form 43.1.N name the
// exemption of art. 43 sec. 1 point N.
const (
	codeZeroAtHome  = "0KR"
	codeZeroIntraEU = "0WDT"
	codeZeroExport  = "0EX"
	codeExempt      = "ZW"
	codeOutside     = "NP1"
	codeOutsideToEU = "NP2"
	codeReverse     = "OO"
	codeSmall       = "113"
	codeDecree      = "82.3"
	codeDirective   = "DIR"
)

// basis is a legal ground of an exemption: the element of P_19 that carries it
// and its words.
type basis struct {
	field string
	text  string
}

// exemption is the legal ground that a code names. The zero basis: the code
// names none, so the company's own stands.
func exemption(code string) (basis, bool) {
	switch code {
	case codeExempt:
		return basis{}, true
	case codeSmall:
		return basis{"P_19A", "art. 113 ust. 1 i 9 ustawy o podatku od towarów i usług"}, true
	case codeDecree:
		return basis{"P_19A", "przepisy wydane na podstawie art. 82 ust. 3 ustawy o podatku od towarów i usług"}, true
	case codeDirective:
		return basis{"P_19B", "art. 132 dyrektywy 2006/112/WE"}, true
	}
	point, ok := strings.CutPrefix(code, "43.1.")
	if !ok || !isPoint(point) {
		return basis{}, false
	}
	return basis{"P_19A", "art. 43 ust. 1 pkt " + strings.ToLower(point) + " ustawy o podatku od towarów i usług"}, true
}

// isPoint reports whether a text numbers a point of a law: 2, 18, 26, 33A.
func isPoint(text string) bool {
	digits := strings.TrimRight(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	return digits != "" && len(digits) <= 2 && len(text)-len(digits) <= 1 && strings.Trim(digits, "0123456789") == "" && digits[0] != '0'
}

// typeOf is the type of a tax entry that a code stands for.
func typeOf(code string) (string, bool) {
	switch code {
	case codeZeroAtHome:
		return transaction.TaxZero, true
	case codeZeroIntraEU:
		return transaction.TaxIntraEU, true
	case codeZeroExport:
		return transaction.TaxExport, true
	case codeOutside:
		return transaction.TaxOutside, true
	case codeOutsideToEU, codeReverse:
		return transaction.TaxReverse, true
	}
	_, exempted := exemption(code)
	if _, margin := marginScheme(code); exempted || margin {
		return transaction.TaxExempt, true
	}
	return "", false
}

// classify derives the types that the client left open: from a code of the
// country first, then as everywhere.
func classify(f country.Facts, c country.Case) []transaction.Item {
	return country.ClassifyCodes(f, c, typeOf)
}

// lineColumn is the column of a typed tax entry and the line's value of P_12.
// It is false for a rate that FA(3) does not have.
func lineColumn(tax transaction.Tax, d *document, services bool) (c column, mark string, ok bool) {
	if tax.Regime == regimeOSS {
		return oneStop, "", true
	}
	if !tax.Rate.IsZero() {
		mark = tax.Rate.MinimalString()
		switch mark {
		case "23", "22":
			return standard, mark, true
		case "8", "7":
			return reduced, mark, true
		case "5":
			return lowest, mark, true
		case "4", "3":
			return taxi, mark, true
		}
		return 0, "", false
	}
	c, _ = zeroColumn(tax, zeroCase{buyer: d.buyer, customer: d.t.Customer, day: d.t.Date, services: services})
	return c, c.mark(), true
}
