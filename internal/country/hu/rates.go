package hu

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/navwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// rate is lineVatRate: a percentage, a case with its reason, or the domestic
// reverse charge. It is comparable: lines of one rate are one group of the summary.
type rate struct {
	percent string // vatPercentage
	element string // vatExemption or vatOutOfScope
	code    string
	reverse bool
}

func (r rate) write(w *xmltree.Writer, name string) {
	w.Start(name)
	switch {
	case r.reverse:
		w.Leaf("vatDomesticReverseCharge", "true")
	case r.percent != "":
		w.Leaf("vatPercentage", r.percent)
	default:
		w.Start(r.element)
		w.Leaf("case", r.code)
		w.Leaf("reason", reasonOf(r.code))
		w.End()
	}
	w.End()
}

// reasonOf is the ground of a line without tax, in the words of the act.
func reasonOf(code string) string {
	switch code {
	case navwire.AAM:
		return "Alanyi adómentes (Áfa tv. XIII. fejezet)"
	case navwire.TAM:
		return "A tevékenység közérdekű vagy speciális jellegére tekintettel adómentes (Áfa tv. 85–86. §)"
	case navwire.KBAET:
		return "Közösségen belüli adómentes termékértékesítés (Áfa tv. 89. §)"
	case navwire.EAM:
		return "Adómentes termékexport (Áfa tv. 98–109. §)"
	case navwire.NAM:
		return "Egyéb nemzetközi ügylethez kapcsolódó adómentesség (Áfa tv. 110–118. §)"
	case navwire.ATK:
		return "Az Áfa tv. tárgyi hatályán kívül (Áfa tv. 2–3. §)"
	case navwire.EUFAD37:
		return "Más tagállamban teljesített, fordítottan adózó szolgáltatás (Áfa tv. 37. §)"
	case navwire.EUFADE:
		return "Más tagállamban teljesített, fordítottan adózó ügylet"
	case navwire.EUE:
		return "Más tagállamban teljesített, nem fordítottan adózó ügylet"
	}
	return "Harmadik országban teljesített ügylet"
}

func reasonCodes() []country.Meaning {
	return []country.Meaning{
		{Code: navwire.AAM, Meaning: "exempt: the seller (alanyi adómentes, chapter XIII)"},
		{Code: navwire.TAM, Meaning: "exempt: the activity (tárgyi adómentes, §§ 85–86)"},
		{Code: navwire.KBAET, Meaning: "intra-Community supply of goods (§ 89)"},
		{Code: navwire.EAM, Meaning: "export of goods (§§ 98–109)"},
		{Code: navwire.NAM, Meaning: "other international transaction (§§ 110–118)"},
		{Code: navwire.ATK, Meaning: "outside of the VAT act (§§ 2–3)"},
		{Code: navwire.EUFAD37, Meaning: "services to a business of another member state (§ 37)"},
		{Code: navwire.EUFADE, Meaning: "other supply in another member state for which the buyer owes the tax"},
		{Code: navwire.EUE, Meaning: "supply in another member state, taxed there by the seller (OSS among them)"},
		{Code: navwire.HO, Meaning: "supply in a third country"},
	}
}

// typeOf is the type of a tax entry that a code stands for.
func typeOf(code string) (string, bool) {
	switch strings.ToUpper(code) {
	case navwire.AAM, navwire.TAM:
		return transaction.TaxExempt, true
	case navwire.KBAET:
		return transaction.TaxIntraEU, true
	case navwire.EAM, navwire.NAM:
		return transaction.TaxExport, true
	case navwire.EUFAD37, navwire.EUFADE:
		return transaction.TaxReverse, true
	case navwire.ATK, navwire.EUE, navwire.HO:
		return transaction.TaxOutside, true
	}
	return "", false
}

// classify derives the types that the client left open: from a code of the
// country first, then as everywhere.
func classify(f country.Facts, c country.Case) []transaction.Item {
	return country.ClassifyCodes(f, c, typeOf)
}

// supply is what decides the case of a line without tax.
type supply struct {
	buyer    buyer
	customer *transaction.Party
	day      time.Time
	services bool
	exempt   string // the company's case of exemption
}

// abroad reports whether the buyer is in another member state.
func (s supply) abroad() bool {
	where := homeOf(s.customer)
	return s.buyer.union != "" || s.customer != nil && where != "HU" && country.InUnion(where, s.day)
}

// percentage is a rate as NAV writes it: 27 is 0.27.
func percentage(r num.Amount) string {
	return num.MakeAmount(r.Value(), r.Exp()+2).MinimalString()
}

// rateOf is the table of taxation: type × kind of item × buyer. It answers the
// rate, and for the client why there is none.
//
//	type      goods                              services
//	EXEMPT    AAM or TAM                         the same
//	INTRA_EU  KBAET with a VAT number abroad     refused
//	EXPORT    EAM outside of the Union           refused
//	REVERSE   domestic with a Hungarian number,  domestic, EUFAD37 in the Union,
//	          EUFADE in the Union                HO elsewhere
//	OUTSIDE   EUE in the Union, HO elsewhere     the same; ATK by its code
//	ZERO      refused: NAV has no rate of zero
//
// Sources: VAT act, §§ 2–3, 37, 85–89, 98–118, 142; interface specification
// 2.2.3.2.1.
func rateOf(tax transaction.Tax, s supply) (rate, string) {
	if !tax.Rate.IsZero() {
		return rate{percent: percentage(tax.Rate)}, ""
	}
	code := strings.ToUpper(tax.Code)
	switch tax.Type {
	case transaction.TaxExempt:
		if code == "" {
			code = s.exempt
		}
		return rate{element: "vatExemption", code: code}, ""
	case transaction.TaxIntraEU:
		r := rate{element: "vatExemption", code: navwire.KBAET}
		switch {
		case s.services:
			return r, "is for goods: services to a business in another member state are REVERSE (EUFAD37)"
		case s.buyer.union == "":
			return r, "needs a customer with a VAT number of another member state (KBAET, § 89)"
		}
		return r, ""
	case transaction.TaxExport:
		r := rate{element: "vatExemption", code: navwire.EAM}
		if code == navwire.NAM {
			r.code = code
			return r, ""
		}
		switch {
		case s.services:
			return r, "is for goods: services that are taxed in another country are OUTSIDE (HO)"
		case s.customer == nil || homeOf(s.customer) == "HU" || s.abroad():
			return r, "needs a customer outside of the Union (EAM, §§ 98–109)"
		}
		return r, ""
	case transaction.TaxReverse:
		return reverseOf(code, s)
	case transaction.TaxOutside:
		r := rate{element: "vatOutOfScope", code: navwire.HO}
		switch {
		case code != "":
			r.code = code
		case s.abroad():
			r.code = navwire.EUE
		case s.customer == nil || homeOf(s.customer) == "HU":
			return r, "needs a customer in another country, or the code ATK, EUE or HO"
		}
		return r, ""
	}
	return rate{}, "NAV has no rate of 0: say EXEMPT, EXPORT, INTRA_EU, REVERSE or OUTSIDE, or a code of the country"
}

// reverseOf tells where the buyer owes the tax.
func reverseOf(code string, s supply) (rate, string) {
	switch {
	case s.buyer.home.payer != "":
		if code != "" {
			return rate{}, "with the code " + code + " is for a buyer in another member state"
		}
		return rate{reverse: true}, ""
	case s.buyer.union != "" && s.services && code != navwire.EUFADE:
		return rate{element: "vatOutOfScope", code: navwire.EUFAD37}, ""
	case s.buyer.union != "" && code != navwire.EUFAD37:
		return rate{element: "vatOutOfScope", code: navwire.EUFADE}, ""
	case s.buyer.union != "":
		return rate{}, "with the code EUFAD37 is for services"
	case s.customer != nil && s.customer.Type == transaction.Business && !s.abroad() && homeOf(s.customer) != "HU":
		return rate{element: "vatOutOfScope", code: navwire.HO}, ""
	}
	return rate{}, "needs a business with a tax number: in Hungary its Hungarian number, in another member state its VAT number"
}

// untaxed checks the lines without tax of a document whose items are typed; sent
// are the items as they came.
func untaxed(sent, typed []transaction.Item, customer *transaction.Party, day time.Time) []fault.Fault {
	var found []fault.Fault
	s := supply{buyer: identify(customer), customer: customer, day: day, exempt: navwire.TAM}
	for i := range typed {
		j := typed[i].OnlyTax()
		if j < 0 || !typed[i].Taxes[j].Rate.IsZero() {
			continue
		}
		at := fmt.Sprintf("items.%d.tax_breakdowns.%d", i, j)
		tax := typed[i].Taxes[j]
		if sent[i].Taxes[j].Type == "" && sent[i].Taxes[j].Code == "" && tax.Type == transaction.TaxZero {
			found = append(found, fault.At(at+".type", fault.FieldRequired,
				"must say why there is no tax: EXEMPT (AAM, TAM), REVERSE, OUTSIDE (ATK, EUE, HO), or a code of the country; NAV has no rate of 0"))
			continue
		}
		s.services = country.IsServices(typed, i)
		if _, flaw := rateOf(tax, s); flaw != "" {
			found = append(found, fault.At(at+".type", fault.ValidationMatchInvalid, "%s: %s", tax.Type, flaw))
		}
		if tax.Code == "" {
			continue
		}
		meant, known := typeOf(tax.Code)
		switch {
		case !known:
			found = append(found, fault.At(at+".code", fault.FieldNotValid, "must be one of %s", strings.Join(codes(), ", ")))
		case meant != tax.Type:
			found = append(found, fault.At(at+".code", fault.ValidationMatchInvalid, "means %s, but the entry is %s", meant, tax.Type))
		}
	}
	return found
}

func codes() []string {
	var all []string
	for _, m := range reasonCodes() {
		all = append(all, m.Code)
	}
	slices.Sort(all)
	return all
}
