package server

import (
	"context"

	"tributary/internal/db"
	"tributary/internal/ledger"
)

// Period is one in which sales are gathered, as the command line shows it.
type Period = ledger.Period

// PeriodShown is one with its sales.
type PeriodShown struct {
	Period
	List []ledger.PeriodSale `json:"list"`
}

// What the command line shows; a period may have a month's sales.
const (
	periodsShown     = 100
	periodSalesShown = 100000
)

// Periods lists the newest ones, of one client or company where these are given.
func Periods(ctx context.Context, d *db.DB, clientID, companyID string) (list []Period, err error) {
	err = d.Read(ctx, func(r db.Reader) error {
		list, _, err = ledger.Periods(r, ledger.PeriodFilter{ClientID: clientID, SupplierID: companyID, Limit: periodsShown})
		return err
	})
	return append([]Period{}, list...), err
}

// ShowPeriod is one of them with its sales.
func ShowPeriod(ctx context.Context, d *db.DB, id string) (p PeriodShown, err error) {
	err = d.Read(ctx, func(r db.Reader) error {
		p.Period, p.List, _, err = ledger.PeriodOf(r, id, "", periodSalesShown)
		return err
	})
	return p, err
}
