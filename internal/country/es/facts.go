package es

import (
	"strings"

	"github.com/invopop/gobl/l10n"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

const timeZone = "Europe/Madrid"

func facts() country.Facts {
	return country.Facts{
		Currency:  "EUR",
		Languages: []string{"ES", "CA", "GL", "EU", "EN"},
		TimeZone:  timeZone,
		UseCases:  []country.UseCase{country.Reporting, country.Invoicing, country.Both},
		Required: append(country.InOwnCurrency("EUR", "records and invoices are in euros"),
			country.FieldRule{Field: "items.*.tax_breakdowns", Reason: "a record says of every line how it is taxed"},
			country.FieldRule{Field: "customer.tax_information.tax_number", BusinessModel: transaction.B2B,
				When:   []country.Condition{withinUnion()},
				Reason: "an invoice to a business in Spain or another member state carries its NIF or VAT number"},
			country.FieldRule{Field: "customer.address.address_line_1", UseCase: country.Invoicing, BusinessModel: transaction.B2B,
				Reason: "a complete invoice to a business states where it is domiciled (Real Decreto 1619/2012, article 6.1.e); the record alone does not"},
			country.FieldRule{Field: "issuer.tax_information.tax_number",
				Reason: "whoever issues for the supplier is named in the record"},
		),
		MaxLengths: []country.LengthRule{
			{Field: "customer.legal_name", Max: nameMax, Reason: "NombreRazon has room for no more"},
			{Field: "issuer.legal_name", Max: nameMax, Reason: "NombreRazon has room for no more"},
		},
		Patterns: []country.PatternRule{
			{Field: "transaction_number", Pattern: country.Matching(numberPattern), Example: "2026-A/1",
				Reason: `printable ASCII characters without ", ', <, > and =`},
		},
		Dates:           &country.DateRule{Earliest: firstDay, Today: true, Reason: "the tax authority takes no other days"},
		TaxesPerLine:    2, // the tax and its surcharge
		NumberExample:   "A28015865",
		SimplifiedMax:   simpleMax,
		Regimes:         []string{transaction.VAT, regimeIVA, regimeIGIC, regimeIPSI, regimeSurcharge, regimeOSS},
		ReasonCodes:     reasonCodes(),
		Rates:           rates(),
		StrictRates:     true,
		StrictNumbers:   true,
		Corrections:     corrections(),
		Obligations:     obligations(),
		NumberedCredits: true, // Real Decreto 1619/2012, article 6.1.a: corrections have a series of their own, in order
		Settings: append([]country.Setting{{
			Key: settingSoftware, Type: "object", Default: softwareDefaults(),
			Description: "The billing software in every record (SistemaInformatico): name and tax_number of its producer (default: the company itself; country_code where the producer is foreign), " +
				"system_name (Tributary), system_id (two characters, TR), version (1.0), installation (default: the company's id; the chain belongs to it), " +
				"verifactu_only, multiple_taxpayers and serves_many (true).",
		}, {
			Key: settingSimplified, Type: "string", Default: simplifiedHigh, Values: []string{simplifiedHigh, simplifiedLow},
			Description: "Up to how many euros, tax included, the company issues simplified invoices: 3000 for the activities of Real Decreto 1619/2012, article 4.2 (retail, restaurants, transport of people, hairdressers and others), 400 for all others.",
		}}, companySettings()...),
		Credentials: []string{"certificate_base64", "certificate_password"},
		Formats:     []string{"PDF", "XML"},
		Authority: &country.Authority{
			Name: "Agencia Estatal de Administración Tributaria", System: "VERI*FACTU", Protocol: "SOAP 1.1 over mutual TLS",
		},
		Derivations: derivations(),
	}
}

// rates are those that AEAT takes with IVA since its first day, and the
// equivalence surcharges (AEAT, "Validaciones" 1.2.0, sections 15.1 and 15.3).
// It takes any rate of IGIC and IPSI, which islands and cities set themselves.
func rates() []country.Rate {
	var all []country.Rate
	for _, regime := range []string{transaction.VAT, regimeIVA} {
		all = append(all,
			country.Rate{Regime: regime, Type: transaction.TaxStandard, Percent: "21"},
			country.Rate{Regime: regime, Type: transaction.TaxReduced, Percent: "10"},
			country.Rate{Regime: regime, Type: transaction.TaxReduced, Percent: "4"},
			country.Rate{Regime: regime, Type: transaction.TaxReduced, Percent: "7.5", Since: "2024-10-01", Until: "2025-01-01"},
			country.Rate{Regime: regime, Type: transaction.TaxReduced, Percent: "5", Since: "2022-07-01", Until: "2024-10-01"},
			country.Rate{Regime: regime, Type: transaction.TaxReduced, Percent: "2", Since: "2024-10-01", Until: "2025-01-01"},
		)
	}
	return append(all,
		country.Rate{Regime: regimeSurcharge, Type: transaction.TaxStandard, Percent: "5.2", Beside: "21"},
		country.Rate{Regime: regimeSurcharge, Type: transaction.TaxReduced, Percent: "1.75", Beside: "21"},
		country.Rate{Regime: regimeSurcharge, Type: transaction.TaxReduced, Percent: "1.4", Beside: "10"},
		country.Rate{Regime: regimeSurcharge, Type: transaction.TaxReduced, Percent: "0.5", Beside: "4"},
		country.Rate{Regime: regimeSurcharge, Type: transaction.TaxReduced, Percent: "1", Beside: "7.5", Since: "2024-10-01",
			Until: "2025-01-01"},
		country.Rate{Regime: regimeSurcharge, Type: transaction.TaxReduced, Percent: "0.62", Beside: "5",
			Since: "2023-01-01", Until: "2024-10-01"},
		country.Rate{Regime: regimeSurcharge, Type: transaction.TaxReduced, Percent: "0.26", Beside: "2",
			Since: "2024-10-01", Until: "2025-01-01"},
	)
}

// withinUnion is met by customers in Spain and the other member states.
func withinUnion() country.Condition {
	codes := []string{home, "IC", "EA", "MC"}
	for _, c := range l10n.Union(l10n.EU).Members {
		if inUnion(string(c.Code)) {
			codes = append(codes, string(c.Code))
		}
	}
	return country.Condition{Field: "customer.address.country_code",
		Matches: country.Matching("(?i)^(" + strings.Join(codes, "|") + ")?$")}
}
