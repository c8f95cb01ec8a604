package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"tributary/internal/account"
	"tributary/internal/db"
	"tributary/internal/server"
)

type companyCommand struct {
	Hold    companyHold    `cmd:"" help:"Place a company on legal hold."`
	Release companyRelease `cmd:"" help:"Release a company from legal hold."`
}

type companyHold struct {
	operatorFlags
	Company string `arg:"" help:"Company id."`
}

type companyRelease struct {
	operatorFlags
	Company string `arg:"" help:"Company id."`
}

// Run holds a company.
func (cmd *companyHold) Run(c *command) error { return cmd.setHold(c, cmd.Company, true) }

// Run ends the hold.
func (cmd *companyRelease) Run(c *command) error { return cmd.setHold(c, cmd.Company, false) }

// heldCompany is what a script reads afterwards.
type heldCompany struct {
	CompanyID string `json:"company_id"`
	ClientID  string `json:"client_id"`
	LegalHold bool   `json:"legal_hold"`
}

func (f *operatorFlags) setHold(c *command, companyID string, hold bool) error {
	return f.accountFlags.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) (err error) {
		done := heldCompany{CompanyID: companyID, LegalHold: hold}
		desk := server.Maintenance{DB: d, Accounts: a}
		if done.ClientID, err = desk.HoldCompany(ctx, actor(), companyID, hold); err != nil {
			return err
		}
		return f.show(c, done, func(w *tabwriter.Writer) {
			state := "is no longer on legal hold"
			if hold {
				state = "is on legal hold: retention deletes nothing"
			}
			fmt.Fprintf(w, "company %s of client %s %s\n", companyID, done.ClientID, state)
		})
	})
}
