package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/transaction"
)

const countriesFolder = "../../docs/countries"

// ownPacks are the countries with a folder of their own; others have what the
// generic pack, or the European family, gives every country.
func ownPacks(t *testing.T) (own, others []country.Pack) {
	t.Helper()
	packs, err := world.Packs()
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(packs, func(a, b country.Pack) int { return strings.Compare(a.Code, b.Code) })
	for _, p := range packs {
		if _, err := os.Stat("../../internal/country/" + strings.ToLower(p.Code)); err == nil {
			own = append(own, p)
		} else {
			others = append(others, p)
		}
	}
	return own, others
}

// TestThePagesOfCountriesSayWhatThePacksSay compares the table of coverage and
// each country's page with the packs, or rewrites them.
func TestThePagesOfCountriesSayWhatThePacksSay(t *testing.T) {
	own, others := ownPacks(t)
	replacePart(t, filepath.Join(countriesFolder, "README.md"), "coverage", coverageTable(own, others))
	for _, p := range own {
		path := filepath.Join(countriesFolder, strings.ToLower(p.Code)+".md")
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && *update {
			if err := os.WriteFile(path, []byte(newPage(p)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		replacePart(t, path, "facts", factsOf(p))
	}
}

// newPage is what a country begins with; its author adds what data cannot say.
func newPage(p country.Pack) string {
	family := ""
	if p.Structured != nil {
		family = "Invoices are those of EN 16931: [en16931.md](en16931.md) says how a transaction is written and what is checked.\n\n"
	}
	return "# " + p.Name + "\n\n" + family + "## As data\n\n<!-- generated: facts -->\n<!-- end -->\n"
}

// Every country with a folder can be tried: its example is a company that can be
// onboarded and a sale that can be submitted, in every use case.
func TestEveryPackHasAnExampleThatIsValid(t *testing.T) {
	own, _ := ownPacks(t)
	if len(own) < 14 {
		t.Fatalf("only %d packs", len(own))
	}
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: own})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(atlas.Close)
	for _, p := range own {
		if p.Example == nil {
			t.Errorf("%s has no example", p.Code)
			continue
		}
		now := time.Now()
		creds, err := p.Example.Open(now)
		if err != nil {
			t.Fatal(err)
		}
		company := p.Example.Company
		company.CountryCode = p.Code
		if p.CheckCompany != nil {
			if found := p.CheckCompany(company, creds); len(found) > 0 {
				t.Errorf("%s: the company of the example: %v", p.Code, found)
			}
		}
		body, err := p.ExampleSale(country.SaleID{Transaction: "t-1", Number: "2026-1", Supplier: strings.Repeat("a", 32),
			Date: now})
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range p.Facts.UseCases {
			terms := country.Terms{Atlas: atlas, Now: now, UseCase: func(string) (country.UseCase, bool) { return use, true }}
			if _, err := country.Examine(transaction.Invoice, body, terms); err != nil {
				t.Errorf("%s %s: the sale of the example: %v", p.Code, use, err)
			}
		}
	}
}

func coverageTable(own, others []country.Pack) string {
	out := "| Country | Filed with | Structured invoice | Use cases | Corrections | Records kept |\n|---|---|---|---|---|---|\n"
	row := func(name string, p country.Pack) string {
		return fmt.Sprintf("| %s | %s | %s | %s | %s | %d years |\n", name, filedWith(p), structuredAs(p),
			joined(p.Facts.UseCases), correctionsOf(p), p.KeptYears())
	}
	for _, p := range own {
		out += row(fmt.Sprintf("[%s %s](%s.md)", p.Code, p.Name, strings.ToLower(p.Code)), p)
	}
	kinds, counts := []string{}, map[string]int{}
	samples := map[string]country.Pack{}
	for _, p := range others {
		kind := row("", p)
		if counts[kind]++; counts[kind] == 1 {
			kinds = append(kinds, kind)
			samples[kind] = p
		}
	}
	slices.SortStableFunc(kinds, func(a, b string) int { return counts[a] - counts[b] })
	for _, kind := range kinds {
		name := fmt.Sprintf("%d others", counts[kind])
		if samples[kind].Structured != nil {
			name = fmt.Sprintf("%d other member states of the Union", counts[kind])
		}
		out += row(name, samples[kind])
	}
	return out
}

func filedWith(p country.Pack) string {
	if p.Facts.Authority == nil {
		return "–"
	}
	return p.Facts.Authority.Name + ", " + p.Facts.Authority.System
}

// structuredAs lists the values of the setting that chooses the form.
func structuredAs(p country.Pack) string {
	at := slices.IndexFunc(p.Facts.Settings, func(s country.Setting) bool { return s.Key == "format" })
	if p.Structured == nil || at < 0 {
		return "–"
	}
	var forms []string
	for _, v := range p.Facts.Settings[at].Values {
		if v != "AUTO" && v != "NONE" {
			forms = append(forms, "`"+v+"`")
		}
	}
	return strings.Join(forms, ", ")
}

func joined[T ~string](list []T) string {
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = string(w)
	}
	return strings.Join(words, ", ")
}

func correctionsOf(p country.Pack) string {
	var kinds []string
	for _, c := range p.Facts.Corrections {
		kinds = append(kinds, strings.ToLower(string(c.Kind)))
	}
	return strings.Join(kinds, ", ")
}

// factsOf is a country's page as far as it is data.
func factsOf(p country.Pack) string {
	f := p.Facts
	out := "| | |\n|---|---|\n"
	line := func(name, value string) {
		if value != "" {
			out += "| " + name + " | " + cell(value) + " |\n"
		}
	}
	line("Currency", f.Currency)
	line("Languages", strings.Join(f.Languages, ", "))
	line("Time zone", f.TimeZone)
	line("Use cases", joined(f.UseCases))
	if f.Authority != nil {
		line("Authority", f.Authority.Name+"; "+f.Authority.System+"; "+f.Authority.Protocol)
	}
	line("Attachments", strings.Join(f.Formats, ", "))
	line("Records are kept", fmt.Sprintf("%d years", p.KeptYears()))
	line("Credentials", strings.Join(f.Credentials, ", "))
	for _, c := range f.Corrections {
		line(strings.ToLower(string(c.Kind)), cmp.Or(c.Deadline, "no deadline"))
	}
	out += rulesOf("Needed beyond what every country needs", f.Required) + rulesOf("Not taken", f.Forbidden)
	if len(f.Settings) > 0 {
		out += "\nSettings of a company:\n\n| Key | Type | Default | Meaning |\n|---|---|---|---|\n"
		for _, s := range f.Settings {
			text, _ := json.Marshal(s.Default) // plain data
			out += fmt.Sprintf("| `%s` | %s | `%s` | %s |\n", s.Key, s.Type, text, cell(s.Description))
		}
	}
	for _, s := range f.Secrets {
		out += fmt.Sprintf("\nSecret `%s`: %s\n", s.Name, s.Description)
	}
	out += "\nSources of law and format:\n\n"
	for _, s := range p.Sources {
		out += "* <" + s + ">\n"
	}
	return out + codesOf(p)
}

// codesOf is what the codes of an authority mean.
func codesOf(p country.Pack) string {
	if len(p.Codes) == 0 {
		return ""
	}
	out := "\n## Codes of the authority\n\nWhat they mean, in our own words; the authority's own text stands in the message of the error.\n\n| Code | Meaning | What to do |\n|---|---|---|\n"
	for _, c := range p.Codes {
		out += fmt.Sprintf("| `%s` | %s | %s |\n", c.Code, cell(c.Meaning), cell(c.Do))
	}
	return out
}

func rulesOf(title string, rules []country.FieldRule) string {
	if len(rules) == 0 {
		return ""
	}
	out := "\n" + title + ":\n\n| Member | Where | Why |\n|---|---|---|\n"
	for _, r := range rules {
		var where []string
		for _, w := range []string{string(r.UseCase), r.BusinessModel, string(r.Kind)} {
			if w != "" {
				where = append(where, w)
			}
		}
		for _, c := range r.When {
			if !c.Matches.IsZero() {
				where = append(where, fmt.Sprintf("`%s` is like `%s`", c.Field, c.Matches))
			}
			if !c.Unless.IsZero() {
				where = append(where, fmt.Sprintf("`%s` is not like `%s`", c.Field, c.Unless))
			}
		}
		out += fmt.Sprintf("| `%s` | %s | %s |\n", r.Field, cell(cmp.Or(strings.Join(where, ", "), "everywhere")),
			cell(r.Reason))
	}
	return out
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
