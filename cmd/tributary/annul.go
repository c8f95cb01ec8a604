package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/server"
)

type annulCommand struct {
	accountFlags
	Operation  string            `arg:"" help:"Operation id of the wrong report."`
	Reason     string            `help:"Reason, for the authority and the audit log." required:"" placeholder:"TEXT" setting:"-"`
	Code       string            `help:"Annulment code of the authority; default the most general one (Hungary: ERRATIC_DATA)." placeholder:"CODE" setting:"-"`
	Authority  map[string]string `help:"URLs of authorities: ES.live=https://…;ES.test=https://…" placeholder:"CC.ENV=URL"`
	Simulators simulatorsAt      `help:"URL or listen address of the simulated authorities, for test keys." placeholder:"URL"`
}

// errNotAnnulled ends the program with 1, so that a script notices.
var errNotAnnulled = errors.New("the authority rejected the annulment")

// Run asks, prints what the authority says and changes no result of ours.
func (cmd *annulCommand) Run(c *command) error {
	cfg := server.Config{Log: c.log, SimulatorsURL: cmd.Simulators.url()}
	var err error
	if cfg.Authorities, err = authorities(cmd.Authority); err != nil {
		return err
	}
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		said, err := server.Maintenance{Config: cfg, DB: d, Accounts: a}.Annul(ctx, cmd.Operation,
			country.Annulment{Code: cmd.Code, Reason: cmd.Reason}, actor())
		if err != nil {
			return err
		}
		if err := cmd.show(c, said, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "AUTHORITY ID\tSTATE\n%s\t%s\n", said.ID, said.State)
			for _, f := range said.Faults {
				fmt.Fprintf(w, "\n%s", f.Message)
			}
		}); err != nil {
			return err
		}
		if len(said.Faults) > 0 {
			return errNotAnnulled
		}
		return nil
	})
}
