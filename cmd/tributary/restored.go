package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/recovery"
	"tributary/internal/server"
)

// restoredCommand is what a person decides after a backup was restored.
type restoredCommand struct {
	List    restoredList    `cmd:"" help:"Where the restoration of a backup stands, supplier by supplier, and which chains are stopped."`
	Release restoredRelease `cmd:"" help:"Let a supplier file again whose authority could not be asked."`
	Resume  restoredResume  `cmd:"" help:"Let a chain go on from where the authority has it."`
}

type restoredList struct{ bookFlags }

// Run lists.
func (cmd *restoredList) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, _ *account.Accounts) error {
		var list []recovery.RestoredSupplier
		var closed bool
		err := d.Read(ctx, func(r db.Reader) (err error) {
			list, closed, err = recovery.Restored(r)
			return err
		})
		if err != nil {
			return err
		}
		shown := struct {
			Closed    bool                        `json:"intake_closed"`
			Suppliers []recovery.RestoredSupplier `json:"suppliers"`
		}{closed, list}
		return cmd.show(c, shown, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "intake closed: %v\n\nSUPPLIER\tCLIENT\tCOUNTRY\tSTATE\tASKED UP TO\tFOUND\tADOPTED\tTROUBLE\n", closed)
			for _, s := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", s.SupplierID, s.ClientID, s.Country, s.State, s.NextDay, s.Found, s.Adopted, s.Trouble)
			}
		})
	})
}

// deskFlags reach a supplier's authority.
type deskFlags struct {
	bookFlags
	Supplier   string            `arg:"" help:"Id of the company."`
	Authority  map[string]string `help:"Addresses of authorities: ES.live=https://…;ES.test=https://…" placeholder:"CC.ENV=URL"`
	Simulators simulatorsAt      `help:"Address of the simulated authorities: where test keys file, or where they listen." placeholder:"URL"`
}

func (f *deskFlags) config(c *command) (cfg server.Config, err error) {
	cfg = server.Config{Log: c.log, SimulatorsURL: f.Simulators.url()}
	cfg.Authorities, err = authorities(f.Authority)
	return cfg, err
}

type restoredRelease struct{ deskFlags }

// Run releases a supplier.
func (cmd *restoredRelease) Run(c *command) error {
	cfg, err := cmd.config(c)
	if err != nil {
		return err
	}
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		desk := server.Desk{Config: cfg, DB: d, Accounts: a, SupplierID: cmd.Supplier}
		if err := desk.Release(ctx, actor()); err != nil {
			return err
		}
		return cmd.show(c, map[string]string{"released": cmd.Supplier}, func(w *tabwriter.Writer) { fmt.Fprintf(w, "%s files again\n", cmd.Supplier) })
	})
}

type restoredResume struct {
	deskFlags
	Position int64  `help:"Position of the authority's last link, where it cannot be asked." placeholder:"N"`
	Hash     string `help:"Its hash." placeholder:"HASH"`
	Extra    string `help:"What the country adds to a link, as a stored one shows it." placeholder:"TEXT"`
	Own      bool   `help:"Go on behind our own last link: nothing was wrong, a setting of the company was put back."`
	Anew     bool   `help:"Begin a new chain: a setting of the company gave it another name at the authority."`
}

// Run resumes a chain.
func (cmd *restoredResume) Run(c *command) error {
	cfg, err := cmd.config(c)
	if err != nil {
		return err
	}
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		if cmd.Own && cmd.Anew {
			return fault.New(fault.Invalid, "--own and --anew exclude each other")
		}
		from := recovery.From{Head: country.Link{Position: cmd.Position, Hash: cmd.Hash, Extra: cmd.Extra}, Own: cmd.Own, Anew: cmd.Anew}
		chain, err := server.Desk{Config: cfg, DB: d, Accounts: a, SupplierID: cmd.Supplier}.ResumeChain(ctx, from, actor())
		if err != nil {
			return err
		}
		return cmd.show(c, chain, func(w *tabwriter.Writer) { fmt.Fprintf(w, "the chain of %s goes on\n", cmd.Supplier) })
	})
}
