package server

import (
	"cmp"
	"context"
	"strings"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/document"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/transaction"
)

// render makes the document for people from an issued transaction and the
// client's look.
func (s *Server) render(ctx context.Context, in filing.Issued) (document.Rendering, error) {
	profile, err := s.accounts.Profile(ctx, in.Scope)
	if err != nil {
		return document.Rendering{}, err
	}
	look, err := s.look(ctx, in.Scope, profile.Config, in.Supplier)
	if err != nil {
		return document.Rendering{}, err
	}
	v := document.Visual{
		Transaction: *in.Transaction, Totals: in.Totals, Supplier: *in.Supplier,
		Simplified: country.DocumentType(in.Transaction) == transaction.Simplified,
		Language:   in.Transaction.LanguageCode, Location: in.Location, IssuedAt: in.At, UniqueNumber: in.UniqueNumber,
		Branding: look, Specimen: !profile.Live,
	}
	v.TaxNumberName = s.taxNumberName
	if v.Language == "" && len(in.Pack.Facts.Languages) > 0 {
		v.Language = in.Pack.Facts.Languages[0]
	}
	if v.Language == "" {
		v.Language = "EN"
	}
	v.Imprint = in.Pack.Printed(in.Country(v.Language))
	// a payment corrects nothing; its imprint names what was paid
	if in.Original != nil && in.Transaction.Kind != transaction.PaymentReport && v.Imprint.Kind != transaction.Invoice {
		v.Original = &document.Reference{Number: in.Original.Transaction.Number, Date: in.Original.Transaction.Date,
			AuthorityID: in.Original.AuthorityID1}
		for _, s := range in.Shares[min(1, len(in.Shares)):] {
			v.Others = append(v.Others, document.Reference{Number: s.Transaction.Number, Date: s.Transaction.Date,
				AuthorityID: s.AuthorityID1})
		}
	}
	if c := in.Pack.Facts.Currency; c != "" && !strings.EqualFold(c, in.Transaction.CurrencyCode) {
		v.LocalCurrency = c
	}
	if data := in.Structured; data != nil {
		v.Rounding, v.TaxedBySum = data.Rounding, data.TaxedBySum
	}
	if data := in.Structured; data != nil && data.Embedded != nil {
		v.Files = []document.EmbeddedFile{{Name: data.Embedded.FileName, MIME: "text/xml", Description: "Invoice as data",
			Relationship: document.Alternative,
			ModifiedAt:   in.At, Content: data.Content}}
		v.FacturX = &document.FacturX{FileName: data.Embedded.FileName, Level: data.Embedded.Level}
	}
	return s.renderer.Render(ctx, v)
}

// taxNumberName is the name by which a country knows a business's tax number.
func (s *Server) taxNumberName(code string) string {
	p, _ := s.atlas.Pack(code)
	return p.Facts.TaxNumberName
}

// look is how a document looks: what the company chose, and the client's for
// its country for the rest.
func (s *Server) look(ctx context.Context, clientID string, config *account.Config,
	supplier *country.Supplier) (document.Branding, error) {
	company, client := supplier.Branding, config.AppearanceIn(strings.ToUpper(supplier.CountryCode))
	look := document.Branding{
		Placement: document.Placement(cmp.Or(company.Placement, string(client.LogoPlacement))),
		Font:      cmp.Or(company.Font, string(client.Font)),
		Accent:    cmp.Or(company.Accent, client.Colours.Accent), Ink: cmp.Or(company.Ink, client.Colours.Ink),
		Template: document.Template(cmp.Or(company.Template, string(client.Template))),
		Footer:   cmp.Or(company.Footer, client.Footer),
	}
	var err error
	switch {
	case company.LogoSHA256 != "":
		look.Logo, err = s.company.Logo(ctx, clientID, supplier.ID, company.LogoSHA256)
		if fault.KindOf(err) == fault.NotFound { // replaced a moment ago: the next document has the new one
			look.Logo, err = nil, nil
		}
	case config.Logo != nil:
		look.Logo, err = s.accounts.Logo(ctx, clientID)
	}
	return look, err
}
