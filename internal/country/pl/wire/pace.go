package wire

import (
	"context"
	"net/http"
	"sort"
	"sync"
	"time"

	"tributary/internal/official/ksefwire"
)

const (
	// eachMax is how many invoices of one visit go one by one: those of a longer
	// queue go together, which KSeF recommends and counts as a few calls.
	eachMax = 30
	// batchCalls is what a batch session costs of its limit: opening and closing.
	batchCalls = 2
	// batchShare of the hour's batch sessions may be used at once; the others are
	// spread over the hour, so that each finds a queue worth a session.
	batchShare = 5
	// ratesFor is how long KSeF's word about a supplier's limits is believed.
	ratesFor = time.Hour
	// spoiledFor is how long no batch session is opened after one that failed as
	// a whole: its invoices go one by one meanwhile.
	spoiledFor = 15 * time.Minute
)

// window counts the calls of one kind within the last hour: KSeF counts in
// windows that slide (ksef-docs, limity-api.md).
type window struct{ at []time.Time }

func (w *window) note(now time.Time, calls int) {
	for len(w.at) > 0 && now.Sub(w.at[0]) >= time.Hour {
		w.at = w.at[1:]
	}
	if last := len(w.at) - 1; last >= 0 && now.Before(w.at[last]) {
		now = w.at[last] // they stay in order
	}
	for range calls {
		w.at = append(w.at, now)
	}
}

// within is how many calls there were in the last span.
func (w *window) within(span time.Duration, now time.Time) int {
	return len(w.at) - sort.Search(len(w.at), func(i int) bool { return now.Sub(w.at[i]) < span })
}

// room is how many more calls limits of spans allow, and how long to wait for
// the given number of them where they do not.
func (w *window) room(limits map[time.Duration]int, calls int, now time.Time) (room int, wait time.Duration) {
	room = int(^uint(0) >> 1)
	for span, limit := range limits {
		used := w.within(span, now)
		room = min(room, max(0, limit-used))
		if over := used + calls - limit; over > 0 && used > 0 {
			last := w.at[len(w.at)-used+min(over, used)-1]
			wait = max(wait, last.Add(span).Sub(now))
		}
	}
	return room, wait
}

func spans(r ksefwire.Rate) map[time.Duration]int {
	return map[time.Duration]int{time.Minute: r.Minute, time.Hour: r.Hour}
}

// pace keeps a supplier's calls inside KSeF's limits. It is in memory: a process
// that starts anew is told by KSeF itself, with 429, what went before.
type pace struct {
	mu      sync.Mutex
	rates   ksefwire.Rates
	asked   time.Time // when rates must be asked for again; zero: they are production's, not asked for
	sends   window
	batches window
	blocked time.Time // KSeF wants no calls before
	spoiled time.Time // no batch session before
}

// way is how some of the next invoices go: so many one by one, or all of them
// in a batch session, or none before a wait.
type way struct {
	each  int
	batch bool
	wait  time.Duration
}

// choose finds the way for a number of invoices. A batch session is counted
// here; invoices that go one by one are when they do.
func (p *pace) choose(n int, now time.Time) way {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.blocked) {
		return way{wait: p.blocked.Sub(now)}
	}
	room, wait := p.sends.room(spans(p.rates.InvoiceSend), 1, now)
	if n <= min(room, eachMax) {
		return way{each: n}
	}
	if now.Before(p.spoiled) {
		if room > 0 {
			return way{each: min(room, n)}
		}
		return way{wait: wait}
	}
	later := p.session(now)
	switch {
	case later <= 0:
		p.batches.note(now, batchCalls)
		return way{batch: true}
	case room > 0:
		return way{each: min(room, n), wait: later}
	}
	return way{wait: min(wait, later)}
}

// session is how long to wait for the next batch session.
func (p *pace) session(now time.Time) time.Duration {
	rate := p.rates.BatchSession
	room, wait := p.batches.room(spans(rate), batchCalls, now)
	if room < batchCalls {
		return wait
	}
	total := rate.Hour / batchCalls
	atOnce := max(1, total/batchShare)
	if p.batches.within(time.Hour, now)/batchCalls < atOnce || total <= atOnce {
		return 0
	}
	last := p.batches.at[len(p.batches.at)-1]
	return last.Add(time.Hour / time.Duration(total-atOnce)).Sub(now)
}

// step counts one invoice and says how long to wait before it, so that no
// second has too many.
func (p *pace) step(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, wait := p.sends.room(map[time.Duration]int{time.Second: p.rates.InvoiceSend.Second}, 1, now)
	p.sends.note(now.Add(wait), 1)
	return wait
}

// block obeys KSeF's word for all who file in the supplier's name.
func (p *pace) block(now time.Time, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := now.Add(wait); until.After(p.blocked) {
		p.blocked = until
	}
}

func (p *pace) spoil(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spoiled = now.Add(spoiledFor)
}

// way answers how the next invoices go. The limits are taken to be those of
// production until they are in the way; then KSeF is asked for the supplier's own.
func (a visit) way(ctx context.Context, n int) way {
	now := a.account.ch.Now()
	a.account.pace.mu.Lock()
	if a.account.pace.rates == (ksefwire.Rates{}) {
		a.account.pace.rates = ksefwire.ProductionRates()
	}
	room, _ := a.account.pace.sends.room(spans(a.account.pace.rates.InvoiceSend), 1, now)
	ask := n > room && !now.Before(a.account.pace.asked) && !now.Before(a.account.pace.blocked)
	a.account.pace.mu.Unlock()
	if ask {
		a.askRates(ctx, now)
	}
	return a.account.pace.choose(n, now)
}

// askRates asks for them. Without an answer production's stand, and the next who
// finds them in the way asks again: that is not often, because it waits.
func (a visit) askRates(ctx context.Context, now time.Time) {
	var rates ksefwire.Rates
	_, err := a.authorised(ctx, request{method: http.MethodGet, path: ksefwire.PathRates, want: http.StatusOK}, nil, &rates)
	a.account.pace.mu.Lock()
	defer a.account.pace.mu.Unlock()
	if err == nil && rates.InvoiceSend.Hour > 0 && rates.InvoiceSend.Minute > 0 && rates.InvoiceSend.Second > 0 {
		a.account.pace.rates, a.account.pace.asked = rates, now.Add(ratesFor)
	}
}
