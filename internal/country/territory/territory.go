// Package territory says where the VAT of the European Union is charged.
//
// It owns the one table of places that belong to a member state and not to the
// Union's VAT, that look outside and are inside, or that count as another
// country (Directive 2006/112/EC, articles 5 to 7). It refuses to own what a
// country makes of it: which document, which code. Law: nobody else asks whether
// an address is in the Union.
package territory

import (
	"slices"
	"strings"
	"time"

	"github.com/invopop/gobl/cal"
	"github.com/invopop/gobl/l10n"

	"tributary/internal/country/taxid"
	"tributary/internal/transaction"
)

// Names of parts that a country's own law tells apart.
const (
	Canary          = "the Canary Islands"
	Ceuta           = "Ceuta"
	Melilla         = "Melilla"
	CeutaMelilla    = "Ceuta and Melilla" // where the code does not say which
	NorthernIreland = "XI"                // of VAT numbers; no code of addresses
)

// Place is where somebody is to the law of VAT.
type Place struct {
	Country string // whose VAT law holds there, by ISO 3166-1; XI for goods in Northern Ireland
	// the part of Country, or the territory that belongs to it, where the Union's VAT is not charged; "" elsewhere
	Apart string
	Union bool // in the territory of the Union's VAT
}

// Entry is a line of the table: addresses of a country, all or those with one of
// the beginnings of postal codes, or in one of the towns where a code is shared.
type Entry struct {
	Country string   // code of the address
	Postal  []string // beginnings of postal codes; none: all
	Towns   []string // in small letters, by which Postal is narrowed; none: all
	Name    string
	Of      string // whose it is, or as which it counts
	Outside bool   // the Union's VAT is not charged there
	Source  string
}

const (
	thirdInCustoms  = "Directive 2006/112/EC, art. 6(1)"
	thirdOutCustoms = "Directive 2006/112/EC, art. 6(2)"
	counting        = "Directive 2006/112/EC, art. 7"
	overseas        = "Directive 2006/112/EC, art. 5(4); TFEU, art. 355(2) and annex II"
	within          = "Directive 2006/112/EC, art. 5(2); TFEU, art. 355(1)"
)

// Table is the law as data. The first line that fits an address decides; an
// address that none fits is where its country is.
func Table() []Entry { return slices.Clone(table) }

var table = []Entry{
	{Country: "ES", Postal: []string{"35", "38"}, Name: Canary, Of: "ES", Outside: true, Source: thirdInCustoms + "(b)"},
	{Country: "IC", Name: Canary, Of: "ES", Outside: true, Source: thirdInCustoms + "(b)"},
	{Country: "ES", Postal: []string{"51"}, Name: Ceuta, Of: "ES", Outside: true, Source: thirdOutCustoms + "(c)"},
	{Country: "ES", Postal: []string{"52"}, Name: Melilla, Of: "ES", Outside: true, Source: thirdOutCustoms + "(d)"},
	{Country: "EA", Name: CeutaMelilla, Of: "ES", Outside: true, Source: thirdOutCustoms + "(c), (d)"},

	// and 97133, 97150 of two others, outside as well
	{Country: "FR", Postal: []string{"971"}, Name: "Guadeloupe", Of: "FR", Outside: true, Source: thirdInCustoms + "(c)"},
	{Country: "FR", Postal: []string{"972"}, Name: "Martinique", Of: "FR", Outside: true, Source: thirdInCustoms + "(c)"},
	{Country: "FR", Postal: []string{"973"}, Name: "French Guiana", Of: "FR", Outside: true, Source: thirdInCustoms + "(c)"},
	{Country: "FR", Postal: []string{"974"}, Name: "Réunion", Of: "FR", Outside: true, Source: thirdInCustoms + "(c)"},
	{Country: "FR", Postal: []string{"976"}, Name: "Mayotte", Of: "FR", Outside: true, Source: thirdInCustoms + "(c)"},
	{Country: "FR", Postal: []string{"978"}, Name: "Saint-Martin", Of: "FR", Outside: true, Source: thirdInCustoms + "(c)"},
	{Country: "FR", Postal: []string{"975"}, Name: "Saint-Pierre and Miquelon", Of: "FR", Outside: true, Source: overseas},
	{Country: "FR", Postal: []string{"977"}, Name: "Saint-Barthélemy", Of: "FR", Outside: true, Source: overseas},
	{Country: "FR", Postal: []string{"984"}, Name: "the French Southern Territories", Of: "FR", Outside: true, Source: overseas},
	{Country: "FR", Postal: []string{"986"}, Name: "Wallis and Futuna", Of: "FR", Outside: true, Source: overseas},
	{Country: "FR", Postal: []string{"987"}, Name: "French Polynesia", Of: "FR", Outside: true, Source: overseas},
	{Country: "FR", Postal: []string{"988"}, Name: "New Caledonia", Of: "FR", Outside: true, Source: overseas},
	{Country: "GP", Name: "Guadeloupe", Of: "FR", Outside: true, Source: thirdInCustoms + "(c)"},
	{Country: "MQ", Name: "Martinique", Of: "FR", Outside: true, Source: thirdInCustoms + "(c)"},
	{Country: "GF", Name: "French Guiana", Of: "FR", Outside: true, Source: thirdInCustoms + "(c)"},
	{Country: "RE", Name: "Réunion", Of: "FR", Outside: true, Source: thirdInCustoms + "(c)"},
	{Country: "YT", Name: "Mayotte", Of: "FR", Outside: true, Source: thirdInCustoms + "(c)"},
	{Country: "MF", Name: "Saint-Martin", Of: "FR", Outside: true, Source: thirdInCustoms + "(c)"},
	{Country: "PM", Name: "Saint-Pierre and Miquelon", Of: "FR", Outside: true, Source: overseas},
	{Country: "BL", Name: "Saint-Barthélemy", Of: "FR", Outside: true, Source: overseas},
	{Country: "TF", Name: "the French Southern Territories", Of: "FR", Outside: true, Source: overseas},
	{Country: "WF", Name: "Wallis and Futuna", Of: "FR", Outside: true, Source: overseas},
	{Country: "PF", Name: "French Polynesia", Of: "FR", Outside: true, Source: overseas},
	{Country: "NC", Name: "New Caledonia", Of: "FR", Outside: true, Source: overseas},

	{Country: "FI", Postal: []string{"22"}, Name: "Åland", Of: "FI", Outside: true, Source: thirdInCustoms + "(d)"},
	{Country: "AX", Name: "Åland", Of: "FI", Outside: true, Source: thirdInCustoms + "(d)"},
	{Country: "IT", Postal: []string{"22061"}, Name: "Campione d'Italia", Of: "IT", Outside: true,
		Source: thirdInCustoms + "(f)"},
	{Country: "IT", Postal: []string{"22060"}, Towns: []string{"campione"}, Name: "Campione d'Italia", Of: "IT",
		Outside: true, Source: thirdInCustoms + "(f)"},
	{Country: "IT", Postal: []string{"23041"}, Name: "Livigno", Of: "IT", Outside: true, Source: thirdOutCustoms + "(e)"},
	{Country: "IT", Postal: []string{"23030"}, Towns: []string{"livigno"}, Name: "Livigno", Of: "IT", Outside: true,
		Source: thirdOutCustoms + "(e)"},
	{Country: "DE", Postal: []string{"27498"}, Name: "Helgoland", Of: "DE", Outside: true, Source: thirdOutCustoms + "(a)"},
	{Country: "DE", Postal: []string{"78266"}, Name: "Büsingen", Of: "DE", Outside: true, Source: thirdOutCustoms + "(b)"},
	{Country: "GR", Postal: []string{"63086", "63087"}, Name: "Mount Athos", Of: "GR", Outside: true,
		Source: thirdInCustoms + "(a)"},
	{Country: "FO", Name: "the Faroe Islands", Of: "DK", Outside: true,
		Source: "Directive 2006/112/EC, art. 5(4); TFEU, art. 355(5)(a)"},
	{Country: "GL", Name: "Greenland", Of: "DK", Outside: true, Source: overseas},

	{Country: "PT", Postal: []string{"90", "91", "92", "93", "94"}, Name: "Madeira", Of: "PT", Source: within},
	{Country: "PT", Postal: []string{"95", "96", "97", "98", "99"}, Name: "the Azores", Of: "PT", Source: within},
	{Country: "AT", Postal: []string{"6691"}, Name: "Jungholz", Of: "AT", Source: "Directive 2006/112/EC, art. 5(2) and 104"},
	{Country: "AT", Postal: []string{"6991", "6992", "6993"}, Name: "Mittelberg", Of: "AT",
		Source: "Directive 2006/112/EC, art. 5(2) and 104"},
	// German postal codes of Austrian places
	{Country: "DE", Postal: []string{"87491"}, Name: "Jungholz", Of: "AT", Source: "Directive 2006/112/EC, art. 5(2) and 104"},
	{Country: "DE", Postal: []string{"87567", "87568", "87569"}, Name: "Mittelberg", Of: "AT",
		Source: "Directive 2006/112/EC, art. 5(2) and 104"},

	{Country: "MC", Name: "Monaco", Of: "FR", Source: counting},
	{Country: "IM", Name: "the Isle of Man", Of: "GB", Source: counting},
	{Country: "GB", Towns: []string{"akrotiri", "dhekelia"}, Name: "Akrotiri and Dhekelia", Of: "CY", Source: counting},
	{Country: "SM", Name: "San Marino", Of: "SM", Source: "Directive 2006/112/EC, art. 5(4); Italy: DPR 633/72, art. 71"},
	{Country: "VA", Name: "the Vatican", Of: "VA", Source: "Directive 2006/112/EC, art. 5(4); Italy: DPR 633/72, art. 71"},
	{Country: "GB", Postal: []string{"BT"}, Name: "Northern Ireland", Of: NorthernIreland, Source: northern},
}

const northern = "Protocol on Ireland/Northern Ireland, art. 8 and annex 3: goods alone"

// Of is where a party is, seen from the country of the document; nobody, and who
// gives no country, is at home there. Goods and services differ in Northern
// Ireland alone, which a VAT number that begins with XI tells as well as the
// postal code.
func Of(home string, p *transaction.Party, day time.Time, services bool) Place {
	at := transaction.Address{}
	if p != nil && p.Address != nil {
		at = *p.Address
	}
	code := taxid.CountryOf(home, p)
	if iso, ok := taxid.CountryCode(code); ok {
		code = iso // EL is Greece
	}
	e, found := entryOf(code, at)
	switch north := p != nil && code == "GB" && strings.HasPrefix(taxid.Bare(p.TaxNumber), NorthernIreland); {
	case InUnion(code, day) && (!found || !e.Outside && e.Of == code):
		return Place{Country: code, Union: true}
	case (north || e.Of == NorthernIreland) && !services:
		return Place{Country: NorthernIreland, Union: true}
	case !found, e.Of == NorthernIreland:
		return Place{Country: code}
	case e.Outside:
		return Place{Country: e.Of, Apart: e.Name}
	}
	return Place{Country: e.Of, Union: InUnion(e.Of, day)}
}

// Exported says why goods that are sent to the place are no supply within the
// Union, though it belongs to a member state; "" elsewhere.
func (p Place) Exported() string {
	if p.Apart == "" {
		return ""
	}
	return "does not fit: the Union's VAT does not hold in " + p.Apart +
		" (Directive 2006/112/EC, articles 5 to 7), and goods that are sent there are EXPORT"
}

func entryOf(code string, a transaction.Address) (Entry, bool) {
	postal, town := taxid.Bare(a.PostalCode), strings.ToLower(a.City)
	if code != "GB" {
		postal = strings.TrimLeft(postal, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") // people write FR-97400 and D-27498
	}
	at := slices.IndexFunc(table, func(e Entry) bool {
		begins := func(beginning string) bool { return strings.HasPrefix(postal, beginning) }
		named := func(name string) bool { return strings.Contains(town, name) }
		return e.Country == code && (e.Postal == nil || slices.ContainsFunc(e.Postal, begins)) &&
			(e.Towns == nil || slices.ContainsFunc(e.Towns, named))
	})
	if at < 0 {
		return Entry{}, false
	}
	return table[at], true
}

// InUnion reports whether a country is a member of the European Union on a day.
// It knows no parts of countries: that is Of.
func InUnion(code string, day time.Time) bool {
	return l10n.Union(l10n.EU).HasMemberOn(cal.DateOf(day.UTC()), l10n.Code(code))
}

// Code is a country's as lists of countries have it: IC and EA, which ISO only
// reserves, are ES there.
func Code(code string) string {
	if code == "IC" || code == "EA" {
		return "ES"
	}
	return code
}
