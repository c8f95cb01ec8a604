package webhook

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"sync"
	"time"
)

const (
	// receiversMax bounds what is remembered of receivers that are well.
	receiversMax = 4096
	// closeRoom is how many rows of a removed address are closed at a time.
	closeRoom = 256
	// ahead is how much more is claimed than can be sent at once, so that a
	// receiver does not wait for the database between two tries.
	ahead = 2
	// pauseFor is how long a client without a key waits before one row tries again.
	pauseFor = 5 * time.Second
)

// room is how many rows of a lane may be in work. It is asked in a claim's write
// function and answers from memory.
func (h *Hooks) room(lane string) int {
	client, event := splitLane(lane)
	if room, paused := h.pauses.room(client); paused {
		return room
	}
	target, ok, err := h.cfg.Target(context.Background(), client, event)
	switch {
	case err != nil:
		return 1
	case !ok:
		return closeRoom
	}
	return h.receivers.room(client, target.URL)
}

// Receivers answers how this node sees the receivers of a client, or of all with
// [AnyClient]. Each node has its own opinion.
func (h *Hooks) Receivers(clientID string) []ReceiverState {
	return h.receivers.states(clientID)
}

// ReceiverState is how a node sees one receiver.
type ReceiverState struct {
	ClientID string
	URL      string // without its query, which may hold a token
	Breaker  Breaker
}

// receivers are the receivers this node has dealt with. One is a client and an
// address: clients that share a host do not share its troubles.
type receivers struct {
	pace Pace
	now  func() time.Time
	mu   *sync.Mutex
	all  map[receiverKey]*receiver
}

type receiverKey struct{ clientID, target string }

func newReceivers(p Pace, now func() time.Time) receivers {
	return receivers{pace: p.withDefaults(), now: now, mu: new(sync.Mutex), all: map[receiverKey]*receiver{}}
}

func (rs *receivers) of(clientID, target string) *receiver {
	key := receiverKey{clientID, target}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.all[key]
	if r == nil {
		if len(rs.all) >= receiversMax {
			rs.forgetIdle()
		}
		r = &receiver{pace: rs.pace, now: rs.now, state: NewReceiver(rs.pace)}
		rs.all[key] = r
	}
	return r
}

// forgetIdle drops receivers that equal new ones. One that is being entered at
// this moment only loses its cap on tries for as long as that lasts.
func (rs *receivers) forgetIdle() {
	for key, r := range rs.all {
		r.mu.Lock()
		if r.state.Idle() && len(r.waiting) == 0 && !r.warned {
			delete(rs.all, key)
		}
		r.mu.Unlock()
	}
}

func (rs *receivers) room(clientID, target string) int {
	rs.mu.Lock()
	r := rs.all[receiverKey{clientID, target}]
	rs.mu.Unlock()
	if r == nil {
		return ahead * rs.pace.TriesMax
	}
	return r.room()
}

func (rs *receivers) states(clientID string) []ReceiverState {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var list []ReceiverState
	for key, r := range rs.all {
		if clientID == key.clientID || clientID == AnyClient {
			r.mu.Lock()
			list = append(list, ReceiverState{key.clientID, shown(key.target), r.state.Breaker()})
			r.mu.Unlock()
		}
	}
	slices.SortFunc(list, func(a, b ReceiverState) int {
		return cmp.Or(cmp.Compare(a.ClientID, b.ClientID), cmp.Compare(a.URL, b.URL))
	})
	return list
}

// shown is an address for people and logs.
func shown(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return "an unreadable URL"
	}
	u.RawQuery, u.User, u.Fragment = "", nil, ""
	return u.String()
}

// receiver serialises the calls of a [Receiver] and queues who waits for it.
type receiver struct {
	pace    Pace
	now     func() time.Time
	mu      sync.Mutex
	state   *Receiver
	waiting []chan Admission // first come, first served
	warned  bool             // its address was refused and an alert says so
}

func (r *receiver) room() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.state.Breaker()
	switch {
	case !s.Open:
		return ahead * s.Window
	case r.now().Before(s.NextProbe):
		return 0
	}
	return 1
}

// enter waits for a permit; false when ctx ended or the breaker is open.
func (r *receiver) enter(ctx context.Context) (Permit, bool) {
	r.mu.Lock()
	if len(r.waiting) == 0 {
		a := r.state.Admit(r.now())
		if a.OK || r.state.Breaker().Open {
			r.mu.Unlock()
			return a.Permit, a.OK
		}
	}
	turn := make(chan Admission, 1)
	r.waiting = append(r.waiting, turn)
	r.mu.Unlock()
	select {
	case a := <-turn:
		return a.Permit, a.OK
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.waiting, turn); i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
	} else if a := <-turn; a.OK {
		r.state.Abandon(r.now(), a.Permit)
		r.pass()
	}
	return Permit{}, false
}

// pass hands free permits to those who wait, and sends them away while the breaker is open.
func (r *receiver) pass() {
	for len(r.waiting) > 0 {
		a := r.state.Admit(r.now())
		if !a.OK && !r.state.Breaker().Open {
			return
		}
		r.waiting[0] <- a
		r.waiting = slices.Delete(r.waiting, 0, 1)
	}
}

func (r *receiver) done(p Permit, o Outcome) Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.Delivered {
		r.warned = false
	}
	change := r.state.Done(r.now(), p, o)
	r.pass()
	return change
}

func (r *receiver) abandon(p Permit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Abandon(r.now(), p)
	r.pass()
}

// refused reports whether a refusal is the first one since the last delivery.
func (r *receiver) refused(now bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := now && !r.warned
	r.warned = r.warned || now
	return first
}

// pauses are clients that cannot sign at the moment.
type pauses struct {
	now   func() time.Time
	mu    *sync.Mutex
	until map[string]time.Time
}

func newPauses(now func() time.Time) pauses {
	return pauses{now: now, mu: new(sync.Mutex), until: map[string]time.Time{}}
}

// begin prolongs a client's pause and reports whether it is new.
func (p *pauses) begin(clientID string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, already := p.until[clientID]
	p.until[clientID] = p.now().Add(pauseFor)
	return !already
}

// end reports whether there was a pause.
func (p *pauses) end(clientID string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, paused := p.until[clientID]
	delete(p.until, clientID)
	return paused
}

// room is 1 when it is time to see whether the client can sign again.
func (p *pauses) room(clientID string) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, paused := p.until[clientID]
	if paused && !p.now().Before(until) {
		return 1, true
	}
	return 0, paused
}

// lift lets every paused client try at once.
func (p *pauses) lift() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client := range p.until {
		p.until[client] = time.Time{}
	}
}
