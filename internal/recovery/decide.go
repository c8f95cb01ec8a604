package recovery

import (
	"context"
	"errors"
	"fmt"

	"tributary/internal/adoption"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/hold"
)

// Held is an operation that waits for a person.
type Held = adoption.Held

// HeldOperations lists them.
func HeldOperations(r db.Reader) ([]Held, error) { return adoption.HeldList(r) }

// Word is what a person says of an operation that waits.
type Word struct {
	Adopt  bool   // the document at the authority is its own; false: it is not registered, file it
	Number string // of that document, where the authority has no list
	ID     string // the authority's of it
}

// Decide ends the wait of an operation of which nobody could tell whether the
// authority holds it: a person has looked. also joins the commit that stores the
// decision, for whoever keeps a log; it may be nil.
//
// An operation that only waits behind its supplier, whose authority has no list or
// does not answer, can be decided about as well: what a person found in the portal
// is kept, and counts once the supplier is released.
func (s *Recovery) Decide(ctx context.Context, operationID string, said Word, also func(tx *db.Tx, h Held) error) error {
	decision := adoption.File
	if said.Adopt {
		decision = adoption.Adopt
	}
	behind := false
	err := s.db.Write(ctx, func(tx *db.Tx) (err error) {
		if behind, err = waitsBehind(tx, operationID); err != nil {
			return err
		}
		h, err := adoption.Decide(tx, operationID, decision, adoption.Gap{Number: said.Number, ID1: said.ID})
		if err != nil || also == nil {
			return err
		}
		return also(tx, h)
	})
	if err != nil || behind {
		return err
	}
	_, err = s.cfg.Filing.Retry(ctx, operationID, nil)
	return err
}

// waitsBehind reports whether an operation waits for nothing but its supplier, and
// then lets it wait for a decision of its own.
func waitsBehind(tx *db.Tx, operationID string) (bool, error) {
	h := Held{OperationID: operationID}
	var stage filing.Stage
	err := tx.Row("SELECT client_id, supplier_id, stage FROM operations WHERE operation_id = $1", operationID).
		Scan(&h.ClientID, &h.SupplierID, &stage)
	if errors.Is(err, db.ErrNoRows) {
		return false, filing.Unknown()
	}
	if err != nil {
		return false, fmt.Errorf("look for an operation that waits: %w", err)
	}
	if stage != filing.Received && stage != filing.Blocked {
		return false, nil
	}
	held, is, err := hold.Of(tx, h.ClientID, h.SupplierID)
	if err != nil || !is || held.Reason != fault.Held {
		return false, err
	}
	h.Why = held.Why
	return true, h.Store(tx)
}
