package country_test

import (
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// strictCountry has one rule of every sort, none of which the typical body breaks.
func strictCountry() country.Pack {
	return country.Pack{
		Code: "ZZ", Name: "Zedland", Version: "1",
		Facts: country.Facts{
			Currency: "EUR", Languages: []string{"EN"}, TimeZone: "UTC", UseCases: []country.UseCase{country.Invoicing},
			Required: append(country.InOwnCurrency("EUR", "documents are in euros"),
				country.FieldRule{Field: "items.*.tax_breakdowns", Reason: "every line says its tax"},
				country.FieldRule{Field: "customer.tax_information.tax_number", BusinessModel: transaction.B2B, Reason: "law"},
				country.FieldRule{Field: "customer.address.city", Reason: "law"},
			),
			Forbidden: []country.FieldRule{{Field: "issuer", Reason: "no marketplaces"},
				{Field: "items.*.ean", UseCase: country.Reporting}},
			Allowed: []country.ValueRule{{Field: "currency_code", Values: []string{"EUR", "USD"}},
				{Field: "payments.*.type", Values: []string{"CARD", "CASH"}}},
			MaxLengths: []country.LengthRule{{Field: "transaction_number", Max: 20}, {Field: "items.*.name", Max: 100}},
			Regimes:    []string{"VAT"},
			Rates: []country.Rate{{Regime: "VAT", Type: "STANDARD", Percent: "25"},
				{Regime: "VAT", Type: "REDUCED", Percent: "12.5"}},
			StrictRates: true,
			Corrections: []country.Correction{
				{Kind: transaction.Credit}, {Kind: transaction.Adjustment},
				{Kind: transaction.Cancellation, ReasonRequired: true, Reasons: []country.Meaning{{Code: "01"}, {Code: "02"}}},
			},
		},
	}
}

func termsOf(t testing.TB, packs ...country.Pack) country.Terms {
	t.Helper()
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: packs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(atlas.Close)
	return country.Terms{
		Atlas:   atlas,
		UseCase: func(string) (country.UseCase, bool) { return country.Both, true },
		Now:     time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC),
	}
}
