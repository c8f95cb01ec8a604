package filing

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
)

// candidate is an operation that is due.
type candidate struct {
	id      string
	stage   Stage
	crashes int64
	bytes   int64
	due     time.Time
}

// aside reports whether an operation that has its place in the lane was set aside.
func (c candidate) aside() bool {
	return c.crashes > aloneFrom+crashesMax && (c.stage == Prepared || c.stage == Sent)
}

// take claims what is due in the lane, oldest first, and counts the visit
// before any work: an operation that kills the process is recognised by its
// count, first among a few suspects, then alone. Every other way out of a
// visit takes the count back, see visit.leave.
func (v *visit) take(ctx context.Context) (ops []*operation, full bool, err error) {
	due, err := v.candidates(ctx)
	if err != nil {
		return nil, false, err
	}
	chosen, full, err := v.choose(ctx, due)
	if err != nil || len(chosen) == 0 {
		return nil, false, err
	}
	if fits := within(chosen, takenBytesMax); len(fits) < len(chosen) {
		chosen, full = fits, true
	}
	if err := v.reserveBytes(ctx, chosen); err != nil {
		return nil, false, err
	}
	ids := make([]string, len(chosen))
	for i, c := range chosen {
		ids[i] = c.id
	}
	err = v.db.Write(ctx, func(tx *db.Tx) error {
		if err := v.lease.Guard(tx); err != nil {
			return err
		}
		ops, err = countVisit(tx, v.db, ids)
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
	done := v.db.Pace().Turn(ctx)
	err = v.db.ReadEach(ctx, func(r db.Reader) error { return v.load(r, rest) }) // the lease keeps them as they are
	if done(); err != nil {
		return nil, false, err
	}
	rest, err = v.refuseEmpty(ctx, rest)
	return rest, full, err
}

// candidates are the next operations that are due, in their order.
func (v *visit) candidates(ctx context.Context) (due []candidate, err error) {
	defer v.db.Pace().Turn(ctx)()
	err = v.db.ReadEach(ctx, func(r db.Reader) error {
		due, err = db.Collect(r, func(scan func(...any) error) (c candidate, err error) {
			return c, scan(&c.id, &c.stage, &c.crashes, db.NullInstant(&c.due), &c.bytes)
		}, `SELECT operation_id, stage, crashes, due_at,
			CASE WHEN bytes > 0 THEN bytes ELSE coalesce((SELECT length(b.body) FROM bodies b WHERE b.operation_id = operations.operation_id), 0) END
			FROM operations WHERE lane = $1 AND due_at <= $2 ORDER BY due_at, operation_id LIMIT $3`,
			v.lease.ID, db.Micros(r.Now()), max(v.batchMax(), suspectsLook))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for due operations: %w", err)
	}
	if len(due) > 0 && due[0].stage == Received {
		v.db.Pace().Waited(v.db.Now().Sub(due[0].due))
	}
	return due, nil
}

// batchMax is how many operations of the lane go together.
// While submits wait in numbers it is fewer: what is written together is
// written in front of them.
func (v *visit) batchMax() int {
	most := batchMax
	if v.db.Pace().Pressed() {
		most = pressedBatch
	}
	if v.known && v.pack.Keeps(&v.supplier) {
		return min(most, documentsBatch) // what it chose once to file is rare by now
	}
	return min(most, max(1, v.limits.Batch))
}

// choose says which of the due operations are taken together, and whether
// others are left for the next time.
//
// Operations that were in work when a process ended are suspects. While this
// process is young they wait and the others go, because whoever is killed again
// and again by somebody else would take those that come first for the cause. In
// a chain nobody overtakes: the lane waits as a whole, for suspects and for a
// link that was set aside.
func (v *visit) choose(ctx context.Context, due []candidate) (chosen []candidate, full bool, err error) {
	if v.ordered {
		i := slices.IndexFunc(due, candidate.aside)
		if i == 0 {
			v.stopBehind(due[0])
			return nil, false, nil
		}
		if i > 0 {
			due = due[:i]
		}
	}
	var worst int64
	for _, c := range due {
		worst = max(worst, c.crashes)
	}
	n, young := v.batchMax(), v.db.Now().Before(v.begun.Add(v.suspectsAfter))
	switch {
	case worst >= aloneFrom && young && v.ordered:
		v.rest = maxTime(v.rest, v.begun.Add(v.suspectsAfter))
		return nil, false, nil
	case worst >= aloneFrom && young:
		innocent := due[:0:0]
		for _, c := range due {
			if c.crashes < aloneFrom {
				innocent = append(innocent, c)
			}
		}
		if len(innocent) == 0 {
			return nil, false, v.db.Write(ctx, func(tx *db.Tx) error {
				if err := v.lease.Guard(tx); err != nil {
					return err
				}
				return deferSuspects(tx, v.lease.ID, aloneFrom, v.begun.Add(v.suspectsAfter))
			})
		}
		due, n = innocent, min(n, suspectBatch)
	case worst >= aloneFrom:
		n = 1
	case worst > 0:
		n = min(n, suspectBatch)
	}
	return due[:min(n, len(due))], len(due) >= n, nil
}

// stopBehind lets a chained lane wait for a person: one of its links is set
// aside, and nothing overtakes it.
func (v *visit) stopBehind(c candidate) {
	v.reason, v.trouble = fault.Held, "operation "+c.id+" has its place in the chain and is set aside; nothing is filed behind it until somebody releases it"
	v.rest = maxTime(v.rest, v.db.Now().Add(v.doubled(v.cfg.RetryBase, holdDoublings)))
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
	rows, err := r.Query("SELECT operation_id, body, warnings, coalesce(digest, ''), coalesce(customer, '') FROM bodies WHERE "+v.db.In("operation_id", "$1"), db.Strings(all))
	if err != nil {
		return fmt.Errorf("load bodies: %w", err)
	}
	if err := rows.Each(func(scan func(...any) error) error {
		var id, digest, customer string
		var body []byte
		var warnings *string
		if err := scan(&id, &body, &warnings, &digest, &customer); err != nil {
			return err
		}
		byID[id].body, byID[id].warnings, byID[id].digest, byID[id].customer = body, ReadFaults(warnings), digest, customer
		return nil
	}); err != nil {
		return err
	}
	if len(filed) > 0 {
		if err := v.loadFilings(r, byID, filed); err != nil {
			return err
		}
		if err := v.loadTold(r, byID, filed); err != nil {
			return err
		}
	}
	for _, o := range ops {
		if len(o.body) == 0 {
			return fmt.Errorf("the body of %s %w", o.id, errMissing)
		}
	}
	return nil
}

// quarantine sets aside operations that were in work when the process died too
// often. One that certainly is not at the authority ends in FAILURE when it is
// hopeless; one that may be there, or has its place in a chain, waits for a person.
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
	err = v.commit(ctx, func(time.Time) []transition { return v.aside(bad) }, func(tx *db.Tx) error {
		for _, o := range bad {
			if err := v.cfg.Alerts.RaiseIn(tx, alert.OperationQuarantined, o.id,
				fmt.Sprintf("operation %s was alone in work when the process ended %d times; it is set aside in stage %s", o.id, crashesMax, o.stage)); err != nil {
				return err
			}
		}
		return nil
	})
	for _, o := range bad {
		o.counted = false // their count stays: it is why they are here
	}
	return rest, err
}

// aside moves operations out of the way. A link of a chain stays where it is,
// and the lane stops at it, see choose.
func (v *visit) aside(ops []*operation) (list []transition) {
	for _, o := range ops {
		switch {
		case o.stage == Received, o.stage == Prepared && !v.chained:
			list = append(list, o.to(setAside, db.Micros(o.startedAt.Add(hopelessAfter))))
		case !v.ordered, o.stage == Pending:
			list = append(list, o.to(keptAside))
		}
	}
	return list
}

// refuseEmpty keeps operations that lost their bytes from being sent or ended:
// nobody can say what the authority holds of them.
func (v *visit) refuseEmpty(ctx context.Context, ops []*operation) (rest []*operation, err error) {
	var empty []*operation
	for _, o := range ops {
		filed := o.stage == Prepared || o.stage == Sent || o.stage == Pending
		if filed && len(o.filing.Report) == 0 {
			empty = append(empty, o)
		} else {
			rest = append(rest, o)
		}
	}
	if len(empty) == 0 {
		return ops, nil
	}
	err = v.commit(ctx, func(time.Time) (list []transition) {
		for _, o := range empty {
			if !v.ordered {
				list = append(list, o.to(keptAside))
			}
		}
		return list
	}, func(tx *db.Tx) error {
		for _, o := range empty {
			if err := v.cfg.Alerts.RaiseOnceIn(tx, o.startedAt, alert.Alert{Name: alert.FilingMissing, Subject: o.id,
				Message: fmt.Sprintf("operation %s is in stage %s, and its bytes are not stored; it is neither sent nor ended", o.id, o.stage)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && v.ordered {
		err = fmt.Errorf("the filing of %s %w", empty[0].id, errMissing)
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
