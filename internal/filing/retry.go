package filing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operation"
)

// OperationState is how far an operation has come, as stored.
type OperationState struct {
	OperationID, ClientID, Lane string
	Stage                       Stage
	Status                      Status
	Tries, Crashes              int64
	DueAt                       time.Time // zero: nothing is planned
}

// AsideFrom is how often an operation was in work when the process ended, before
// it is set aside.
const AsideFrom = aloneFrom + crashesMax

// SetAside reports whether an operation was set aside. One that may be at the
// authority keeps its stage and has no due time; a link of a chain keeps both,
// and its lane stands still.
func (s OperationState) SetAside() bool {
	return s.Stage == Quarantined || s.Status == Processing && s.Crashes > AsideFrom
}

func stateOf(r db.Reader, operationID string) (s OperationState, err error) {
	err = r.Row("SELECT operation_id, client_id, lane, stage, status, tries, crashes, due_at FROM operations WHERE operation_id = $1", operationID).
		Scan(&s.OperationID, &s.ClientID, &s.Lane, &s.Stage, &s.Status, &s.Tries, &s.Crashes, db.NullInstant(&s.DueAt))
	if errors.Is(err, db.ErrNoRows) {
		return s, Unknown()
	}
	return s, err
}

// Unknown is the one answer for ids that are not there and ids that are another client's.
func Unknown() error {
	return fault.New(fault.NotFound, "there is no such operation").With(fault.Fault{Code: fault.CodeNotFound, Type: fault.General, Field: "operation_id", Message: "operation_id is not known"})
}

// Retry makes an operation and its lane due at once, and releases one that was
// set aside. also joins the commit with the operation before and after, for
// whoever keeps a log; it may be nil.
//
// What it never does: send anything that may be at the authority without asking
// first, break the order of a chain, or shorten a pause that the authority
// itself asked for. It only ends our own waiting; the stage decides what
// happens next, as on any other visit. An operation that is settled, or waits
// for another one, is fault.Conflict with the reason.
func (s *Service) Retry(ctx context.Context, operationID string, also func(tx *db.Tx, before, after OperationState) error) (after OperationState, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		before, err := stateOf(tx, operationID)
		if err != nil {
			return err
		}
		if err := retryable(before); err != nil {
			return err
		}
		if err := release(tx, before); err != nil {
			return err
		}
		// Our own pause ends; the count of failures stays, so that the next one is
		// as long as it would have been. What the authority asked for is kept.
		if err := tx.Exec("UPDATE lanes SET "+soonAgain+" WHERE lane = $1 AND lease_until IS NULL AND (failures > 0 OR reason <> '')", before.Lane, db.Micros(tx.Now())); err != nil {
			return err
		}
		tx.Wake(laneQueue.Table)
		if after, err = stateOf(tx, operationID); err != nil || also == nil {
			return err
		}
		return also(tx, before, after)
	})
	if errors.Is(err, db.ErrStale) {
		err = cannotRetry("it is being worked at this moment")
	}
	if err != nil {
		return OperationState{}, fmt.Errorf("retry %s: %w", operationID, err)
	}
	return after, nil
}

func retryable(o OperationState) error {
	why := ""
	switch {
	case o.Status != Processing:
		why = "it has ended in " + string(o.Status)
	case o.Stage == Waiting:
		why = "it waits for an earlier attempt of the same transaction"
	case o.Stage == Blocked:
		why = "it waits for the transaction that it corrects"
	default:
		return nil
	}
	return cannotRetry(why)
}

func cannotRetry(why string) error {
	return fault.New(fault.Conflict, "the operation cannot be retried: %s", why).
		With(fault.Fault{Code: fault.CodeConflict, Type: fault.General, Message: why})
}

// release makes the operation due. In a chain that is its place in the chain;
// one that was set aside goes back to the stage its stored bytes prove.
func release(tx *db.Tx, o OperationState) error {
	position, filed, err := linkOf(tx, o.OperationID)
	if err != nil {
		return fmt.Errorf("read its filing: %w", err)
	}
	due := db.Micros(tx.Now())
	if position > 0 {
		due = position // see chainDue
	}
	t := transition{move: hurried, id: o.OperationID, from: o.Stage}
	switch {
	case o.Stage == Quarantined && filed:
		t.move = takenUp
	case o.Stage == Quarantined:
		t.move = begunAnew
	case !o.DueAt.IsZero() && db.Micros(o.DueAt) <= due:
		due = db.Micros(o.DueAt) // already due: it keeps its place
	}
	t.values = []any{due}
	if t.move == hurried {
		crashes := o.Crashes
		if o.SetAside() {
			crashes = 0
		}
		// Only as it was read: its lane may be moving it at this moment.
		t.values = append(t.values, crashes, o.Crashes)
	}
	return apply(tx, []transition{t})
}

// linkOf is the chain position of a stored filing; 0: none.
func linkOf(r db.Reader, operationID string) (position int64, filed bool, err error) {
	var text string
	err = r.Row("SELECT filing FROM filings WHERE operation_id = $1", operationID).Scan(&text)
	if errors.Is(err, db.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	var f country.Filing
	f, err = operation.ReadFiling(text, nil)
	return f.Link.Position, true, err
}
