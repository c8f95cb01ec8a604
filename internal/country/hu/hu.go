// Package hu is Hungary: invoice data reported to NAV, the National Tax and
// Customs Administration, through Online Számla 3.0. docs/countries/hu.md tells
// clients and operators about it.
//
// It owns the mapping to InvoiceData, the signed calls (token, report, status,
// lists) and NAV's own procedure after a lost answer. It refuses to own retries
// and storage; the double of NAV is authority/nav. Law: a report is done when
// DONE was fetched. "Not there" proves nothing while NAV may still be reading,
// and OPERATION_FAILED may hide an invoice that was taken.
//
// What was chosen where NAV's papers leave it open is docs/decisions/0031. One call
// carries as many invoices as have room in 10 MB, up to a hundred; the rest is "not
// taken" and goes with the next. What a transaction of NAV's list held is
// remembered (4,096 of them), because a busy supplier has many and each is looked
// through once. A person's own tax identifier is never sent, also where the client
// gives it. Records are kept for ten years, longer than the eight of the accounting
// act, until the statute is cited from its text.
package hu

import (
	_ "embed"
	"time"

	"tributary/internal/country"
	"tributary/internal/official/navwire"
	"tributary/internal/transaction"
)

// codesFile is what the codes of NAV mean, in our own words.
//
//go:embed codes.txt
var codesFile string

// version is stored with every operation; bytes made by one version are sent unchanged by the next.
const version = "hu-1"

const ownMoney = "HUF"

// Names of the company's settings and secrets.
const (
	settingAppearance  = "appearance"
	settingExemption   = "exemption_case"
	settingCash        = "cash_accounting"
	settingGroupMember = "group_member"
	settingBankAccount = "bank_account"

	secretSignature = "signature_key"
	secretExchange  = "exchange_key"
)

// Pack is Hungary.
func Pack() country.Pack {
	f := facts()
	return country.Pack{
		Code:    home,
		Name:    "Hungary",
		Version: version,
		Sources: []string{
			"https://njt.hu/jogszabaly/2007-127-00-00",      // VAT act: §§ 169–178 and annex 10 on reporting
			"https://njt.hu/jogszabaly/2014-23-20-2X",       // decree 23/2014 of the minister for national economy
			"https://onlineszamla.nav.gov.hu/dokumentaciok", // interface specification 3.0
			"https://github.com/nav-gov-hu/Online-Invoice",  // schemas, samples, error codes
			"https://eur-lex.europa.eu/eli/dir/2006/112/oj", // places of supply
		},

		Facts:        f,
		Codes:        country.ReadCodes(codesFile),
		Checks:       (&checker{facts: f, by: reading(f)}).checks(),
		Classify:     func(in country.Case) []transaction.Item { return classify(f, in) },
		Connect:      func(at country.Endpoint) (country.Channel, error) { return connect(at) },
		Enrol:        enrol,
		Receive:      &country.Receive{Fetch: &country.Fetch{Every: lookEvery, Timeout: time.Minute, Look: look}},
		CheckCompany: checkCompany,
		Imprint:      imprint,
		Formats:      formats(),
		Example:      example(),
	}
}

func facts() country.Facts {
	business := func(field, reason string) country.FieldRule {
		return country.FieldRule{Field: field, Kind: transaction.Invoice, BusinessModel: transaction.B2B, Reason: reason}
	}
	return country.Facts{
		Currency:  ownMoney,
		Languages: []string{"HU", "EN", "DE"},
		TimeZone:  "Europe/Budapest",
		UseCases:  []country.UseCase{country.Reporting, country.Invoicing, country.Both},
		Required: append(country.InOwnCurrency(ownMoney, "the tax is stated in forints (§ 172 of the VAT act)"),
			country.FieldRule{Field: "items.*.tax_breakdowns", Reason: "every line has a rate or says why it has none (lineVatRate)"},
			business("customer.address.city", "a business is named by name and address (customerAddress, § 169 e)"),
			business("customer.address.address_line_1", "a business is named by name and address (customerAddress, § 169 e)"),
			country.FieldRule{Field: "customer.tax_information.tax_number", BusinessModel: transaction.B2B,
				When:   []country.Condition{country.In(home)},
				Reason: "a business in Hungary is named by its tax number (§ 169 d; CUSTOMER_DATA_EXPECTED)"},
		),
		Dates:         &country.DateRule{Earliest: "2010-01-01", Today: true, Reason: "invoiceIssueDate"},
		TaxesPerLine:  1,
		NumberExample: "12892312-2-42",
		MaxLengths: []country.LengthRule{
			{Field: "transaction_number", Max: navwire.NumberMax, Reason: "invoiceNumber"},
		},
		Regimes:         []string{transaction.VAT},
		ReasonCodes:     reasonCodes(),
		Rates:           rates(),
		StrictRates:     true,
		StrictNumbers:   true,
		NumberedCredits: true,
		Corrections:     corrections(),
		Settings:        settings(),
		Credentials:     []string{"username", "password"},
		Secrets: []country.SecretRule{
			{Name: secretSignature, Description: "XML aláírókulcs (signing key) of the technical user", Required: true},
			{Name: secretExchange, Description: "XML cserekulcs (exchange key) of the technical user, 16 characters", Required: true},
		},
		TaxNumberName: "Adószám",
		Formats:       []string{"PDF", "XML"},
		Authority: &country.Authority{
			Name: "Nemzeti Adó- és Vámhivatal", System: "Online Számla 3.0",
			Protocol: "XML over HTTPS; signed calls, asynchronous processing",
		},
		Derivations: derivations(),
		Obligations: []country.Obligation{
			{Since: "2018-07-01", Whom: "invoices to taxable persons with at least 100,000 HUF of tax",
				Source: "Act CXXVII of 2007, annex 10"},
			{Since: "2020-07-01", Whom: "every invoice to a domestic taxable person", Source: "Act CXXVII of 2007, annex 10"},
			{Since: "2021-01-04", Whom: "every invoice, also to persons and abroad", Source: "Act CXXVII of 2007, annex 10"},
		},
	}
}

// rates are those of § 82 of the VAT act. A rate of zero is none of NAV's: a line
// without tax says why.
func rates() []country.Rate {
	return []country.Rate{
		{Regime: transaction.VAT, Type: transaction.TaxStandard, Percent: "27", Since: "2012-01-01"},
		{Regime: transaction.VAT, Type: transaction.TaxStandard, Percent: "25", Until: "2012-01-01"},
		{Regime: transaction.VAT, Type: transaction.TaxReduced, Percent: "18"},
		{Regime: transaction.VAT, Type: transaction.TaxReduced, Percent: "5"},
		{Regime: transaction.VAT, Type: transaction.TaxExempt, Percent: "0", Typed: true},
	}
}

func corrections() []country.Correction {
	const limitation = "no deadline at NAV; the tax can be corrected until it is time-barred, five years after the end of the year in which it was due (Act CL of 2017, § 202)"
	return []country.Correction{
		{Kind: transaction.Adjustment, Deadline: limitation},
		{Kind: transaction.Credit, Deadline: limitation},
		{Kind: transaction.Backfill},
	}
}

func settings() []country.Setting {
	return []country.Setting{
		{
			Key: settingAppearance, Type: "string", Default: "ELECTRONIC", Values: []string{"ELECTRONIC", "PAPER", "EDI", "UNKNOWN"},
			Description: "How the buyer gets the invoice (invoiceAppearance).",
		},
		{
			Key: settingExemption, Type: "string", Default: navwire.TAM, Values: []string{navwire.TAM, navwire.AAM},
			Description: "Why exempt sales whose tax entry names no code are exempt: TAM (the activity, §§ 85–86) or AAM (the company, chapter XIII; always so where the ninth digit of its tax number is 1).",
		},
		{
			Key: settingCash, Type: "boolean", Default: false,
			Description: "The company accounts for VAT by the cash method (cashAccountingIndicator, pénzforgalmi elszámolás).",
		},
		{
			Key: settingGroupMember, Type: "string", Default: "", Pattern: `^[0-9]{8}-?4-?[0-9]{2}$`,
			Description: "Tax number of the member of a VAT group that sells; required where the company's tax number is a group's (ninth digit 5).",
		},
		{
			Key: settingBankAccount, Type: "string", Default: "",
			Pattern:     `^([0-9]{8}-[0-9]{8}(-[0-9]{8})?|[A-Z]{2}[0-9]{2}[0-9A-Za-z]{11,30})$`,
			Description: "Bank account in the report (supplierBankAccountNumber): 8-8, 8-8-8 or an IBAN.",
		},
	}
}

func derivations() []string {
	return append([]string{
		"A tax entry of rate 0 without a type gets the type of its code: AAM and TAM EXEMPT, KBAET INTRA_EU, EAM and NAM EXPORT, EUFAD37 and EUFADE REVERSE, ATK, EUE and HO OUTSIDE.",
		"lineVatRate follows from the type: EXEMPT the company's exemption_case, INTRA_EU KBAET, EXPORT EAM; REVERSE is the domestic reverse charge for a buyer with a Hungarian number, EUFAD37 (services) or EUFADE (goods) for one of another member state, HO elsewhere; OUTSIDE is EUE for a buyer in another member state, else HO. ZERO is refused: NAV has no rate of 0.",
		"customerVatStatus is DOMESTIC for a Hungarian tax number, OTHER for any other number or a business without one, PRIVATE_PERSON for everybody else, of whom nothing more is reported.",
		"An issuer with the buyer's tax number is self-billing (selfBillingIndicator).",
		"A credit is a STORNO, an adjustment a MODIFY; lines continue the numbers of the original and of all its corrections.",
	}, country.DerivationRules()...)
}
