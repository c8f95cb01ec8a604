package transaction

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

const (
	lanesAtOnce    = 32  // lanes in work on this node
	batchMax       = 200 // operations taken together, less where the authority wants less
	visitBatches   = 16  // batches in one visit; then the lane goes to the back
	crashesMax     = 3   // then an operation is quarantined
	suspectBatch   = 14  // operations together after a first crash; after a second, one alone
	documentsBatch = 40  // operations together where only documents are made
)

// Run processes operations until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	pump := &db.Pump[laneState]{DB: s.db, Queue: laneQueue, Log: s.log, InFlight: lanesAtOnce, Work: s.visit}
	return pump.Run(ctx)
}

// visit is one holder's turn on a lane.
type visit struct {
	*Service
	lease    *db.Lease[laneState]
	at       place
	pack     country.Pack
	channel  country.Channel // nil: documents only, or no address
	limits   country.Limits
	chained  bool
	supplier country.Supplier
	known    bool // the supplier exists
	location *time.Location
	creds    country.Credentials

	failures int64
	trouble  string
	rest     time.Time // the lane rests until then
}

// visit works a lane until nothing is due, the authority asks for a pause, or
// others should have their turn.
//
// Failure policy: whatever goes wrong here leaves the operations in a stored
// stage from which the next visit goes on; nothing is decided by the fact that
// a visit ended.
func (s *Service) visit(ctx context.Context, lease *db.Lease[laneState]) {
	v := &visit{Service: s, lease: lease, failures: lease.Row.failures, trouble: lease.Row.trouble}
	err := v.open(ctx)
	for n := 0; err == nil && n < visitBatches && ctx.Err() == nil; n++ {
		var more bool
		if more, err = v.batch(ctx); !more {
			break
		}
	}
	if errors.Is(err, db.ErrStale) {
		return // somebody else holds the lane now
	}
	if err != nil && ctx.Err() == nil {
		s.log.Error("work a lane", "lane", lease.ID, "error", err)
		v.failures++
		v.trouble = err.Error()
		v.rest = s.db.Now().Add(s.backoff(v.failures))
	}
	if err := v.leave(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, db.ErrStale) {
		s.log.Error("leave a lane", "lane", lease.ID, "error", err)
	}
}

// leave gives the lane back and stores what it must remember.
func (v *visit) leave(ctx context.Context) error {
	return v.db.Write(ctx, func(tx *db.Tx) error {
		if err := v.lease.Finish(tx, v.rest); err != nil {
			return err
		}
		if v.failures == v.lease.Row.failures && v.trouble == v.lease.Row.trouble {
			return nil
		}
		var since any
		if v.trouble != "" {
			since = db.Micros(tx.Now())
		}
		return tx.Exec("UPDATE lanes SET failures = $1, trouble = $2, trouble_at = CASE WHEN trouble_at IS NULL OR $2 = '' THEN $3 ELSE trouble_at END WHERE lane = $4",
			v.failures, v.trouble, since, v.lease.ID)
	})
}

// open learns everything the lane's operations share.
func (v *visit) open(ctx context.Context) (err error) {
	if v.at, err = parseLane(v.lease.ID); err != nil {
		return err
	}
	var ok bool
	if v.pack, ok = v.cfg.Atlas.Pack(v.at.code); !ok {
		return fmt.Errorf("country %s is not in this program any more", v.at.code)
	}
	v.limits = country.Limits{Batch: documentsBatch, Parallel: documentLanes}
	if v.pack.Connect != nil {
		if v.channel, err = v.cfg.Atlas.Channel(v.at.code, v.at.live); err != nil {
			return err
		}
		v.limits = v.channel.Limits()
		v.chained = v.limits.Chain
	}
	if v.at.supplierID == "" {
		return nil
	}
	err = v.db.Read(ctx, func(r db.Reader) error {
		v.supplier, err = v.cfg.Companies.Supplier(r, v.at.scope, v.at.supplierID)
		return err
	})
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the supplier: %w", err)
	}
	v.known = true
	v.location = locate(v.cfg.Atlas, v.supplier, v.pack)
	if v.channel != nil {
		if v.creds, err = v.cfg.Companies.Credentials(ctx, v.at.scope, v.at.supplierID); err != nil {
			return fmt.Errorf("open the supplier's credentials: %w", err)
		}
	}
	return nil
}

// batch moves one set of operations as far as it will go now; true when more may be due.
func (v *visit) batch(ctx context.Context) (more bool, err error) {
	ops, full, err := v.take(ctx)
	if err != nil || len(ops) == 0 {
		return false, err
	}
	b := &batch{visit: v}
	for _, o := range ops {
		switch o.stage {
		case Received:
			b.prepare(ctx, o)
		case Prepared:
			b.outgoing = append(b.outgoing, o)
		case Sent:
			b.ambiguous = append(b.ambiguous, o)
		case Pending:
			b.pending = append(b.pending, o)
		case Quarantined:
			b.settle(outcome{op: o, status: Failure, faults: []fault.Fault{{Code: fault.InternalError, Type: fault.General,
				Message: "the transaction could not be processed; nothing was registered"}}})
		default:
			return false, fmt.Errorf("operation %s is due in stage %s", o.id, o.stage)
		}
	}
	if err := b.run(ctx); err != nil {
		return false, err
	}
	if v.rest.After(v.db.Now()) {
		return false, b.expire(ctx)
	}
	return full || len(b.moved) > 0, nil
}

// take claims what is due in the lane, oldest first, and counts the visit
// before any work: an operation that kills the process is recognised by its
// count, first among a few suspects, then alone.
func (v *visit) take(ctx context.Context) (ops []*operation, full bool, err error) {
	limit := min(batchMax, max(1, v.limits.Batch))
	if v.channel == nil {
		limit = documentsBatch
	}
	err = v.db.Write(ctx, func(tx *db.Tx) error {
		ops = nil
		if err := v.lease.Guard(tx); err != nil {
			return err
		}
		due := db.Micros(tx.Now())
		n := limit
		var worst int64
		if err := tx.Row("SELECT coalesce(max(crashes), 0) FROM (SELECT crashes FROM operations WHERE lane = $1 AND due_at <= $2 ORDER BY due_at, operation_id LIMIT $3) AS next",
			v.lease.ID, due, limit).Scan(&worst); err != nil {
			return fmt.Errorf("look for crashes: %w", err)
		}
		switch {
		case worst >= 2:
			n = 1
		case worst == 1:
			n = min(n, suspectBatch)
		}
		var err error
		ops, err = db.Collect(tx, scanOperation, `UPDATE operations SET crashes = crashes + 1, started_at = coalesce(started_at, $1)
			WHERE operation_id IN (SELECT operation_id FROM operations WHERE lane = $2 AND due_at <= $1 ORDER BY due_at, operation_id LIMIT $3)
			RETURNING `+operationFields, due, v.lease.ID, n)
		full = len(ops) == n
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("take operations: %w", err)
	}
	sortByID(ops)
	if ops, err = v.quarantine(ctx, ops); err != nil || len(ops) == 0 {
		return ops, full, err
	}
	return ops, full, v.db.Read(ctx, func(r db.Reader) error { return v.load(r, ops) })
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
		byID[id].body, byID[id].warnings = body, decodeFaults(warnings)
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
		if o.crashes > crashesMax && o.stage != Quarantined {
			bad = append(bad, o)
		} else {
			rest = append(rest, o)
		}
	}
	if len(bad) == 0 {
		return ops, nil
	}
	return rest, v.db.Write(ctx, func(tx *db.Tx) error {
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
				fmt.Sprintf("operation %s was in work when the process ended %d times; it is set aside in stage %s", o.id, crashesMax, o.stage)); err != nil {
				return err
			}
		}
		return nil
	})
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

// backoff is the pause after the n-th failure in a row: base, doubling, capped, ±20 %.
func (s *Service) backoff(n int64) time.Duration {
	wait := s.cfg.RetryBase
	for i := int64(1); i < n && wait < retryMax; i++ {
		wait *= 2
	}
	wait = min(wait, retryMax)
	return time.Duration(float64(wait) * (0.8 + 0.4*s.jitter()))
}

// locate is the time zone of the supplier's address: it decides the day on a document.
func locate(atlas *country.Atlas, s country.Supplier, p country.Pack) *time.Location {
	if home, ok := atlas.Pack(s.Address.CountryCode); ok {
		p = home
	}
	zone, err := time.LoadLocation(p.Facts.TimeZone)
	if err != nil || p.Facts.TimeZone == "" {
		return time.UTC
	}
	return zone
}
