// Package fr is France: invoices between businesses handed to an approved platform
// (plateforme agréée), whose statuses are followed. docs/countries/fr.md tells
// clients and operators about it.
//
// It owns what the French rules want besides EN 16931 (SIREN and SIRET, routing
// addresses, processing frames, mentions), the calls of a platform (AFNOR XP
// Z12-013) and the meaning of statuses. It refuses to own retries and storage; the
// double is authority/pa. Law: an invoice is filed when the platform has deposited
// it (200). What is said of it later is news, also that it was refused.
package fr

import (
	_ "embed"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/country/fr/ereport"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// codesFile is what the platform's answers and statuses mean, in our own words.
//
//go:embed codes.txt
var codesFile string

const (
	home     = "FR"
	ownMoney = "EUR"

	// version is stored with every operation; bytes made by one version are sent unchanged by the next.
	version = "fr-1"
)

// Names of settings and secrets.
const (
	settingFormat   = "format"
	settingSince    = "obliged_since"
	settingRegime   = "vat_regime"
	settingDebits   = "vat_on_debits"
	settingCharges  = "recovery_charges"
	settingPenalty  = "late_penalties"
	settingDiscount = "early_discount"

	secretClient       = "client_id"
	secretClientSecret = "client_secret"
	secretToken        = "token_url"
	secretDirectory    = "directory_url"
	secretPlatform     = "platform_number"
	secretPlatformName = "platform_name"
)

// Values of the settings.
const (
	formatFacturX = "FACTURX"
	formatCII     = "CII"
	formatUBL     = "UBL"

	firstWave  = "2026-09-01"
	secondWave = "2027-09-01"

	regimeFranchise = string(ereport.Franchise)
)

// Pack is France.
func Pack() country.Pack {
	base := country.Pack{
		Code: home, Name: "France", Version: version,
		Sources: []string{
			"https://www.legifrance.gouv.fr/codes/article_lc/LEGIARTI000048829206", // CGI, art. 289 bis: electronic invoices
			"https://www.legifrance.gouv.fr/codes/article_lc/LEGIARTI000048829201", // CGI, art. 290: data of other sales
			"https://www.legifrance.gouv.fr/codes/article_lc/LEGIARTI000046872222", // CGI, annex II, art. 242 nonies A: mentions
			"https://www.impots.gouv.fr/specifications-externes-b2b",               // external specifications 3.2
			"https://eur-lex.europa.eu/eli/dir/2006/112/oj",                        // places of supply
		},
		Facts:          facts(),
		RetentionYears: 10, // Code de commerce, art. L123-22
	}
	p := en16931.Extend(base, page())
	p.Facts.Settings = slices.DeleteFunc(p.Facts.Settings, func(s country.Setting) bool {
		return s.Key == settingFormat && slices.Contains(s.Values, en16931.FormatNone)
	})
	p.Codes = country.ReadCodes(codesFile)
	p.Checks = append(p.Checks, checks()...)
	p.Facts.Responses, p.CanAnswer = responses(), canAnswer
	company := p.CheckCompany
	p.CheckCompany = func(s country.Supplier, c country.Credentials) []fault.Fault {
		return append(company(s, c), checkCompany(s)...)
	}
	p.Connect = func(at country.Endpoint) (country.Channel, error) { return connect(at) }
	p.Enrol = enrol
	p.Fetch, p.Receive = fetch(), &country.Receive{Fetch: &country.Fetch{Every: lookEvery, Timeout: time.Minute, Look: receive}}
	p.Periods = periods()
	p.Structured = structured
	p.Imprint = imprint(p.Imprint)
	p.Files = country.Filed{Of: filed}
	p.Identity = &country.IdentityRule{Secrets: []country.SecretRule{
		{Name: secretClient, Description: "Client id of this service at the platform (OAuth2, client credentials)", Simulated: "simulated"},
		{Name: secretClientSecret, Description: "Client secret of this service at the platform", Simulated: "simulated"},
		{Name: secretToken, Description: "Where the platform gives tokens; empty: /oauth/token below the address."},
		{Name: secretDirectory, Description: "Where the platform's directory is (XP Z12-013, annex B); empty: below the address."},
		{Name: secretPlatform, Description: "The platform's registration number, four digits: reports name it as their sender.", Simulated: "0001"},
		{Name: secretPlatformName, Description: "The platform's name in reports."},
	}}
	return p
}

func settings() []country.Setting {
	return []country.Setting{
		{Key: settingFormat, Type: "string", Default: formatFacturX, Values: []string{formatFacturX, formatCII, formatUBL},
			Description: "what goes to the platform, UBL or CII; with " + formatFacturX + " it is CII, and the PDF has the very same data inside of it (Factur-X)"},
		{Key: settingSince, Type: "string", Default: firstWave, Values: []string{firstWave, secondWave},
			Description: "since when the company must issue electronic invoices: 2026-09-01 for large and mid-size companies, 2027-09-01 for all others; nothing is filed of earlier sales"},
		{Key: settingRegime, Type: "string", Default: string(ereport.RealMonthly), Values: ereport.Regimes(),
			Description: "how the company declares VAT; " + regimeFranchise + ": it charges none (art. 293 B du CGI)"},
		{Key: settingDebits, Type: "boolean", Default: false,
			Description: "the company has chosen to owe the VAT of services when it invoices (option pour les débits), not when it is paid"},
		{Key: settingCharges, Type: "string", Default: "Indemnité forfaitaire pour frais de recouvrement en cas de retard de paiement : 40 €.",
			Description: "what a late payer owes for collection (note PMT)"},
		{Key: settingPenalty, Type: "string", Default: "Pénalités de retard : trois fois le taux d'intérêt légal, exigibles sans rappel.",
			Description: "what a late payer owes in interest (note PMD)"},
		{Key: settingDiscount, Type: "string", Default: "Pas d'escompte pour paiement anticipé.",
			Description: "discount for early payment, or that there is none (note AAB)"},
	}
}

func facts() country.Facts {
	rate := func(kind, percent, since, until string) country.Rate {
		return country.Rate{Regime: transaction.VAT, Type: kind, Percent: percent, Since: since, Until: until}
	}
	inside := country.Condition{Field: "customer.address.country_code", Matches: country.Matching("(?i)^(" + strings.ReplaceAll(overseas, " ", "|") + ")$")}
	return country.Facts{
		Currency: ownMoney, Languages: []string{"FR", "EN"}, TimeZone: "Europe/Paris",
		UseCases:     []country.UseCase{country.Reporting, country.Invoicing, country.Both},
		TaxesPerLine: 1, StrictRates: true, StrictNumbers: true,
		Regimes: []string{transaction.VAT},
		Rates: []country.Rate{
			rate(transaction.TaxStandard, "20", "2014-01-01", ""), rate(transaction.TaxReduced, "10", "2014-01-01", ""),
			rate(transaction.TaxReduced, "5.5", "1995-01-01", ""), rate(transaction.TaxReduced, "2.1", "1995-01-01", ""),
			rate(transaction.TaxStandard, "8.5", "1995-01-01", ""), // Guadeloupe, Martinique, Réunion: art. 296 du CGI
			rate(transaction.TaxReduced, "1.75", "1995-01-01", ""), rate(transaction.TaxReduced, "1.05", "1995-01-01", ""),
			rate(transaction.TaxReduced, "13", "2014-01-01", ""), rate(transaction.TaxReduced, "0.9", "1995-01-01", ""), // Corsica: art. 297
			rate(transaction.TaxStandard, "19.6", "2000-04-01", "2014-01-01"), rate(transaction.TaxReduced, "7", "2012-01-01", "2014-01-01"),
		},
		Corrections: []country.Correction{
			{Kind: transaction.Adjustment, Deadline: "no deadline at the platform"}, {Kind: transaction.Credit, Deadline: "no deadline at the platform"},
			{Kind: transaction.PaymentReport,
				Deadline: "with the report of its period (tributary periods), or as a status of the invoice: services whose VAT is owed when they are paid"},
			{Kind: transaction.Backfill},
		},
		Credentials: []string{},
		Secrets: []country.SecretRule{
			{Name: secretClient, Description: "The company's own client id at the platform, in place of the operator's."},
			{Name: secretClientSecret, Description: "The company's own client secret."},
		},
		TaxNumberName: "N° TVA", Formats: []string{"PDF"},
		Authority: &country.Authority{Name: "Direction générale des Finances publiques", System: "an approved platform (PA)",
			Protocol: "REST with OAuth2 (XP Z12-013); CII or UBL, decided later"},
		Settings: settings(),
		Derivations: append([]string{
			"A SIREN is read from entity_number (SIREN or SIRET), from a VAT number, or from an address of scheme 0225.",
			"A sale goes to the platform as an invoice (B2B) when the customer is a business whose address is in France, overseas departments included.",
			"Other sales are gathered (CGI, art. 290): those to consumers by day, currency and category, those to businesses abroad one by one; a business in no directory is told like a consumer.",
			"A payment of services whose VAT is owed when they are paid is a status (212) of an invoice that the platform has; of other sales it is reported by period, with the day, by rate.",
			"The processing frame (BT-23) is B of goods, S of services, M of both; 1 of what is to be paid, 2 of what is paid.",
		}, country.DerivationRules()...),
		Obligations: []country.Obligation{
			{Since: firstWave, Whom: "large and mid-size companies: invoices to businesses in France", Source: "CGI, art. 289 bis; law 2023-1322, art. 91"},
			{Since: secondWave, Whom: "all companies: invoices to businesses in France", Source: "CGI, art. 289 bis; law 2023-1322, art. 91"},
			{Since: firstWave, Whom: "large and mid-size companies: reports of sales to consumers and abroad", Source: "CGI, art. 290"},
			{Since: secondWave, Whom: "all companies: reports of sales to consumers and abroad", Source: "CGI, art. 290"},
		},
		Penalties: []country.Penalty{
			{Since: firstWave, What: "an invoice that is not electronic", Penalty: "15 € each, at most 15,000 € a year", Source: "CGI, art. 1737, III"},
		},
		Required: []country.FieldRule{
			{Field: "customer.address.country_code", BusinessModel: transaction.B2B,
				Reason: "where the customer is decides whether a sale goes to the platform (art. 289 bis du CGI)"},
			{Field: "customer.entity_number", BusinessModel: transaction.B2B, Kind: transaction.Invoice, Reason: "a business in France is named by its SIREN, here, in its VAT number or in its address (BT-47, BR-FR-11)",
				When: []country.Condition{inside, {Field: "customer.tax_information.tax_number", Matches: country.Matching(`^\s*$|^\s*[A-EG-Za-eg-z]`)},
					{Field: "customer.electronic_address.id", Matches: country.Matching("^$")}}},
		},
		MaxLengths: []country.LengthRule{{Field: "transaction_number", Max: numberMax, Reason: "BT-1 (BR-FR-01)"}},
		Patterns: []country.PatternRule{
			{Field: "customer.entity_number", Pattern: country.Matching(`^\s*([0-9][\s.]*){9}(([0-9][\s.]*){5})?$`), Example: "552100554",
				When: []country.Condition{inside, {Field: "customer.type", Matches: country.Matching("^BUSINESS$")}}, Reason: "is a SIREN (9 digits) or a SIRET (14)"},
			{Field: "transaction_number", Pattern: country.Matching(`^[A-Za-z0-9+_/-]+$`), Example: "F2026-001",
				Reason: "has letters without accents, digits and + - _ / alone (BR-FR-02)"}},
	}
}

const numberMax = 35
