package main

import (
	"net/url"
	"strings"
	"time"

	"tributary/internal/client"
	"tributary/internal/fault"
	"tributary/internal/server"
)

// askFlags are of a client who asks the service.
type askFlags struct {
	keyFlags
	URL  string `help:"Base URL of the service." default:"http://127.0.0.1:8080" placeholder:"URL" name:"url"`
	JSON bool   `help:"Print JSON." name:"json"`
}

func (f *askFlags) query() (client.Query, error) {
	key, err := f.neededKey()
	return client.Query{URL: f.URL, APIKey: key.RevealText(), JSON: f.JSON}, err
}

func (c *command) both() client.Streams {
	return client.Streams{Out: client.InColour(c.out), Err: c.err}
}

type getCommand struct {
	askFlags
	ID string `arg:"" help:"An operation_id, or a transaction_id for all its attempts."`
}

// Run prints one transaction.
func (cmd *getCommand) Run(c *command) error {
	query, err := cmd.query()
	if err != nil {
		return err
	}
	return query.Get(c.ctx, cmd.ID, c.both())
}

// rowsFlag bounds a list.
type rowsFlag struct {
	Limit int `help:"Number of entries." default:"20" setting:"rows"`
}

func (f rowsFlag) wanted(query map[string]string) client.Wanted {
	wanted := client.Wanted{Query: url.Values{}, Rows: f.Limit}
	for name, value := range query {
		if value != "" {
			wanted.Query.Set(name, value)
		}
	}
	return wanted
}

type listCommand struct {
	askFlags
	rowsFlag
	Status   string `help:"Filter by status: SUCCESS, PROCESSING or FAILURE." placeholder:"STATUS"`
	In       string `help:"Filter by country." placeholder:"CC"`
	Supplier string `help:"Filter by supplier id." placeholder:"ID" setting:"list-supplier"`
	Number   string `help:"Filter by transaction_number." placeholder:"NUMBER"`
	From     string `help:"Dated at or after, RFC 3339." placeholder:"TIME"`
	To       string `help:"Dated at or before, RFC 3339." placeholder:"TIME"`
}

// Run lists transactions.
func (cmd *listCommand) Run(c *command) error {
	query, err := cmd.query()
	if err != nil {
		return err
	}
	return query.List(c.ctx, cmd.wanted(map[string]string{
		"status": strings.ToUpper(cmd.Status), "country_code": cmd.In, "supplier_id": cmd.Supplier,
		"transaction_number": cmd.Number, "from": cmd.From, "to": cmd.To,
	}), c.both())
}

type companiesCommand struct {
	askFlags
	rowsFlag
}

// Run lists companies.
func (cmd *companiesCommand) Run(c *command) error {
	query, err := cmd.query()
	if err != nil {
		return err
	}
	return query.Companies(c.ctx, cmd.wanted(nil), c.both())
}

type eventsCommand struct {
	askFlags
	rowsFlag
	State string `help:"Filter by state: pending, delivered, discarded or unsubscribed." placeholder:"STATE" setting:"event-state"`
}

// Run lists webhook events.
func (cmd *eventsCommand) Run(c *command) error {
	query, err := cmd.query()
	if err != nil {
		return err
	}
	return query.Events(c.ctx, cmd.wanted(map[string]string{"status": cmd.State}), c.both())
}

type triggerCommand struct {
	askFlags
	Outcome  string        `arg:"" optional:"" help:"success, reject, slow, outage or lost." default:"success"`
	In       string        `help:"Country of the transaction." default:"XX" placeholder:"CC" setting:"trigger-in"`
	Supplier string        `help:"external_id of the supplier; default: the country's first." placeholder:"ID" setting:"trigger-supplier"`
	Wait     time.Duration `help:"How long to wait for the result." default:"1m" setting:"trigger-wait"`
}

// Run makes a test transaction.
func (cmd *triggerCommand) Run(c *command) error {
	query, err := cmd.query()
	if err != nil {
		return err
	}
	pack, found, err := server.Country(strings.ToUpper(cmd.In))
	if err != nil {
		return err
	}
	if !found || pack.Example == nil {
		return fault.New(fault.Invalid, "--in: %q has no example to submit", cmd.In)
	}
	return client.Trigger{Query: query, Outcome: cmd.Outcome, Pack: pack, Supplier: cmd.Supplier,
		Wait: cmd.Wait}.Run(c.ctx, c.both())
}
