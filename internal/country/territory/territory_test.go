package territory_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"tributary/internal/country/territory"
	"tributary/internal/transaction"
)

var day = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func at(code, postal, town string) *transaction.Party {
	return &transaction.Party{Type: transaction.Business,
		Address: &transaction.Address{CountryCode: code, PostalCode: postal, City: town}}
}

// Each line of the table is found by an address of its own, and says from where
// it is known; a neighbour of the same country is in the Union.
func TestEveryEntryIsFound(t *testing.T) {
	for _, e := range territory.Table() {
		if e.Name == "" || e.Of == "" || !strings.Contains(e.Source, "art. ") {
			t.Errorf("%+v does not say what it is and from where", e)
		}
		postals, towns := e.Postal, e.Towns
		if postals == nil {
			postals = []string{""}
		}
		if towns == nil {
			towns = []string{"somewhere"}
		}
		for _, postal := range postals {
			for _, town := range towns {
				got := territory.Of("PL", at(e.Country, postal+strings.Repeat("0", max(0, 5-len(postal))), town), day, false)
				union := !e.Outside && e.Of != "SM" && e.Of != "VA" && e.Of != "GB"
				if got.Country != e.Of || (got.Apart == e.Name) != e.Outside || got.Union != union {
					t.Errorf("%s %s %s: %+v", e.Country, postal, e.Name, got)
				}
			}
		}
	}
}

// The places of the law, each said as people write addresses.
func TestPlacesOfTheDirective(t *testing.T) {
	for place, want := range map[string]string{
		"ES 35001": "ES apart", "ES 38650": "ES apart", "ES 51001": "ES apart", "ES 52006": "ES apart", "ES 28001": "ES",
		"IC": "ES apart", "EA": "ES apart",
		"FR 97110": "FR apart", "FR 97200": "FR apart", "FR 97300": "FR apart", "FR FR-97400": "FR apart",
		"FR 97500": "FR apart", "FR 97600": "FR apart",
		"FR 97700": "FR apart", "FR 97800": "FR apart", "FR 97133": "FR apart", "FR 97150": "FR apart",
		"FR 98413": "FR apart", "FR 98600": "FR apart",
		"FR 98714": "FR apart", "FR 98800": "FR apart", "FR 98000": "FR", "FR 75001": "FR", "FR 20000": "FR",
		"RE 97400": "FR apart", "GP": "FR apart", "MQ": "FR apart", "GF": "FR apart", "YT": "FR apart", "PM": "FR apart",
		"BL": "FR apart", "MF": "FR apart",
		"NC": "FR apart", "PF": "FR apart", "WF": "FR apart", "TF": "FR apart", "FI 22100": "FI apart", "FI 00100": "FI",
		"AX 22100": "FI apart",
		"IT 23041": "IT apart", "IT 22061": "IT apart", "IT 23030 Livigno (SO)": "IT apart",
		"IT 22060 Campione d'Italia": "IT apart",
		"IT 23030 Chiuro":            "IT", "IT 22060 Cabiate": "IT", "IT 20121": "IT", "DE 27498": "DE apart",
		"DE D-78266": "DE apart", "DE 27499": "DE", "DE 78267": "DE",
		"GR 63086": "GR apart", "EL 63087": "GR apart", "GR 63088": "GR", "FO": "DK apart", "GL": "DK apart", "DK 1050": "DK",
		"PT 9000-001": "PT", "PT 9500-150": "PT", "AT 6691": "AT", "AT 6993": "AT", "DE 87491": "AT", "DE 87568": "AT",
		"MC 98000": "FR", "IM IM1 1AA": "GB out", "GB BFPO57 RAF Akrotiri": "CY", "CY 4640 Akrotiri": "CY",
		"SM 47890": "SM out", "VA 00120": "VA out",
		"GB BT1 5GS Belfast": "XI", "GB SW1A 1AA": "GB out", "CH 8001": "CH out", "JE JE2 3AB": "JE out",
		"NO 0001": "NO out", "US 23041": "US out",
	} {
		part := strings.SplitN(place, " ", 3)
		party := at(part[0], "", "")
		if len(part) > 1 {
			party.Address.PostalCode = part[1]
		}
		if len(part) > 2 {
			party.Address.City = part[2]
		}
		got := territory.Of("PL", party, day, false)
		text := got.Country
		if got.Apart != "" {
			text += " apart"
		} else if !got.Union {
			text += " out"
		}
		if text != want {
			t.Errorf("%s is %s (%+v), want %s", place, text, got, want)
		}
	}
}

// Northern Ireland is in the Union for goods and outside of it for services, by
// postal code or by number.
func TestNorthernIrelandIsInTheUnionForGoods(t *testing.T) {
	numbered := at("GB", "SW1A 1AA", "London")
	numbered.TaxNumber = "xi 110305878"
	for name, p := range map[string]*transaction.Party{"postal code": at("GB", "bt1 5gs", "Belfast"), "number": numbered} {
		goods, services := territory.Of("ES", p, day, false), territory.Of("ES", p, day, true)
		if goods != (territory.Place{Country: "XI", Union: true}) || services != (territory.Place{Country: "GB"}) {
			t.Errorf("%s: goods %+v, services %+v", name, goods, services)
		}
	}
	irish := at("IE", "D02", "Dublin")
	irish.TaxNumber = "XI110305878"
	if got := territory.Of("ES", irish, day, true); got != (territory.Place{Country: "IE", Union: true}) {
		t.Errorf("who is in Ireland stays there: %+v", got)
	}
}

func TestNobodyIsAtHome(t *testing.T) {
	for _, p := range []*transaction.Party{nil, {}, {Address: &transaction.Address{PostalCode: "35001"}}} {
		if got := territory.Of("DE", p, day, false); got != (territory.Place{Country: "DE", Union: true}) {
			t.Errorf("%+v: %+v", p, got)
		}
	}
	if got := territory.Of("ES", &transaction.Party{Address: &transaction.Address{PostalCode: "35001"}}, day,
		true); got.Apart != territory.Canary {
		t.Errorf("a postal code without a country is one at home: %+v", got)
	}
}

// The page shows the table as it is, line by line.
func TestThePageShowsTheTable(t *testing.T) {
	page, err := os.ReadFile("../../../docs/countries/territories.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "|---|---|---|---|\n")
	shown, _, _ = strings.Cut(shown, "\n\n")
	var rows []string
	for _, e := range territory.Table() {
		where := strings.TrimSpace(e.Country + " " + strings.Join(e.Postal, ", "))
		if len(e.Towns) > 0 {
			where += ", town " + strings.Join(e.Towns, " or ")
		}
		counts := "inside, as " + e.Of
		switch {
		case e.Outside:
			counts = "outside; belongs to " + e.Of
		case e.Of == "XI":
			counts = "inside for goods, outside for services"
		case e.Of == "GB":
			counts = "outside, as GB"
		case e.Of == e.Country && (e.Of == "SM" || e.Of == "VA"):
			counts = "outside; Italy has a rule of its own"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", where, e.Name, counts, e.Source))
	}
	if want := strings.Join(rows, "\n"); shown != want {
		t.Errorf("the page should have\n%s", want)
	}
}
