package hu

import (
	"slices"
	"strings"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/country/territory"
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
		w.Group(r.element, "case", r.code, "reason", reasonOf(r.code))
	}
	w.End()
}

// ground is a case without tax.
type ground struct {
	code, kind string // and the type of tax entries that it stands for
	reason     string // in the words of the act
	meaning    string
}

var grounds = []ground{
	{navwire.AAM, transaction.TaxExempt, "Alanyi adómentes (Áfa tv. XIII. fejezet)",
		"exempt: the seller (alanyi adómentes, chapter XIII)"},
	{navwire.TAM, transaction.TaxExempt,
		"A tevékenység közérdekű vagy speciális jellegére tekintettel adómentes (Áfa tv. 85–86. §)",
		"exempt: the activity (tárgyi adómentes, §§ 85–86)"},
	{navwire.KBAET, transaction.TaxIntraEU, "Közösségen belüli adómentes termékértékesítés (Áfa tv. 89. §)",
		"intra-Community supply of goods (§ 89)"},
	{navwire.EAM, transaction.TaxExport, "Adómentes termékexport (Áfa tv. 98–109. §)", "export of goods (§§ 98–109)"},
	{navwire.NAM, transaction.TaxExport, "Egyéb nemzetközi ügylethez kapcsolódó adómentesség (Áfa tv. 110–118. §)",
		"other international transaction (§§ 110–118)"},
	{navwire.ATK, transaction.TaxOutside, "Az Áfa tv. tárgyi hatályán kívül (Áfa tv. 2–3. §)",
		"outside of the VAT act (§§ 2–3)"},
	{navwire.EUFAD37, transaction.TaxReverse,
		"Más tagállamban teljesített, fordítottan adózó szolgáltatás (Áfa tv. 37. §)",
		"services to a business of another member state (§ 37)"},
	{navwire.EUFADE, transaction.TaxReverse, "Más tagállamban teljesített, fordítottan adózó ügylet",
		"other supply in another member state for which the buyer owes the tax"},
	{navwire.EUE, transaction.TaxOutside, "Más tagállamban teljesített, nem fordítottan adózó ügylet",
		"supply in another member state, taxed there by the seller (OSS among them)"},
	{navwire.HO, transaction.TaxOutside, "Harmadik országban teljesített ügylet", "supply in a third country"},
}

func groundOf(code string) (ground, bool) {
	at := slices.IndexFunc(grounds, func(g ground) bool { return g.code == strings.ToUpper(code) })
	if at < 0 {
		return ground{}, false
	}
	return grounds[at], true
}

func reasonOf(code string) string {
	g, _ := groundOf(code)
	return g.reason
}

func reasonCodes() []country.Meaning {
	var all []country.Meaning
	for _, g := range grounds {
		all = append(all, country.Meaning{Code: g.code, Meaning: g.meaning})
	}
	return all
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

// supply is what decides the case of a line without tax.
type supply struct {
	buyer    buyer
	customer *transaction.Party
	day      time.Time
	services bool
	exempt   string // the company's case of exemption
}

// at is where the buyer is, for what is sold.
func (s supply) at() territory.Place { return territory.Of(home, s.customer, s.day, s.services) }

// abroad reports whether the buyer is in the VAT territory of another member state.
func (s supply) abroad() bool {
	at := s.at()
	return at.Apart == "" && (s.union() != "" || at.Union && at.Country != home)
}

// union is the buyer's VAT number of another member state; "" where it has none,
// or none that counts: Northern Ireland is in the Union for goods alone, and
// places outside its VAT have no such numbers.
func (s supply) union() string {
	if s.at().Apart != "" || s.services && strings.HasPrefix(s.buyer.union, territory.NorthernIreland) {
		return ""
	}
	return s.buyer.union
}

// atHome reports whether the buyer, if there is one, is in Hungary.
func (s supply) atHome() bool { return s.at().Country == home }

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
			return r, "is for goods: services to a business in another member state are REVERSE (EUFAD37); shipping, packing or insurance of the goods says ancillary: true"
		case s.at().Apart != "":
			return r, s.at().Exported()
		case s.union() == "":
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
			return r, "is for goods: services that are taxed in another country are OUTSIDE (HO); shipping, packing or insurance of the goods says ancillary: true"
		case s.atHome() || s.abroad():
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
		case s.atHome():
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
	case s.union() != "" && s.services && code != navwire.EUFADE:
		return rate{element: "vatOutOfScope", code: navwire.EUFAD37}, ""
	case s.union() != "" && code != navwire.EUFAD37:
		return rate{element: "vatOutOfScope", code: navwire.EUFADE}, ""
	case s.union() != "":
		return rate{}, "with the code EUFAD37 is for services"
	case s.customer != nil && s.customer.Type == transaction.Business && !s.abroad() && !s.atHome():
		return rate{element: "vatOutOfScope", code: navwire.HO}, ""
	}
	return rate{}, "needs a business with a tax number: in Hungary its Hungarian number, in another member state its VAT number"
}

// untaxed checks the lines without tax of a document whose items are typed; sent
// are the items as they came.
func untaxed(sent, typed []transaction.Item, customer *transaction.Party, day time.Time) (found []fault.Fault) {
	s := supply{buyer: identify(customer), customer: customer, day: day, exempt: navwire.TAM}
	for e := range sale.Untaxed(sent, typed) {
		if asked := e.Asked("must say why there is no tax: EXEMPT (AAM, TAM), REVERSE, OUTSIDE (ATK, EUE, HO), or a code of the country; NAV has no rate of 0"); asked != nil {
			found = append(found, asked...)
			continue
		}
		s.services = e.Services
		if _, flaw := rateOf(e.Tax, s); flaw != "" {
			found = append(found, e.Misfit(flaw))
		}
		switch meant, known := typeOf(e.Code); {
		case e.Code == "":
		case !known:
			found = append(found, e.Fault("code", fault.FieldNotValid, "must be one of %s", strings.Join(codes(), ", ")))
		case meant != e.Type:
			found = append(found, e.Fault("code", fault.ValidationMatchInvalid, "means %s, but the entry is %s", meant, e.Type))
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
