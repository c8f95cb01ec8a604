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

// recoveryCommand is what a person decides after a backup was restored.
type recoveryCommand struct {
	List    recoveryList    `cmd:"" help:"List suppliers held after a restore, and stopped chains."`
	Release recoveryRelease `cmd:"" help:"Resume filing for a supplier whose authority could not be queried."`
	Resume  recoveryResume  `cmd:"" help:"Resume a stopped chain from the authority's last link."`
	Decide  recoveryDecide  `cmd:"" help:"Decide whether a held operation is registered with the authority already."`

	Documents recoveryDocuments `cmd:"" help:"Show whether the document store is this database's, and decide it after a restore."`
}

type recoveryList struct{ accountFlags }

// Run lists.
func (cmd *recoveryList) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, _ *account.Accounts) error {
		var list []recovery.RestoredSupplier
		var held []recovery.Held
		var closed bool
		err := d.Read(ctx, func(r db.Reader) (err error) {
			if list, closed, err = recovery.Restored(r); err != nil {
				return err
			}
			held, err = recovery.HeldOperations(r)
			return err
		})
		if err != nil {
			return err
		}
		shown := struct {
			Closed    bool                        `json:"intake_closed"`
			Suppliers []recovery.RestoredSupplier `json:"suppliers"`
			Held      []recovery.Held             `json:"held_operations"`
		}{closed, list, append([]recovery.Held{}, held...)}
		return cmd.show(c, shown, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "intake closed: %v\n\nSUPPLIER\tCLIENT\tCOUNTRY\tSTATE\tQUERIED TO\tFOUND\tADOPTED\tERROR\n", closed)
			for _, s := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", s.SupplierID, s.ClientID, s.Country, s.State, s.NextDay,
					s.Found, s.Adopted, s.Trouble)
			}
			if len(held) > 0 {
				fmt.Fprint(w, "\nHELD OPERATION\tSUPPLIER\tAT THE AUTHORITY\tWHY\n")
			}
			for _, h := range held {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", h.OperationID, h.SupplierID, h.Number, h.Why)
			}
		})
	})
}

// supplierFlags reach a supplier's authority.
type supplierFlags struct {
	accountFlags
	Supplier   string            `arg:"" help:"Company id."`
	Authority  map[string]string `help:"URLs of authorities: ES.live=https://…;ES.test=https://…" placeholder:"CC.ENV=URL"`
	Simulators simulatorsAt      `help:"URL or listen address of the simulated authorities, for test keys." placeholder:"URL"`
}

func (f *supplierFlags) config(c *command) (cfg server.Config, err error) {
	cfg = server.Config{Log: c.log, SimulatorsURL: f.Simulators.url()}
	cfg.Authorities, err = authorities(f.Authority)
	return cfg, err
}

type recoveryRelease struct{ supplierFlags }

// Run releases a supplier.
func (cmd *recoveryRelease) Run(c *command) error {
	cfg, err := cmd.config(c)
	if err != nil {
		return err
	}
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		desk := server.Maintenance{Config: cfg, DB: d, Accounts: a, SupplierID: cmd.Supplier}
		if err := desk.Release(ctx, actor()); err != nil {
			return err
		}
		return cmd.show(c, map[string]string{"released": cmd.Supplier}, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "filing resumed for %s\n", cmd.Supplier)
		})
	})
}

type recoveryResume struct {
	supplierFlags
	Position int64  `help:"Position of the authority's last link, where it cannot be queried." placeholder:"N"`
	Hash     string `help:"Its hash." placeholder:"HASH"`
	Extra    string `help:"Country-specific part of the link, as stored." placeholder:"TEXT"`
	Own      bool   `help:"Continue from our own last link: a setting of the company was restored."`
	Anew     bool   `help:"Start a new chain: a setting of the company changed its name at the authority."`
}

// Run resumes a chain.
func (cmd *recoveryResume) Run(c *command) error {
	cfg, err := cmd.config(c)
	if err != nil {
		return err
	}
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		if cmd.Own && cmd.Anew {
			return fault.New(fault.Invalid, "--own and --anew are mutually exclusive")
		}
		from := recovery.From{Head: country.Link{Position: cmd.Position, Hash: cmd.Hash, Extra: cmd.Extra}, Own: cmd.Own,
			Anew: cmd.Anew}
		chain, err := server.Maintenance{Config: cfg, DB: d, Accounts: a, SupplierID: cmd.Supplier}.ResumeChain(ctx, from, actor())
		if err != nil {
			return err
		}
		return cmd.show(c, chain, func(w *tabwriter.Writer) { fmt.Fprintf(w, "chain of %s resumed\n", cmd.Supplier) })
	})
}

type recoveryDocuments struct {
	accountFlags
	Claim   bool   `help:"This database is the real one: another that used the document store, or a later state of this one, is gone or a copy."`
	Release bool   `help:"Remove files that the restored backup may not know, if nothing mentions them."`
	Reason  string `help:"Why; kept in the audit log." placeholder:"TEXT" setting:"recovery-reason"`
}

// Run shows whose the documents are, or decides it.
func (cmd *recoveryDocuments) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		own, err := server.Maintenance{DB: d, Accounts: a}.JudgeDocuments(ctx, actor(),
			server.DocumentsVerdict{Claim: cmd.Claim, Release: cmd.Release, Reason: cmd.Reason})
		if err != nil {
			return err
		}
		return cmd.show(c, own, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "the document store is\t%s\n", own.State)
			if own.HeldTo != "" {
				fmt.Fprintf(w, "nothing is removed of hours\tfrom %s to %s\n", own.HeldFrom, own.HeldTo)
			}
		})
	})
}

type recoveryDecide struct {
	supplierFlags
	Operation string `arg:"" help:"Operation id."`
	Adopt     bool   `help:"The document at the authority is this one: adopt it." setting:"-"`
	File      bool   `help:"It is not registered: file it." setting:"-"`
	Number    string `help:"Number at the authority, where it has no list." placeholder:"NUMBER" setting:"-"`
	ID        string `help:"The authority's id of it." placeholder:"ID" setting:"-"`
}

// Run decides.
func (cmd *recoveryDecide) Run(c *command) error {
	cfg, err := cmd.config(c)
	if err != nil {
		return err
	}
	if cmd.Adopt == cmd.File {
		return fault.New(fault.Invalid, "say --adopt or --file")
	}
	said := recovery.Word{Adopt: cmd.Adopt, Number: cmd.Number, ID: cmd.ID}
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		desk := server.Maintenance{Config: cfg, DB: d, Accounts: a, SupplierID: cmd.Supplier}
		if err := desk.Decide(ctx, cmd.Operation, said, actor()); err != nil {
			return err
		}
		return cmd.show(c, map[string]string{"decided": cmd.Operation}, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "%s goes on\n", cmd.Operation)
		})
	})
}
