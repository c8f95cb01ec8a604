package world_test

import (
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/territory"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// unionPacks are the countries whose law of VAT is the Union's.
var unionPacks = []string{"ES", "PL", "HU", "IT", "AT", "BE", "DE", "DK", "EE", "FI", "IE", "LU", "NL", "SE"}

// sold is a sale of goods at 0 to a business at an address of the table.
func sold(home string, e territory.Entry, kind string) country.Case {
	address := transaction.Address{CountryCode: e.Country, City: "Somewhere", AddressLine1: "1"}
	if len(e.Postal) > 0 {
		address.PostalCode = e.Postal[0] + strings.Repeat("0", max(0, 5-len(e.Postal[0])))
	}
	if len(e.Towns) > 0 {
		address.City = e.Towns[0]
	}
	t := &transaction.Transaction{Kind: transaction.Invoice, CountryCode: home, CurrencyCode: "EUR", Number: "1", ID: "1",
		Date: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC),
		Customer: &transaction.Party{LegalName: "Acme", Type: transaction.Business, TaxNumber: "FR61954506077",
			Address: &address},
		Items: []transaction.Item{{Number: 1, Name: "Chair", Quantity: num.MakeAmount(1, 0), UnitPrice: 100_00,
			Type: transaction.Goods,
			Taxes: []transaction.Tax{{Rate: num.MakeAmount(0, 0), Regime: transaction.VAT, Mode: transaction.Added,
				Type: kind}}}}}
	totals, _ := transaction.Calculate(t.Items)
	return country.Case{Transaction: t, Totals: totals, UseCase: country.Both, Now: t.Date}
}

// Every country of the Union reads every line of the table of territories alike:
// goods that leave the Union's VAT are exported, also within the seller's own
// country, and INTRA_EU is refused there; what counts as another member state is
// an intra-Union supply.
func TestTerritoriesAreOneTableForAllPacks(t *testing.T) {
	atlas := wholeWorld(t)
	for _, home := range unionPacks {
		pack, ok := atlas.Pack(home)
		if !ok {
			t.Fatalf("no pack for %s", home)
		}
		for _, e := range territory.Table() {
			typed := pack.TypedItems(sold(home, e, ""))[0].Taxes[0].Type
			want := transaction.TaxExport
			switch {
			case !e.Outside && e.Of == home:
				want = "" // at home no reason follows from the customer
			case !e.Outside && (e.Of == territory.NorthernIreland ||
				territory.InUnion(e.Of, time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC))):
				want = transaction.TaxIntraEU
			}
			if abroad := typed == transaction.TaxExport || typed == transaction.TaxIntraEU; want != typed &&
				(want != "" || abroad) {
				t.Errorf("%s to %s (%s %v): %s, want %s", home, e.Name, e.Country, e.Postal, typed, want)
			}
			if e.Outside && !refusedFor(pack.Check(sold(home, e, transaction.TaxIntraEU)), "the Union's VAT does not hold") {
				t.Errorf("%s files INTRA_EU to %s (%s %v)", home, e.Name, e.Country, e.Postal)
			}
		}
	}
}

func refusedFor(found []fault.Fault, why string) bool {
	for _, f := range found {
		if f.Field == "items.0.tax_breakdowns.0.type" && f.Type != fault.Warning && strings.Contains(f.Message, why) {
			return true
		}
	}
	return false
}
