package document

import (
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// Sample says which document nobody issued is made to look at.
type Sample struct {
	Name     string // of the supplier; "" means one that says so
	Language string // two letters; "" means English
	Branding Branding
	At       time.Time
}

// Visual is an invoice long enough to show every part of a look, marked as a
// specimen; on a roll it is a receipt.
func (s Sample) Visual() Visual {
	vat := func(rate int64) []transaction.Tax {
		return []transaction.Tax{{Rate: num.MakeAmount(rate, 1), Regime: transaction.VAT, Mode: transaction.Included, Type: transaction.TaxStandard}}
	}
	items := []transaction.Item{
		{Number: 1, Name: "Fountain pen, medium nib", Quantity: num.MakeAmount(2, 0), UnitPrice: 4590, Type: transaction.Goods, Taxes: vat(230)},
		{Number: 2, Name: "Ink, 50 ml, river blue", Quantity: num.MakeAmount(3, 0), UnitPrice: 1250, Type: transaction.Goods, Taxes: vat(230)},
		{Number: 3, Name: "Paper, A5, dotted, 120 leaves", Description: "Stitched, lies flat", Quantity: num.MakeAmount(1, 0), UnitPrice: 1490, Type: transaction.Goods, Taxes: vat(135)},
	}
	totals, _ := transaction.Calculate(items) // the items above have no fault
	name, language, at := s.Name, s.Language, s.At.UTC().Truncate(time.Hour)
	if name == "" {
		name = "Supplier of this client"
	}
	if language == "" {
		language = "EN"
	}
	dublin := func(street string) transaction.Address {
		return transaction.Address{CountryCode: "IE", City: "Dublin", PostalCode: "D02 X285", AddressLine1: street}
	}
	buyer := dublin("5 Example Quay")
	v := Visual{
		Transaction: transaction.Transaction{
			Kind: transaction.Invoice, CountryCode: "IE", LanguageCode: language, CurrencyCode: "EUR", Date: at, Number: "SAMPLE-0001", ID: "sample-1", Items: items,
			Customer: &transaction.Party{LegalName: "A. Customer Ltd", Type: "BUSINESS", TaxNumber: "IE6388047V", Address: &buyer},
			Note:     "A sample: nothing was sold, and nothing was filed.",
			Payments: []transaction.Payment{{Type: "CARD", Amount: totals.Gross}},
		},
		Totals:   totals,
		Supplier: country.Supplier{CountryCode: "IE", LanguageCode: language, LegalName: name, TaxNumber: "IE6388047V", TaxRegime: transaction.VAT, Address: dublin("1 River Street")},
		Language: language, IssuedAt: at, UniqueNumber: "SAMPLE-0001", Specimen: true, Branding: s.Branding, Simplified: s.Branding.Template == Receipt,
	}
	if v.Simplified {
		v.Transaction.Customer = nil
	}
	return v
}
