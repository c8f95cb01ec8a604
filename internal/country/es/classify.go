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
	regimeSurcharge = "RE"  // recargo de equivalencia, beside VAT in the same line
	regimeOSS       = "OSS" // VAT of another member state, declared in the one stop shop
)

// codeSuplido is of money that was laid out for the customer. It is known to be refused.
const codeSuplido = "SUPLIDO"

// Taxes of the records (list L1).
const (
	taxIVA  = "01"
	taxIPSI = "02"
	taxIGIC = "03"
)

func mainRegimes() []string {
	return []string{transaction.VAT, regimeIVA, regimeIGIC, regimeIPSI, regimeOSS}
}

func taxOf(regime string) string {
	switch regime {
	case transaction.VAT, regimeIVA, regimeOSS:
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
// L8A and L8B). 06 and 14 need data that a transaction does not have: the cost, the
// day of payment.
func specialRegimes() []country.Meaning {
	return []country.Meaning{
		{Code: "01", Meaning: "General regime"},
		{Code: "02", Meaning: "Export"},
		{Code: regimeUsed, Meaning: "Used goods, works of art, antiques: taxed on the margin, which a classification MARGIN says"},
		{Code: "04", Meaning: "Investment gold"},
		{Code: regimeTravel, Meaning: "Travel agencies: taxed on the margin, which a classification MARGIN says"},
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

// derivations are the rules of classify, gradeOf and kindOf as sentences.
func derivations() []string {
	return []string{
		"A tax entry that carries a type keeps it; a withheld entry (RET) without one gets the type RET.",
		"A tax entry without a type whose code names a grade gets the type of that grade: S2 REVERSE; N1 and N2 OUTSIDE; E2 and E3 EXPORT; E5 INTRA_EU; other E EXEMPT.",
		"A rate above 0 gets the type that the country's rate table gives it on the transaction's day; a rate the table does not have is REDUCED when it is below the standard rate of that day, otherwise STANDARD.",
		"Where the customer is, the address says: country IC and postal codes 35 and 38 are the Canary Islands, EA and 51 and 52 Ceuta and Melilla; the rest of ES, and a document without a customer, is the mainland. Other member states are those of the Union's VAT (Directive 2006/112/EC, articles 5 to 7): not Réunion, Åland, Livigno and the like, Monaco as France, Northern Ireland for goods. Outside of the territory of IVA (VAT) is everything but the mainland, of IGIC everything but the Canary Islands, of IPSI everything but Ceuta and Melilla.",
		"A rate of 0 of IVA to a customer outside its territory: goods EXPORT, to a business of another member state with a tax number INTRA_EU; services OUTSIDE, to such a business REVERSE. Of IGIC and IPSI: goods EXPORT, services OUTSIDE.",
		"A rate of 0 otherwise: ZERO of IGIC and IPSI; of IVA, which has no such rate, it is refused unless a type or a grade says why. So are a rate of 0 to consumers in the Union and to consumers of services in the rest of Spain, who pay IVA or, in the Union, that of their country (regime OSS).",
		"A discount line is read as services when every other line is, otherwise as goods. Services in a document with goods that bear no tax (their shipping), and lines with ancillary true, are read as goods.",
		"CalificacionOperacion or OperacionExenta is the grade that the code names; otherwise it follows from the type: STANDARD, REDUCED and ZERO S1; EXEMPT E1; REVERSE S2 for a customer in the tax's territory or with a Spanish NIF, N2 elsewhere; EXPORT E2; INTRA_EU E5; OUTSIDE N2 for a customer outside the territory and N1 for one in it; entries of the regime OSS N2.",
		"ClaveRegimen is the regime that the code names; otherwise 17 for the regime OSS, 02 for E2 and E3 (IPSI 01), 08 for N2 to a customer under another Spanish tax (from the Canary Islands to Ceuta and Melilla 20), 18 for a line with an equivalence surcharge, and 01.",
		"An entry of rate 0 with the code 03 or 05 is taxed on the margin that the line's classification MARGIN says, tax included (200000@21): S1, base and tax of the margin; ImporteTotal is the price. Its type is EXEMPT.",
		"TipoFactura of an invoice: F1 for a customer with a number; otherwise F2, a simplified invoice within the company's simplified_limit; with FacturaSinIdentifDestinatarioArt61d, and without a limit, where a customer is named and every line is E2 or N2.",
		"TipoFactura of a credit: R5 where the original is F2 or R5, otherwise R1; by difference (I), amounts negated.",
		"TipoFactura of an adjustment: R5 where the original is F2 or R5 and R1 where it is not; by difference (I). reason chooses another: R1 to R5, with -S by substitution, F3, or S.",
	}
}

// classify gives every tax entry a type: see derivations.
func (p *pack) classify(c country.Case) []transaction.Item {
	t := *c.Transaction
	t.Items = slices.Clone(t.Items)
	for i := range t.Items {
		t.Items[i].Taxes = slices.Clone(t.Items[i].Taxes)
		if !t.Items[i].Ancillary {
			classifyLine(&t, i)
		}
	}
	country.FollowGoods(t.Items)
	for i := range t.Items {
		if t.Items[i].Ancillary {
			classifyLine(&t, i)
		}
	}
	c.Transaction = &t
	return country.ClassifyTaxes(p.facts, c)
}

// classifyLine gives types by codes and to what bears no tax.
func classifyLine(t *transaction.Transaction, i int) {
	for j := range t.Items[i].Taxes {
		tax := &t.Items[i].Taxes[j]
		if tax.Type != "" || tax.Withheld() {
			continue
		}
		grade, _, _ := readCode(tax.Code)
		tax.Type = typeOfGrade(grade)
		if onMargin(tax.Code) {
			tax.Type = transaction.TaxExempt // no tax is shown, as in Poland
		}
		if main := taxOf(tax.Regime); tax.Type == "" && main != "" && tax.Rate.IsZero() && grade == "" {
			tax.Type = zeroType(t, i, main)
		}
	}
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
	if strings.EqualFold(tax.Code, codeSuplido) {
		return d, "is of what was paid in the customer's name and on his account, which is no part of the base (Ley 37/1992, article 78.Tres.3): how a record states it is not settled, so bill it apart from the invoice"
	}
	if !ok {
		return d, "must be a grade (S1 to E8), a regime (01 to 21), or both joined by a hyphen; 06 and 14 are not supported"
	}
	if tax.Regime == regimeOSS {
		return gradeOfOSS(t, grade, regime)
	}
	if grade == "" {
		grade = gradeOfType(t, tax.Type, d.tax)
	}
	if regime == "" {
		regime = regimeOf(t, d.tax, grade)
	}
	d.grade, d.regime = grade, regime
	if d.grade == "S1" || d.grade == "S2" {
		d.rate = tax.Rate.MinimalString()
	}
	if d.tax != taxIVA && tax.Type == transaction.TaxIntraEU && tax.Code == "" {
		return d, "is missing: INTRA_EU is an exemption of IVA; goods that leave the territory of IGIC or IPSI are EXPORT"
	}
	return d, d.contradiction()
}

// gradeOfOSS is a supply to a consumer of another member state whose tax is
// declared there: not subject here by the rules on its place (Ley 37/1992,
// articles 68.Tres, 70.Uno.4 and 73), in the regime of title IX, chapter XI.
func gradeOfOSS(t *transaction.Transaction, grade, regime string) (detail, string) {
	d := detail{tax: taxIVA, regime: "17", grade: "N2"}
	switch {
	case grade != "" && grade != d.grade || regime != "" && regime != d.regime:
		return d, "must be empty, N2, 17 or N2-17 for the one stop shop"
	case landOfCustomer(t) != union && !northernIrish(t.Customer):
		return d, "does not fit: the one stop shop is for customers in another member state"
	case t.Customer.Type == transaction.Business:
		return d, "does not fit: the one stop shop is for consumers; a business is INTRA_EU or REVERSE"
	}
	return d, ""
}

// regimeOf is the regime that a grade calls for.
func regimeOf(t *transaction.Transaction, tax, grade string) string {
	away := isAway(t, tax) && landOfCustomer(t).spanish()
	switch {
	case (grade == "E2" || grade == "E3") && tax != taxIPSI:
		return "02"
	case grade == "N2" && away && tax == taxIGIC && landOfCustomer(t) == cities:
		return "20"
	case grade == "N2" && away:
		return "08" // subject to the other tax of Spain
	}
	return "01"
}

func gradeOfType(t *transaction.Transaction, kind, tax string) string {
	switch kind {
	case transaction.TaxExempt:
		return "E1"
	case transaction.TaxReverse:
		if localTo(t, tax) {
			return "S2"
		}
		return "N2"
	case transaction.TaxExport:
		return "E2"
	case transaction.TaxIntraEU:
		return "E5"
	case transaction.TaxOutside:
		if isAway(t, tax) {
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
