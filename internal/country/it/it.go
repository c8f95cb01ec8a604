// Package it is Italy: FatturaPA 1.2.3 handed to the Sistema di Interscambio
// through SdICoop, which calls back with its decision. docs/countries/it.md tells
// clients and operators about it.
//
// It owns the mapping to FatturaPA, SdI's checks as far as they can be made
// without its registers, RiceviFile and the reading of SdI's messages. It refuses
// to own retries and storage; the double of SdI is authority/sdi. Law: an answer
// of RiceviFile means that a file was taken, nothing more. What became of it is
// known when a message about its name came, and SdI cannot be asked.
//
// What was chosen where SdI and the law leave it open is docs/decisions/0031.
// Besides: the reason of a sale chooses TipoDocumento, and with buyer-side types
// the onboarded company is the buyer, because it is who issues and numbers the
// document. Postal codes decide about territories of member states outside of the
// VAT territory: they are few and known, and no new member of the body is needed.
// Goods to the Vatican (article 71) need N3.1 or N3.4 by code: both are used for
// the same thing, and no source at hand says which. law.go and supply.go have what
// SdI takes and the law does not, apart from SdI's own list (rules.go), because
// their sources and their authority differ.
package it

import (
	_ "embed"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/official/sdiwire"
	"tributary/internal/transaction"
)

// codesFile is what the codes of SdI mean, in our own words.
//
//go:embed codes.txt
var codesFile string

// version is stored with every operation; bytes made by one version are sent unchanged by the next.
const version = "it-1"

const ownMoney = "EUR"

// Names of the company's settings.
const (
	settingRegime      = "fiscal_regime"
	settingFiscalCode  = "fiscal_code"
	settingREAOffice   = "rea_office"
	settingREANumber   = "rea_number"
	settingCapital     = "share_capital"
	settingShareholder = "sole_shareholder"
	settingLiquidation = "liquidation"
	settingStamp       = "stamp_duty"
	settingDue         = "vat_due"
	settingRecipient   = "recipient_code"
	settingIBAN        = "iban"
)

// Values of RegimeFiscale that decide something.
const (
	regimeDefault = "RF01"
	regimeMinimal = "RF02" // contribuenti minimi
	regimeFlat    = "RF19" // regime forfettario
)

// Pack is Italy.
func Pack() country.Pack {
	f := facts()
	rules := &checker{facts: f, by: reading(f)}
	return country.Pack{
		Code:    "IT",
		Name:    "Italy",
		Version: version,
		Sources: []string{
			// VAT: articles 7–10, 15, 17, 17-ter, 21, 26, 74
			"https://www.normattiva.it/uri-res/N2Ls?urn:nir:stato:decreto.del.presidente.della.repubblica:1972-10-26;633",
			// electronic invoices between private parties
			"https://www.normattiva.it/uri-res/N2Ls?urn:nir:stato:decreto.legislativo:2015-08-05;127",
			// Allegato A, FatturaPA 1.2.3
			"https://www.agenziaentrate.gov.it/portale/web/guest/fatturazione-elettronica-specifiche-tecniche",
			"https://www.fatturapa.gov.it/it/norme-e-regole/documentazione-fatturapa/", // SdICoop, Elenco dei controlli
			"https://eur-lex.europa.eu/eli/dir/2006/112/oj",                            // places of supply
		},
		Facts:        f,
		Codes:        country.ReadCodes(codesFile),
		Checks:       rules.checks(),
		CheckSale:    rules.ofCompany,
		Classify:     func(in country.Case) []transaction.Item { return classify(f, in) },
		Connect:      func(at country.Endpoint) (country.Channel, error) { return connect(at) },
		CheckCompany: checkCompany,
		Identity:     identityRule(),
		Callbacks:    &country.Callbacks{Read: readCall},
		Receive:      &country.Receive{Enrol: announce},
		Formats:      formats(),
		Sequence:     true,
		Structured:   structured,
		Imprint:      imprint,
		Example:      example(),
		CanAnswer:    canAnswer,
	}
}

// rome is SdI's own time zone.
var rome = sync.OnceValue(func() *time.Location { return sale.Zone(sdiwire.Zone) })

func facts() country.Facts {
	named := []country.Condition{{Field: "reason", Unless: country.Matching(`(?i)^(TD21|TD27)$`)}}
	buyer := func(field, reason string) country.FieldRule {
		return country.FieldRule{Field: field, Kind: transaction.Invoice, When: named, Reason: reason}
	}
	return country.Facts{
		Currency:  ownMoney,
		Languages: []string{"IT", "EN", "DE", "FR"},
		TimeZone:  sdiwire.Zone,
		UseCases:  []country.UseCase{country.Reporting, country.Invoicing, country.Both},
		Required: []country.FieldRule{
			buyer("customer", "every invoice names its buyer (CessionarioCommittente)"),
			buyer("customer.legal_name", "Anagrafica"),
			buyer("customer.address.address_line_1", "Sede of the buyer"),
			buyer("customer.address.city", "Sede of the buyer"),
			{Field: "customer.address.postal_code", Kind: transaction.Invoice,
				When: append([]country.Condition{country.In(home)}, named...), Reason: "CAP of the buyer"},
			{
				Field: "customer.tax_information.tax_number", Kind: transaction.Invoice,
				When: append([]country.Condition{country.In(home),
					{Field: "customer.tax_information.fiscal_code", Matches: country.Matching("^$")}}, named...),
				Reason: "a buyer in Italy is named by a VAT number or a codice fiscale, which may also stand in fiscal_code (00417)",
			},
			{Field: "items.*.tax_breakdowns", Reason: "every line has a rate or says why it has none (AliquotaIVA, Natura)"},
		},
		Allowed: []country.ValueRule{{Field: "currency_code", Values: []string{ownMoney},
			Reason: "the tax is computed and written in euros"}},
		Patterns: []country.PatternRule{
			{Field: "transaction_number", Pattern: country.Matching(`^[!-~]([ -~]{0,18}[!-~])?$`), Example: "2026/0001",
				Reason: "Numero has at most 20 letters of ASCII"},
			{Field: "customer.address.postal_code", Pattern: country.Matching(`^[0-9]{5}$`),
				When: []country.Condition{country.In(home)}, Example: "00184", Reason: "CAP"},
		},
		Dates:           &country.DateRule{Earliest: "2019-01-01", Today: true, Reason: "Data, 00403"},
		TaxesPerLine:    1,
		NumberExample:   "12345670785",
		MaxLengths:      []country.LengthRule{{Field: "transaction_number", Max: sdiwire.NumberMax, Reason: "Numero"}},
		Regimes:         []string{transaction.VAT, transaction.Withholding},
		ReasonCodes:     reasonCodes(),
		Reasons:         saleReasons(),
		Rates:           rates(),
		StrictNumbers:   true,
		NumberedCredits: true,
		Corrections:     corrections(),
		Settings:        settings(),
		Credentials:     []string{},
		TaxNumberName:   "Partita IVA",
		Formats:         []string{"PDF", "XML"},
		Authority: &country.Authority{
			Name: "Agenzia delle Entrate", System: "Sistema di Interscambio (SdI)",
			Protocol: "FatturaPA 1.2.3 through SdICoop: SOAP with client certificates, decisions by callback",
		},
		DeadlineDays: 12,
		Responses:    responses(),
		Derivations:  derivations(),
		Obligations: []country.Obligation{
			{Since: "2019-01-01", Whom: "invoices between businesses and to consumers, of all who are established in Italy",
				Source: "D.Lgs. 127/2015, article 1; L. 205/2017"},
			{Since: "2022-07-01", Whom: "sales to and purchases from abroad; flat-rate businesses above 25,000 euros",
				Source: "L. 178/2020; DL 36/2022"},
			{Since: "2024-01-01", Whom: "every flat-rate business", Source: "DL 36/2022, article 18"},
		},
	}
}

// rates are those of articles 16 and 1 of the acts that changed them.
func rates() []country.Rate {
	return []country.Rate{
		{Regime: transaction.VAT, Type: transaction.TaxStandard, Percent: "22", Since: "2013-10-01"},
		{Regime: transaction.VAT, Type: transaction.TaxReduced, Percent: "10"},
		{Regime: transaction.VAT, Type: transaction.TaxReduced, Percent: "5", Since: "2016-01-01"},
		{Regime: transaction.VAT, Type: transaction.TaxReduced, Percent: "4"},
		{Regime: transaction.VAT, Type: transaction.TaxExempt, Percent: "0", Typed: true},
	}
}

func corrections() []country.Correction {
	const limit = "one year after the sale where the parties agreed on it afterwards, no deadline otherwise (art. 26 DPR 633/72)"
	return []country.Correction{
		{Kind: transaction.Adjustment, Deadline: limit, Reasons: adjustReasons()},
		{Kind: transaction.Credit, Deadline: limit},
		{Kind: transaction.Backfill},
	}
}

func settings() []country.Setting {
	text := func(key, pattern, about string) country.Setting {
		return country.Setting{Key: key, Type: "string", Default: "", Pattern: pattern, Description: about}
	}
	return []country.Setting{
		{
			Key: settingRegime, Type: "string", Default: regimeDefault, Values: regimes(),
			Description: "RegimeFiscale: RF01 ordinary, RF19 flat rate (lines without tax are N2.2), RF18 other, ….",
		},
		text(settingFiscalCode, `^[A-Za-z0-9]{11,16}$`, "Codice fiscale of the company, where it differs from its VAT number."),
		text(settingREAOffice, `^[A-Za-z]{2}$`,
			"Province of the register of companies (IscrizioneREA); obligatory by the civil code for companies."),
		text(settingREANumber, `^[ -~]{1,20}$`, "Number in the register of companies."),
		text(settingCapital, `^[0-9]{1,11}\.[0-9]{2}$`, "Share capital, written as 10000.00."),
		{Key: settingShareholder, Type: "string", Default: "", Values: []string{"", "SU", "SM"},
			Description: "SU: one shareholder, SM: several."},
		{Key: settingLiquidation, Type: "string", Default: "LN", Values: []string{"LN", "LS"},
			Description: "LN: not in liquidation, LS: in liquidation."},
		{
			Key: settingStamp, Type: "boolean", Default: true,
			Description: "Declares the stamp duty of 2 euros (bollo virtuale) where more than 77.47 euros bear no VAT.",
		},
		{
			Key: settingDue, Type: "string", Default: dueAtOnce, Values: []string{dueAtOnce, dueOnPayment},
			Description: "When VAT is due: I at once, D on payment. The code S of a tax entry is split payment.",
		},
		text(settingRecipient, `^[A-Z0-9]{7}$`,
			"The company's own CodiceDestinatario: where documents go that it issues as the buyer."),
		text(settingIBAN, `^[A-Za-z]{2}[0-9]{2}[A-Za-z0-9 ]{11,38}$`, "Bank account of payments by transfer."),
	}
}

func regimes() []string {
	return []string{"RF01", "RF02", "RF04", "RF05", "RF06", "RF07", "RF08", "RF09", "RF10", "RF11", "RF12", "RF13",
		"RF14", "RF15", "RF16", "RF17", "RF18", "RF19", "RF20"}
}

func derivations() []string {
	return append([]string{
		"A tax entry of rate 0 without a type gets the type of its code: N1 ZERO, N2.1, N2.2 and N7 OUTSIDE, N3.2 INTRA_EU, the other N3 EXPORT, N4 and N5 EXEMPT, N6 REVERSE.",
		"Natura is the code, else follows from the type: EXEMPT N4, INTRA_EU N3.2, EXPORT N3.3 to San Marino and N3.1 elsewhere, REVERSE N6.9 for a business in Italy and N2.1 for services to one of the Union, OUTSIDE N2.1 abroad and N2.2 in Italy, ZERO N1; a flat-rate seller (RF02, RF19) has N2.2 instead of N3.2, N4 and N6.9.",
		"A line classified CASSA is a contribution to a professional fund (DatiCassaPrevidenziale), not a line; DDT names its transport document.",
		"TipoDocumento is the reason, else TD01 for a sale, TD04 for a credit and an adjustment that lowers, TD05 for one that adds.",
		"With reason TD16 to TD20, TD22, TD23, TD28 and TD29 the company is the buyer and the customer of the transaction the seller; with TD21 and TD27 it is both.",
		"CodiceDestinatario is the customer's electronic address IT:SDI, else 2R4GTO8 for what an operator of San Marino buys without Italian VAT, else XXXXXXX for a buyer abroad, else 0000000, with PECDestinatario where the address is IT:PEC.",
		"Tax is computed on the sum of each rate; what that differs from total_amount is Arrotondamento and rounding_amount.",
		"An issuer with the customer's tax number is SoggettoEmittente CC, another TZ.",
	}, country.DerivationRules()...)
}
