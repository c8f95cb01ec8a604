// Package pl is Poland: structured invoices FA(3) in KSeF 2.0, the National
// System of e-Invoices. docs/countries/pl.md tells clients and operators about it.
//
// It owns the mapping to FA(3) and Poland's law of invoices; the wire to KSeF is
// pl/wire. It refuses to own certificates as files, retries and storage; the
// double of KSeF is authority/ksef. Law: the same bytes sent twice are one
// invoice, because KSeF knows seller, type and number.
//
// What was chosen where law and schema leave it open is docs/decisions/0029; what a
// reader of this package meets besides:
//
//   - Tokens and session keys are kept in memory under a digest of the
//     credentials; the credentials themselves are not kept.
//   - Onboarding tries the credentials once; an authority that cannot be
//     reached does not hinder it.
//   - In corrections the sign stands on the quantity at a positive price where
//     goods come back, on the price where it was lowered.
//   - A rate of 0 at home needs a type or a code: 0 KR, exempt and outside are
//     different boxes of the return.
//   - A sale in the one stop shop has the regime OSS and the rate of the
//     customer's country; its tax is not Polish and is not converted to zloty.
//   - An exchange rate of another day than the law's is a warning: the client
//     may have chosen the European Central Bank's, or the rules of income tax
//     (art. 31a sec. 2a), which KSeF does not refuse.
//   - What a settlement deducts stands in lines of their own, marked {PL, ZAL}
//     and below nothing, one for each rate, so that the result's total is what
//     is left to pay (P_15). The filed lines are the whole supply; references
//     of a settlement add up to those lines.
//   - Corrections of an advance repeat the order before and after, also where
//     they leave it as it was: FA(3) wants that confirmed.
//   - A payment's own day is filed as P_6Z of an advance and as DataZaplaty of
//     what is paid already. An advance lists its payments only where all have a
//     day: without, they are ways in which one sum was paid.
//   - Shares of further buyers are said by all of them or by none: FA(3) takes
//     missing shares as equal, and equal beside 25 % means nothing.
package pl

import (
	"context"
	_ "embed"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/pl/wire"
	"tributary/internal/country/taxid"
	"tributary/internal/country/text"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// codesFile is what the codes of KSeF mean, in our own words.
//
//go:embed codes.txt
var codesFile string

// version is stored with every operation; bytes made by one version are sent unchanged by the next.
const version = "pl-1"

// Names of the company's settings.
const (
	settingExemption    = "exemption_basis"
	settingCashMethod   = "cash_method"
	settingSplitPayment = "split_payment"
	settingBankAccount  = "bank_account"
	settingConsumers    = "consumers"

	consumersFiled    = "file"
	consumersDocument = "document"

	exemptionDefault = "art. 43 ust. 1 ustawy o podatku od towarów i usług"
)

// Pack is Poland.
func Pack() country.Pack {
	f := facts()
	c := &checker{facts: f, by: reading(f)}
	return country.Pack{
		Code:    "PL",
		Codes:   country.ReadCodes(codesFile),
		Name:    "Poland",
		Version: version,
		Sources: []string{
			"https://isap.sejm.gov.pl/isap.nsf/DocDetails.xsp?id=WDU20040540535",             // VAT act: art. 106a–106s
			"https://isap.sejm.gov.pl/isap.nsf/DocDetails.xsp?id=WDU20230001598",             // act of 16 June 2023 on KSeF
			"https://ksef.podatki.gov.pl/informacje-ogolne-ksef-20/struktura-logiczna-fa-3/", // FA(3)
			"https://github.com/CIRFMF/ksef-docs",                                            // KSeF API 2.0
			"https://api.ksef.mf.gov.pl/docs/v2",                                             // its OpenAPI
		},
		RetentionYears: 10, // longer than Ordynacja podatkowa, art. 86 with art. 70: five years from the end of the year of payment

		Facts:        f,
		Checks:       c.checks(),
		Classify:     func(in country.Case) []transaction.Item { return classify(f, in) },
		Connect:      func(at country.Endpoint) (country.Channel, error) { return connect(at) },
		Receive:      &country.Receive{Fetch: &country.Fetch{Every: lookEvery, Timeout: time.Minute, Look: look}},
		Files:        country.Filed{Of: filed},
		Enrol:        enrol,
		CheckCompany: checkCompany,
		Imprint:      imprint,
		Formats:      formats(),
		Example:      example(),
	}
}

func facts() country.Facts {
	return country.Facts{
		Currency:  ownMoney,
		Languages: []string{"PL", "EN"},
		TimeZone:  "Europe/Warsaw",
		UseCases:  []country.UseCase{country.Reporting, country.Invoicing, country.Both},
		Required: append(country.InOwnCurrency(ownMoney, "the tax is stated in zloty (art. 106e sec. 11 of the VAT act)",
			country.Condition{Field: "items.*.tax_breakdowns.*.rate", Matches: country.Matching("[1-9]")}),
			country.FieldRule{Field: "customer", Kind: transaction.Invoice,
				Reason: "an invoice names its buyer (art. 106e sec. 1 point 3 of the VAT act)"},
			country.FieldRule{Field: "customer.address.address_line_1", Kind: transaction.Invoice, BusinessModel: transaction.B2C,
				When:   []country.Condition{{Field: "customer.tax_information.tax_number", Unless: country.Matching(".")}},
				Reason: "a person who is named by no tax number is named by name and address (art. 106e sec. 1 point 3 of the VAT act)"},
			country.FieldRule{Field: "customer.address.address_line_1", Kind: transaction.Invoice, BusinessModel: transaction.B2B,
				Reason: "an invoice names its buyer with the address (art. 106e sec. 1 point 3 of the VAT act)"},
			country.FieldRule{Field: "items.*.tax_breakdowns", Reason: "every line has a rate (P_12 of FA(3))"},
			country.FieldRule{Field: "customer.tax_information.tax_number", BusinessModel: transaction.B2B,
				When:   []country.Condition{country.In("PL")},
				Reason: "a business in Poland is named by its NIP (art. 106e sec. 1 point 5 of the VAT act)"},
		),
		Allowed: []country.ValueRule{{Field: "currency_code", Values: transaction.Currencies(writes),
			Reason: "the currencies of FA(3)"}},
		Dates:         &country.DateRule{Earliest: "2006-01-01", Latest: "2050-01-01", Today: true, Reason: "P_1 of FA(3)"},
		TaxesPerLine:  1,
		NumberExample: "5260001246",
		MaxLengths: []country.LengthRule{
			{Field: "items.*.code", Max: foreignMax, Reason: "Indeks of FA(3)"},
		},
		Regimes:       []string{transaction.VAT, regimeOSS},
		ReasonCodes:   reasonCodes(),
		Rates:         rates(),
		StrictRates:   true,
		StrictNumbers: true,
		Corrections:   corrections(),
		Roles:         roleMeanings(),
		Advances:      true,
		Settings:      settings(),
		Credentials:   []string{}, // a token or a certificate: see checkCompany
		Formats:       []string{"PDF", "XML"},
		Authority: &country.Authority{
			Name: "Ministerstwo Finansów", System: "KSeF 2.0 (API 2.6.0)",
			Protocol: "REST; FA(3) encrypted in interactive and batch sessions",
		},
		Derivations:  derivations(),
		DeadlineDays: 1,
		WorkingDays:  &holidays,
		LoginUntil:   "2026-12-31", // of KSeF tokens: afterwards KSeF takes certificates alone
		Obligations:  obligations(),
		Penalties:    penalties(),
	}
}

// rates are those of TStawkaPodatku with the days on which the law had them
// (art. 41 and 146ea–146ef of the VAT act; before 2011 art. 41 as it was).
func rates() []country.Rate {
	const change = "2011-01-01"
	return []country.Rate{
		{Regime: transaction.VAT, Type: transaction.TaxStandard, Percent: "23", Since: change},
		{Regime: transaction.VAT, Type: transaction.TaxReduced, Percent: "8", Since: change},
		{Regime: transaction.VAT, Type: transaction.TaxReduced, Percent: "5", Since: change},
		{Regime: transaction.VAT, Type: transaction.TaxReduced, Percent: "4", Since: change},
		{Regime: transaction.VAT, Type: transaction.TaxZero, Percent: "0", Typed: true},
		{Regime: transaction.VAT, Type: transaction.TaxStandard, Percent: "22", Until: change},
		{Regime: transaction.VAT, Type: transaction.TaxReduced, Percent: "7", Until: change},
		{Regime: transaction.VAT, Type: transaction.TaxReduced, Percent: "3", Until: change},
	}
}

func corrections() []country.Correction {
	const limitation = "no deadline in KSeF; the tax can be corrected until it is time-barred, five years after the end of the year in which it was due (Tax Ordinance, art. 70 § 1)"
	return []country.Correction{
		{Kind: transaction.Adjustment, Deadline: limitation, Several: true, Deducting: []string{typeSettlement, typeAdvance},
			ReasonPattern: reasonPattern, Reasons: []country.Meaning{
				{Code: "1", Meaning: "takes effect with the original invoice: it was wrong from the beginning (TypKorekty 1)"},
				{Code: "2", Meaning: "takes effect with the correction: the cause came later (TypKorekty 2); what reductions have without a reason"},
				{Code: "3", Meaning: "takes effect on another day, or on different ones (TypKorekty 3)"},
				{Code: typeSettlement,
					Meaning: "no correction: the invoice after the supply (art. 106f sec. 3), of which the advance invoices that it refers to are deducted in lines classified {PL, ZAL}"},
				{Code: typeAdvance,
					Meaning: "no correction: the last of several advances (art. 106f sec. 4), which with those that it refers to, each with what it came to as amount, is the whole order"},
			}},
		{Kind: transaction.Credit, Deadline: limitation},
		{Kind: transaction.Backfill},
	}
}

func obligations() []country.Obligation {
	const source = "Act of 16 June 2023 (KSeF), as the acts of 9 May 2024 and of 5 September 2025 have it; VAT act, art. 106ga and 145l to 145m"
	return []country.Obligation{
		{Since: "2026-02-01",
			Whom:   "Taxpayers whose sales of 2024 were above 200 million PLN with tax; everybody receives invoices in KSeF",
			Source: source},
		{Since: "2026-04-01", Whom: "Everybody else", Source: source},
		{Since: "2027-01-01",
			Whom:   "Taxpayers whose invoices of a month come to at most 10,000 PLN with tax, who may stay outside until then",
			Source: source},
	}
}

func penalties() []country.Penalty {
	const since, source = "2027-01-01", "VAT act, art. 106ni"
	return []country.Penalty{
		{Since: since, What: "An invoice outside KSeF, one that does not follow its structure, or one of an outage that is sent too late",
			Penalty: "up to 100 % of the tax on the invoice, without tax up to 18.7 % of its total", Source: source},
	}
}

func settings() []country.Setting {
	return []country.Setting{
		{
			Key: wire.SettingAuth, Type: "string", Default: wire.AuthXAdES, Values: []string{wire.AuthXAdES, wire.AuthToken},
			Description: "How the service authenticates to KSeF where both kinds of credentials are there: xades (a signature with the certificate) or token (tax_credentials.password is a KSeF token, which KSeF takes until 2026-12-31).",
		},
		{
			Key: settingExemption, Type: "string", Default: exemptionDefault, Pattern: `^.{3,200}$`,
			Description: "Legal ground of exempt sales whose tax entry names none (P_19A).",
		},
		{
			Key: settingCashMethod, Type: "boolean", Default: false,
			Description: "The company accounts for VAT by the cash method (P_16, metoda kasowa).",
		},
		{
			Key: settingSplitPayment, Type: "boolean", Default: false,
			Description: "The company sells goods or services of annex 15: invoices to businesses above 15,000 PLN carry the split payment mechanism (P_18A).",
		},
		{
			Key: settingBankAccount, Type: "string", Default: "", Pattern: `^[A-Za-z0-9 ]{10,42}$`,
			Description: "Bank account printed in the invoice (NrRB), 10 to 34 letters and digits.",
		},
		{
			Key: settingConsumers, Type: "string", Default: consumersFiled, Values: []string{consumersFiled, consumersDocument},
			Description: "Invoices to persons without a tax number of a business, which the law lets stay outside KSeF (art. 106ga sec. 2 of the VAT act): file sends them like all others, document makes the document for people alone.",
		},
	}
}

func derivations() []string {
	return append([]string{
		"A tax entry of rate 0 without a type gets the type of its code: 0KR ZERO, 0WDT INTRA_EU, 0EX EXPORT, NP1 OUTSIDE, NP2 and OO REVERSE, every exemption EXEMPT.",
		"P_12 and P_13 follow from the type: ZERO 0 KR, INTRA_EU 0 WDT, EXPORT 0 EX, EXEMPT zw, OUTSIDE np I; REVERSE is oo for a buyer in Poland, np II for one in another member state, np I elsewhere.",
		"Entries of the regime OSS are tax of another member state that is declared in the one stop shop: P_13_5, P_14_5, P_12_XII.",
		"P_19A of an exempt line is the ground that its code names, else the company's exemption_basis.",
		"The buyer is named by NIP, by the VAT number of a member state (the number's prefix, else the address's country), by a foreign number with its country, or not at all (BrakID).",
		"An issuer with the buyer's tax number is self-billing (P_17); any other issuer that is not the supplier is a third party with role 5 (Podmiot3).",
	}, country.DerivationRules()...)
}

// enrol tries the credentials once, so that a mistyped token is told at
// onboarding and not with the first invoice. KSeF itself asks for nothing; when
// it cannot be reached the company is onboarded all the same.
func enrol(ctx context.Context, in country.Enrolment) (done country.Enrolled) {
	ch, err := connect(in.At)
	if err != nil {
		return done
	}
	if member, why := ch.Refused(ctx, &in.Supplier, in.Credentials); member != "" {
		field := "tax_credentials." + member
		done.Faults = []fault.Fault{{Code: fault.CredentialsInvalid, Type: fault.Validation, Field: field,
			Message: field + " is refused by KSeF: " + why}}
	}
	return done
}

// checkCompany asks for one way to authenticate and for what FA(3) must have
// of a seller.
func checkCompany(s country.Supplier, c country.Credentials) []fault.Fault {
	var found []fault.Fault
	switch {
	case c.Secret == "" && len(c.PKCS12) == 0:
		found = append(found, fault.At("tax_credentials.password", fault.FieldRequired,
			"must be a KSeF token, or tax_credentials.certificate_base64 a certificate"))
	}
	if v := taxid.Check("PL", s.TaxNumber); !v.Valid {
		found = append(found, fault.At("tax_information.tax_number", fault.FieldNotValid, "is not a NIP: %s", v.Reason))
	}
	if text.Join(" ", s.Address.AddressLine1, s.Address.City, s.Address.PostalCode) == "" {
		found = append(found, fault.At("address.address_line_1", fault.FieldRequired,
			"must not be empty: FA(3) has the seller's address (AdresL1)"))
	}
	if token(s.LegalName, nameMax) == "" {
		found = append(found, fault.At("legal_name", fault.FieldRequired, "must not be empty"))
	}
	if account := taxid.Bare(s.Settings.Text(settingBankAccount)); account != "" && (len(account) < 10 || len(account) > 34) {
		found = append(found, fault.At("settings."+settingBankAccount, fault.FieldNotValid,
			"must have 10 to 34 letters and digits"))
	}
	if strings.EqualFold(s.Address.CountryCode, transaction.ReferenceCode) {
		found = append(found, fault.At("address.country_code", fault.FieldNotValid, "is not a country that FA(3) knows"))
	}
	return found
}
