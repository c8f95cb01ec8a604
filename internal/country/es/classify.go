package es

import (
	"slices"
	"strings"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// Regimes of tax entries.
const (
	regimeIVA       = "IVA"
	regimeIGIC      = "IGIC"
	regimeIPSI      = "IPSI"
	regimeSurcharge = "RE" // recargo de equivalencia, beside VAT in the same line
)

// Taxes of the records (list L1).
const (
	taxIVA  = "01"
	taxIPSI = "02"
	taxIGIC = "03"
)

func mainRegimes() []string { return []string{transaction.VAT, regimeIVA, regimeIGIC, regimeIPSI} }

func taxOf(regime string) string {
	switch regime {
	case transaction.VAT, regimeIVA:
		return taxIVA
	case regimeIPSI:
		return taxIPSI
	case regimeIGIC:
		return taxIGIC
	}
	return ""
}

// grades are what a tax entry's code may say of the operation (lists L9 and L10).
func grades() []country.Meaning {
	return []country.Meaning{
		{Code: "S1", Meaning: "Subject and not exempt"},
		{Code: "S2", Meaning: "Subject and not exempt, the customer is liable (inversión del sujeto pasivo)"},
		{Code: "N1", Meaning: "Not subject (articles 7, 14 and others)"},
		{Code: "N2", Meaning: "Not subject by the rules on the place of supply"},
		{Code: "E1", Meaning: "Exempt by article 20"},
		{Code: "E2", Meaning: "Exempt by article 21: exports"},
		{Code: "E3", Meaning: "Exempt by article 22: treated like exports"},
		{Code: "E4", Meaning: "Exempt by articles 23 and 24: warehouses and free zones"},
		{Code: "E5", Meaning: "Exempt by article 25: to another member state"},
		{Code: "E6", Meaning: "Exempt for another reason"},
		{Code: "E7", Meaning: "Exempt by article 90 of Decreto Legislativo 1/2025 (IGIC only)"},
		{Code: "E8", Meaning: "Exempt by Ley 20/1991 for another reason (IGIC only)"},
	}
}

// specialRegimes are the values of ClaveRegimen that a code may name (lists
// L8A and L8B). 06 and 14 need data that a transaction does not have.
func specialRegimes() []country.Meaning {
	return []country.Meaning{
		{Code: "01", Meaning: "General regime"},
		{Code: "02", Meaning: "Export"},
		{Code: "03", Meaning: "Used goods, art, antiques (REBU)"},
		{Code: "04", Meaning: "Investment gold"},
		{Code: "05", Meaning: "Travel agencies"},
		{Code: "07", Meaning: "Cash accounting (criterio de caja)"},
		{Code: "08", Meaning: "Subject to IPSI or IGIC (where the tax is IVA) or to IVA (where it is another)"},
		{Code: "09", Meaning: "Travel agencies as intermediaries"},
		{Code: "10", Meaning: "Collections for third parties"},
		{Code: "11", Meaning: "Lease of business premises"},
		{Code: "15", Meaning: "Continuous supplies"},
		{Code: "17", Meaning: "One stop shop (OSS and IOSS); IGIC: retailer"},
		{Code: "18", Meaning: "Equivalence surcharge; IGIC: small businesses; IPSI: articles 73.4 and 73.5 (Ceuta)"},
		{Code: "19", Meaning: "Agriculture, livestock and fishing; IGIC and IPSI: domestic exempt operations"},
		{Code: "20", Meaning: "Simplified regime; IGIC: subject to IPSI; IPSI: objective estimation"},
		{Code: "21", Meaning: "IGIC: simplified regime"},
	}
}

func reasonCodes() []country.Meaning {
	list := append(grades(), specialRegimes()...)
	return append(list, country.Meaning{Code: "S1-07", Meaning: "A grade and a regime together, joined by a hyphen"})
}

func named(list []country.Meaning, code string) bool {
	return slices.ContainsFunc(list, func(m country.Meaning) bool { return m.Code == code })
}

// readCode reads the code of a tax entry: a grade, a regime, or both.
func readCode(code string) (grade, regime string, ok bool) {
	first, second, both := strings.Cut(code, "-")
	switch {
	case code == "":
		return "", "", true
	case both:
		return first, second, named(grades(), first) && named(specialRegimes(), second)
	case named(grades(), first):
		return first, "", true
	}
	return "", first, named(specialRegimes(), first)
}

// derivations are the rules of classify and gradeOf as sentences.
func derivations() []string {
	return append([]string{
		"A tax entry without a type whose code names a grade gets the type of that grade: S2 REVERSE; N1 and N2 OUTSIDE; E2 and E3 EXPORT; E5 INTRA_EU; other E EXEMPT.",
	}, append(country.DerivationRules(),
		"CalificacionOperacion or OperacionExenta is the grade that the code names; otherwise it follows from the type: STANDARD, REDUCED and ZERO S1; EXEMPT E1; REVERSE S2 for a customer in Spain and N2 for one abroad; EXPORT E2; INTRA_EU E5; OUTSIDE N2 for a customer abroad and N1 for one in Spain.",
		"ClaveRegimen is the regime that the code names; otherwise 02 for E2 and E3, 18 for a line with an equivalence surcharge, and 01.",
		"TipoFactura of an invoice: F1 for a customer with a tax number; F2 without a customer; F2 with FacturaSinIdentifDestinatarioArt61d for an individual without a tax number.",
		"TipoFactura of a credit: R5 where the original is simplified (F2 or R5), otherwise R1; by difference (I), amounts negated.",
		"TipoFactura of an adjustment: F3 (FacturasSustituidas) where the original is simplified, the adjustment names a customer with a tax number and adds up to more than 0; otherwise R5 where the original is simplified and R1 where it is not; by difference (I). reason chooses another: R1 to R5, with -S by substitution, or F3.",
	)...)
}

// classify gives every tax entry a type: see derivations.
func (p *pack) classify(c country.Case) []transaction.Item {
	t := *c.Transaction
	t.Items = slices.Clone(t.Items)
	for i := range t.Items {
		t.Items[i].Taxes = slices.Clone(t.Items[i].Taxes)
		for j := range t.Items[i].Taxes {
			if tax := &t.Items[i].Taxes[j]; tax.Type == "" && !tax.Withheld() {
				grade, _, _ := readCode(tax.Code)
				tax.Type = typeOfGrade(grade)
			}
		}
	}
	c.Transaction = &t
	return country.ClassifyTaxes(p.facts, c)
}

func typeOfGrade(grade string) string {
	switch grade {
	case "S2":
		return transaction.TaxReverse
	case "N1", "N2":
		return transaction.TaxOutside
	case "E2", "E3":
		return transaction.TaxExport
	case "E5":
		return transaction.TaxIntraEU
	case "E1", "E4", "E6", "E7", "E8":
		return transaction.TaxExempt
	}
	return ""
}

// gradeOf derives tax, regime, grade and rate of a typed entry. The reason
// says what does not fit.
func gradeOf(t *transaction.Transaction, tax transaction.Tax) (detail, string) {
	d := detail{tax: taxOf(tax.Regime)}
	grade, regime, ok := readCode(tax.Code)
	if !ok {
		return d, "must be a grade (S1 to E8), a regime (01 to 21), or both joined by a hyphen; 06 and 14 are not supported"
	}
	abroad := homeOf(t.Customer) != "ES"
	if grade == "" {
		grade = gradeOfType(tax.Type, abroad)
	}
	if regime == "" {
		regime = "01"
		if grade == "E2" || grade == "E3" {
			regime = "02"
		}
	}
	d.grade, d.regime = grade, regime
	if d.grade == "S1" || d.grade == "S2" {
		d.rate = tax.Rate.MinimalString()
	}
	return d, d.contradiction()
}

func gradeOfType(kind string, abroad bool) string {
	switch kind {
	case transaction.TaxExempt:
		return "E1"
	case transaction.TaxReverse:
		if abroad {
			return "N2"
		}
		return "S2"
	case transaction.TaxExport:
		return "E2"
	case transaction.TaxIntraEU:
		return "E5"
	case transaction.TaxOutside:
		if abroad {
			return "N2"
		}
		return "N1"
	}
	return "S1"
}

// contradiction finds combinations of tax, regime and grade that the authority
// refuses (AEAT, "Validaciones" 1.2.0, sections 15.5 and 15.6).
func (d *detail) contradiction() string {
	common := d.tax == taxIVA || d.tax == taxIGIC
	switch {
	case d.tax != taxIGIC && (d.grade == "E7" || d.grade == "E8"):
		return d.grade + " exists for IGIC only"
	case d.tax == taxIPSI && !slices.Contains([]string{"01", "08", "11", "18", "19", "20"}, d.regime):
		return "regime " + d.regime + " does not exist for IPSI"
	case d.tax == taxIVA && d.regime == "21":
		return "regime 21 exists for IGIC only"
	case !common:
		return ""
	case d.regime == "01" && (d.grade == "E2" || d.grade == "E3"):
		return d.grade + " does not go with regime 01"
	case d.regime == "02" && !d.exempt():
		return "regime 02 is for exempt operations only"
	case d.regime == "03" && !d.exempt() && d.grade != "S1":
		return "regime 03 goes with S1 or an exemption only"
	case d.regime == "04" && !d.exempt() && d.grade != "S2":
		return "regime 04 goes with S2 or an exemption only"
	case d.regime == "07" && slices.Contains([]string{"S2", "N1", "N2", "E2", "E3", "E4", "E5"}, d.grade):
		return "regime 07 does not go with " + d.grade
	case d.regime == "08" && d.grade != "N2":
		return "regime 08 goes with N2 only"
	case d.regime == "10" && d.grade != "N1":
		return "regime 10 goes with N1 only"
	case d.regime == "11" && d.tax == taxIVA && d.rate != "21":
		return "regime 11 goes with a rate of 21 only"
	case d.regime == "20" && d.tax == taxIGIC && d.grade != "N2":
		return "regime 20 goes with N2 only"
	}
	return ""
}
