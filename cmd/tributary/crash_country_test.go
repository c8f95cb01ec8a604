package main

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/transaction"
)

// crashCountry is a country as kill runs use it: who sells and what, as its example says.
type crashCountry struct {
	country.Pack
	credit   bool             // now and then a sale is credited
	settings country.Settings // of the company, instead of the example's
	as       string           // behind the name of the company
	clients  int              // at most, where a sale is more work than another; 0: as many as there are
}

// crashCountryOf finds a country that has an authority.
func crashCountryOf(t testing.TB, code string) crashCountry {
	t.Helper()
	packs, err := world.Packs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packs {
		if p.Code == code && p.Connect != nil && p.Example != nil {
			_, credit := p.Facts.Correction(transaction.Credit)
			land := crashCountry{Pack: p, credit: credit}
			switch {
			case code == "RO": // three calls for a document, 900 in a minute
				land.clients = 2
			case p.Receive != nil: // each sale comes back as a document to read
				land.clients = 8
			}
			return land
		}
	}
	t.Fatalf("no sales for %s", code)
	return crashCountry{}
}

// body is one sale.
func (c crashCountry) body(id, number, supplier string, date time.Time) []byte {
	text, err := c.ExampleSale(country.SaleID{Transaction: id, Number: number, Supplier: supplier, Date: date})
	if err != nil {
		panic(err) // the example is part of the program
	}
	return text
}

// creditOf takes a whole sale back.
func (c crashCountry) creditOf(original, id string, date time.Time) []byte {
	text, err := json.Marshal(map[string]any{
		"country_code": c.Code, "transaction_date": date.UTC().Format(time.RFC3339), "transaction_id": id,
		"transaction_number": id, "reference_transaction_id": original, "note": "returned",
	})
	if err != nil {
		panic(fmt.Sprintf("encoding a credit: %v", err))
	}
	return text
}
