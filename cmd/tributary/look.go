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
	URL  string `help:"Base address of the service." default:"http://127.0.0.1:8080" placeholder:"URL" name:"url"`
	JSON bool   `help:"Print JSON." name:"json"`
}

func (f *askFlags) look() (client.Look, error) {
	key, err := f.neededKey()
	return client.Look{URL: f.URL, APIKey: key.RevealText(), JSON: f.JSON}, err
}

func (c *command) both() client.Streams {
	return client.Streams{Out: client.InColour(c.out), Err: c.err}
}

type getCommand struct {
	askFlags
	ID string `arg:"" help:"An operation_id, or a transaction_id for all of its attempts."`
}

// Run prints one transaction.
func (cmd *getCommand) Run(c *command) error {
	look, err := cmd.look()
	if err != nil {
		return err
	}
	return look.Get(c.ctx, cmd.ID, c.both())
}

// rowsFlag bounds a list.
type rowsFlag struct {
	Limit int `help:"Entries to print." default:"20" setting:"rows"`
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
	Status   string `help:"Only of this status: SUCCESS, PROCESSING or FAILURE." placeholder:"STATUS"`
	In       string `help:"Only of this country." placeholder:"CC"`
	Supplier string `help:"Only of this supplier's id." placeholder:"ID" setting:"list-supplier"`
	Number   string `help:"Only with this transaction_number." placeholder:"NUMBER"`
	From     string `help:"Only dated at or after, RFC 3339." placeholder:"TIME"`
	To       string `help:"Only dated at or before, RFC 3339." placeholder:"TIME"`
}

// Run lists transactions.
func (cmd *listCommand) Run(c *command) error {
	look, err := cmd.look()
	if err != nil {
		return err
	}
	return look.List(c.ctx, cmd.wanted(map[string]string{
		"status": strings.ToUpper(cmd.Status), "country_code": cmd.In, "supplier_id": cmd.Supplier, "transaction_number": cmd.Number, "from": cmd.From, "to": cmd.To,
	}), c.both())
}

type companiesCommand struct {
	askFlags
	rowsFlag
}

// Run lists companies.
func (cmd *companiesCommand) Run(c *command) error {
	look, err := cmd.look()
	if err != nil {
		return err
	}
	return look.Companies(c.ctx, cmd.wanted(nil), c.both())
}

type eventsCommand struct {
	askFlags
	rowsFlag
	State string `help:"Only of this state: pending, delivered, discarded or unsubscribed." placeholder:"STATE" setting:"event-state"`
}

// Run lists webhook events.
func (cmd *eventsCommand) Run(c *command) error {
	look, err := cmd.look()
	if err != nil {
		return err
	}
	return look.Events(c.ctx, cmd.wanted(map[string]string{"status": cmd.State}), c.both())
}

type triggerCommand struct {
	askFlags
	Outcome  string        `arg:"" optional:"" help:"success, reject, slow, outage or lost." default:"success"`
	In       string        `help:"Country of the transaction." default:"XX" placeholder:"CC" setting:"trigger-in"`
	Supplier string        `help:"external_id of the supplier; default: the first one of the country." placeholder:"ID" setting:"trigger-supplier"`
	Wait     time.Duration `help:"Wait so long for the result." default:"1m" setting:"trigger-wait"`
}

// Run makes a test transaction.
func (cmd *triggerCommand) Run(c *command) error {
	look, err := cmd.look()
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
	return client.Trigger{Look: look, Outcome: cmd.Outcome, Pack: pack, Supplier: cmd.Supplier, Wait: cmd.Wait}.Run(c.ctx, c.both())
}
