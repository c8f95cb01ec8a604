package filing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// When nothing gets through to an authority, every supplier's lane tries for
// itself, each holding a slot until its call times out. A breaker per endpoint
// lets one of them try and the others wait: it opens when so many calls in a row
// brought nothing, of so many suppliers, that it cannot be the fault of one.
const (
	breakerCalls     = 10
	breakerSuppliers = 3
	probeFor         = 3 * time.Minute // after which a probe that nobody heard of is made again

	// breakerStale is when a row of a node that is gone no longer tells anything.
	breakerStale = retryMax + 2*probeFor
)

// breakers are this node's, by endpoint.
//
// Failure policy: a breaker is a node's own memory. It decides only whether a
// call is made now, never what became of one, and what it keeps back rests as
// after a failed call: ladder, alerts and the 48 hours go on. After a restart it
// learns anew. The table is for people.
type breakers struct {
	mu sync.Mutex
	of map[string]*breaker
}

type breaker struct {
	calls  int64           // in a row that brought nothing
	whose  map[string]bool // suppliers that met it
	open   time.Time       // since when; zero: closed
	next   time.Time       // of the next probe
	probes int64           // that brought nothing
	asking bool            // a probe is under way
	reason fault.Code
	last   string // what went wrong last
}

// Breaker is one that is open on a node.
type Breaker struct {
	At       country.Environment
	Since    time.Time
	ProbeAt  time.Time
	Failures int64 // calls in a row
	Trouble  string
}

// mayCall reports whether a lane of an endpoint may call at this instant; else until when it waits, and for what.
func (b *breakers) mayCall(at string, now time.Time) (ok bool, open breaker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	br := b.of[at]
	if br == nil || br.open.IsZero() {
		return true, breaker{}
	}
	if now.Before(br.next) {
		return false, breaker{open: br.open, next: br.next, calls: br.calls, reason: br.reason, last: br.last}
	}
	br.next, br.asking = now.Add(probeFor), true // this one tries, for all
	return true, breaker{}
}

// heard takes note of a call. changed: the breaker is open and something about
// it is new. closed: it was open, and the authority answers again.
func (s *Service) heard(at, supplier string, err error) (now breaker, changed, closed bool) {
	reason := fault.Code("")
	if err != nil {
		reason = reasonOf(err)
	}
	b := &s.breakers
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		was := b.of[at]
		delete(b.of, at)
		return now, false, was != nil && !was.open.IsZero()
	case errors.Is(err, context.Canceled), reason != fault.AuthorityUnreachable && reason != fault.AuthorityError:
		return now, false, false // our own end, or trouble of our own, says nothing about the authority
	}
	if b.of == nil {
		b.of = map[string]*breaker{}
	}
	br := b.of[at]
	if br == nil {
		br = &breaker{whose: map[string]bool{}}
		b.of[at] = br
	}
	br.calls++
	br.reason, br.last = reason, err.Error()
	if br.open.IsZero() {
		if br.whose[supplier] = true; br.calls < breakerCalls || len(br.whose) < breakerSuppliers {
			return now, false, false
		}
		br.open, br.whose = s.db.Now(), nil
	} else if !br.asking {
		return now, false, false // it was under way when the breaker opened: no probe, and no longer pause
	}
	br.asking = false
	br.probes++
	br.next = s.db.Now().Add(s.doubled(s.cfg.RetryBase, br.probes))
	return *br, true, false
}

// mindBreaker lets the lane rest where nothing gets through to its authority:
// what needs no call is done all the same.
func (v *visit) mindBreaker() {
	if v.channel == nil || v.callsNobody() {
		return
	}
	ok, open := v.breakers.mayCall(endpointOf(v.lease.ID), v.db.Now())
	if ok {
		return
	}
	v.behind = true
	v.countFailure(errors.New(open.last))
	v.reason = open.reason
	v.trouble = fmt.Sprintf("%s (one of %d calls in a row that brought nothing; the authority is tried again for all suppliers at %s)", open.last, open.calls, Stamp(open.next))
	v.backOff()
	v.rest = maxTime(v.rest, open.next)
}

// callsNobody reports whether nothing of the lane can need a call: filing is the
// company's choice, and it chose not to, or the lane is one of documents for
// those to whom nothing is delivered. Such a visit would only use up a probe.
func (v *visit) callsNobody() bool {
	return v.pack.Keeps(&v.supplier) || v.pack.Chosen() && shardIn(v.lease.ID) >= lanesOf(v.cfg.Atlas, v.pack, v.at.Live)
}

// learn tells the breaker of a call, and people of the breaker.
func (b *batch) learn(x exchange) {
	if x.traffic == nil {
		return // nothing was called
	}
	at := country.Environment{Code: b.at.Code, Live: b.at.Live}
	state, changed, closed := b.heard(endpointOf(b.lease.ID), b.subject(), x.err)
	switch {
	case changed:
		b.log.Warn("nothing gets through to an authority; only single calls are made", "authority", at.String(), "calls", state.calls, "next", state.next, "error", state.last)
		b.evidence = append(b.evidence, func(tx *db.Tx) error {
			return tx.Exec(`INSERT INTO authority_breakers (country, environment, node, opened_at, probe_at, failures, trouble) VALUES ($1, $2, $3, $4, $5, $6, $7)
				ON CONFLICT (country, environment, node) DO UPDATE SET opened_at = excluded.opened_at, probe_at = excluded.probe_at, failures = excluded.failures, trouble = excluded.trouble`,
				at.Code, environment(b.at.Live), b.db.Node(), db.Micros(state.open), db.Micros(state.next), state.calls, state.last)
		})
	case closed:
		b.log.Info("an authority answers again", "authority", at.String())
		b.answers = true
		b.evidence = append(b.evidence, func(tx *db.Tx) error {
			return tx.Exec("DELETE FROM authority_breakers WHERE country = $1 AND environment = $2 AND (node = $3 OR probe_at < $4)",
				at.Code, environment(b.at.Live), b.db.Node(), db.Micros(tx.Now().Add(-breakerStale)))
		})
	}
}

// isOpen reports whether only single calls are made to an endpoint.
func (b *breakers) isOpen(at string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	br := b.of[at]
	return br != nil && !br.open.IsZero()
}

// tellOthers ends the pauses of those who waited while nothing got through. It
// is called when the lane has been left: one that was kept back and left after
// the call for all was answered has gone to rest when the others were told, until
// a probe that nobody needs any more.
func (v *visit) tellOthers(ctx context.Context) {
	if !v.answers && (!v.behind || v.breakers.isOpen(endpointOf(v.lease.ID))) {
		return
	}
	at := country.Environment{Code: v.at.Code, Live: v.at.Live}
	if err := v.endPauses(ctx, at, fault.AuthorityUnreachable, fault.AuthorityError); err != nil {
		v.log.Error("an authority answers again", "authority", at.String(), "error", err) // the others come by themselves, later
	}
}

// OpenBreakers lists the endpoints to which nothing gets through from some node:
// of several nodes that say so, the one that tries first.
func OpenBreakers(r db.Reader, now time.Time) ([]Breaker, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (b Breaker, err error) {
		var env string
		err = scan(&b.At.Code, &env, db.NullInstant(&b.Since), db.NullInstant(&b.ProbeAt), &b.Failures, &b.Trouble)
		b.At.Live = env == environment(true)
		return b, err
	}, "SELECT country, environment, opened_at, probe_at, failures, trouble FROM authority_breakers WHERE probe_at >= $1 ORDER BY country, environment, probe_at", db.Micros(now.Add(-breakerStale)))
	if err != nil {
		return nil, fmt.Errorf("read which authorities are not reached: %w", err)
	}
	first := list[:0]
	for _, b := range list {
		if len(first) == 0 || first[len(first)-1].At != b.At {
			first = append(first, b)
		}
	}
	return first, nil
}
