// Package generic is every country of ISO 3166-1 as a documents-only pack:
// transactions are calculated and checked, documents are made, nothing is
// filed with anybody.
//
// It owns the list of countries with their currency, languages and time zone,
// and the rate tables, which come from the tax library where it has a regime
// and otherwise from rates.csv. It refuses to own any authority: a country
// that has one gets a pack of its own, which takes this one's place in the
// world. Law: no finding here is an error; without an authority that refuses
// it, a doubtful rate or number is the client's own affair.
package generic

import (
	"bytes"
	_ "embed" // the tables
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/invopop/gobl/l10n"
	_ "github.com/invopop/gobl/regimes" // registers the rate tables
	"github.com/invopop/gobl/tax"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// version is stored with every operation.
const version = "generic-1"

//go:embed countries.csv
var countriesCSV []byte

//go:embed rates.csv
var ratesCSV []byte

// ratesSource is where the Union publishes the rates of its member states;
// whoever edits rates.csv looks there.
const ratesSource = "https://ec.europa.eu/taxation_customs/tedb/"

// retentionYears are those of countries whose statute was looked up; others
// have the default.
var retentionYears = map[string]int{
	"DE": 8,  // Abgabenordnung § 147 (3): Buchungsbelege
	"FR": 10, // Code de commerce, art. L123-22
	"IT": 10, // Codice civile, art. 2220
}

// Packs returns a pack for every country, in the order of their codes. It
// fails only when the tables in the program are broken.
func Packs() ([]country.Pack, error) {
	own, err := ownRates()
	if err != nil {
		return nil, err
	}
	rows, err := table("countries.csv", countriesCSV, 5)
	if err != nil {
		return nil, err
	}
	corrections := []country.Correction{
		{Kind: transaction.Adjustment}, {Kind: transaction.Credit}, {Kind: transaction.Cancellation}, {Kind: transaction.Backfill},
	}
	derivations, examples, names := country.DerivationRules(), examples(), taxNumberNames()
	packs := make([]country.Pack, 0, len(rows))
	for _, row := range rows {
		facts := country.Facts{
			Currency:    row[2],
			Languages:   strings.Split(row[3], "|"),
			TimeZone:    row[4],
			UseCases:    []country.UseCase{country.Invoicing},
			Corrections: corrections,
			Credentials: []string{},
			Formats:     []string{"PDF"},
			Derivations: derivations,

			TaxNumberName: names[row[0]],
		}
		var sources []string
		if regime := tax.RegimeDefFor(l10n.Code(row[0])); regime != nil {
			facts.Regimes, facts.Rates, sources = regimeFacts(regime)
		}
		if len(sources) == 0 && l10n.Union(l10n.EU).HasMember(l10n.Code(row[0])) {
			sources = append(sources, ratesSource)
		}
		facts.Rates = append(facts.Rates, own[row[0]]...)
		packs = append(packs, country.Pack{
			Code: row[0], Name: row[1], Version: version, Sources: sources, Facts: facts, Checks: checks(), Example: examples[row[0]],
			RetentionYears: retentionYears[row[0]],
		})
	}
	return packs, nil
}

func table(name string, text []byte, columns int) ([][]string, error) {
	in := csv.NewReader(bytes.NewReader(text))
	in.FieldsPerRecord = columns
	rows, err := in.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return rows[1:], nil
}

func ownRates() (map[string][]country.Rate, error) {
	rows, err := table("rates.csv", ratesCSV, 5)
	if err != nil {
		return nil, err
	}
	all := map[string][]country.Rate{}
	for _, row := range rows {
		all[row[0]] = append(all[row[0]], country.Rate{Regime: transaction.VAT, Type: row[1], Percent: row[2], Since: row[3],
			Until: row[4]})
	}
	return all, nil
}

// checks find tax numbers that cannot exist. Rates are checked from the facts,
// for every country alike (country.CheckRates).
func checks() []country.Check {
	return []country.Check{
		{Reads: numberReads("customer"), Find: func(c country.Case) []fault.Fault {
			return checkNumber("customer", c.Transaction.CountryCode, c.Transaction.Customer)
		}},
		{Reads: numberReads("issuer"), Find: func(c country.Case) []fault.Fault {
			return checkNumber("issuer", c.Transaction.CountryCode, c.Transaction.Issuer)
		}},
	}
}

func numberReads(party string) []string {
	return []string{party + ".type", party + ".tax_information", party + ".address.country_code"}
}

// checkNumber doubts a business's tax number by the rules of the country of
// its address. People's numbers are of other kinds, which nobody lists.
func checkNumber(member, home string, p *transaction.Party) []fault.Fault {
	if p == nil || p.TaxNumber == "" || p.Type == transaction.Individual {
		return nil
	}
	if p.Address != nil && p.Address.CountryCode != "" {
		home = p.Address.CountryCode
	}
	verdict := taxid.Check(home, p.TaxNumber)
	if verdict.Valid || verdict.Country == "" {
		return nil
	}
	return []fault.Fault{fault.Warn(member+".tax_information.tax_number", fault.TaxNumberDoubtful,
		"is doubtful for %s: %s", verdict.Country, verdict.Reason)}
}
