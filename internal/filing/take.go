package filing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/killpoint"
)

// take claims what is due in the lane, oldest first, and counts the visit
// before any work: an operation that kills the process is recognised by its
// count, first among a few suspects, then alone. Every other way out of a
// visit takes the count back, see visit.leave.
func (v *visit) take(ctx context.Context) (ops []*operation, full bool, err error) {
	limit := min(batchMax, max(1, v.limits.Batch))
	err = v.db.Write(ctx, func(tx *db.Tx) error {
		ops = nil
		if err := v.lease.Guard(tx); err != nil {
			return err
		}
		due := db.Micros(tx.Now())
		var worst, least int64
		if err := tx.Row("SELECT coalesce(max(crashes), 0), coalesce(min(crashes), 0) FROM (SELECT crashes FROM operations WHERE lane = $1 AND due_at <= $2 ORDER BY due_at, operation_id LIMIT $3) AS next",
			v.lease.ID, due, max(limit, suspectsLook)).Scan(&worst, &least); err != nil {
			return fmt.Errorf("look for crashes: %w", err)
		}
		n, below := v.suspicion(worst, limit)
		if below <= least {
			// Only suspects are left, and it is too early for them. They wait, not
			// the lane: whatever comes meanwhile did not kill anything.
			return tx.Exec("UPDATE operations SET due_at = $1 WHERE lane = $2 AND due_at <= $3 AND crashes >= $4",
				db.Micros(v.begun.Add(v.suspectsAfter)), v.lease.ID, due, below)
		}
		var err error
		ops, err = db.Collect(tx, scanOperation, `UPDATE operations SET crashes = crashes + 1, started_at = coalesce(started_at, $1)
			WHERE operation_id IN (SELECT operation_id FROM operations WHERE lane = $2 AND due_at <= $1 AND crashes < $4 ORDER BY due_at, operation_id LIMIT $3)
			RETURNING `+operationFields, due, v.lease.ID, n, below)
		full = len(ops) == n
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("take operations: %w", err)
	}
	killpoint.Reach(killpoint.Taken)
	for _, o := range ops {
		o.counted = true
	}
	sortByID(ops)
	rest, err := v.quarantine(ctx, ops)
	if err != nil || len(rest) == 0 {
		return rest, full, err
	}
	return rest, full, v.db.Read(ctx, func(r db.Reader) error { return v.load(r, rest) })
}

// suspicion says how many operations to take together, and with fewer crashes
// than how many, given the worst count among the next ones.
func (v *visit) suspicion(worst int64, limit int) (n int, below int64) {
	switch {
	case worst >= aloneFrom && v.db.Now().Before(v.begun.Add(v.suspectsAfter)):
		return min(limit, suspectBatch), aloneFrom
	case worst >= aloneFrom:
		return 1, math.MaxInt64
	case worst > 0:
		return min(limit, suspectBatch), math.MaxInt64
	}
	return limit, math.MaxInt64
}

// load reads the bodies and, where there are any, the filings.
func (v *visit) load(r db.Reader, ops []*operation) error {
	byID := make(map[string]*operation, len(ops))
	var all, filed []string
	for _, o := range ops {
		byID[o.id] = o
		all = append(all, o.id)
		if o.stage != Received {
			filed = append(filed, o.id)
		}
	}
	rows, err := r.Query("SELECT operation_id, body, warnings FROM bodies WHERE "+v.db.In("operation_id", "$1"), db.Strings(all))
	if err != nil {
		return fmt.Errorf("load bodies: %w", err)
	}
	if err := rows.Each(func(scan func(...any) error) error {
		var id string
		var body []byte
		var warnings *string
		if err := scan(&id, &body, &warnings); err != nil {
			return err
		}
		byID[id].body, byID[id].warnings = body, ReadFaults(warnings)
		return nil
	}); err != nil || len(filed) == 0 {
		return err
	}
	return v.loadFilings(r, byID, filed)
}

// quarantine sets aside operations that were in work when the process died too
// often. One that certainly is not at the authority ends in FAILURE when it is
// hopeless; one that may be there waits for a person.
func (v *visit) quarantine(ctx context.Context, ops []*operation) (rest []*operation, err error) {
	var bad []*operation
	for _, o := range ops {
		if o.crashes > aloneFrom+crashesMax && o.stage != Quarantined {
			bad = append(bad, o)
		} else {
			rest = append(rest, o)
		}
	}
	if len(bad) == 0 {
		return ops, nil
	}
	err = v.db.Write(ctx, func(tx *db.Tx) error {
		if err := v.lease.Guard(tx); err != nil {
			return err
		}
		for _, o := range bad {
			stage, due := o.stage, any(nil)
			if o.stage == Received || o.stage == Prepared && !v.chained {
				stage, due = Quarantined, db.Micros(o.startedAt.Add(hopelessAfter))
			}
			if err := tx.ExecOne("UPDATE operations SET stage = $1, due_at = $2 WHERE operation_id = $3 AND status = 'PROCESSING'", string(stage), due, o.id); err != nil {
				return err
			}
			if err := v.cfg.Alerts.RaiseIn(tx, alert.OperationQuarantined, o.id,
				fmt.Sprintf("operation %s was alone in work when the process ended %d times; it is set aside in stage %s", o.id, crashesMax, o.stage)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		uncount(bad) // their count stays: it is why they are here
	}
	return rest, err
}

// safely turns a panic of a pack into an error: one transaction must not end the process.
func safely(what string, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %w: %v\n%s", what, errPanic, p, debug.Stack())
		}
	}()
	return fn()
}

var errPanic = errors.New("panic")
