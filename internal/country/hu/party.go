package hu

import (
	"cmp"
	"strings"

	"tributary/internal/country/taxid"
	"tributary/internal/country/text"
	"tributary/internal/official/navwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

const home = "HU"

// taxNumber is a Hungarian tax number: eight digits of the taxpayer, the kind of
// its VAT, and the county.
type taxNumber struct{ payer, kind, county string }

// Kinds of VAT that matter here: the ninth digit of a tax number.
const (
	kindExempt      = "1"
	kindGroupMember = "4"
	kindGroup       = "5"
)

// readNumber reads a Hungarian tax number or VAT number.
func readNumber(text string) (taxNumber, bool) {
	v := taxid.Check(home, text)
	if !v.Valid {
		return taxNumber{}, false
	}
	n := taxNumber{payer: v.Number[:8]}
	if len(v.Number) == 11 {
		n.kind, n.county = v.Number[8:9], v.Number[9:]
	}
	return n, true
}

func (n taxNumber) write(w *xmltree.Writer, name string) {
	w.Group(name, "base:taxpayerId", n.payer, "?base:vatCode", n.kind, "?base:countyCode", n.county)
}

// buyer is a customer as NAV wants to know it.
type buyer struct {
	status string // customerVatStatus
	home   taxNumber
	union  string // communityVatNumber
	third  string // thirdStateTaxId
	flaw   string // why the tax number cannot be reported, for the client
}

// identify finds how a customer is named. A number that begins with the letters
// of a member state is that state's, else it is one of the address's country, and
// without an address a Hungarian one. A person's own tax identifier of ten
// digits is none of a taxable person: nothing of persons is reported.
func identify(p *transaction.Party) buyer {
	n := taxid.PartyOf(home, p)
	own, _ := readNumber(n.Home)
	third := ""
	if p != nil {
		third = words(p.TaxNumber, navwire.NumberMax+1)
	}
	switch {
	case n.Home != "":
		return buyer{status: navwire.Domestic, home: own}
	case n.Union != "" && len(n.State+n.Union) <= unionMax:
		return buyer{status: navwire.Other, union: n.State + n.Union}
	case n.Person && (n.Bare == "" || n.Of == home || taxid.InVIES(n.Of)):
		return buyer{status: navwire.PrivatePerson} // without a number, or with one that is none of VAT
	case n.Bare == "":
		return buyer{status: navwire.Other}
	case n.Of == home:
		return buyer{status: navwire.Domestic, flaw: "is not a Hungarian tax number: " + n.Verdict.Reason}
	case len([]rune(third)) > navwire.NumberMax:
		return buyer{status: navwire.Other, flaw: "must be at most 50 characters long (thirdStateTaxId)"}
	}
	return buyer{status: navwire.Other, third: third}
}

const unionMax = 15 // communityVatNumber

// write writes customerInfo. Of a person nothing but the status is reported
// (CUSTOMER_DATA_NOT_EXPECTED).
func (b buyer) write(w *xmltree.Writer, p *transaction.Party) {
	w.Start("customerInfo")
	w.Leaf("customerVatStatus", b.status)
	if b.status != navwire.PrivatePerson {
		if b.home.payer+b.union+b.third != "" {
			w.Start("customerVatData")
			if b.home.payer != "" {
				b.home.write(w, "customerTaxNumber")
			}
			w.Leaves("?communityVatNumber", b.union, "?thirdStateTaxId", b.third)
			w.End()
		}
		w.Maybe("customerName", words(p.LegalName, navwire.NameMax))
		if p.Address != nil {
			writeAddress(w, "customerAddress", *p.Address)
		}
	}
	w.End()
}

const noPostalCode = "0000"

// writeAddress writes simpleAddress, all of whose parts NAV wants.
func writeAddress(w *xmltree.Writer, name string, a transaction.Address) {
	w.Start(name)
	w.Group("base:simpleAddress", "base:countryCode", cmp.Or(strings.ToUpper(a.CountryCode), home), "base:postalCode",
		postalCode(a.PostalCode),
		"base:city", cmp.Or(words(a.City, navwire.DetailMax), "-"), "base:additionalAddressDetail", street(a))
	w.End()
}

// postalCode is one that NAV's pattern takes, else four zeros: letters, digits,
// blanks and hyphens, three to ten of them, none at the ends.
func postalCode(code string) string {
	code = strings.Trim(strings.ToUpper(words(code, 10)), " -")
	for _, r := range code {
		if (r < '0' || r > '9') && (r < 'A' || r > 'Z') && r != ' ' && r != '-' {
			return noPostalCode
		}
	}
	if len(code) < 3 {
		return noPostalCode
	}
	return code
}

func street(a transaction.Address) string {
	lines := text.Join(", ", a.AddressLine1, text.Join(" ", a.Prefix, a.Number, a.Suffix), a.AddressLine2, a.District,
		a.Neighbourhood, a.State)
	return cmp.Or(words(lines, navwire.DetailMax), "-")
}
