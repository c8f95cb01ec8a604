package it

import (
	"cmp"
	"regexp"
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/country/text"
	"tributary/internal/official/sdiwire"
	"tributary/internal/transaction"
)

const home = "IT"

// Lengths of FatturaPA.
const (
	nameMax    = 80
	addressMax = 60
	houseMax   = 8
	idMax      = 28
)

// Numbers of buyers abroad who have none (guide of AdE).
const (
	personAbroad   = "0000000"
	businessAbroad = "OO99999999999"
	noPostalCode   = "00000"
)

// personCodeLength is that of a person's codice fiscale.
const personCodeLength = 16

// party is a seller or a buyer as FatturaPA names it.
type party struct {
	country, id string // IdFiscaleIVA; empty: none
	code        string // CodiceFiscale
	name        string
	address     transaction.Address
	nation      string // of the address

	flaw   string // why it cannot be named, for the client
	flawAt string // member of the party
}

// companyOf is the onboarded company.
func companyOf(s *country.Supplier) party {
	p := party{country: home, name: latin(s.LegalName, nameMax), address: s.Address, nation: home}
	if v := taxid.Check(home, s.TaxNumber); v.Valid {
		p.id = v.Number
	}
	if code := taxid.Bare(s.Settings.Text(settingFiscalCode)); code != p.id {
		p.code = code
	}
	return p
}

// identify finds how a customer is named. Eleven digits are a VAT number unless
// they begin with 8 or 9, which are codes of bodies; sixteen characters are a
// person's codice fiscale. The code stands beside the number only where it
// differs: equal ones were refused (00324).
func identify(c *transaction.Party) party {
	p := party{nation: home}
	if c == nil {
		return p
	}
	p.name, p.code = latin(c.LegalName, nameMax), taxid.Bare(c.FiscalCode)
	p.nation = taxid.CountryOf(home, c)
	if c.Address != nil {
		p.address = *c.Address
	}
	p.number(c)
	if p.code == p.id {
		p.code = ""
	}
	if p.flaw == "" && p.code != "" && !fiscalCode(p.code) {
		p.flaw, p.flawAt = "is not a codice fiscale: 11 digits or 16 characters, with their check character (00306)",
			"tax_information.fiscal_code"
	}
	if p.flaw == "" && c.LegalName != "" && p.name == "" {
		p.flaw, p.flawAt = "has no letter that FatturaPA could carry: spell it with Latin ones", "legal_name"
	}
	return p
}

func (p *party) number(c *transaction.Party) {
	number := taxid.Bare(c.TaxNumber)
	switch where := p.issuedBy(number); {
	case number == "" && p.nation != home:
		p.country, p.id = p.nation, personAbroad
		if c.Type == transaction.Business {
			p.id = businessAbroad
		}
	case number == "":
	case where == home:
		p.italian(c.TaxNumber)
	default:
		p.foreign(where, c.TaxNumber)
	}
}

// personCode is the form of a person's codice fiscale, with the letters that
// stand for digits where two people would have one code (omocodia).
var personCode = regexp.MustCompile(`^[A-Z]{6}[0-9LMNP-V]{2}[A-EHLMPR-T][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]$`)

// issuedBy is the country whose number it is. Codes of people begin with any
// letters, a member state's as well (FRRGNN85…): Italy's own are tried first, and
// letters count only where the number is valid there.
func (p *party) issuedBy(number string) string {
	if personCode.MatchString(number) && fiscalCode(number) || p.nation == home && taxid.Check(home, number).Valid {
		return home
	}
	if state := taxid.Prefix(number); state != "" && taxid.Check(state, number).Valid {
		return state
	}
	return p.nation
}

func (p *party) italian(text string) {
	v := taxid.Check(home, text)
	compact := taxid.Bare(text)
	switch {
	case v.Valid && v.Number[0] != '8' && v.Number[0] != '9':
		p.country, p.id = home, v.Number
	case fiscalCode(compact):
		p.code = compact
	default:
		p.flaw, p.flawAt = "is neither an Italian VAT number (11 digits) nor a codice fiscale (16 characters) with the right check character (00305, 00306)", "tax_information.tax_number"
	}
}

func (p *party) foreign(where, text string) {
	p.country, p.id = where, taxid.Bare(text)
	if where == sanMarino { // IdPaese is said apart, as in the prefix of a VAT number
		p.id = strings.TrimPrefix(p.id, sanMarino)
	}
	if state, rest, ok := taxid.Check(where, text).VIES(); ok {
		p.country, p.id = state, rest
	}
	if len(p.id) > idMax {
		p.flaw, p.flawAt = "must have at most 28 letters and digits (IdCodice)", "tax_information.tax_number"
	}
}

// fiscalCode checks a codice fiscale: 11 digits as a VAT number has them, or 16
// characters with their check character (DM 23/12/1976).
func fiscalCode(code string) bool {
	if len(code) == 11 && text.Digits(code) {
		return luhn(code)
	}
	return len(code) == personCodeLength && checkLetter(code) == code[personCodeLength-1]
}

// luhn is the check of a partita IVA.
func luhn(text string) bool {
	sum := 0
	for i := range len(text) {
		n := int(text[i] - '0')
		if i%2 == 1 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}

// checkLetter is the last character of a codice fiscale; 0 where another
// character cannot stand in one.
func checkLetter(text string) byte {
	odd := [26]int{1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23}
	sum := 0
	for i := range 15 {
		var n int
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			n = int(c - '0')
		case c >= 'A' && c <= 'Z':
			n = int(c - 'A')
		default:
			return 0
		}
		if i%2 == 0 { // the first is an odd place
			n = odd[n]
		}
		sum += n
	}
	return byte('A' + sum%26)
}

// registered reports whether a party has a number of its own, not one that
// stands for none.
func (p party) registered() bool {
	return p.id != "" && p.id != personAbroad && p.id != businessAbroad
}

// same reports whether two parties have one VAT number.
func (p party) same(o party) bool { return p.id != "" && p.country == o.country && p.id == o.id }

// recipient is where SdI delivers: CodiceDestinatario and PECDestinatario.
func recipient(c *transaction.Party, p party) (code, pec string) {
	if c != nil && c.Electronic != nil {
		switch c.Electronic.Scheme {
		case transaction.SchemeSDI:
			return strings.ToUpper(c.Electronic.ID), ""
		case transaction.SchemePEC:
			if p.nation == home {
				return sdiwire.NoAddress, c.Electronic.ID
			}
		}
	}
	if p.country != "" && p.country != home {
		return sdiwire.ForeignAddress, ""
	}
	return sdiwire.NoAddress, ""
}

// sede is an address as FatturaPA has it. Abroad there are neither Italian
// postal codes nor provinces.
type sede struct{ street, house, cap, city, province, nation string }

func sedeOf(a transaction.Address, nation string) sede {
	s := sede{street: cmp.Or(latin(a.AddressLine1+" "+a.AddressLine2, addressMax), "-"), house: latin(a.Number, houseMax),
		cap: noPostalCode, city: cmp.Or(latin(a.City, addressMax), "-"), nation: nation}
	if nation != home {
		return s
	}
	if code := taxid.Bare(a.PostalCode); len(code) == len(noPostalCode) && text.Digits(code) {
		s.cap = code
	}
	if province := taxid.Bare(a.Province); len(province) == 2 && !strings.ContainsAny(province, "0123456789") {
		s.province = province
	}
	return s
}
