package it

import (
	"time"

	"tributary/internal/country/territory"
	"tributary/internal/transaction"
)

// Countries and numbers with rules of their own.
const (
	sanMarino = "SM"
	vatican   = "VA"
)

// supply is what decides the Natura of a line without tax.
type supply struct {
	buyer    party
	day      time.Time
	services bool
	flat     bool // the seller charges no VAT at all (RF02, RF19)
	bought   bool // the company issues the document as the buyer, or is both
}

// at is where the buyer is, for what is sold.
func (s supply) at() territory.Place {
	return territory.Of(home, &transaction.Party{Address: &s.buyer.address, TaxNumber: s.buyer.country + s.buyer.id},
		s.day, s.services)
}

// inUnion reports whether the buyer is in the VAT territory of another member
// state.
func (s supply) inUnion() bool {
	at := s.at()
	return at.Union && at.Country != home
}

// atHome reports whether the buyer is in Italy's VAT territory.
func (s supply) atHome() bool {
	at := s.at()
	return at.Union && at.Country == home
}

// taxable reports whether the buyer is registered for VAT in Italy.
func (s supply) taxable() bool { return s.buyer.country == home && s.buyer.id != "" }

// taxableInUnion reports whether the buyer has a VAT number of another member state.
func (s supply) taxableInUnion() bool {
	return s.inUnion() && s.buyer.registered() && s.buyer.country != home
}

// natura is the Natura of an entry of rate zero, and for the client why there
// is none. Its code wins; then the type decides:
//
//	EXEMPT    N4
//	INTRA_EU  N3.2 with a VAT number of another member state; goods
//	EXPORT    N3.3 to San Marino, N3.1 elsewhere outside of the Union; goods
//	REVERSE   N6.9 in Italy; N2.1 for services to a business of the Union
//	OUTSIDE   N2.1 for a buyer abroad, else N2.2
//	ZERO      N1
//
// What a flat-rate seller sells at home, or to the Union as goods, is N2.2 (L.
// 190/2014, article 1 c. 58; DL 331/93, article 41 c. 2-bis); its exports, its
// services to businesses abroad and the costs it advances are everybody's.
//
// Sources: DPR 633/72, articles 7–10, 15, 17, 71, 74; DL 331/93, article 41.
func (s supply) natura(tax transaction.Tax) (code, flaw string) {
	n, known := naturaOf(tax.Code)
	switch {
	case known && s.bought:
		return n.code, "" // why a purchase bears no tax is not decided by where the seller is
	case known:
		return n.code, s.fits(n)
	case s.bought && tax.Type != transaction.TaxExempt:
		return "", "must say by a code N1 to N7 why a purchase bears no tax"
	}
	switch tax.Type {
	case transaction.TaxExempt:
		code = "N4"
	case transaction.TaxIntraEU:
		code = "N3.2"
	case transaction.TaxExport:
		return s.exported()
	case transaction.TaxReverse:
		switch {
		case s.taxableInUnion() && s.services:
			return "N2.1", ""
		case !s.taxable():
			return "", "needs a buyer with an Italian VAT number, or services to a business of another member state with its VAT number: somebody must owe the tax"
		}
		code = "N6.9"
	case transaction.TaxOutside:
		if !s.atHome() {
			return "N2.1", ""
		}
		code = "N2.2"
	case transaction.TaxZero:
		return "N1", ""
	default:
		return "", "must say why there is no tax"
	}
	if s.flat {
		return "N2.2", ""
	}
	n, _ = naturaOf(code)
	return n.code, s.fits(n)
}

// exported is the Natura of goods that leave the Union.
func (s supply) exported() (code, flaw string) {
	switch s.buyer.nation {
	case sanMarino:
		code = "N3.3"
	case vatican:
		return "", "to the Vatican (art. 71) must say under which code it is declared: N3.1 or N3.4"
	default:
		code = "N3.1"
	}
	n, _ := naturaOf(code)
	return n.code, s.fits(n)
}

// fits says why a Natura cannot stand on a sale to this buyer.
func (s supply) fits(n natura) string {
	switch {
	case n.code == "N3.1":
		return s.fitsExport()
	case n.code == "N3.2" && s.services:
		return "is for goods: services to a business of another member state are REVERSE (N2.1); shipping, packing or insurance of the goods says ancillary: true"
	case n.code == "N3.2" && s.at().Apart != "":
		return s.at().Exported() + " (N3.1, not N3.2)"
	case n.code == "N3.2" && !s.taxableInUnion():
		return "needs a buyer in another member state with its VAT number (N3.2, art. 41 DL 331/93)"
	case n.code == "N3.2" && s.flat:
		return "is not for flat-rate sellers: what they send to the Union is N2.2 (art. 41 c. 2-bis DL 331/93)"
	case n.code == "N3.3" && (s.buyer.nation != sanMarino || !s.buyer.registered()):
		return "needs an operator of San Marino with its number (N3.3, art. 71; DM 21/6/2021)"
	case n.code == "N3.5" && !s.taxable():
		return "needs a buyer with an Italian VAT number, who declared the intent (N3.5, art. 8 c. 1 c)"
	case n.code == "N7" && (!s.inUnion() || s.buyer.registered()):
		return "needs a consumer in another member state (N7, art. 74-sexies): who has a VAT number owes the tax itself"
	case n.kind == transaction.TaxReverse && !s.taxable():
		return "needs a buyer with an Italian VAT number (N6, art. 17): somebody must owe the tax"
	case n.kind == transaction.TaxReverse && s.flat:
		return "is not for flat-rate sellers: what they sell is N2.2 (L. 190/2014, art. 1 c. 58)"
	}
	return ""
}

func (s supply) fitsExport() string {
	switch {
	case s.services:
		return "is for goods: services that are taxed abroad are OUTSIDE (N2.1); shipping, packing or insurance of the goods says ancillary: true"
	case s.buyer.nation == sanMarino:
		return "is not for San Marino, which has a code of its own (N3.3, art. 71)"
	case s.atHome() || s.inUnion():
		return "needs a buyer outside of the Union (N3.1, art. 8); exports for a buyer at home or in the Union (triangular ones) are not made here"
	}
	return ""
}
