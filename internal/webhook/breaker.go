package webhook

import (
	"slices"
	"time"
)

// The pacing of docs/specification.md, section 8.
const (
	FailuresToOpen     = 20
	EventsToOpen       = 5
	ProbeEvery         = 30 * time.Second
	ReceiverTriesMax   = 32 // tries to one receiver at the same time
	slowStartTries     = 1
	slowStartDoubledBy = 2
)

// Pace sets the limits of one receiver. Zero fields take the constants above.
type Pace struct {
	TriesMax       int           // tries in flight at once
	FailuresToOpen int           // failed tries in a row that open the breaker …
	EventsToOpen   int           // … when they belong to at least so many events
	ProbeEvery     time.Duration // while open
}

func (p Pace) withDefaults() Pace {
	if p.TriesMax <= 0 {
		p.TriesMax = ReceiverTriesMax
	}
	if p.FailuresToOpen <= 0 {
		p.FailuresToOpen = FailuresToOpen
	}
	if p.EventsToOpen <= 0 {
		p.EventsToOpen = EventsToOpen
	}
	if p.ProbeEvery <= 0 {
		p.ProbeEvery = ProbeEvery
	}
	return p
}

// Receiver paces the tries to one receiver: a cap on tries in flight, a circuit
// breaker, and a slow start after an outage. It is a pure state machine: time is
// passed in, nothing is started, and the owner serialises the calls.
//
// Failure policy: a receiver is never switched off. While the breaker is open one
// probe goes out per interval, and the deliveries that are not admitted keep their
// tries and their place on the ladder. The state is a node's own opinion; losing
// it in a restart costs at most the failed tries that open the breaker again.
type Receiver struct {
	pace Pace

	inFlight int
	failures int      // failed tries in a row
	events   []string // distinct events among them, at most EventsToOpen

	open      bool
	openSince time.Time
	probeAt   time.Time // when the next probe may start
	probing   bool

	window    int // tries allowed at once; below TriesMax during a slow start
	delivered int // successes at the present window
	round     uint64
}

// NewReceiver returns the pacing of a receiver of which nothing is known yet.
func NewReceiver(p Pace) *Receiver {
	p = p.withDefaults()
	return &Receiver{pace: p, window: p.TriesMax}
}

// Permit is the right to make one try. It is given back by exactly one call of
// [Receiver.Done] or [Receiver.Abandon].
type Permit struct {
	probe bool
	round uint64 // which stretch between two openings the try belongs to
}

// Probe reports whether the try asks an open receiver if it is back.
func (p Permit) Probe() bool { return p.probe }

// Admission is the answer to a try that wants to start.
type Admission struct {
	OK     bool
	Permit Permit
	// Again is when asking again makes sense, at the earliest. Zero means: when a try
	// to this receiver ends.
	Again time.Time
}

// Admit asks whether a try may start now. A refused try spends nothing.
func (r *Receiver) Admit(now time.Time) Admission {
	if r.open {
		switch {
		case r.probing:
			return Admission{}
		case now.Before(r.probeAt):
			return Admission{Again: r.probeAt}
		case r.inFlight >= r.pace.TriesMax:
			return Admission{}
		}
		r.probing = true
		r.probeAt = now.Add(r.pace.ProbeEvery)
		r.inFlight++
		return Admission{OK: true, Permit: Permit{probe: true, round: r.round}}
	}
	if r.inFlight >= r.window {
		return Admission{}
	}
	r.inFlight++
	return Admission{OK: true, Permit: Permit{round: r.round}}
}

// Change is what the end of a try did to the breaker; opened and closed are worth
// an alert and its end.
type Change uint8

// The changes.
const (
	Unchanged Change = iota
	Opened
	Closed
)

// Outcome is the end of one try as the breaker sees it.
type Outcome struct {
	Event     string // the webhook_id
	Delivered bool
}

// Done takes the outcome of an admitted try.
func (r *Receiver) Done(now time.Time, p Permit, o Outcome) Change {
	r.release(p)
	if o.Delivered {
		return r.success(p)
	}
	return r.failure(now, p, o.Event)
}

// Abandon gives a permit back without an outcome, for a try that was never made or
// was cut short by our own shutdown. An abandoned probe may be repeated at once.
func (r *Receiver) Abandon(now time.Time, p Permit) {
	if p.probe && r.open && p.round == r.round {
		r.probeAt = now
	}
	r.release(p)
}

func (r *Receiver) release(p Permit) {
	r.inFlight--
	if p.probe && p.round == r.round {
		r.probing = false
	}
}

// success closes the breaker whichever try it came from: a late answer proves as
// much as a probe that the receiver is back.
func (r *Receiver) success(p Permit) Change {
	r.failures, r.events = 0, r.events[:0]
	if r.open {
		r.open, r.probing = false, false
		r.round++
		r.window, r.delivered = min(slowStartTries, r.pace.TriesMax), 0
		return Closed
	}
	if r.window < r.pace.TriesMax && p.round == r.round {
		r.delivered++
		if r.delivered >= r.window {
			r.window, r.delivered = min(slowStartDoubledBy*r.window, r.pace.TriesMax), 0
		}
	}
	return Unchanged
}

func (r *Receiver) failure(now time.Time, p Permit, event string) Change {
	r.failures++
	if r.open {
		return Unchanged
	}
	if p.round == r.round && r.window < r.pace.TriesMax {
		// Not yet well: begin the slow start again.
		r.window, r.delivered = min(slowStartTries, r.pace.TriesMax), 0
	}
	if len(r.events) < r.pace.EventsToOpen && !slices.Contains(r.events, event) {
		r.events = append(r.events, event)
	}
	if r.failures < r.pace.FailuresToOpen || len(r.events) < r.pace.EventsToOpen {
		return Unchanged
	}
	r.open, r.openSince, r.probeAt = true, now, now.Add(r.pace.ProbeEvery)
	r.round++
	return Opened
}

// Breaker is what the API and the console show of a receiver.
type Breaker struct {
	Open      bool
	OpenSince time.Time // zero when closed
	NextProbe time.Time // zero when closed
	Failures  int       // failed tries in a row
	InFlight  int
	Window    int // tries allowed at once
	TriesMax  int
}

// Breaker returns the present state.
func (r *Receiver) Breaker() Breaker {
	s := Breaker{Open: r.open, Failures: r.failures, InFlight: r.inFlight, Window: r.window, TriesMax: r.pace.TriesMax}
	if r.open {
		s.OpenSince, s.NextProbe, s.Window = r.openSince, r.probeAt, 1
	}
	return s
}

// Idle reports whether the state equals that of a new receiver, so that the owner
// of many receivers can forget it.
func (r *Receiver) Idle() bool {
	return !r.open && r.inFlight == 0 && r.failures == 0 && r.window == r.pace.TriesMax
}
