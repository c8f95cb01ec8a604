package country

import (
	"encoding/json"
	"fmt"
	"time"

	"tributary/internal/country/identity"
)

// Example is what a pack brings so that demo, kill runs, tests and documents
// can show it at work without knowing anything of it.
type Example struct {
	Company     Supplier    // a valid, invented company; its settings are those that differ from the defaults
	Certificate bool        // the authority knows suppliers by certificate: one is made when it is needed
	Credentials Credentials // what the simulated authority takes besides
	Reason      string      // of a cancellation of the sale, where the country wants one
	Sale        string      // members of an everyday sale as a JSON object, without ids, numbers, date and supplier
}

// Open makes the credentials of the example's company. They are worth something
// at simulated authorities only.
func (e *Example) Open(now time.Time) (Credentials, error) {
	c := e.Credentials
	if !e.Certificate {
		return c, nil
	}
	file, password, err := identity.Test(e.Company.TaxNumber, e.Company.LegalName, now)
	if err != nil {
		return c, fmt.Errorf("make the example's certificate: %w", err)
	}
	c.PKCS12, c.Password = file, password
	return c, nil
}

// SaleID names one sale of an example.
type SaleID struct {
	Transaction string // transaction_id
	Number      string // transaction_number
	Supplier    string // supplier.id
	Date        time.Time
}

// ExampleSale is the example's sale as a body that can be submitted.
func (p Pack) ExampleSale(id SaleID) ([]byte, error) {
	if p.Example == nil {
		return nil, fmt.Errorf("country %s has no example", p.Code)
	}
	body := map[string]any{}
	if err := json.Unmarshal([]byte(p.Example.Sale), &body); err != nil {
		return nil, fmt.Errorf("read the example of %s: %w", p.Code, err)
	}
	body["country_code"] = p.Code
	body["transaction_id"], body["transaction_number"] = id.Transaction, id.Number
	body["transaction_date"] = id.Date.UTC().Format(time.RFC3339)
	body["supplier"] = map[string]any{"id": id.Supplier}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("write the example of %s: %w", p.Code, err)
	}
	return text, nil
}
