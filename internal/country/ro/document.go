package ro

import (
	"strings"
	"unicode/utf8"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/country/text"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// nobody is the number of a consumer who gave none (BT-47).
const nobody = "0000000000000"

// schemeVAT is the scheme of electronic addresses that are Romanian VAT numbers.
const schemeVAT = "9947"

// Lengths of CIUS-RO that longer texts are brought into.
const (
	noteMax        = 300
	notesMax       = 20
	nameMax        = 100
	descriptionMax = 200
)

var profile = en16931.CIUSRO()

// page is what differs in Romania from the European invoice.
func page() en16931.Page {
	return en16931.Page{
		Code: home, Version: version, Filed: &profile, Offer: en16931.Nothing, Shape: shape,
		Reasons: map[string]string{"AE": "Taxare inversă", "K": "Livrare intracomunitară scutită", "G": "Export scutit",
			"O": "Neimpozabil în România"},
		SelfBilled: "Autofactură", Exempt: "Scutit de TVA",
		Required: append(country.InOwnCurrency(ownMoney, "the tax is stated in lei (CIUS-RO BR-RO-030, art. 319 of the fiscal code)"),
			country.FieldRule{Field: "items.*.tax_breakdowns", Reason: "each line of a structured invoice has one VAT category (EN 16931 BR-CO-04)"}),
		TaxNumber: "RO18547290", Example: example(),
	}
}

// shape brings a document into the words of CIUS-RO.
func shape(in country.Issue, d *en16931.Invoice) {
	settle(&d.Seller.Address)
	settle(&d.Buyer.Address)
	settle(&d.Delivery.Address)
	if to := &d.Delivery.Address; *to != (en16931.Address{}) && to.Country != home && to.Subdivision == "" {
		to.Subdivision = to.City // BR-RO-211 wants one abroad, too
	}
	if number := compact(in.Supplier.TaxNumber); number != "" && d.Seller.VATID != "" && !registered(in.Supplier) {
		d.Seller.VATID, d.Seller.TaxID = "", strings.TrimPrefix(number, home)
	}
	if b := in.Transaction.Customer; b != nil {
		number(b, &d.Buyer)
	}
	for _, p := range []*en16931.Party{&d.Seller, &d.Buyer} {
		if p.VATID == "" && p.Electronic.Scheme == schemeVAT {
			p.Electronic = en16931.Identifier{} // who has no VAT number has no address by it
		}
	}
	d.Notes = split(d.Notes)
	for i := range d.Lines {
		fit(&d.Lines[i].Item)
	}
}

// registered reports whether a company is registered for VAT.
func registered(s *country.Supplier) bool {
	no, said := s.Settings[settingVAT].(bool)
	return !said || no
}

func compact(number string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, number)
}

// number names the buyer: a Romanian number with RO is that of a payer of VAT
// (BT-48), one without is the number in the register (BT-47). A person's own
// number is filed where the client gives it; who gave none has thirteen zeros.
func number(b *transaction.Party, p *en16931.Party) {
	own := compact(b.TaxNumber)
	if p.Address.Country == home && own != "" && b.Type != transaction.Individual {
		p.VATID = ""
		if strings.HasPrefix(own, home) {
			p.VATID = own
		} else if p.LegalID.ID == "" {
			p.LegalID = en16931.Identifier{ID: own}
		}
	}
	if b.Type != transaction.Individual {
		return
	}
	p.VATID = ""
	switch {
	case p.LegalID.ID != "":
	case own != "":
		p.LegalID = en16931.Identifier{ID: own}
	default:
		p.LegalID = en16931.Identifier{ID: nobody}
	}
}

// split brings notes into pieces of 300 characters, at most 20 of them.
func split(notes []en16931.Note) (list []en16931.Note) {
	for _, n := range notes {
		for rest := strings.Join(strings.Fields(n.Text), " "); rest != "" && len(list) < notesMax+1; {
			piece := head(rest, noteMax)
			list = append(list, en16931.Note{Subject: n.Subject, Text: piece})
			rest = strings.TrimSpace(rest[len(piece):])
		}
	}
	return list
}

// fit moves what a name has too much into the description.
func fit(item *en16931.Item) {
	name := strings.Join(strings.Fields(item.Name), " ")
	if utf8.RuneCountInString(name) <= nameMax {
		return
	}
	first := head(name, nameMax)
	described := text.Join(" ", strings.TrimSpace(name[len(first):]), item.Description)
	if utf8.RuneCountInString(described) <= descriptionMax {
		item.Name, item.Description = first, described
	}
}

// head is the beginning of a text that has room, cut between words where it can be.
func head(words string, max int) string {
	if utf8.RuneCountInString(words) <= max {
		return words
	}
	cut := text.Cut(words, max)
	if blank := strings.LastIndexByte(cut, ' '); blank > 0 {
		return cut[:blank]
	}
	return cut
}

// extra is what a filing carries beyond its document; it is stored with it, so
// names once used keep their meaning.
type extra struct {
	Standard string `json:"standard"` // UBL, CN or RASP
	Consumer bool   `json:"consumer,omitempty"`
	Abroad   bool   `json:"abroad,omitempty"`
	Own      bool   `json:"own,omitempty"` // the buyer issued it
}

// Prepare writes the invoice or the credit note.
func (ch *channel) Prepare(in country.Draft) (country.Filing, error) {
	if in.Transaction.Answer != nil {
		return answer(&in)
	}
	if err := country.Preparable(&in, func() []fault.Fault { return nil }, "ANAF has no document for the operation",
		"an invoice that was filed cannot be cancelled; use a credit"); err != nil {
		return country.Filing{}, err
	}
	t := in.Transaction
	if t.Customer == nil && in.Original != nil {
		t.Customer = in.Original.Transaction.Customer
	}
	if t.Customer == nil {
		return country.Filing{}, fault.New(fault.Invalid, "the document cannot be written").
			With(fault.At("customer", fault.FieldRequired, "must not be empty: ANAF takes no invoice without a buyer"))
	}
	t.Items = country.ClassifyTaxes(facts(), country.Case{Transaction: &t, Totals: in.Totals, Now: in.Now})
	made := page().Compose(country.Issue{Transaction: &t, Totals: in.Totals, Supplier: &in.Supplier, Original: in.Original,
		Shares: in.Shares, UniqueNumber: in.UniqueNumber, Location: in.Location, At: in.Now}, profile)
	if flaws := made.Faults(); len(flaws) > 0 {
		return country.Filing{}, fault.New(fault.Invalid, "the document cannot be written").With(flaws...)
	}
	report := en16931.WriteUBL(made.Invoice)
	if len(report) > uploadBytesMax {
		return country.Filing{}, fault.New(fault.Invalid, "the document is too large for ANAF").
			With(fault.At("items", fault.FieldNotValid, "make a document of more than 10 MB"))
	}
	x := extra{Standard: "UBL", Consumer: t.Customer.Type == transaction.Individual,
		Abroad: made.Invoice.Buyer.Address.Country != home, Own: country.SelfBilled(&t)}
	if made.Invoice.IsCreditNote() {
		x.Standard = "CN"
	}
	return in.Filing(report, made.Invoice.Number, fiscal(in.Supplier.TaxNumber), x)
}

// fiscal are the digits of a fiscal code (CIF).
func fiscal(number string) string { return strings.TrimPrefix(compact(number), home) }
