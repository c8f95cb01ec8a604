package filing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tributary/internal/alert"
	"tributary/internal/correction"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
)

const (
	batchMax     = 1000 // operations taken together, less where the authority wants less
	pressedBatch = 50   // the same while submits wait in numbers, see db.Pace
	suspectBatch = 14   // operations together after a first crash
	suspectsLook = 32   // so far a lane that takes few looks behind suspects for others
	aloneFrom    = 2    // crashes after which an operation is worked alone
	crashesMax   = 3    // crashes alone; then an operation is quarantined

	// suspectsAfterDefault is how long a process must have lived before it works on
	// operations that were twice in work when a process ended. A process that is
	// killed again and again by somebody else never gets that far, so it does not
	// take the operations that happen to come first for the cause.
	suspectsAfterDefault = 5 * time.Second
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
	return c.crashes > AsideFrom && (c.stage == Prepared || c.stage == Sent)
}

func (c candidate) suspect() bool { return c.crashes >= aloneFrom }

// take claims what is due in the lane, oldest first, and counts the visit
// before any work: an operation that kills the process is recognised by its
// count, first among a few suspects, then alone. Every other way out of a
// visit takes the count back, see visit.leave. full: others are due behind them.
func take(ctx context.Context, v *visit) (ops []*op, full bool, err error) {
	due, err := candidates(ctx, v)
	if err != nil || v.health.wait.After(v.now()) {
		return nil, false, err // the authority asked the company for a pause, perhaps in another lane
	}
	chosen, err := choose(ctx, v, due)
	if err != nil || len(chosen.ops) == 0 {
		return nil, false, err
	}
	fits := within(chosen.ops, v.bytesBeside())
	full = chosen.full || len(fits) < len(chosen.ops)
	if err := v.reserveBytes(ctx, fits); err != nil {
		return nil, false, err
	}
	if ops, err = claim(ctx, v, fits); err != nil {
		return nil, false, err
	}
	if ops, err = quarantine(ctx, v, ops); err != nil || len(ops) == 0 {
		return nil, full, err
	}
	done := v.s.db.Pace().Turn(ctx)
	err = v.s.db.ReadEach(ctx, func(r db.Reader) error { return load(r, v.s.db, ops, v.lane.pack.Speaks()) }) // the lease keeps them as they are
	if done(); err != nil {
		return nil, false, err
	}
	ops, err = refuseEmpty(ctx, v, ops)
	return ops, full, err
}

// claim raises the crash counts of what was chosen.
func claim(ctx context.Context, v *visit, chosen []candidate) (ops []*op, err error) {
	ids := make([]string, len(chosen))
	for i, c := range chosen {
		ids[i] = c.id
	}
	err = v.s.db.Write(ctx, func(tx *db.Tx) error {
		if err := v.lease.Guard(tx); err != nil {
			return err
		}
		ops, err = countVisit(tx, v.s.db, ids)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("take operations: %w", err)
	}
	killpoint.Reach(killpoint.Taken)
	for _, o := range ops {
		o.counted = true
	}
	sortByID(ops)
	return ops, nil
}

// candidates are the next operations that are due, in their order.
func candidates(ctx context.Context, v *visit) (due []candidate, err error) {
	defer v.s.db.Pace().Turn(ctx)()
	err = v.s.db.ReadEach(ctx, func(r db.Reader) error {
		due, err = db.Collect(r, func(scan func(...any) error) (c candidate, err error) {
			return c, scan(&c.id, &c.stage, &c.crashes, db.NullInstant(&c.due), &c.bytes)
		}, `SELECT operation_id, stage, crashes, due_at,
			CASE WHEN bytes > 0 THEN bytes ELSE coalesce((SELECT length(b.body) FROM bodies b WHERE b.operation_id = operations.operation_id), 0) END
			FROM operations WHERE lane = $1 AND due_at <= $2 ORDER BY due_at, operation_id LIMIT $3`,
			v.lease.ID, db.Micros(r.Now()), max(takeMax(v), suspectsLook))
		if err != nil || len(due) == 0 {
			return err
		}
		return v.hearOthers(r)
	})
	if err != nil {
		return nil, fmt.Errorf("look for due operations: %w", err)
	}
	if len(due) > 0 && due[0].stage == Received {
		v.s.db.Pace().Waited(v.now().Sub(due[0].due))
	}
	return due, nil
}

// takeMax is how many operations of the lane are taken together.
// While submits wait in numbers it is fewer: what is written together is
// written in front of them.
func takeMax(v *visit) int {
	most := batchMax
	if v.s.db.Pace().Pressed() {
		most = pressedBatch
	}
	working, _ := v.beside()
	most = batchBeside(most, working, v.unhurried())
	if v.lane.known && v.lane.pack.Keeps(&v.lane.supplier) {
		return min(most, documentsBatch) // what it chose once to file is rare by now
	}
	return min(most, max(1, v.lane.limits.Batch))
}

// choice is which of the due operations are taken together.
type choice struct {
	ops  []candidate
	full bool // others are left for the next time
}

func first(due []candidate, n int) choice { return choice{due[:min(n, len(due))], len(due) >= n} }

// choose says which of the due operations are taken together.
//
// Operations that were in work when a process ended are suspects. While this
// process is young they wait and the others go, because whoever is killed again
// and again by somebody else would take those that come first for the cause. In
// a chain nobody overtakes: the lane waits as a whole, for suspects and for a
// link that was set aside.
func choose(ctx context.Context, v *visit, due []candidate) (choice, error) {
	if v.lane.ordered() {
		i := slices.IndexFunc(due, candidate.aside)
		if i == 0 {
			stopBehind(v, due[0])
			return choice{}, nil
		}
		if i > 0 {
			due = due[:i]
		}
	}
	var worst int64
	for _, c := range due {
		worst = max(worst, c.crashes)
	}
	grownUp := v.s.begun.Add(v.s.suspectsAfter)
	switch {
	case worst == 0:
		return first(due, takeMax(v)), nil
	case worst < aloneFrom:
		return first(due, min(takeMax(v), suspectBatch)), nil
	case !v.now().Before(grownUp):
		return first(due, 1), nil
	case v.lane.ordered():
		v.restUntil(grownUp)
		return choice{}, nil
	}
	unaffected := slices.DeleteFunc(slices.Clone(due), candidate.suspect)
	if len(unaffected) > 0 {
		return first(unaffected, min(takeMax(v), suspectBatch)), nil
	}
	return choice{}, v.s.db.Write(ctx, func(tx *db.Tx) error {
		if err := v.lease.Guard(tx); err != nil {
			return err
		}
		return deferSuspects(tx, v.lease.ID, aloneFrom, grownUp)
	})
}

// stopBehind lets a chained lane wait for a person: one of its links is set
// aside, and nothing overtakes it.
func stopBehind(v *visit, c candidate) {
	v.health.reason, v.health.trouble = fault.Held, "operation "+c.id+" has its place in the chain and is set aside; nothing is filed behind it until somebody releases it"
	v.restUntil(v.now().Add(v.heldPause()))
}

// quarantine sets aside operations that were in work when the process died too
// often, and answers the others. One that certainly is not at the authority ends
// in FAILURE when it is hopeless; one that may be there, or has its place in a
// chain, waits for a person.
func quarantine(ctx context.Context, v *visit, ops []*op) (rest []*op, err error) {
	var bad []*op
	for _, o := range ops {
		if o.crashes > AsideFrom && o.stage != Quarantined {
			bad = append(bad, o)
		} else {
			rest = append(rest, o)
		}
	}
	if len(bad) == 0 {
		return ops, nil
	}
	err = v.commit(ctx, func(time.Time) []transition { return aside(v, bad) }, func(tx *db.Tx) error {
		for _, o := range bad {
			if err := v.s.cfg.Alerts.RaiseIn(tx, alert.OperationQuarantined, o.ID,
				fmt.Sprintf("operation %s is quarantined in stage %s: the service crashed %d times while processing it", o.ID, o.stage,
					crashesMax)); err != nil {
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
func aside(v *visit, ops []*op) (list []transition) {
	for _, o := range ops {
		switch {
		case o.stage == Received, o.stage == Prepared && !v.lane.chained():
			list = append(list, o.to(setAside, db.Micros(o.startedAt.Add(HopelessAfter))))
		case !v.lane.ordered(), o.stage == Pending:
			list = append(list, o.to(keptAside))
		}
	}
	return list
}

// refuseEmpty keeps operations that lost their bytes from being sent or ended:
// nobody can say what the authority holds of them. It answers the others.
func refuseEmpty(ctx context.Context, v *visit, ops []*op) (rest []*op, err error) {
	var empty []*op
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
			if !v.lane.ordered() {
				list = append(list, o.to(keptAside))
			}
		}
		return list
	}, func(tx *db.Tx) error {
		for _, o := range empty {
			if err := v.s.cfg.Alerts.RaiseOnceIn(tx, o.startedAt, alert.Alert{Name: alert.FilingMissing, Subject: o.ID,
				Message: fmt.Sprintf("operation %s is in stage %s, and its bytes are not stored; it is neither sent nor ended", o.ID, o.stage)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && v.lane.ordered() {
		err = fmt.Errorf("the filing of %s %w", empty[0].ID, correction.ErrMissing)
	}
	return rest, err
}
