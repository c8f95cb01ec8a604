package filing

import (
	"context"
	"errors"
	"fmt"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// Retry makes an operation and its lane due at once, and releases one that was
// set aside. also joins the commit with the operation before and after, for
// whoever keeps a log; it may be nil.
//
// What it never does: send anything that may be at the authority without asking
// first, break the order of a chain, or shorten a pause that the authority
// itself asked for. It only ends our own waiting; the stage decides what
// happens next, as on any other visit. An operation that is settled, or waits
// for another one, is fault.Conflict with the reason.
func (s *Service) Retry(ctx context.Context, operationID string, also func(tx *db.Tx, before, after Summary) error) (after Summary, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		before, err := summaryOf(tx, operationID)
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
		// as long as it would have been. A lane without failures rests because the
		// authority said so.
		if err := tx.Exec("UPDATE lanes SET due_at = NULL WHERE lane = $1 AND lease_until IS NULL AND failures > 0", before.Lane); err != nil {
			return err
		}
		tx.Wake(laneQueue.Table)
		if after, err = summaryOf(tx, operationID); err != nil || also == nil {
			return err
		}
		return also(tx, before, after)
	})
	if errors.Is(err, db.ErrStale) {
		err = cannotRetry("it is being worked at this moment")
	}
	if err != nil {
		return Summary{}, fmt.Errorf("retry %s: %w", operationID, err)
	}
	return after, nil
}

func retryable(o Summary) error {
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
func release(tx *db.Tx, o Summary) error {
	position, filed, err := linkOf(tx, o.OperationID)
	if err != nil {
		return fmt.Errorf("read its filing: %w", err)
	}
	stage, due := o.Stage, db.Micros(tx.Now())
	if position > 0 {
		due = position // see chainDue
	}
	if stage == Quarantined {
		if stage = Received; filed {
			stage = Prepared
		}
	}
	if !o.DueAt.IsZero() && db.Micros(o.DueAt) <= due && stage == o.Stage {
		due = db.Micros(o.DueAt) // already due: it keeps its place
	}
	crashes := o.Crashes
	if o.quarantined() {
		crashes = 0
	}
	// Only from the stage that was read: its lane may be moving it at this moment.
	return tx.ExecOne("UPDATE operations SET stage = $2, due_at = $3, crashes = $4 WHERE operation_id = $1 AND status = 'PROCESSING' AND stage = $5 AND crashes = $6",
		o.OperationID, string(stage), due, crashes, string(o.Stage), o.Crashes)
}
