package pl

import (
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// Lengths of FA(3)'s texts: TZnakowy, TZnakowy512, TTekstowy.
const (
	textMax    = 256
	nameMax    = 512
	footerMax  = 3500
	foreignMax = 50 // NrID
	unionMax   = 12 // NrVatUE
)

// identifier says in which of FA(3)'s ways a party is named.
type identifier struct {
	nip     string
	union   string // KodUE, with number
	country string // KodKraju, with number
	number  string
	flaw    string // why the tax number cannot be filed, for the client
}

// write writes NIP, KodUE and NrVatUE, KodKraju and NrID, or BrakID.
func (id identifier) write(w *xmltree.Writer) {
	switch {
	case id.nip != "":
		w.Maybe("NIP", id.nip)
	case id.union != "":
		w.Maybe("KodUE", id.union)
		w.Maybe("NrVatUE", id.number)
	case id.number != "":
		w.Maybe("KodKraju", id.country)
		w.Maybe("NrID", id.number)
	default:
		w.Leaf("BrakID", "1")
	}
}

// identify finds how a party is named. A number with the prefix of a member
// state is read as that state's, otherwise as one of the address's country,
// and without an address as Polish. A Polish number must be a NIP, which KSeF
// checks; a person may have a PESEL instead, for which FA(3) has no place.
func identify(p *transaction.Party) identifier {
	if p == nil || strings.TrimSpace(p.TaxNumber) == "" {
		return identifier{}
	}
	if code := unionPrefix(p.TaxNumber); code == "PL" {
		return identifyAtHome(p)
	} else if code != "" {
		if state, number, ok := taxid.Check(code, p.TaxNumber).VIES(); ok && len(number) <= unionMax {
			return identifier{union: state, number: number}
		}
	}
	where := partyCountry(p)
	if where == "PL" {
		return identifyAtHome(p)
	}
	if state, number, ok := taxid.Check(where, p.TaxNumber).VIES(); ok && len(number) <= unionMax {
		return identifier{union: state, number: number}
	}
	number := token(p.TaxNumber, foreignMax+1)
	if len([]rune(number)) > foreignMax {
		return identifier{flaw: "must be at most 50 characters long: that is all FA(3) has room for (NrID)"}
	}
	return identifier{country: where, number: number}
}

func identifyAtHome(p *transaction.Party) identifier {
	verdict := taxid.Check("PL", p.TaxNumber)
	switch {
	case verdict.Valid:
		return identifier{nip: verdict.Number}
	case p.Type == transaction.Individual && len(taxid.Bare(p.TaxNumber)) == len("PPPPPPPPPPP"):
		return identifier{}
	}
	return identifier{flaw: "is not a NIP: " + verdict.Reason}
}

// consumer reports whether a buyer is a person who is no business: neither a NIP
// nor a VAT number of another member state.
func consumer(p *transaction.Party) bool {
	if p == nil || p.Type != transaction.Individual {
		return false
	}
	id := identify(p)
	return id.nip == "" && id.union == ""
}

// unfiled reports whether an invoice stays outside KSeF: its buyer is a consumer
// and the company's setting says so (art. 106ga sec. 2 of the VAT act). What
// corrects an invoice in KSeF is filed whatever the setting says since.
func unfiled(s country.Supplier, t *transaction.Transaction, original *country.Original) bool {
	buyer := t.Customer
	if original != nil {
		if len(original.Report) > 0 || ksefwire.LooksLikeNumber(strings.TrimSpace(original.AuthorityID1)) {
			return false
		}
		if buyer == nil {
			buyer = original.Transaction.Customer
		}
	}
	return s.Settings.Text(settingConsumers) == consumersDocument && consumer(buyer)
}

// unionPrefix is the member state whose letters begin a number.
func unionPrefix(number string) string {
	text := taxid.Bare(number)
	if len(text) < 3 {
		return ""
	}
	code, ok := taxid.CountryCode(text[:2])
	if !ok || !taxid.InVIES(code) {
		return ""
	}
	return code
}

// partyCountry is where a party is at home: its address, else Poland.
func partyCountry(p *transaction.Party) string {
	if p != nil && p.Address != nil && p.Address.CountryCode != "" {
		return strings.ToUpper(p.Address.CountryCode)
	}
	return "PL"
}

// sameParty reports whether two parties carry the same tax number.
func sameParty(a, b string) bool {
	trim := func(text string) string { return strings.TrimPrefix(taxid.Bare(text), "PL") }
	return trim(a) != "" && trim(a) == trim(b)
}

// writeAddress writes TAdres: the street on the first line, postal code and
// town on the second. Nothing is written where nothing is known.
func writeAddress(w *xmltree.Writer, a transaction.Address, home string) {
	first, second := addressLines(a)
	if first == "" {
		return
	}
	code := strings.ToUpper(a.CountryCode)
	if code == "" {
		code = home
	}
	w.Start("Adres")
	w.Maybe("KodKraju", code)
	w.Maybe("AdresL1", first)
	w.Maybe("AdresL2", second)
	w.End()
}

// addressLine is the first line of an address, "" where nothing is known.
func addressLine(a transaction.Address) string {
	first, _ := addressLines(a)
	return first
}

func addressLines(a transaction.Address) (first, second string) {
	street := join(" ", a.AddressLine1, join(" ", a.Prefix, a.Number, a.Suffix))
	street = join(", ", street, a.AddressLine2, a.Neighbourhood)
	town := join(" ", a.PostalCode, a.City)
	town = join(", ", town, a.District, a.Province, a.Region, a.State, a.Canton)
	first, second = token(street, nameMax), token(town, nameMax)
	if first == "" {
		return second, ""
	}
	return first, second
}

// join puts a separator between the texts that are there.
func join(between string, texts ...string) string {
	var there []string
	for _, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			there = append(there, text)
		}
	}
	return strings.Join(there, between)
}
