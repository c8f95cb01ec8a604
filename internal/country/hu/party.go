package hu

import (
	"strings"

	"tributary/internal/country/taxid"
	"tributary/internal/official/navwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

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
	v := taxid.Check("HU", text)
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
	w.Start(name)
	w.Leaf("base:taxpayerId", n.payer)
	w.Maybe("base:vatCode", n.kind)
	w.Maybe("base:countyCode", n.county)
	w.End()
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
	if p == nil {
		return buyer{status: navwire.PrivatePerson}
	}
	number := taxid.Bare(p.TaxNumber)
	if number == "" {
		if p.Type == transaction.Business {
			return buyer{status: navwire.Other}
		}
		return buyer{status: navwire.PrivatePerson}
	}
	where := homeOf(p)
	if code, ok := taxid.CountryCode(number[:min(2, len(number))]); ok && taxid.InVIES(code) {
		where = code
	}
	if where == "HU" {
		if n, ok := readNumber(p.TaxNumber); ok {
			return buyer{status: navwire.Domestic, home: n}
		}
		if p.Type != transaction.Business {
			return buyer{status: navwire.PrivatePerson}
		}
		return buyer{status: navwire.Domestic, flaw: "is not a Hungarian tax number: " + taxid.Check("HU", p.TaxNumber).Reason}
	}
	if state, rest, ok := taxid.Check(where, p.TaxNumber).VIES(); ok && len(state+rest) <= unionMax {
		return buyer{status: navwire.Other, union: state + rest}
	}
	if taxid.InVIES(where) && p.Type != transaction.Business {
		return buyer{status: navwire.PrivatePerson} // a person's number that is none of VAT
	}
	third := words(p.TaxNumber, navwire.NumberMax+1)
	if len([]rune(third)) > navwire.NumberMax {
		return buyer{status: navwire.Other, flaw: "must be at most 50 characters long (thirdStateTaxId)"}
	}
	return buyer{status: navwire.Other, third: third}
}

const unionMax = 15 // communityVatNumber

// homeOf is where a party is: its address, else Hungary.
func homeOf(p *transaction.Party) string {
	if p != nil && p.Address != nil && p.Address.CountryCode != "" {
		return strings.ToUpper(p.Address.CountryCode)
	}
	return "HU"
}

// write writes customerInfo. Of a person nothing but the status is reported
// (CUSTOMER_DATA_NOT_EXPECTED).
func (b buyer) write(w *xmltree.Writer, p *transaction.Party) {
	w.Start("customerInfo")
	w.Leaf("customerVatStatus", b.status)
	if b.status != navwire.PrivatePerson {
		switch {
		case b.home.payer != "":
			w.Start("customerVatData")
			b.home.write(w, "customerTaxNumber")
			w.End()
		case b.union != "":
			w.Start("customerVatData")
			w.Leaf("communityVatNumber", b.union)
			w.End()
		case b.third != "":
			w.Start("customerVatData")
			w.Leaf("thirdStateTaxId", b.third)
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
	code := strings.ToUpper(a.CountryCode)
	if code == "" {
		code = "HU"
	}
	city := words(a.City, navwire.DetailMax)
	if city == "" {
		city = "-"
	}
	w.Start(name)
	w.Start("base:simpleAddress")
	w.Leaf("base:countryCode", code)
	w.Leaf("base:postalCode", postalCode(a.PostalCode))
	w.Leaf("base:city", city)
	w.Leaf("base:additionalAddressDetail", street(a))
	w.End()
	w.End()
}

// postalCode is one that NAV's pattern takes, else four zeros: letters, digits,
// blanks and hyphens, three to ten of them, none at the ends.
func postalCode(text string) string {
	text = strings.ToUpper(words(text, 10))
	text = strings.TrimFunc(text, func(r rune) bool { return r == ' ' || r == '-' })
	for _, r := range text {
		if (r < '0' || r > '9') && (r < 'A' || r > 'Z') && r != ' ' && r != '-' {
			return noPostalCode
		}
	}
	if len(text) < 3 {
		return noPostalCode
	}
	return text
}

func street(a transaction.Address) string {
	var parts []string
	for _, part := range []string{a.AddressLine1, strings.TrimSpace(a.Prefix + " " + a.Number + " " + a.Suffix), a.AddressLine2, a.District, a.Neighbourhood, a.State} {
		if part = words(part, navwire.DetailMax); part != "" {
			parts = append(parts, part)
		}
	}
	if text := words(strings.Join(parts, ", "), navwire.DetailMax); text != "" {
		return text
	}
	return "-"
}

// sameParty reports whether two tax numbers name one taxpayer.
func sameParty(a, b string) bool {
	one, ok1 := readNumber(a)
	two, ok2 := readNumber(b)
	if ok1 && ok2 {
		return one.payer == two.payer
	}
	return taxid.Bare(a) != "" && taxid.Bare(a) == taxid.Bare(b)
}
