// Package ro is Romania: invoices cleared by ANAF's e-Factura, as CIUS-RO
// documents. docs/countries/ro.md tells clients and operators about it.
//
// It owns what CIUS-RO wants besides EN 16931 (counties, sectors, lengths,
// numbers of buyers), the calls of e-Factura and the grant by which a person lets
// us act. It refuses to own retries, storage and the renewal of grants in time;
// the double is authority/anaf. Law: an invoice is cleared when ANAF's archive of
// it was fetched and holds what was sent. An index alone is a promise to look.
package ro

import (
	_ "embed"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/country/taxid"
	"tributary/internal/country/workday"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// codesFile is what ANAF's answers mean, in our own words.
//
//go:embed codes.txt
var codesFile string

const (
	home     = "RO"
	ownMoney = "RON"

	// version is stored with every operation; bytes made by one version are sent unchanged by the next.
	version = "ro-1"
)

// Names of settings and secrets.
const (
	settingVAT    = "vat_registered"
	settingPerson = "spv_person"

	secretRefresh      = "refresh_token"
	secretAccess       = "access_token"
	secretClient       = "client_id"
	secretClientSecret = "client_secret"
	secretMinistry     = "ministry_certificate"
)

// Pack is Romania.
func Pack() country.Pack {
	base := country.Pack{
		Code: home, Name: "Romania", Version: version,
		Sources: []string{
			"https://legislatie.just.ro/Public/DetaliiDocument/248303", // OUG 120/2021: the system RO e-Factura
			"https://legislatie.just.ro/Public/DetaliiDocument/171282", // fiscal code, art. 291 (rates) and 319 (invoices)
			"https://mfinante.gov.ro/web/efactura",                     // CIUS-RO, interfaces, schemas
			"https://eur-lex.europa.eu/eli/dir/2006/112/oj",            // places of supply
		},
		Facts: facts(),
	}
	p := en16931.Extend(base, page())
	p.Facts.Settings = slices.DeleteFunc(p.Facts.Settings, func(s country.Setting) bool { return s.Key == "format" })
	p.Structured = nil // what is filed is the structured invoice
	p.Codes = country.ReadCodes(codesFile)
	p.Checks = append(p.Checks, country.Check{Reads: []string{"customer"}, Find: numbered}, country.Check{Kind: transaction.Credit, Reads: []string{"customer", "issuer"}, Find: check})
	p.Connect = func(at country.Endpoint) (country.Channel, error) { return connect(at) }
	p.Enrol = enrol
	p.Receive = &country.Receive{Fetch: &country.Fetch{Every: lookEvery, Timeout: time.Minute, Look: look}}
	p.Grant = &country.Grant{Secrets: []string{secretRefresh, secretAccess}, Person: settingPerson, Renew: renew, Ends: until}
	p.Identity = &country.IdentityRule{Secrets: []country.SecretRule{
		{Name: secretClient, Description: "Client id of the application registered with ANAF (OAuth2)", Simulated: "simulated"},
		{Name: secretClientSecret, Description: "Client secret of that application", Simulated: "simulated"},
		{Name: secretMinistry, Description: "Certificate of the ministry's signature (PEM): archives are verified by it"},
	}}
	p.Files = country.Filed{Of: filed}
	p.Facts.Responses, p.CanAnswer = responses(), canAnswer
	return p
}

// filed: everything that names a buyer. A receipt over the counter names none; the
// cash register reports it.
func filed(_ *country.Supplier, t *transaction.Transaction, original *country.Original) bool {
	switch {
	case t == nil || t.Customer != nil:
		return true
	case original != nil:
		return original.Transaction.Customer != nil
	}
	return t.Kind != transaction.Invoice
}

// numbered refuses a fiscal code of a buyer at home that cannot exist: ANAF does.
func numbered(c country.Case) []fault.Fault {
	b := c.Transaction.Customer
	if b == nil || b.TaxNumber == "" || b.Type == transaction.Individual || b.Address == nil ||
		!strings.EqualFold(b.Address.CountryCode, home) {
		return nil
	}
	if v := taxid.Check(home, b.TaxNumber); !v.Valid {
		return []fault.Fault{fault.At("customer.tax_information.tax_number", fault.FieldNotValid, "is no fiscal code of Romania: %s", v.Reason)}
	}
	return nil
}

// check finds what CIUS-RO and the rules of the European invoice cannot say.
func check(c country.Case) []fault.Fault {
	t := c.Transaction
	if country.SelfBilled(t) && t.Kind == transaction.Credit {
		return []fault.Fault{fault.At("issuer", fault.UnsupportedField,
			"issues a credit note itself, which CIUS-RO has no type for (BR-RO-020): use an adjustment")}
	}
	return nil
}

// holidays are those of art. 139 of the labour code; Easter and Pentecost are the
// Orthodox ones.
var holidays = workday.Calendar{
	Days: []workday.Holiday{{Day: "01-01"}, {Day: "01-02"}, {Day: "01-06", Since: 2024}, {Day: "01-07", Since: 2024},
		{Day: "01-24", Since: 2017}, {Day: "05-01"}, {Day: "06-01", Since: 2017}, {Day: "08-15"}, {Day: "11-30"}, {Day: "12-01"},
		{Day: "12-25"}, {Day: "12-26"}},
	Easter:   []workday.Feast{{After: -2, Since: 2018}, {After: 0}, {After: 1}, {After: 49}, {After: 50}},
	Orthodox: true,
}

// buyers are what CIUS-RO wants of every buyer that is named.
func buyers() []country.FieldRule {
	named := country.Condition{Field: "customer.legal_name", Matches: country.Matching(".")}
	rule := func(field, reason string, when ...country.Condition) country.FieldRule {
		return country.FieldRule{Field: field, Kind: transaction.Invoice, Reason: reason, When: append([]country.Condition{named}, when...)}
	}
	outside := country.Condition{Field: "customer.address.city", Matches: country.Matching("."), Unless: country.Matching("(?i)sector")}
	return []country.FieldRule{
		rule("customer.address.country_code", "the buyer's country (BT-55, BR-11)"),
		rule("customer.address.address_line_1", "the buyer's street (BT-50, BR-RO-080)"),
		rule("customer.address.city", "the buyer's city (BT-52, BR-RO-090)"),
		rule("customer.address.province", "the buyer's county (BT-54, BR-RO-110)", country.In(home), outside),
		{Field: "customer.tax_information.tax_number", Kind: transaction.Invoice, BusinessModel: transaction.B2B,
			When:   []country.Condition{{Field: "customer.entity_number", Matches: country.Matching("^$")}},
			Reason: "a business is named by a number (BT-47 or BT-48, BR-RO-120)"},
	}
}

func facts() country.Facts {
	rate := func(kind, percent, since, until string) country.Rate {
		return country.Rate{Regime: transaction.VAT, Type: kind, Percent: percent, Since: since, Until: until}
	}
	return country.Facts{
		Currency: ownMoney, Languages: []string{"RO", "EN"}, TimeZone: zone,
		UseCases: []country.UseCase{country.Reporting, country.Invoicing, country.Both},
		Required: buyers(),
		Patterns: []country.PatternRule{
			{Field: "transaction_number", Pattern: country.Matching("[0-9]"), Example: "RO-1", Reason: "has at least one digit (BR-RO-010)"},
			{Field: "customer.address.province", Pattern: country.Matching(`^[\p{L} .-]+$`), When: []country.Condition{country.In(home)},
				Example: "RO-CJ", Reason: "a county of Romania, by its name or its code of ISO 3166-2:RO (BR-RO-110)"},
		},
		Regimes: []string{transaction.VAT},
		Rates: []country.Rate{
			rate(transaction.TaxStandard, "21", "2025-08-01", ""), rate(transaction.TaxStandard, "19", "2017-01-01", "2025-08-01"),
			rate(transaction.TaxReduced, "11", "2025-08-01", ""), rate(transaction.TaxReduced, "9", "2017-01-01", "2026-08-01"),
			rate(transaction.TaxReduced, "5", "2017-01-01", "2025-08-01"),
		},
		TaxesPerLine: 1, StrictNumbers: true,
		Corrections: []country.Correction{
			{Kind: transaction.Adjustment, Deadline: "no deadline at ANAF"}, {Kind: transaction.Credit, Deadline: "no deadline at ANAF"},
			{Kind: transaction.Backfill},
		},
		Settings: []country.Setting{{Key: settingVAT, Type: "boolean", Default: true,
			Description: "The company is registered for VAT (BT-31); false: its number is the fiscal code alone (BT-32)."},
			{Key: settingPerson, Type: "string", Default: "",
				Description: "Who has authorized this service in SPV, by any name of yours: companies with the same one share the authorization. Empty: each has its own."}},
		Credentials: []string{},
		Secrets: []country.SecretRule{
			{Name: secretRefresh, Description: "Refresh token of a person with rights in SPV; comes from the person's visit, or is handed over."},
			{Name: secretAccess, Description: "Comes with the refresh token and is renewed by this service; it is not sent."},
			{Name: secretClient, Description: "Client id of the company's own application at ANAF, in place of the operator's."},
			{Name: secretClientSecret, Description: "Client secret of that application."},
		},
		TaxNumberName: "CIF", Formats: []string{"PDF"},
		Authority: &country.Authority{Name: "Agenția Națională de Administrare Fiscală", System: "RO e-Factura",
			Protocol: "REST with OAuth2; UBL by CIUS-RO 1.0.9, decided later"},
		Derivations: append([]string{
			"Counties are read by name or code; a city of Bucharest is its sector, SECTOR1 to SECTOR6.",
			"A buyer's number with RO is BT-48, one without is BT-47; a consumer without a number is 0000000000000.",
			"Consumers' invoices go to uploadb2c, others to upload; buyers abroad are marked extern, self-billed ones autofactura.",
		}, country.DerivationRules()...),
		DeadlineDays: 5, WorkingDays: &holidays,
		Obligations: []country.Obligation{
			{Since: "2024-07-01", Whom: "invoices between taxable persons established in Romania, and to public bodies", Source: "Law 296/2023, OUG 120/2021"},
			{Since: "2025-01-01", Whom: "invoices to consumers", Source: "OUG 69/2024"},
		},
	}
}
