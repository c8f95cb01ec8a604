package filing

import (
	"context"
	"fmt"
	"time"

	"tributary/internal/adoption"
	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/hold"
	"tributary/internal/lease"
	"tributary/internal/operation"
)

// lane is what all operations of a lane share. It is made when a visit begins
// and does not change: steps read it.
type lane struct {
	at       Place
	pack     country.Pack
	channel  country.Channel // nil: documents only, or no address
	limits   country.Limits
	supplier country.Supplier
	known    bool // the supplier exists
	location *time.Location
	creds    country.Credentials
	version  int64 // of the credentials
	newcomer bool  // it may have filed before a restored backup, and nobody has asked yet
	adopting bool  // documents wait for their operations
	restored bool  // a backup was restored, at any time
}

// chained reports whether filings hang on each other.
func (l *lane) chained() bool { return l.channel != nil && l.limits.Chain }

// ordered: links must arrive one after another; nothing overtakes one that is unclear.
func (l *lane) ordered() bool { return l.chained() && !l.limits.AnyOrder }

// askable reports whether the authority can be asked what it holds under a number.
func (l *lane) askable() bool {
	return l.limits.Class == country.ByNumber || l.limits.Class == country.ByChain
}

// sameBytes reports whether the authority is asked about a filing by sending it again.
func (l *lane) sameBytes() bool {
	return l.limits.Class == country.ByHash || l.limits.Class == country.ByKey
}

// ours reports whether what the authority holds is what we filed. Where the
// handle itself is ours (a hash or a key of our making) the handle decides.
func (l *lane) ours(o *op, r country.Receipt) bool {
	if r.SHA256 != "" {
		return r.SHA256 == o.filing.SHA256
	}
	return l.sameBytes()
}

// subject names the lane's supplier in alerts.
func (l *lane) subject() string { return l.at.Scope + "/" + l.at.SupplierID }

// health is how a lane fares with its authority, and what it waits for.
type health struct {
	failures int64      // visits in a row that brought nothing
	reason   fault.Code // why the lane stands still, with trouble for people
	trouble  string
	failing  bool      // this visit is counted in failures
	paused   bool      // it found that the credentials do not work
	rest     time.Time // our own pause after a failure
	wait     time.Time // the pause that the authority asked for
	acted    int64     // the version of the credentials that was acted on, see signAnew
	answers  bool      // the authority answers again, after nothing got through
	behind   bool      // it waits for another's call to an authority to which nothing got through
}

func (h *health) recovered() { h.failures, h.reason, h.trouble, h.failing = 0, "", "", false }

func (h *health) lacksCredentials() bool { return h.reason == fault.CredentialsInvalid }

// until is when the lane may be visited next; zero: at once.
func (h *health) until() time.Time { return maxTime(h.wait, h.rest) }

// countFailure counts a visit in which the authority brought nothing, once.
func (h *health) countFailure(err error) {
	h.reason, h.trouble = reasonOf(err), err.Error()
	if !h.failing {
		h.failing = true
		h.failures++
	}
}

// hopeless is why nothing was registered in 48 hours.
func (h *health) hopeless() fault.Fault {
	if h.lacksCredentials() {
		return fault.Fault{Code: fault.CredentialsInvalid, Type: fault.TaxAuthority, Message: "the supplier's credentials did not work for 48 hours; nothing was registered"}
	}
	return fault.Fault{Code: fault.AuthorityUnavailable, Type: fault.TaxAuthority, Message: "the tax authority could not be reached for 48 hours; nothing was registered"}
}

// visit is one holder's turn on a lane.
type visit struct {
	lane   lane
	health health
	s      *Service
	lease  *lease.Lease[laneState]

	held      *hold.Hold            // why nothing may be filed; nil: it may
	lostAt    time.Time             // when it began, or lost an answer after that: no filing of the lane was in a call then
	spoken    map[adoption.Key]bool // of the documents that wait, those that this visit has given to an operation
	left      bool                  // the lane was given back together with the outcomes
	leaveRoom func()                // gives the node's room back; nil: the batch in work holds none
	leftover  []string              // operations whose crash count has to be taken back
}

func newVisit(s *Service, lease *lease.Lease[laneState]) *visit {
	row := lease.Row
	v := &visit{s: s, lease: lease, lostAt: time.Now(), lane: lane{at: row.Place},
		health: health{failures: row.failures, reason: row.reason, trouble: row.trouble, acted: row.credentials}}
	v.health.wait = v.asked(row.askedUntil)
	return v
}

// askedMax is the longest pause that an authority is granted.
const askedMax = 24 * time.Hour

// asked is the end of a pause as it was stored; zero: it is over, or a clock stored it that was ahead.
func (v *visit) asked(until time.Time) time.Time {
	if until.Sub(v.now()) > askedMax {
		return time.Time{}
	}
	return until
}

func (v *visit) now() time.Time { return v.s.db.Now() }

func (v *visit) resting() bool { return v.health.until().After(v.now()) }

// failed counts a visit in which the authority brought nothing, once, and lets the lane rest.
func (v *visit) failed(err error) {
	v.health.countFailure(err)
	v.backOff()
}

func (v *visit) backOff() { v.restUntil(v.now().Add(v.s.Pause(max(1, v.health.failures)))) }

func (v *visit) restUntil(t time.Time) { v.health.rest = maxTime(v.health.rest, t) }

// pause stops the lane until somebody brings new credentials; it looks again now and then.
func (v *visit) pause(err error) {
	v.failed(err)
	v.health.paused = true
}

// applyThrottle obeys the pause an authority asks for.
func (v *visit) applyThrottle(pause time.Duration) {
	if pause > 0 {
		v.health.wait = maxTime(v.health.wait, v.now().Add(min(pause, askedMax)))
	}
}

// hearOthers learns of a pause that the authority asked for in another lane of the
// company: it holds for all of them.
func (v *visit) hearOthers(r db.Reader) error {
	if v.lane.limits.Parallel < 2 || v.lane.channel == nil || v.callsNobody() {
		return nil
	}
	var until time.Time
	if err := r.Row(askedPauseSQL, v.lane.at.Scope, v.lane.at.SupplierID, v.lane.at.Code, operation.Environment(v.lane.at.Live)).
		Scan(db.NullInstant(&until)); err != nil {
		return fmt.Errorf("look for a pause: %w", err)
	}
	v.health.wait = maxTime(v.health.wait, v.asked(until))
	return nil
}

const askedPauseSQL = `SELECT max(asked_until) FROM lanes WHERE client_id = $1 AND supplier_id = $2 AND country = $3
	AND environment = $4`

// rests lets the lane of a held supplier rest; true when it is held.
func (v *visit) rests() bool {
	if v.held == nil {
		if v.health.reason == fault.Held || v.health.reason == fault.ChainStopped {
			v.health.reason, v.health.trouble = "", ""
		}
		return false
	}
	v.health.reason, v.health.trouble = v.held.Reason, v.held.Why
	v.health.rest = v.now().Add(v.heldPause())
	return true
}

// heldPause is how long a lane rests that waits for a person.
func (v *visit) heldPause() time.Duration {
	return v.s.pauses.Doubled(v.s.pauses.Base, holdDoublings)
}

const holdDoublings = 4 // the pause of a held lane is eight times the first retry's

// commit is one write of the lane's holder: what belongs to the transitions, then
// the transitions themselves. Steps say at the instant of the write how
// operations move; a write function may run twice.
func (v *visit) commit(ctx context.Context, next step, also ...func(tx *db.Tx) error) error {
	var done []transition
	err := v.s.db.Write(ctx, func(tx *db.Tx) error {
		if err := v.lease.Guard(tx); err != nil {
			return err
		}
		for _, fn := range also {
			if err := fn(tx); err != nil {
				return err
			}
		}
		done = next(tx.Now())
		if err := apply(tx, done); err != nil || !v.lane.pack.Speaks() || len(done) == 0 {
			return err
		}
		// A decision may have come while they were put off: it was stored when the
		// visit had already read them.
		return hurryAll(tx, v.s.db, moving(done))
	})
	if err == nil {
		landed(done)
	}
	return err
}

// nothing is the step of a commit that moves no operation.
func nothing(time.Time) []transition { return nil }

// leave gives the lane back and stores what it must remember. uncounted are
// operations whose crash count has to be taken back.
func (v *visit) leave(tx *db.Tx, uncounted []string) error {
	until := v.health.until()
	if v.health.lacksCredentials() {
		// Whoever replaces them meanwhile waits for this commit, or is seen by it.
		if err := tx.Lock(credentialsLock(v.lane.at.Scope, v.lane.at.SupplierID)); err != nil {
			return err
		}
		version, err := credentialVersion(tx, v.lane.at.Scope, v.lane.at.SupplierID)
		if err != nil {
			return err
		}
		if version != v.lane.version {
			until = v.health.wait
		}
	}
	if err := v.lease.Finish(tx, until); err != nil {
		return err
	}
	if err := uncountVisit(tx, v.s.db, uncounted); err != nil {
		return err
	}
	if err := v.raiseTrouble(tx); err != nil {
		return err
	}
	before := v.lease.Row
	if v.health.failures == before.failures && v.health.reason == before.reason && v.health.trouble == before.trouble && v.health.wait.Equal(before.askedUntil) && v.health.acted == before.credentials {
		return nil
	}
	since, asked := any(nil), any(nil)
	switch {
	case v.health.failures > 0 && before.troubleAt.IsZero():
		since = db.Micros(tx.Now())
	case v.health.failures > 0:
		since = db.Micros(before.troubleAt)
	}
	if !v.health.wait.IsZero() {
		asked = db.Micros(v.health.wait)
	}
	return tx.Exec("UPDATE lanes SET failures = $1, reason = $2, trouble = $3, trouble_at = $4, asked_until = $5, credentials = $6 WHERE lane = $7",
		v.health.failures, string(v.health.reason), v.health.trouble, since, asked, v.health.acted, v.lease.ID)
}

// raiseTrouble tells somebody of a lane that stands still: at once where only a
// person can help, and of any trouble at 24 and at 48 hours.
func (v *visit) raiseTrouble(tx *db.Tx) error {
	if v.health.failures == 0 {
		return nil
	}
	alerts, began := v.s.cfg.Alerts, v.lease.Row.troubleAt
	if began.IsZero() || v.health.reason != v.lease.Row.reason {
		switch v.health.reason {
		case fault.CredentialsInvalid:
			return alerts.RaiseIn(tx, alert.LanePausedCredentials, v.lane.subject(), "filing is paused: "+v.health.trouble)
		case fault.AuthorityNotConfigured:
			return alerts.RaiseIn(tx, alert.AuthorityNotConfigured, v.lane.at.Code+" "+operation.Environment(v.lane.at.Live), "filing waits: "+v.health.trouble)
		case fault.DocumentsUnavailable:
			return alerts.RaiseOnceIn(tx, tx.Now().Add(-time.Hour), alert.Alert{Name: alert.DocumentsUnavailable, Subject: "documents",
				Message: "what is registered cannot be announced: " + v.health.trouble})
		}
	}
	age := tx.Now().Sub(began)
	if began.IsZero() || age < DoubtfulAfter {
		return nil
	}
	since, what := began, alert.Alert{Name: alert.AuthorityUnavailable24h, Subject: v.lane.subject(),
		Message: fmt.Sprintf("nothing could be filed for %s, %s: %s", age.Round(time.Minute), v.health.reason, v.health.trouble)}
	if age >= HopelessAfter {
		what.Name = alert.AuthorityUnavailable48h
	}
	if v.health.lacksCredentials() {
		what.Name, since = alert.LanePausedCredentials, began.Add(DoubtfulAfter)
		if age >= HopelessAfter {
			since = began.Add(HopelessAfter)
		}
	}
	return alerts.RaiseOnceIn(tx, since, what)
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
