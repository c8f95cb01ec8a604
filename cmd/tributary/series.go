package main

import "tributary/internal/client"

// seriesCommand is the client's own tool for number series.
type seriesCommand struct {
	List   seriesList   `cmd:"" help:"List number series."`
	Create seriesCreate `cmd:"" help:"Create a number series for a supplier's transactions that come without a number."`
}

// serviceFlags say where the service is and who asks.
type serviceFlags struct {
	URL string `help:"Base URL of the service." default:"http://127.0.0.1:8080" placeholder:"URL" name:"url"`
	keyFlags
	JSON bool `help:"Print JSON." name:"json"`
}

func (f *serviceFlags) series(c *command, fresh map[string]any) error {
	key, err := f.neededKey()
	if err != nil {
		return err
	}
	return client.Series{URL: f.URL, APIKey: key.RevealText(), JSON: f.JSON, New: fresh}.Run(c.ctx, c.out)
}

type seriesList struct{ serviceFlags }

// Run lists.
func (cmd *seriesList) Run(c *command) error { return cmd.series(c, nil) }

type seriesCreate struct {
	serviceFlags
	Supplier string `arg:"" help:"Company id of the supplier."`
	Pattern  string `arg:"" help:"Number pattern, e.g. F{YYYY}-{N:6}."`
	Kind     string `help:"Kind: INVOICE, ADJUSTMENT, CREDIT or CANCELLATION." default:"INVOICE" setting:"-"`
	Country  string `help:"Country of the transactions; default the company's." placeholder:"CC" setting:"-"`
	Next     int64  `help:"First number." default:"1" setting:"-"`
	Yearly   bool   `help:"Restart every year." setting:"-"`
}

// Run makes one.
func (cmd *seriesCreate) Run(c *command) error {
	fresh := map[string]any{"supplier_id": cmd.Supplier, "pattern": cmd.Pattern, "kind": cmd.Kind, "next": cmd.Next,
		"yearly": cmd.Yearly}
	if cmd.Country != "" {
		fresh["country_code"] = cmd.Country
	}
	return cmd.series(c, fresh)
}
