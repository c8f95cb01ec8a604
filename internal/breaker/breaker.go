// Package breaker keeps the lanes of a node from calling an authority to which
// nothing gets through.
//
// When nothing gets through, every supplier's lane tries for itself, each holding
// a slot until its call times out. A breaker per endpoint lets one of them try and
// the others wait: it opens when so many calls in a row brought nothing, of so
// many suppliers, that it cannot be the fault of one.
//
// Failure policy: a breaker is a node's own memory. It decides only whether a
// call is made now, never what became of one, and what it keeps back rests as
// after a failed call: ladder, alerts and the 48 hours go on. After a restart it
// learns anew. The table authority_breakers is for people.
package breaker

import (
	"fmt"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/fault"
	"tributary/internal/operation"
)

const (
	callsMin     = 10
	suppliersMin = 3
	probeFor     = 3 * time.Minute // after which a probe that nobody heard of is made again

	// stale is when a row of a node that is gone no longer tells anything.
	stale = 5*time.Minute + 2*probeFor
)

// Breakers are this node's, by endpoint.
type Breakers struct {
	mu sync.Mutex
	of map[country.Environment]*breaker
}

type breaker struct {
	State
	whose  map[string]bool // suppliers that met it
	probes int64           // that brought nothing
	asking bool            // a probe is under way
}

// State is what is known of an endpoint to which nothing gets through.
type State struct {
	Since  time.Time // when the breaker opened; zero: it is closed
	Next   time.Time // probe
	Calls  int64     // in a row that brought nothing
	Reason fault.Code
	Last   string // what went wrong last
}

// Open is a breaker that is open on a node.
type Open struct {
	At       country.Environment
	Since    time.Time
	ProbeAt  time.Time
	Failures int64 // calls in a row
	Trouble  string
}

// MayCall reports whether a lane of an endpoint may call at this instant; else until when it waits, and for what.
func (b *Breakers) MayCall(at country.Environment, now time.Time) (ok bool, open State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	br := b.of[at]
	if br == nil || br.Since.IsZero() {
		return true, State{}
	}
	if now.Before(br.Next) {
		return false, br.State
	}
	br.Next, br.asking = now.Add(probeFor), true // this one tries, for all
	return true, State{}
}

// Answered takes note of a call that was answered. True: the breaker was open, and is closed.
func (b *Breakers) Answered(at country.Environment) (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.of[at]
	delete(b.of, at)
	return was != nil && !was.Since.IsZero()
}

// Failure is a call of a supplier's lane that brought nothing.
type Failure struct {
	Supplier string
	At       time.Time
	Reason   fault.Code
	Err      error
}

// Failed takes note of a call that brought nothing. True: the breaker is open,
// and something about it is new.
func (b *Breakers) Failed(at country.Environment, f Failure, pauses exchange.Ladder) (State, bool) {
	if f.Reason != fault.AuthorityUnreachable && f.Reason != fault.AuthorityError {
		return State{}, false // trouble of our own says nothing about the authority
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[country.Environment]*breaker{}
	}
	br := b.of[at]
	if br == nil {
		br = &breaker{whose: map[string]bool{}}
		b.of[at] = br
	}
	br.Calls++
	br.Reason, br.Last = f.Reason, f.Err.Error()
	if br.Since.IsZero() {
		if br.whose[f.Supplier] = true; br.Calls < callsMin || len(br.whose) < suppliersMin {
			return State{}, false
		}
		br.Since, br.whose = f.At, nil
	} else if !br.asking {
		return State{}, false // it was under way when the breaker opened: no probe, and no longer pause
	}
	br.asking = false
	br.probes++
	br.Next = f.At.Add(pauses.Doubled(pauses.Base, br.probes))
	return br.State, true
}

// IsOpen reports whether only single calls are made to an endpoint.
func (b *Breakers) IsOpen(at country.Environment) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	br := b.of[at]
	return br != nil && !br.Since.IsZero()
}

// Store is the write that shows people an open breaker of this node.
func (s State) Store(tx *db.Tx, node string, at country.Environment) error {
	return tx.Exec(`INSERT INTO authority_breakers (country, environment, node, opened_at, probe_at, failures, trouble) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (country, environment, node) DO UPDATE SET opened_at = excluded.opened_at, probe_at = excluded.probe_at, failures = excluded.failures, trouble = excluded.trouble`,
		at.Code, operation.Environment(at.Live), node, db.Micros(s.Since), db.Micros(s.Next), s.Calls, s.Last)
}

// Clear is the write that takes it away again, and what nodes left that are gone.
func Clear(tx *db.Tx, node string, at country.Environment) error {
	return tx.Exec("DELETE FROM authority_breakers WHERE country = $1 AND environment = $2 AND (node = $3 OR probe_at < $4)",
		at.Code, operation.Environment(at.Live), node, db.Micros(tx.Now().Add(-stale)))
}

// All lists the endpoints to which nothing gets through from some node:
// of several nodes that say so, the one that tries first.
func All(r db.Reader, now time.Time) ([]Open, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (b Open, err error) {
		var env string
		err = scan(&b.At.Code, &env, db.NullInstant(&b.Since), db.NullInstant(&b.ProbeAt), &b.Failures, &b.Trouble)
		b.At.Live = env == operation.Environment(true)
		return b, err
	}, "SELECT country, environment, opened_at, probe_at, failures, trouble FROM authority_breakers WHERE probe_at >= $1 ORDER BY country, environment, probe_at", db.Micros(now.Add(-stale)))
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
