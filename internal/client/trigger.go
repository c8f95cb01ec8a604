package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
)

// Trigger makes a real transaction with a test key, so that an integration can
// be tried: the simulated authority does what the outcome asks for.
type Trigger struct {
	Query
	Outcome  string // of Outcomes
	Pack     country.Pack
	Supplier string // its external id; empty: the first one of the country
	Wait     time.Duration
}

// outcomes are what a number's ending asks of a simulated authority.
var outcomes = map[string]string{"success": "", "reject": "-REJECT", "slow": "-SLOW", "outage": "-OUTAGE", "lost": "-LOST"}

// Outcomes are the names that a trigger knows.
func Outcomes() []string { return []string{"success", "reject", "slow", "outage", "lost"} }

// Run submits the country's example, waits for its result and prints it.
func (t Trigger) Run(ctx context.Context, to Streams) error {
	ending, known := outcomes[t.Outcome]
	if !known {
		return fault.New(fault.Invalid, "%q is not one of %s", t.Outcome, strings.Join(Outcomes(), ", "))
	}
	if !strings.HasPrefix(t.APIKey, "trb_test_") {
		return fault.New(fault.Invalid, "trigger creates real transactions: use a test key")
	}
	c, err := t.open(to.Err)
	if err != nil {
		return err
	}
	supplier, err := t.supplier(ctx, c)
	if err != nil {
		return err
	}
	now := time.Now()
	id := "trigger-" + t.Outcome + "-" + now.UTC().Format("20060102T150405.000000")
	// with its ending within 20 characters, and with a digit: some want it
	number := "T1" + strings.ToUpper(strconv.FormatInt(now.UnixMicro(), 36))
	body, err := t.Pack.ExampleSale(country.SaleID{Transaction: id, Number: number + ending, Supplier: supplier,
		Date: now.Add(-time.Minute)})
	if err != nil {
		return err
	}
	operation, refused, err := c.submit(ctx, body)
	if err != nil {
		return err
	}
	if refused != nil {
		return fault.New(fault.Invalid, "the service rejected the example: %s", refused.Message).With(refused.Errors...)
	}
	waiting, cancel := context.WithTimeout(ctx, t.Wait)
	defer cancel()
	for delay := pollFirst; ; delay = min(delay*2, pollDelayMax) {
		r, err := c.result(waiting, operation)
		if err == nil && r.Status == rowProcessing && sleep(waiting, delay) == nil {
			continue
		}
		if err != nil && waiting.Err() == nil {
			return err
		}
		return t.get(ctx, c, operation, to)
	}
}

// supplier finds a company of the pack's country that can file.
func (t Trigger) supplier(ctx context.Context, c *service) (id string, err error) {
	var others []string
	err = c.pages(ctx, "/onboarding/v2/companies", Wanted{Rows: LookRowsMax}, func(entry json.RawMessage) error {
		var one company
		if err := json.Unmarshal(entry, &one); err != nil {
			return err
		}
		if strings.EqualFold(one.Meta.Country, t.Pack.Code) && one.Status == "active" &&
			(t.Supplier == "" || t.Supplier == one.Meta.ExternalID) && id == "" {
			id = one.ID
		}
		if !slices.Contains(others, one.Meta.Country) {
			others = append(others, one.Meta.Country)
		}
		return nil
	})
	if err == nil && id == "" {
		err = fault.New(fault.Invalid, "no matching active company in %s; the client has companies in: %s", t.Pack.Code,
			fmt.Sprint(others))
	}
	return id, err
}
