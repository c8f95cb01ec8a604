package ereport

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/amount"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Contribution is what a transaction adds to the report of its period.
type Contribution struct {
	Groups   []Group   `json:"groups,omitempty"`   // 10.3: transactions of a day
	Invoices []Invoice `json:"invoices,omitempty"` // 10.1: one by one
	Paid     []Group   `json:"paid,omitempty"`     // 10.4: payments of a day
	Settled  []Settled `json:"settled,omitempty"`  // 10.2: payments of invoices
}

// Group are transactions of one day, currency and category, or payments of a day.
type Group struct {
	Day      string `json:"day"` // YYYYMMDD
	Currency string `json:"currency"`
	Category string `json:"category,omitempty"`
	Due      string `json:"due,omitempty"` // TT-80
	Count    int64  `json:"count"`
	Net      int64  `json:"net"` // in Currency
	Rates    []Rate `json:"rates"`
}

// Rate is what of something is at one rate, in euro.
type Rate struct {
	Percent string `json:"percent"`
	Base    int64  `json:"base"` // of payments: what was paid, with tax
	Tax     int64  `json:"tax"`
}

// Settled is a payment of an invoice.
type Settled struct {
	Number string `json:"number"`
	Issued string `json:"issued"`
	Day    string `json:"day"`
	Rates  []Rate `json:"rates"`
}

// Encode is the contribution as [country.Gathered].Data.
func (c *Contribution) Encode() ([]byte, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("writing what a transaction contributes: %w", err)
	}
	return data, nil
}

// Rules are how a company is taxed, as far as contributions depend on it.
type Rules struct {
	// Debits: VAT on services is due when they are invoiced; their payments are not reported.
	Debits bool
	// Untaxed: the company charges no VAT (art. 293 B CGI).
	Untaxed bool
}

// allowed are the rates of G1.24.
func allowed(percent string) bool {
	return slices.Contains([]string{"0", "0.9", "1.05", "1.75", "2.1", "5.5", "7", "8.5", "9.2", "9.6", "10", "13", "19.6", "20",
		"20.6"}, percent)
}

// regimeOSS is VAT of another member state, declared in the one stop shop.
const regimeOSS = "OSS"

// treatment is the category and the rate of a line.
func (r Rules) treatment(item *transaction.Item) (category, percent string, tax int) {
	tax = item.OnlyTax()
	if tax < 0 || r.Untaxed {
		return Untaxed, "0", -1
	}
	entry := &item.Taxes[tax]
	if slices.Contains([]string{"VATEX-EU-D", "VATEX-EU-F", "VATEX-EU-I", "VATEX-EU-J"}, strings.ToUpper(entry.Code)) {
		return Margin, "0", -1
	}
	percent = percentOf(entry)
	if entry.Regime == regimeOSS || percent == "0" || !allowed(percent) {
		return Untaxed, "0", -1
	}
	if item.Type == transaction.Services {
		return Services, percent, tax
	}
	return Goods, percent, tax
}

// percentOf is a rate without needless zeros.
func percentOf(t *transaction.Tax) string { return t.Rate.MinimalString() }

// Sale is what a sale to consumers contributes: its lines by category and rate, on its
// day. sign −1 takes a sale back.
func (r Rules) Sale(in *country.Draft, sign int64) (*Contribution, error) {
	t := &in.Transaction
	if len(in.Totals.Lines) != len(t.Items) {
		return nil, fmt.Errorf("reporting %s: %d lines with %d amounts", t.ID, len(t.Items), len(in.Totals.Lines))
	}
	c, day := &Contribution{}, dayOf(t.Date, in.Location)
	for i := range t.Items {
		category, percent, tax := r.treatment(&t.Items[i])
		line := in.Totals.Lines[i]
		net, charged := line.Net, int64(0)
		if tax >= 0 {
			charged = line.Taxes[tax]
		}
		base, err := euro(t, net)
		if err == nil {
			charged, err = euro(t, charged)
		}
		if err != nil {
			return nil, err
		}
		g := Group{Day: day, Currency: currencyOf(t), Category: category, Count: 1, Net: sign * net,
			Rates: []Rate{{Percent: percent, Base: sign * base, Tax: sign * charged}}}
		if r.Debits && category == Services {
			g.Due = DebitsCode
		}
		if err := add(&c.Groups, g, 0); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// dayOf is a day as reports write it.
func dayOf(at time.Time, where *time.Location) string {
	if where == nil {
		where = time.UTC
	}
	return at.In(where).Format("20060102")
}

func currencyOf(t *transaction.Transaction) string { return strings.ToUpper(t.CurrencyCode) }

// euro is an amount of a transaction in cents of euro, by its rate of exchange.
func euro(t *transaction.Transaction, minor int64) (int64, error) {
	if currencyOf(t) == Euro {
		return minor, nil
	}
	if t.ExchangeRate == nil || !t.ExchangeRate.IsPositive() {
		return 0, invalid(fault.At("exchange_rate", fault.FieldRequired, "must say the euro of one %s: reports have taxes in euro", currencyOf(t)))
	}
	decimals, _ := transaction.CurrencyExponent(currencyOf(t))
	out, fits := amount.Scaled(minor, 2-decimals, *t.ExchangeRate)
	if !fits {
		return 0, invalid(fault.At("exchange_rate", fault.FieldNotValid, "makes an amount that is too large"))
	}
	return out, nil
}

func invalid(f fault.Fault) error {
	return fault.New(fault.Invalid, "the transaction cannot be reported").With(f)
}
