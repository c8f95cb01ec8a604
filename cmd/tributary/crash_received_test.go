package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"tributary/internal/country"
)

// Where the country brings what others send, the buyer of every sale of a kill run is a
// company of ours as well, and receives it: 0 lost, 0 double.

// buys onboards the buyer of the country's sales as a company that receives; false where
// nobody brings documents, or the sales have no such buyer.
func (c *crashRun) buys() bool {
	var sale struct {
		Customer struct {
			LegalName string `json:"legal_name"`
			Entity    string `json:"entity_number"`
			Tax       struct {
				Number string `json:"tax_number"`
			} `json:"tax_information"`
		}
	}
	if err := json.Unmarshal([]byte(c.land.Example.Sale), &sale); err != nil {
		c.t.Fatal(err)
	}
	if c.land.Receive == nil || sale.Customer.Tax.Number == "" {
		return false
	}
	buyer, example := c.land, *c.land.Example
	example.Company.LegalName, example.Company.TaxNumber = sale.Customer.LegalName, sale.Customer.Tax.Number
	example.Company.CompanyNumber = sale.Customer.Entity
	buyer.Example, buyer.as = &example, "-buyer"
	buyer.settings = country.Settings{country.SettingReceive: map[string]any{"from": time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)}}
	c.onboard(buyer)
	return true
}

// received lists the numbers of what was received, each as often as it is there, and how
// many could not be read.
func (c *crashRun) received() (numbers []string, unread int) {
	for cursor := ""; ; {
		status, answer, err := c.fetch(c.nodes[0].base, "/v1/transactions?direction=RECEIVED&limit=100"+cursor)
		var page struct {
			Data []struct {
				Status string
				Number string `json:"transaction_number"`
			}
			Next string `json:"next_cursor"`
		}
		if err != nil || status != http.StatusOK || json.Unmarshal(answer, &page) != nil {
			c.t.Fatalf("list what was received: %d %s %v", status, answer, err)
		}
		for _, row := range page.Data {
			if row.Status != "SUCCESS" {
				unread++
			}
			numbers = append(numbers, row.Number)
		}
		if cursor = "&cursor=" + page.Next; page.Next == "" {
			return numbers, unread
		}
	}
}

// auditReceived compares what the authority holds with what the buyer has.
func (c *crashRun) auditReceived() (lost, twice int) {
	sold := c.registered()
	slices.Sort(sold)
	var numbers []string
	c.eventually("everything to be received and read", func() bool {
		var unread int
		numbers, unread = c.received()
		return unread == 0 && len(numbers) >= len(sold)
	})
	slices.Sort(numbers)
	for _, number := range slices.Compact(slices.Clone(sold)) {
		switch n := count(numbers, number); {
		case n == 0:
			lost++
			c.t.Errorf("%s is sold and not received", number)
		case n > count(sold, number):
			twice++
			c.t.Errorf("%s is received %d times", number, n)
		}
	}
	return lost, twice
}

func count(list []string, one string) (n int) {
	for _, other := range list {
		if other == one {
			n++
		}
	}
	return n
}
