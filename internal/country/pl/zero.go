package pl

import (
	"strings"
	"time"

	"tributary/internal/country/sale"
	"tributary/internal/country/territory"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// standing is what a buyer is to the zero rates.
type standing int

const (
	nobody        standing = iota // no buyer is named
	homeBusiness                  // named by a NIP
	homeConsumer                  // in Poland without a NIP
	unionBusiness                 // with a VAT number of another member state
	unionConsumer                 // in another member state without one
	elsewhere
)

// orAncillary is said of services that may belong to goods (art. 29a sec. 6 point 2).
const orAncillary = "; shipping, packing or insurance of the goods says ancillary: true"

// zeroCase is what decides which zero a line has.
type zeroCase struct {
	buyer    identifier
	customer *transaction.Party
	day      time.Time
	services bool
}

// standing tells the buyer's. Northern Ireland (XI) is in the Union for goods
// and outside of it for services (protocol on Ireland, art. 8); who is in a part of
// a member state without the Union's VAT is outside of it, whatever the number.
func (z zeroCase) standing() standing {
	if z.customer == nil {
		return nobody
	}
	switch at := z.at(); {
	case z.buyer.nip != "":
		return homeBusiness
	case at.Apart != "", z.buyer.union == territory.NorthernIreland && z.services:
		return elsewhere
	case z.buyer.union != "":
		return unionBusiness
	case at.Country == home:
		return homeConsumer
	case at.Union:
		return unionConsumer
	}
	return elsewhere
}

// at is where the buyer is.
func (z zeroCase) at() territory.Place {
	return territory.Of(home, z.customer, z.day, z.services)
}

// zeroColumn is the table of zero rates: type × kind of item × buyer. It answers
// the column, and for the client why there is none.
//
//	type      goods                             services
//	ZERO      0 KR                              0 KR
//	EXEMPT    zw                                zw
//	INTRA_EU  0 WDT with a VAT number abroad    refused
//	EXPORT    0 EX                              refused
//	OUTSIDE   np I; to a buyer in Poland by a   np II for a business in the Union, else np I;
//	          code alone (NP1, or POZA)         the same
//	REVERSE   oo for a Polish business,         oo for a Polish business, np II for one in
//	          np I for one abroad, also by      the Union, np I elsewhere
//	          the code 135 (triangular)
//
// Sources: VAT act, art. 41 sec. 3 and 4, 28b, 100 sec. 1 point 4, 106e sec. 1
// point 18 and sec. 4; FA(3), P_12 and P_13_6_1 to P_13_10.
func zeroColumn(tax transaction.Tax, z zeroCase) (column, string) {
	code := strings.ToUpper(tax.Code)
	switch tax.Type {
	case transaction.TaxExempt:
		if g, _ := groundOf(code); g.onMargin() {
			return onMargin, ""
		}
		return exempt, ""
	case transaction.TaxIntraEU:
		switch {
		case z.services:
			return zeroIntraEU, "is for goods: services to a business in another member state are REVERSE (np II)" + orAncillary
		case z.at().Apart != "":
			return zeroIntraEU, z.at().Exported()
		case z.standing() != unionBusiness:
			return zeroIntraEU, "needs a customer with a VAT number of another member state (0 WDT, art. 42 of the VAT act)"
		}
		return zeroIntraEU, ""
	case transaction.TaxExport:
		if z.services {
			return zeroExport, "is for goods: services that are taxed in another country are OUTSIDE (np I)" + orAncillary
		}
		if z.buyer.union == territory.NorthernIreland {
			return zeroExport, "does not fit a number of Northern Ireland (XI), which is in the Union for goods: INTRA_EU (0 WDT); a buyer in Great Britain is named by its GB number"
		}
		return zeroExport, ""
	case transaction.TaxOutside:
		if at := z.standing(); code == "" && (at == homeBusiness || at == homeConsumer) {
			return outside, "to a buyer in Poland must say by a code what it is: NP1 where the place of supply is in another country, POZA for a deposit or damages, which are no supply"
		}
		if code == "" && z.services && z.standing() == unionBusiness {
			return outsideToEU, ""
		}
		return outside, ""
	case transaction.TaxReverse:
		return reverseColumn(code, z)
	}
	return zeroAtHome, ""
}

// reverseColumn tells who owes the tax: a business in Poland (oo), one in
// another member state for services (np II), or one elsewhere (np I).
func reverseColumn(code string, z zeroCase) (column, string) {
	at := z.standing()
	switch {
	case code == codeTriangular && (z.services || at != unionBusiness):
		return outside, "with the code 135 is for goods to a customer with a VAT number of another member state (art. 135 of the VAT act)"
	case at == nobody, at == homeConsumer, code == codeReverse && at != homeBusiness:
		return reverse, "needs a business in Poland with a NIP, or one in another country: somebody must owe the tax"
	case code == codeOutsideToEU && (!z.services || at != unionBusiness):
		return outsideToEU, "with the code NP2 is for services to a customer with a VAT number of another member state"
	case at == homeBusiness:
		return reverse, ""
	case at == unionConsumer:
		return outsideToEU, "needs the customer's VAT number of another member state"
	case at == elsewhere && z.customer.Type != transaction.Business:
		return outside, "needs a business: sales to persons in other countries that are taxed there are OUTSIDE"
	case at == unionBusiness && z.services:
		return outsideToEU, ""
	}
	return outside, ""
}

// zeroes checks the zero rates of a document whose items are typed; sent are the
// items as they came. A correction that names no customer has the original's.
func zeroes(sent, typed []transaction.Item, customer *transaction.Party, day time.Time) (found []fault.Fault) {
	z := zeroCase{buyer: identify(customer), customer: customer, day: day}
	for e := range sale.Untaxed(sent, typed) {
		if asked := e.Asked("must say which zero it is: ZERO (0 KR, taxed at 0 in Poland), EXEMPT (zw), REVERSE (oo) or OUTSIDE with NP1 (np I) or POZA (a deposit, damages); or a code of the country"); asked != nil {
			found = append(found, asked...)
			continue
		}
		z.services = e.Services
		if _, flaw := zeroColumn(e.Tax, z); flaw != "" {
			found = append(found, e.Misfit(flaw))
		}
	}
	return found
}
