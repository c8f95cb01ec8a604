package filing

import (
	"fmt"

	"tributary/internal/chain"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/fault"
	"tributary/internal/hold"
)

// What the package recovery may do to filings, besides holding suppliers, leaving
// documents for adoption and closing the intake: release and relink.

// Release lets a supplier's lanes go on. One that was never held is noted as
// looked into: it is not held as a newcomer either.
func (s *Service) Release(tx *db.Tx, p Place) error {
	if err := hold.Lift(tx, p); err != nil {
		return err
	}
	return endPausesOf(tx, [2]string{p.Scope, p.SupplierID}, ", reason = '', trouble = ''", fault.Held, fault.ChainStopped)
}

// soonAgain ends our own pause of a lane; what the authority asked for stays. $2 is now.
const soonAgain = "due_at = CASE WHEN asked_until > $2 THEN asked_until END"

// Relink sets the head on which a chain's next link is built, and lets
// operations that the authority does not hold be prepared anew behind it.
//
// Failure policy: the lane is taken from whoever works it, so that nobody sends
// a link that is undone here; its next holder finds everything as it is stored.
func (s *Service) Relink(tx *db.Tx, lane string, head country.Link, anew []chain.OpenLink) error {
	if err := tx.Exec("UPDATE lanes SET lease_token = lease_token + 1, lease_until = NULL, lease_node = NULL, due_at = NULL WHERE lane = $1 AND lease_until IS NOT NULL", lane); err != nil {
		return err
	}
	tx.Wake(laneQueue.Table)
	return relink(tx, s.db, lane, relinking{head, anew})
}

// relinking is a chain's new head, and the links that are made anew behind it.
type relinking struct {
	head country.Link
	anew []chain.OpenLink
}

// relink is Relink for the lane's own holder.
func relink(tx *db.Tx, d *db.DB, lane string, to relinking) error {
	list, marks := make([]transition, len(to.anew)), make([]exchange.Mark, len(to.anew))
	for i, l := range to.anew {
		marks[i] = exchange.Mark{OperationID: l.OperationID, At: l.SentAt}
		list[i] = transition{move: relinked, id: l.OperationID, from: l.Stage}
	}
	if err := exchange.KeepMarks(tx, d, lane, marks); err != nil {
		return err
	}
	if err := tx.Exec("DELETE FROM filings WHERE "+d.In("operation_id", "$1"), db.Strings(moving(list))); err != nil {
		return err
	}
	if err := apply(tx, list); err != nil {
		return err
	}
	return chain.Reset(tx, lane, to.head)
}

// TakeForSent makes every operation that was prepared one that may be at its
// authority: provably unsent when a backup was made is not provably unsent when
// it is restored.
func (s *Service) TakeForSent(tx *db.Tx) error {
	list, err := db.Collect(tx, func(scan func(...any) error) (t transition, err error) {
		var at int64
		t = transition{move: takenForSent, from: Prepared}
		err = scan(&t.id, &at)
		t.values = []any{at}
		return t, err
	}, "SELECT operation_id, coalesce(sent_at, $1) FROM operations WHERE stage = 'prepared'", db.Micros(tx.Now()))
	if err != nil {
		return fmt.Errorf("look for prepared operations: %w", err)
	}
	return apply(tx, list)
}
