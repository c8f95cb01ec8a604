package en16931

import (
	"tributary/internal/country"
)

// Page is a country of the family: what differs from one to the next, as data.
type Page struct {
	Code    string // ISO 3166 alpha-2
	Version string // stored with every operation
	Sources []string

	// Formats are what settings.format may ask for, by the names of [Profile].
	Formats []string

	// Offer lists the profiles that are tried in turn where the settings leave
	// the choice open; the first one whose rules the document keeps is made.
	// None means that nothing is made unless the settings ask for it.
	Offer func(Sale) []Profile

	// Network says which sales go to their buyer over the network where the
	// settings leave it open; nil: none.
	Network func(Sale) bool

	// ByCategory: tax is computed on the sum of each category, see [Settlement].
	ByCategory bool

	// Means are the codes of UNTDID 4461 for the types of payments, where they
	// are not the usual ones, see [meansCode].
	Means map[string]string

	// Corrected is the type code of adjustments, where it is not an invoice's.
	Corrected string

	// Reasons say in the country's words why a category bears no VAT (AE, K, G,
	// O), as its law wants it on the invoice; English where there is none.
	Reasons map[string]string

	// SelfBilled is what a document says that the buyer issues (Directive
	// 2006/112/EC, article 226 (10a)), in the country's words.
	SelfBilled string

	// Exempt is the text of the exemption where nothing says more.
	Exempt string

	// Required are rules of the country alone, besides those that all have.
	Required []country.FieldRule

	// TaxNumber is an invented one that the country's rules accept.
	TaxNumber string

	// Settings of the country alone, besides those that all have.
	Settings []country.Setting

	// Seller adds what the country wants about the seller, from its settings.
	Seller func(s *country.Supplier, p *Party)

	// Filed is the profile of every document, also of consumers', where the tax
	// administration takes them and nobody has a choice. Nil: see Offer.
	Filed *Profile

	// Shape writes what the country has in another form, before amounts are settled.
	Shape func(in country.Issue, d *Invoice)

	// Settled writes what depends on the amounts, once they are settled.
	Settled func(in country.Issue, d *Invoice)

	Legal []string // texts that the printed document carries

	// Example takes the place of the country's own, where it has one. Nil: none.
	Example *country.Example
}

// germanSelfBilled is also the title of such a document.
const germanSelfBilled = "Gutschrift"

// Sale is what the choice of a profile depends on.
type Sale struct {
	SellerCountry string
	BuyerCountry  string
	Business      bool // the customer is a business
	Leitweg       bool // the buyer is a German public body with a routing identifier
}

// Domestic reports whether both parties are in one country.
func (s Sale) Domestic() bool { return s.SellerCountry == s.BuyerCountry }

// The names that settings.format takes in every country of the family.
const (
	FormatAuto = "AUTO"
	FormatNone = "NONE"
)

// Core is EN 16931 itself, in UBL: what is made when a buyer cannot be
// addressed on the network.
func Core() Profile {
	return Profile{Code: "EN16931_UBL", Specification: specificationCore}
}

// profileNamed finds a profile by the name that settings.format has for it.
func profileNamed(name string) (Profile, bool) {
	for _, p := range []Profile{PeppolBIS(), XRechnung(false), XRechnung(true), FacturX(), Core()} {
		if p.Code == name {
			return p, true
		}
	}
	return Profile{}, false
}

// OverNetwork is the usual offer: Peppol BIS to businesses that can be
// addressed, plain EN 16931 to others.
func OverNetwork(s Sale) []Profile {
	if !s.Business {
		return nil
	}
	return []Profile{PeppolBIS(), Core()}
}

// Nothing is the offer of countries that make a document only where the settings ask for one.
func Nothing(Sale) []Profile { return nil }
