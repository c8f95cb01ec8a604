package taxid

import (
	"strings"

	"tributary/internal/transaction"
)

// Party is what the tax number of a buyer, a seller or an issuer says, seen from
// the country of the document.
type Party struct {
	Country string // of the address; without one the document's
	Of      string // whose number it is: of the member state whose letters it begins with, else of Country
	Bare    string // letters and digits of the number; empty: there is none

	Home    string // the number in its normal form, where it is one of the document's country
	State   string // with Union: the member state, as the register of VAT numbers spells it
	Union   string // the VAT number there, where it is a valid one
	Person  bool   // whoever it is is no business
	Verdict Verdict
}

// PartyOf reads the number of a party. Nil is nobody, at home.
func PartyOf(home string, p *transaction.Party) Party {
	if p == nil {
		return Party{Country: home, Of: home, Person: true}
	}
	out := Party{Country: CountryOf(home, p), Bare: Bare(p.TaxNumber), Person: p.Type != transaction.Business}
	if out.Of = out.Country; strings.TrimSpace(p.TaxNumber) == "" {
		return out
	}
	if state := Prefix(out.Bare); state != "" {
		out.Of = state
	}
	return out.Read(out.Of, home, p.TaxNumber)
}

// Read takes the number for one of a country.
func (p Party) Read(of, home, number string) Party {
	p.Of, p.Verdict = of, Check(of, number)
	p.Home, p.State, p.Union = "", "", ""
	if of != home {
		p.State, p.Union, _ = p.Verdict.VIES()
	} else if p.Verdict.Valid {
		p.Home = p.Verdict.Number
	}
	return p
}

// CountryOf is where a party is: its address, else the document's country.
func CountryOf(home string, p *transaction.Party) string {
	if p != nil && p.Address != nil && p.Address.CountryCode != "" {
		return strings.ToUpper(p.Address.CountryCode)
	}
	return home
}

// Prefix is the member state whose letters begin a number; "" where none do.
func Prefix(number string) string {
	text := Bare(number)
	if len(text) < 3 {
		return ""
	}
	code, ok := CountryCode(text[:2])
	if !ok || !InVIES(code) {
		return ""
	}
	return code
}

// Same reports whether two numbers name one taxpayer of a country, or are equal.
func Same(home, a, b string) bool {
	_, one, valid := Check(home, a).VIES()
	_, two, also := Check(home, b).VIES()
	if valid && also {
		return one == two
	}
	return Bare(a) != "" && strings.TrimPrefix(Bare(a), home) == strings.TrimPrefix(Bare(b), home)
}
