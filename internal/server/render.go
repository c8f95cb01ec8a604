package server

import (
	"context"
	"strings"

	"tributary/internal/country"
	"tributary/internal/document"
	"tributary/internal/transaction"
)

// render makes the document for people from an issued transaction and the
// client's look.
func (s *Server) render(ctx context.Context, in transaction.Issued) (pdf []byte, fallback bool, err error) {
	profile, err := s.accounts.Profile(ctx, in.Scope)
	if err != nil {
		return nil, false, err
	}
	look := document.Branding{
		Placement: document.Placement(profile.Config.LogoPlacement), Accent: profile.Config.Colours.Accent, Ink: profile.Config.Colours.Ink, Font: string(profile.Config.Font),
	}
	if profile.Config.Logo != nil {
		if look.Logo, err = s.accounts.Logo(ctx, in.Scope); err != nil {
			return nil, false, err
		}
	}
	v := document.Visual{
		Transaction: in.Transaction, Totals: in.Totals, Supplier: in.Supplier, Simplified: country.DocumentType(&in.Transaction) == country.Simplified,
		Language: in.Transaction.LanguageCode, Location: in.Location, IssuedAt: in.At, UniqueNumber: in.UniqueNumber, Branding: look, Specimen: !profile.Live,
	}
	if v.Language == "" && len(in.Pack.Facts.Languages) > 0 {
		v.Language = in.Pack.Facts.Languages[0]
	}
	if v.Language == "" {
		v.Language = "EN"
	}
	for _, id := range []string{in.AuthorityID1, in.AuthorityID2} {
		if id != "" {
			v.Authority = append(v.Authority, document.Identifier{Value: id})
		}
	}
	if in.QRCode != "" {
		v.QR = &document.QR{Text: in.QRCode}
	}
	if in.Original != nil {
		v.Original = &document.Reference{Number: in.Original.Transaction.Number, Date: in.Original.Transaction.Date, AuthorityID: in.Original.AuthorityID1}
	}
	if c := in.Pack.Facts.Currency; c != "" && !strings.EqualFold(c, in.Transaction.CurrencyCode) {
		v.LocalCurrency = c
	}
	pdf, err = s.renderer.Render(ctx, v)
	return pdf, !document.Speaks(v.Language), err
}
