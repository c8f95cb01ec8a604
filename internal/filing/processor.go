package filing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
)

const (
	lanesAtOnce  = 32   // lanes in work on this node
	batchMax     = 1000 // operations taken together, less where the authority wants less
	visitBatches = 16   // batches in one visit; then the lane goes to the back
	suspectBatch = 14   // operations together after a first crash
	suspectsLook = 32   // so far a lane that takes few looks behind suspects for others
	aloneFrom    = 2    // crashes after which an operation is worked alone
	crashesMax   = 3    // crashes alone; then an operation is quarantined

	// suspectsAfterDefault is how long a process must have lived before it works on
	// operations that were twice in work when a process ended. A process that is
	// killed again and again by somebody else never gets that far, so it does not
	// take the operations that happen to come first for the cause.
	suspectsAfterDefault = 5 * time.Second
	documentsBatch       = 40 // operations together where only documents are made
)

// Run processes operations until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	pump := &db.Pump[laneState]{DB: s.db, Queue: laneQueue, Log: s.log, InFlight: lanesAtOnce, Work: s.visit, Poll: s.poll}
	return pump.Run(ctx)
}

// visit is one holder's turn on a lane.
type visit struct {
	*Service
	lease    *db.Lease[laneState]
	at       Place
	pack     country.Pack
	channel  country.Channel // nil: documents only, or no address
	limits   country.Limits
	chained  bool
	supplier country.Supplier
	known    bool // the supplier exists
	location *time.Location
	creds    country.Credentials

	failures   int64
	trouble    string
	failing    bool            // this visit is counted in failures
	paused     bool            // the credentials do not work
	rest       time.Time       // our own pause after a failure
	wait       time.Time       // the pause that the authority asked for
	heldBack   string          // why nothing may be filed: a restored backup, a stopped chain; "": it may
	adopting   bool            // gaps of a restored backup wait for their operations
	restoredAt time.Time       // when a backup was restored that does not know the supplier; zero: none
	spoken     map[gapKey]bool // gaps that this visit has given to an operation
	left       bool            // the lane was given back together with the outcomes
	leftover   []string        // operations whose crash count has to be taken back
}

// visit works a lane until nothing is due, the authority asks for a pause, or
// others should have their turn.
//
// Failure policy: whatever goes wrong here leaves the operations in a stored
// stage from which the next visit goes on; nothing is decided by the fact that
// a visit ended.
func (s *Service) visit(ctx context.Context, lease *db.Lease[laneState]) {
	defer s.reached(killpoint.Left, lease.ID)
	v := &visit{Service: s, lease: lease, failures: lease.Row.failures, trouble: lease.Row.trouble}
	err := v.open(ctx)
	held := err == nil && v.hold()
	for n := 0; err == nil && !held && n < visitBatches && ctx.Err() == nil; n++ {
		var more bool
		if more, err = v.batch(ctx); !more {
			break
		}
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, db.ErrStale) {
		s.log.Error("work a lane", "lane", lease.ID, "error", err)
		v.failed(err)
		err = nil
	}
	if err == nil && !held && ctx.Err() == nil && v.failures > 0 {
		err = v.expire(ctx)
	}
	if v.left || errors.Is(err, db.ErrStale) {
		return // given back already, or somebody else holds the lane now
	}
	if ctx.Err() != nil {
		// Our own end cut the visit short; that says nothing about the authority.
		v.failures, v.trouble, v.rest = lease.Row.failures, lease.Row.trouble, time.Time{}
	}
	if err := v.db.Write(context.WithoutCancel(ctx), v.leave); err != nil && !errors.Is(err, db.ErrStale) {
		s.log.Error("leave a lane", "lane", lease.ID, "error", err)
	}
}

// failed counts a visit in which the authority brought nothing, once, and lets the lane rest.
func (v *visit) failed(err error) {
	v.countFailure(err)
	v.backOff()
}

func (v *visit) countFailure(err error) {
	v.trouble = err.Error()
	if !v.failing {
		v.failing = true
		v.failures++
	}
}

func (v *visit) backOff() {
	if until := v.db.Now().Add(v.backoff(max(1, v.failures))); until.After(v.rest) {
		v.rest = until
	}
}

func (v *visit) recovered() { v.failures, v.trouble, v.failing = 0, "", false }

// pause stops the lane until somebody brings new credentials; it looks again now and then.
func (v *visit) pause(ctx context.Context, err error) {
	known := v.lacksCredentials()
	v.failed(fmt.Errorf("%s: %w", CredentialsTrouble, err))
	v.paused = true
	if !known {
		v.cfg.Alerts.Raise(ctx, alert.LanePausedCredentials, v.subject(), "filing is paused: "+err.Error()) //nolint:errcheck // it is logged and counted in any case
	}
}

// CredentialsTrouble begins the trouble text of a lane that waits for credentials.
const CredentialsTrouble = "credentials"

func (v *visit) lacksCredentials() bool { return strings.HasPrefix(v.trouble, CredentialsTrouble) }

// subject names the lane's supplier in alerts.
func (v *visit) subject() string { return v.at.Scope + "/" + v.at.SupplierID }

// until is when the lane may be visited next; zero: at once.
func (v *visit) until() time.Time {
	if v.wait.After(v.rest) {
		return v.wait
	}
	return v.rest
}

func (v *visit) resting() bool { return v.until().After(v.db.Now()) }

// leave gives the lane back and stores what it must remember.
func (v *visit) leave(tx *db.Tx) error {
	if err := v.lease.Finish(tx, v.until()); err != nil {
		return err
	}
	if len(v.leftover) > 0 {
		err := tx.Exec("UPDATE operations SET crashes = 0 WHERE "+v.db.In("operation_id", "$1")+" AND status = 'PROCESSING'", db.Strings(v.leftover))
		if err != nil {
			return err
		}
	}
	if err := v.raiseTrouble(tx); err != nil {
		return err
	}
	if v.failures == v.lease.Row.failures && v.trouble == v.lease.Row.trouble {
		return nil
	}
	since := any(nil)
	switch {
	case v.failures > 0 && v.lease.Row.troubleAt.IsZero():
		since = db.Micros(tx.Now())
	case v.failures > 0:
		since = db.Micros(v.lease.Row.troubleAt)
	}
	return tx.Exec("UPDATE lanes SET failures = $1, trouble = $2, trouble_at = $3 WHERE lane = $4", v.failures, v.trouble, since, v.lease.ID)
}

// raiseTrouble alerts once at 24 and once at 48 hours of a lane's trouble.
func (v *visit) raiseTrouble(tx *db.Tx) error {
	began := v.lease.Row.troubleAt
	age := tx.Now().Sub(began)
	if v.failures == 0 || began.IsZero() || age < doubtfulAfter {
		return nil
	}
	since, what := began, alert.Alert{Name: alert.AuthorityUnavailable24h, Subject: v.subject(),
		Message: fmt.Sprintf("nothing could be filed for %s: %s", age.Round(time.Minute), v.trouble)}
	if age >= hopelessAfter {
		what.Name = alert.AuthorityUnavailable48h
	}
	if v.lacksCredentials() {
		what.Name, since = alert.LanePausedCredentials, began.Add(doubtfulAfter)
		if age >= hopelessAfter {
			since = began.Add(hopelessAfter)
		}
	}
	return v.cfg.Alerts.RaiseOnceIn(tx, since, what)
}

// open learns everything the lane's operations share.
func (v *visit) open(ctx context.Context) (err error) {
	if v.at, err = ParseLane(v.lease.ID); err != nil {
		return err
	}
	var ok bool
	if v.pack, ok = v.cfg.Atlas.Pack(v.at.Code); !ok {
		return fmt.Errorf("country %s is not in this program any more", v.at.Code)
	}
	v.limits = country.Limits{Batch: documentsBatch, Parallel: documentLanes}
	if v.pack.Connect != nil {
		if v.channel, err = v.cfg.Atlas.Channel(v.at.Code, v.at.Live); err != nil {
			return err
		}
		v.limits = v.channel.Limits()
		v.chained = v.limits.Chain
	}
	if v.at.SupplierID == "" {
		return nil
	}
	err = v.db.Read(ctx, func(r db.Reader) error {
		if v.channel != nil {
			if err := v.learnRestored(r); err != nil {
				return err
			}
		}
		v.supplier, err = v.cfg.Companies.Supplier(r, v.at.Scope, v.at.SupplierID)
		return err
	})
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the supplier: %w", err)
	}
	v.known = true
	if !v.restoredAt.IsZero() {
		if err := v.enlist(ctx); err != nil {
			return err
		}
	}
	v.location = locate(v.cfg.Atlas, v.supplier, v.pack)
	if v.channel != nil {
		if v.creds, err = v.cfg.Companies.Credentials(ctx, v.at.Scope, v.at.SupplierID); err != nil {
			return fmt.Errorf("open the supplier's credentials: %w", err)
		}
	}
	return nil
}

// batch moves one set of operations as far as it will go now; true when more may be due.
func (v *visit) batch(ctx context.Context) (more bool, err error) {
	ops, full, err := v.take(ctx)
	b := &batch{visit: v, ops: ops}
	if err == nil {
		err = b.begin(ctx)
	}
	if err == nil {
		err = b.run(ctx)
	}
	v.leftover = append(v.leftover, b.uncounted(nil)...)
	if err != nil {
		// What the authority said is evidence, whoever holds the lane now.
		return false, errors.Join(err, b.storeEvidence(context.WithoutCancel(ctx)))
	}
	if v.left || v.resting() {
		return false, nil
	}
	return full || len(b.moved) > 0, nil
}

// begin gives every operation to the step that its stage asks for.
func (b *batch) begin(ctx context.Context) error {
	for _, o := range b.ops {
		switch o.stage {
		case Received:
			if err := b.prepare(ctx, o); err != nil {
				return err
			}
		case Prepared:
			b.outgoing = append(b.outgoing, o)
		case Sent:
			b.ambiguous = append(b.ambiguous, o)
		case Pending:
			b.pending = append(b.pending, o)
		case Quarantined:
			b.fail(o, internal())
		default:
			return fmt.Errorf("operation %s is due in stage %s", o.id, o.stage)
		}
	}
	return nil
}

// backoff is the pause after the n-th failure in a row: base, doubling, capped, ±20 %.
func (s *Service) backoff(n int64) time.Duration {
	wait := s.doubled(s.cfg.RetryBase, n)
	return time.Duration(float64(wait) * (0.8 + 0.4*s.jitter()))
}

// doubled is a pause after doubling it for each time but the first, capped.
func (s *Service) doubled(pause time.Duration, times int64) time.Duration {
	most := time.Duration(retryMax)
	if s.pauseMax > 0 {
		most = s.pauseMax
	}
	for i := int64(1); i < times && pause < most; i++ {
		pause *= 2
	}
	return min(pause, most)
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
