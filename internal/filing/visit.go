package filing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
	"tributary/internal/lease"
	"tributary/internal/transaction"
)

const (
	lanesAtOnce  = 32   // lanes in work on this node, of one country and environment; see Config.Slots
	countries    = 16   // so many of which may have all of theirs in work
	batchMax     = 1000 // operations taken together, less where the authority wants less
	pressedBatch = 50   // the same while submits wait in numbers, see db.Pace
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

	holdDoublings = 4 // the pause of a held lane is eight times the first retry's
)

// Run processes operations until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	pump := &lease.Pump[laneState]{DB: s.db, Queue: laneQueue, Log: s.log, InFlight: countries * s.cfg.Slots, Work: s.visit, Poll: s.poll,
		Class: endpointOf, ClassMost: s.cfg.Slots}
	var listening sync.WaitGroup
	listening.Go(func() { s.listen(ctx) })
	listening.Go(func() { s.closePeriods(ctx) })
	defer listening.Wait()
	return pump.Run(ctx)
}

// visit is one holder's turn on a lane.
type visit struct {
	*Service
	lease    *lease.Lease[laneState]
	at       Place
	pack     country.Pack
	channel  country.Channel // nil: documents only, or no address
	limits   country.Limits
	chained  bool
	ordered  bool // links must arrive one after another: nothing overtakes one that is unclear
	supplier country.Supplier
	known    bool // the supplier exists
	location *time.Location
	creds    country.Credentials
	version  int64 // of the credentials
	acted    int64 // the version that was acted on, see signAnew

	failures int64
	reason   fault.Code // why the lane stands still, with trouble for people
	trouble  string
	failing  bool            // this visit is counted in failures
	paused   bool            // it found that the credentials do not work
	rest     time.Time       // our own pause after a failure
	wait     time.Time       // the pause that the authority asked for
	held     *Hold           // why nothing may be filed; nil: it may
	newcomer bool            // it may have filed before a restored backup, and nobody has asked yet
	adopting bool            // documents wait for their operations
	spoken   map[gapKey]bool // of these, those that this visit has given to an operation
	left     bool            // the lane was given back together with the outcomes
	answers  bool            // the authority answers again, after nothing got through
	behind   bool            // it waits for another's call to an authority to which nothing got through
	bytes    int64           // of the node's room, for the batch in work
	leftover []string        // operations whose crash count has to be taken back
}

// visit works a lane until nothing is due, the authority asks for a pause, or
// others should have their turn.
//
// Failure policy: whatever goes wrong here leaves the operations in a stored
// stage from which the next visit goes on; nothing is decided by the fact that
// a visit ended.
func (s *Service) visit(ctx context.Context, lease *lease.Lease[laneState]) {
	defer s.reached(killpoint.Left, lease.ID)
	v := &visit{Service: s, lease: lease, failures: lease.Row.failures, reason: lease.Row.reason, trouble: lease.Row.trouble, wait: lease.Row.askedUntil,
		acted: lease.Row.credentials}
	defer v.tellOthers(context.WithoutCancel(ctx))
	err := v.open(ctx)
	held := err == nil && v.hold()
	if err == nil && !held {
		v.mindBreaker()
	}
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
		v.failures, v.reason, v.trouble, v.rest = lease.Row.failures, lease.Row.reason, lease.Row.trouble, time.Time{}
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
	v.reason, v.trouble = reasonOf(err), err.Error()
	if !v.failing {
		v.failing = true
		v.failures++
	}
}

func (v *visit) backOff() {
	if until := v.db.Now().Add(v.Backoff(max(1, v.failures))); until.After(v.rest) {
		v.rest = until
	}
}

func (v *visit) recovered() { v.failures, v.reason, v.trouble, v.failing = 0, "", "", false }

// pause stops the lane until somebody brings new credentials; it looks again now and then.
func (v *visit) pause(err error) {
	v.failed(err)
	v.paused = true
}

func (v *visit) lacksCredentials() bool { return v.reason == fault.CredentialsInvalid }

// hold lets the lane of a held supplier rest; true when it is held.
func (v *visit) hold() bool {
	if v.held == nil {
		if v.reason == fault.Held || v.reason == fault.ChainStopped {
			v.reason, v.trouble = "", ""
		}
		return false
	}
	v.reason, v.trouble = v.held.Reason, v.held.Why
	v.rest = v.db.Now().Add(v.doubled(v.cfg.RetryBase, holdDoublings))
	return true
}

// subject names the lane's supplier in alerts.
func (v *visit) subject() string { return v.at.Scope + "/" + v.at.SupplierID }

// until is when the lane may be visited next; zero: at once.
func (v *visit) until() time.Time { return maxTime(v.wait, v.rest) }

func (v *visit) resting() bool { return v.until().After(v.db.Now()) }

// commit is one write of the lane's holder: what belongs to the transitions, then
// the transitions themselves. Steps say at the instant of the write how
// operations move; a write function may run twice.
func (v *visit) commit(ctx context.Context, next step, also ...func(tx *db.Tx) error) error {
	var done []transition
	err := v.db.Write(ctx, func(tx *db.Tx) error {
		if err := v.lease.Guard(tx); err != nil {
			return err
		}
		for _, fn := range also {
			if err := fn(tx); err != nil {
				return err
			}
		}
		done = next(tx.Now())
		if err := apply(tx, done); err != nil {
			return err
		}
		return v.hurryTold(tx, done)
	})
	if err == nil {
		landed(done)
	}
	return err
}

// nothing is the step of a commit that moves no operation.
func nothing(time.Time) []transition { return nil }

// leave gives the lane back and stores what it must remember.
func (v *visit) leave(tx *db.Tx) error {
	until := v.until()
	if v.lacksCredentials() {
		// Whoever replaces them meanwhile waits for this commit, or is seen by it.
		if err := tx.Lock(credentialsLock(v.at.Scope, v.at.SupplierID)); err != nil {
			return err
		}
		version, err := credentialVersion(tx, v.at.Scope, v.at.SupplierID)
		if err != nil {
			return err
		}
		if version != v.version {
			until = v.wait
		}
	}
	if err := v.lease.Finish(tx, until); err != nil {
		return err
	}
	if err := uncountVisit(tx, v.db, v.leftover); err != nil {
		return err
	}
	if err := v.raiseTrouble(tx); err != nil {
		return err
	}
	before := v.lease.Row
	if v.failures == before.failures && v.reason == before.reason && v.trouble == before.trouble && v.wait.Equal(before.askedUntil) && v.acted == before.credentials {
		return nil
	}
	since, asked := any(nil), any(nil)
	switch {
	case v.failures > 0 && before.troubleAt.IsZero():
		since = db.Micros(tx.Now())
	case v.failures > 0:
		since = db.Micros(before.troubleAt)
	}
	if !v.wait.IsZero() {
		asked = db.Micros(v.wait)
	}
	return tx.Exec("UPDATE lanes SET failures = $1, reason = $2, trouble = $3, trouble_at = $4, asked_until = $5, credentials = $6 WHERE lane = $7",
		v.failures, string(v.reason), v.trouble, since, asked, v.acted, v.lease.ID)
}

// raiseTrouble tells somebody of a lane that stands still: at once where only a
// person can help, and of any trouble at 24 and at 48 hours.
func (v *visit) raiseTrouble(tx *db.Tx) error {
	if v.failures == 0 {
		return nil
	}
	began := v.lease.Row.troubleAt
	if began.IsZero() || v.reason != v.lease.Row.reason {
		switch v.reason {
		case fault.CredentialsInvalid:
			return v.cfg.Alerts.RaiseIn(tx, alert.LanePausedCredentials, v.subject(), "filing is paused: "+v.trouble)
		case fault.AuthorityNotConfigured:
			return v.cfg.Alerts.RaiseIn(tx, alert.AuthorityNotConfigured, v.at.Code+" "+environment(v.at.Live), "filing waits: "+v.trouble)
		case fault.DocumentsUnavailable:
			return v.cfg.Alerts.RaiseOnceIn(tx, tx.Now().Add(-time.Hour), alert.Alert{Name: alert.DocumentsUnavailable, Subject: "documents",
				Message: "what is registered cannot be announced: " + v.trouble})
		}
	}
	age := tx.Now().Sub(began)
	if began.IsZero() || age < doubtfulAfter {
		return nil
	}
	since, what := began, alert.Alert{Name: alert.AuthorityUnavailable24h, Subject: v.subject(),
		Message: fmt.Sprintf("nothing could be filed for %s, %s: %s", age.Round(time.Minute), cmp.Or(v.reason, "put off"), v.trouble)}
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
		v.chained, v.ordered = v.limits.Chain, v.limits.Chain && !v.limits.AnyOrder
	}
	if v.at.SupplierID == "" {
		return nil
	}
	if err := v.openSupplier(ctx); err != nil || !v.known || v.channel == nil {
		return err
	}
	if err := v.holdNewcomer(ctx); err != nil {
		return err
	}
	if v.creds, err = v.cfg.Companies.Credentials(ctx, v.at.Scope, v.at.SupplierID); err != nil {
		return fmt.Errorf("open the supplier's credentials: %w", err)
	}
	return v.signAnew(ctx)
}

// openSupplier reads whose lane it is, and whether anything of it may be filed.
func (v *visit) openSupplier(ctx context.Context) error {
	err := v.db.ReadEach(ctx, func(r db.Reader) (err error) {
		if v.channel != nil {
			if err := v.learnHold(r); err != nil {
				return err
			}
			if v.version, err = credentialVersion(r, v.at.Scope, v.at.SupplierID); err != nil {
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
	if v.supplier.Closed {
		return nil // as if it were not there: what it issued stays
	}
	v.known, v.location = true, Zone(v.cfg.Atlas, v.supplier.Address, v.pack)
	return nil
}

// learnHold finds out whether anything of the supplier may be filed, and
// whether documents wait for their operations.
func (v *visit) learnHold(r db.Reader) error {
	var reason, why *string
	var released *int64
	var looked, newcomers bool
	var gaps int
	err := r.Row(`SELECT h.reason, h.why, h.released_at, h.client_id IS NOT NULL, coalesce(i.newcomers_until, 0) > $3,
		(SELECT count(*) FROM (SELECT 1 FROM adoptions WHERE client_id = $1 AND supplier_id = $2 AND operation_id IS NULL LIMIT 1) AS one)
		FROM (SELECT 1 AS one) AS x LEFT JOIN supplier_holds h ON h.client_id = $1 AND h.supplier_id = $2 LEFT JOIN intake i ON i.one = x.one`,
		v.at.Scope, v.at.SupplierID, db.Micros(r.Now())).Scan(&reason, &why, &released, &looked, &newcomers, &gaps)
	if err != nil {
		return fmt.Errorf("look for a hold: %w", err)
	}
	v.adopting, v.newcomer = gaps > 0, newcomers && !looked
	if looked && released == nil {
		v.held = &Hold{Place: v.at, Reason: fault.Code(*reason), Why: *why}
	}
	return nil
}

// holdNewcomer holds a company that is younger than a restored backup: it may be
// one that was lost with its sales and onboarded again. Recovery asks its
// authority and releases it.
func (v *visit) holdNewcomer(ctx context.Context) error {
	if !v.newcomer || v.pack.Keeps(&v.supplier) {
		return nil
	}
	company, err := v.cfg.Companies.Company(ctx, v.at.Scope, v.at.SupplierID, false)
	if err != nil {
		return fmt.Errorf("read the company: %w", err)
	}
	hold := Hold{Place: v.at, Reason: fault.Held, Why: "a company that is new after a restored backup; its authority has not said yet what it holds"}
	return v.db.Write(ctx, func(tx *db.Tx) error {
		var from int64
		if err := tx.Row("SELECT newcomers_from FROM intake").Scan(&from); err != nil {
			return err
		}
		if time.Time(company.CreatedAt).Before(db.FromMicros(from)) {
			return nil // onboarded by a program without authorities for its country; nothing was filed
		}
		v.held = &hold
		return v.Hold(tx, hold)
	})
}

// batch moves one set of operations as far as it will go now; true when more may be due.
func (v *visit) batch(ctx context.Context) (more bool, err error) {
	ops, full, err := v.take(ctx)
	defer v.freeBytes()
	b := &batch{visit: v, ops: ops, full: full}
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
	return b.more(), nil
}

// begin gives every operation to the step that its stage asks for.
func (b *batch) begin(ctx context.Context) error {
	for _, o := range b.ops {
		switch o.stage {
		case Received:
			done := b.db.Pace().Turn(ctx)
			err := b.prepare(ctx, o)
			done()
			if err != nil {
				return err
			}
		case Prepared, Sent, Pending:
			b.weigh(o)
		case Quarantined:
			b.fail(o, internal())
		default:
			return fmt.Errorf("operation %s is due in stage %s", o.id, o.stage)
		}
	}
	return nil
}

// Backoff is the pause after the n-th failure in a row: base, doubling, capped, ±20 %.
func (s *Service) Backoff(n int64) time.Duration {
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

// Zone is the time zone of a supplier's address: it decides the day on a document.
func Zone(atlas *country.Atlas, address transaction.Address, p country.Pack) *time.Location {
	if home, ok := atlas.Pack(address.CountryCode); ok {
		p = home
	}
	name := p.Facts.TimeZone
	if p.ZoneOf != nil {
		name = cmp.Or(p.ZoneOf(address), name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return time.UTC
	}
	return zone
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
