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
	look, err := s.look(ctx, in.Scope, profile.Config, &in.Supplier)
	if err != nil {
		return document.Rendering{}, err
	}
	v := document.Visual{
		Transaction: in.Transaction, Totals: in.Totals, Supplier: in.Supplier, Simplified: country.DocumentType(&in.Transaction) == transaction.Simplified,
		Language: in.Transaction.LanguageCode, Location: in.Location, IssuedAt: in.At, UniqueNumber: in.UniqueNumber, Branding: look, Specimen: !profile.Live,
	}
	v.TaxNumberName = s.taxNumberName
	if v.Language == "" && len(in.Pack.Facts.Languages) > 0 {
		v.Language = in.Pack.Facts.Languages[0]
	}
	if v.Language == "" {
		v.Language = "EN"
	}
	printed := in.Pack.Printed(in.Country(v.Language))
	v.Title, v.LegalTexts, v.LegalLanguage, v.Negated = printed.Title, printed.Texts, printed.Language, printed.Negated
	for _, id := range printed.Identifiers {
		v.Authority = append(v.Authority, document.Identifier(id))
	}
	v.TitleKind = printed.Kind
	for _, code := range printed.Codes {
		v.Codes = append(v.Codes, document.QR(code))
	}
	if in.Original != nil && in.Transaction.Kind != transaction.PaymentReport && printed.Kind != transaction.Invoice { // a payment corrects nothing; its imprint names what was paid
		v.Original = &document.Reference{Number: in.Original.Transaction.Number, Date: in.Original.Transaction.Date, AuthorityID: in.Original.AuthorityID1}
		for _, s := range in.Shares[min(1, len(in.Shares)):] {
			v.Others = append(v.Others, document.Reference{Number: s.Transaction.Number, Date: s.Transaction.Date, AuthorityID: s.AuthorityID1})
		}
	}
	if c := in.Pack.Facts.Currency; c != "" && !strings.EqualFold(c, in.Transaction.CurrencyCode) {
		v.LocalCurrency = c
	}
	if data := in.Structured; data != nil {
		v.Rounding, v.TaxedBySum = data.Rounding, data.TaxedBySum
	}
	if data := in.Structured; data != nil && data.Embedded != nil {
		v.Files = []document.EmbeddedFile{{Name: data.Embedded.FileName, MIME: "text/xml", Description: "Invoice as data", Relationship: document.Alternative,
			ModifiedAt: in.At, Content: data.Content}}
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
func (s *Server) look(ctx context.Context, clientID string, client *account.Config, supplier *country.Supplier) (document.Branding, error) {
	own, his := supplier.Branding, client.LookIn(strings.ToUpper(supplier.CountryCode))
	look := document.Branding{
		Placement: document.Placement(cmp.Or(own.Placement, string(his.LogoPlacement))), Font: cmp.Or(own.Font, string(his.Font)),
		Accent: cmp.Or(own.Accent, his.Colours.Accent), Ink: cmp.Or(own.Ink, his.Colours.Ink),
		Template: document.Template(cmp.Or(own.Template, string(his.Template))), Footer: cmp.Or(own.Footer, his.Footer),
	}
	var err error
	switch {
	case own.LogoSHA256 != "":
		look.Logo, err = s.company.Logo(ctx, clientID, supplier.ID, own.LogoSHA256)
		if fault.KindOf(err) == fault.NotFound { // replaced a moment ago: the next document has the new one
			look.Logo, err = nil, nil
		}
	case client.Logo != nil:
		look.Logo, err = s.accounts.Logo(ctx, clientID)
	}
	return look, err
}
