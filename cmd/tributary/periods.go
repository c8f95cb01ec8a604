package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"tributary/internal/client"
	"tributary/internal/db"
	"tributary/internal/server"
)

// periodsCommand shows periods in which sales are gathered, and what is due.
type periodsCommand struct {
	accountFlags
	Period   string `arg:"" optional:"" help:"Period id: list its sales."`
	Client   string `help:"Filter by client id." placeholder:"ID" setting:"-"`
	Supplier string `help:"Filter by company id." placeholder:"ID" setting:"-"`
}

// Run lists.
func (cmd *periodsCommand) Run(c *command) error {
	return cmd.withDatabase(c, func(ctx context.Context, d *db.DB) error {
		if cmd.Period != "" {
			return cmd.one(ctx, c, d)
		}
		list, err := server.Periods(ctx, d, cmd.Client, cmd.Supplier)
		if err != nil {
			return err
		}
		return cmd.show(c, list, func(w *tabwriter.Writer) { printPeriods(w, list) })
	})
}

func (cmd *periodsCommand) one(ctx context.Context, c *command, d *db.DB) error {
	shown, err := server.ShowPeriod(ctx, d, cmd.Period)
	if err != nil {
		return err
	}
	return cmd.show(c, shown, func(w *tabwriter.Writer) {
		printPeriods(w, []server.Period{shown.Period})
		fmt.Fprintln(w, "\nDOCUMENT\tSTATE\tSALES\tAMOUNT\tAUTHORITY ID\tOPERATION")
		for _, doc := range shown.Documents {
			name := doc.Number
			if doc.Withdrawal {
				name = "withdrawal of " + name
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", name, doc.State, doc.Sales,
				client.Money(doc.Gross, shown.Period.Currency), doc.AuthorityID, doc.OperationID)
		}
		fmt.Fprintln(w, "\nSALE\tNUMBER\tAMOUNT\tDOCUMENT\tTAKEN OUT BY")
		for _, s := range shown.List {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.TransactionID, s.Number, client.Money(s.Gross, shown.Period.Currency),
				s.Document, s.LeftBy)
		}
	})
}

func printPeriods(w *tabwriter.Writer, list []server.Period) {
	fmt.Fprintln(w, "PERIOD\tSUPPLIER\tCOUNTRY\tDAYS\tSALES\tAMOUNT\tSTATE\tDUE BY\tNEXT")
	for _, p := range list {
		days, state, next := p.FirstDay, string(p.State), "-"
		if p.LastDay != p.FirstDay {
			days += " to " + p.LastDay
		}
		if p.Report != "" {
			days += ", " + p.Report
		}
		if p.Overdue {
			state += ", overdue"
		}
		if p.Next != nil {
			next = p.Next.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", p.ID, p.SupplierID, p.Country, days, p.Sales,
			client.Money(p.Gross, p.Currency), state, p.DueDay, next)
	}
}
