package pl

import (
	"cmp"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/country/territory"
	"tributary/internal/country/text"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

const home = "PL"

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
		w.Leaf("NIP", id.nip)
	case id.union != "":
		w.Leaves("KodUE", id.union, "NrVatUE", id.number)
	case id.number != "":
		w.Leaves("?KodKraju", id.country, "NrID", id.number)
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
	n := taxid.PartyOf(home, p)
	if n.Of != home && (n.Union == "" || len(n.Union) > unionMax) {
		n = n.Read(n.Country, home, p.TaxNumber) // its letters only look like a member state's
	}
	switch number := token(p.TaxNumber, foreignMax+1); {
	case n.Home != "":
		return identifier{nip: n.Home}
	case n.Of == home && p.Type == transaction.Individual && len(n.Bare) == len("PPPPPPPPPPP"):
		return identifier{}
	case n.Of == home:
		return identifier{flaw: "is not a NIP: " + n.Verdict.Reason}
	// no VAT of the Union, no such number
	case n.Union != "" && len(n.Union) <= unionMax && territory.Of(home, p, time.Time{}, false).Apart == "":
		return identifier{union: n.State, number: n.Union}
	case len([]rune(number)) > foreignMax:
		return identifier{flaw: "must be at most 50 characters long: that is all FA(3) has room for (NrID)"}
	default:
		return identifier{country: territory.Code(n.Of), number: number}
	}
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

// filed reports whether an invoice goes to KSeF: all do but those to consumers of
// a company whose setting says so (art. 106ga sec. 2 of the VAT act). What
// corrects an invoice in KSeF is filed whatever the setting says since.
func filed(s *country.Supplier, t *transaction.Transaction, original *country.Original) bool {
	if s == nil || t == nil || s.Settings.Text(settingConsumers) != consumersDocument {
		return true
	}
	buyer := t.Customer
	if original != nil {
		if len(original.Report) > 0 || ksefwire.LooksLikeNumber(strings.TrimSpace(original.AuthorityID1)) {
			return true
		}
		if buyer == nil {
			buyer = original.Transaction.Customer
		}
	}
	return !consumer(buyer)
}

// writeAddress writes TAdres: the street on the first line, postal code and
// town on the second. Nothing is written where nothing is known.
func writeAddress(w *xmltree.Writer, a transaction.Address) {
	first, second := addressLines(a)
	if first == "" {
		return
	}
	w.Group("Adres", "KodKraju", cmp.Or(territory.Code(strings.ToUpper(a.CountryCode)), home), "AdresL1", first,
		"?AdresL2", second)
}

// addressLine is the first line of an address, "" where nothing is known.
func addressLine(a transaction.Address) string {
	first, _ := addressLines(a)
	return first
}

func addressLines(a transaction.Address) (first, second string) {
	street := text.Join(" ", a.AddressLine1, text.Join(" ", a.Prefix, a.Number, a.Suffix))
	street = text.Join(", ", street, a.AddressLine2, a.Neighbourhood)
	town := text.Join(" ", a.PostalCode, a.City)
	town = text.Join(", ", town, a.District, a.Province, a.Region, a.State, a.Canton)
	first, second = token(street, nameMax), token(town, nameMax)
	if first == "" {
		return second, ""
	}
	return first, second
}
