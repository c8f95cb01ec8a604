package filing

import (
	"context"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/transaction"
)

// unknownSupplier begins the id of a supplier whose external_id no company has:
// the attempt ends as one with an unknown id does.
const unknownSupplier = "external_id:"

// looker finds what a body leaves to the client's own records: the company
// behind an external_id or a customer's id, the series of a number that is missing. A body that
// says everything itself costs no look.
type looker struct {
	ctx     context.Context
	service *Service
	caller  Caller

	draw     *draw
	customer string // see customerOf
	looked   bool
	err      error
}

// terms are the service's, with the series of this client.
func (l *looker) terms() country.Terms {
	terms := l.service.terms(l.caller)
	terms.Numbered = func(code string, t *transaction.Transaction) bool {
		l.look(code, t)
		return l.draw != nil || l.err != nil
	}
	return terms
}

// look reads once.
func (l *looker) look(code string, t *transaction.Transaction) {
	if l.looked {
		return
	}
	l.looked = true
	l.err = l.service.db.Read(l.ctx, func(r db.Reader) (err error) {
		if t.SupplierOwnID != "" {
			if t.SupplierID, err = l.service.cfg.Companies.IDOf(r, l.caller.Scope, t.SupplierOwnID); err != nil {
				return err
			}
			if t.SupplierID == "" {
				t.SupplierID = unknownSupplier + t.SupplierOwnID
			}
		}
		if l.customer, err = l.service.customerOf(r, l.caller.Scope, t); err != nil {
			return err
		}
		if t.Number == "" && t.Kind != transaction.Backfill {
			l.draw, err = l.service.seriesFor(r, l.caller.Scope, code, t)
		}
		return err
	})
}

// complete looks for what an accepted body still needs. A backfill has a number of its own.
func (l *looker) complete(in *country.Examined) error {
	if t := in.Transaction; t.SupplierOwnID != "" || t.Customer != nil && t.Customer.ID != "" || t.Number == "" && t.Kind != transaction.Backfill {
		l.look(in.Pack.Code, t)
	}
	return l.err
}
