package console

import (
	"net/http"
	"strconv"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/document"
	"tributary/internal/transaction"
)

// preview answers a sample document in a client's look, with what the query
// says in place of what is stored, so that a look can be seen before it is saved.
func (c *Console) preview(v *visit) error {
	client, err := c.client(v)
	if err != nil {
		return err
	}
	look := document.Branding{
		Placement: document.Placement(client.Config.LogoPlacement), Accent: client.Config.Colours.Accent, Ink: client.Config.Colours.Ink, Font: string(client.Config.Font),
	}
	query := v.r.URL.Query()
	name := client.Config.DisplayName
	for key, to := range map[string]*string{"accent": &look.Accent, "ink": &look.Ink, "font": &look.Font, "placement": (*string)(&look.Placement), "display_name": &name} {
		if query.Has(key) {
			*to = query.Get(key)
		}
	}
	if r := []rune(name); len(r) > account.DisplayNameMax {
		name = string(r[:account.DisplayNameMax])
	}
	if client.Config.Logo != nil {
		if look.Logo, err = c.cfg.Accounts.Logo(v.ctx, client.ID); err != nil {
			return err
		}
	}
	made, err := c.cfg.Renderer.Render(v.ctx, sample(name, look, c.now()))
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/pdf")
	h.Set("Content-Length", strconv.Itoa(len(made.PDF)))
	h.Set("Content-Disposition", `inline; filename="preview.pdf"`)
	h.Set("Content-Security-Policy", documentPolicy)
	h.Set("X-Frame-Options", "SAMEORIGIN")
	if v.r.Method != http.MethodHead {
		v.w.Write(made.PDF)
	}
	return nil
}

// sample is an invoice that nobody issued: long enough to show every part of
// the look, and marked as a specimen.
func sample(name string, look document.Branding, now time.Time) document.Visual {
	vat := func(rate string) []transaction.Tax {
		amount, _ := num.AmountFromString(rate) // constants below
		return []transaction.Tax{{Rate: amount, Regime: transaction.VAT, Mode: transaction.Included, Type: "STANDARD"}}
	}
	items := []transaction.Item{
		{Number: 1, Name: "Fountain pen, medium nib", Quantity: num.MakeAmount(2, 0), UnitPrice: 4590, Type: "GOODS", Taxes: vat("23")},
		{Number: 2, Name: "Ink, 50 ml, river blue", Quantity: num.MakeAmount(3, 0), UnitPrice: 1250, Type: "GOODS", Taxes: vat("23")},
		{Number: 3, Name: "Paper, A5, dotted, 120 leaves", Description: "Stitched, lies flat", Quantity: num.MakeAmount(1, 0), UnitPrice: 1490, Type: "GOODS", Taxes: vat("13.5")},
	}
	totals, _ := transaction.Calculate(items) // the items above have no fault
	if name == "" {
		name = "Supplier of this client"
	}
	return document.Visual{
		Transaction: transaction.Transaction{
			Kind: transaction.Invoice, CountryCode: "IE", LanguageCode: "en", CurrencyCode: "EUR", Date: now.UTC().Truncate(time.Hour), Number: "SAMPLE-0001", ID: "sample-1", Items: items,
			Customer: &transaction.Party{LegalName: "A. Customer Ltd", Type: "BUSINESS", TaxNumber: "IE6388047V", Address: &transaction.Address{CountryCode: "IE", City: "Dublin", PostalCode: "D02 X285", AddressLine1: "5 Example Quay"}},
			Note:     "A sample: nothing was sold, and nothing was filed.",
			Payments: []transaction.Payment{{Type: "CARD", Amount: totals.Gross}},
		},
		Totals:   totals,
		Supplier: country.Supplier{CountryCode: "IE", LanguageCode: "en", LegalName: name, TaxNumber: "IE6388047V", TaxRegime: transaction.VAT, Address: transaction.Address{CountryCode: "IE", City: "Dublin", PostalCode: "D02 X285", AddressLine1: "1 River Street"}},
		Language: "en", IssuedAt: now.UTC().Truncate(time.Hour), UniqueNumber: "SAMPLE-0001", Specimen: true, Branding: look,
	}
}
