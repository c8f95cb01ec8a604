package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/recovery"
	"tributary/internal/server"
)

type reconcileCommand struct {
	accountFlags
	Supplier   string            `help:"Company id." required:"" placeholder:"ID"`
	Day        string            `help:"Document date, YYYY-MM-DD, in the supplier's time zone." required:"" placeholder:"DAY"`
	Until      string            `help:"Last day to compare." placeholder:"DAY"`
	Authority  map[string]string `help:"URLs of authorities: ES.live=https://…;ES.test=https://…" placeholder:"CC.ENV=URL"`
	Simulators simulatorsAt      `help:"URL or listen address of the simulated authorities, for test keys." placeholder:"URL"`
}

// errDiffers ends the program with 1, so that a script notices.
var errDiffers = errors.New("our records differ from the authority's")

// Run compares, prints and changes nothing.
func (cmd *reconcileCommand) Run(c *command) error {
	days, err := cmd.days()
	if err != nil {
		return err
	}
	cfg := server.Config{Log: c.log, SimulatorsURL: cmd.Simulators.url()}
	if cfg.Authorities, err = authorities(cmd.Authority); err != nil {
		return err
	}
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		differs := false
		var all []recovery.Reconciliation
		for _, day := range days {
			found, err := server.Maintenance{Config: cfg, DB: d, Accounts: a, SupplierID: cmd.Supplier}.Reconcile(ctx, day)
			if err != nil {
				return fmt.Errorf("%s: %w", day, err)
			}
			differs = differs || len(found.Differing) > 0
			all = append(all, found)
		}
		if err := cmd.show(c, all, func(w *tabwriter.Writer) { printReconciliations(w, all) }); err != nil {
			return err
		}
		if differs {
			return errDiffers
		}
		return nil
	})
}

// daysMax keeps one call within what an authority's flow control allows.
const daysMax = 366

func (cmd *reconcileCommand) days() (list []country.Day, err error) {
	first, err := recovery.Day(cmd.Day)
	if err != nil {
		return nil, fmt.Errorf("--day: %w", err)
	}
	last := first
	if cmd.Until != "" {
		if last, err = recovery.Day(cmd.Until); err != nil {
			return nil, fmt.Errorf("--until: %w", err)
		}
	}
	for day := first; day.String() <= last.String(); {
		if len(list) == daysMax {
			return nil, fault.New(fault.Invalid, "--until is more than %d days after --day", daysMax)
		}
		list = append(list, day)
		next := time.Date(day.Year, day.Month, day.Day+1, 0, 0, 0, 0, time.UTC)
		day = country.Day{Year: next.Year(), Month: next.Month(), Day: next.Day()}
	}
	if len(list) == 0 {
		return nil, fault.New(fault.Invalid, "--until is before --day")
	}
	return list, nil
}

func printReconciliations(w *tabwriter.Writer, all []recovery.Reconciliation) {
	fmt.Fprintln(w, "DAY\tCOUNTRY\tOURS\tTHEIRS\tAGREED\tOPEN\tDIFFERENCES")
	for _, r := range all {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\n", r.Day, r.Country, r.Ours, r.Theirs, r.Agreed, r.Open, len(r.Differing))
	}
	first := true
	for _, r := range all {
		for _, d := range r.Differing {
			if first {
				fmt.Fprintln(w, "\nDIFFERENCE\tNUMBER\tTRANSACTION\tOUR ID\tTHEIR ID")
				first = false
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", d.Kind, d.Number, d.TransactionID, d.Ours, d.Theirs)
		}
	}
}
