package operator

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"tributary/internal/alert"
	"tributary/internal/fault"
)

// Limit bounds failed sign-ins per name from one address, per address, and per
// name from all addresses together. Successful ones are free. By name alone the
// limit is wide: anybody who knows a name could otherwise lock its owner out.
type Limit struct {
	NameBurst    int // failures at once, of one name from one address
	NameEvery    time.Duration
	AddressBurst int
	AddressEvery time.Duration
	WideBurst    int // of one name from all addresses; zero: twenty times NameBurst
	WideEvery    time.Duration
}

func limitDefault() Limit {
	return Limit{NameBurst: 10, NameEvery: 30 * time.Second, AddressBurst: 30, AddressEvery: 5 * time.Second}
}

const wideFactor = 20

const (
	guessersMax = 8192 // names and addresses remembered per generation
	alarmEvery  = 10 * time.Minute
	// A network that owns one IPv6 address usually owns its /64.
	ipv6Bits = 64
)

// guesses limits guessing, in the memory of this process.
//
// Failure policy: a restart forgets, and each node counts for itself. That is
// chosen over a table: whoever guesses cannot cause a restart, 120 random bits
// are not guessed ten at a time, and a table would let anybody who reaches the
// sign-in page make the database write. What is forgotten costs an attacker's
// few more guesses, each as dear as the hash is.
type guesses struct {
	limit Limit
	now   func() time.Time

	mu         sync.Mutex
	young, old map[string]*rate.Limiter // two generations: an attacker who fills them only makes them forget
	alarmedAt  time.Time
}

func newGuesses(l Limit, now func() time.Time) *guesses {
	if l == (Limit{}) {
		l = limitDefault()
	}
	if l.WideBurst == 0 {
		l.WideBurst, l.WideEvery = wideFactor*l.NameBurst, max(l.NameEvery/wideFactor, time.Millisecond)
	}
	return &guesses{limit: l, now: now, young: map[string]*rate.Limiter{}}
}

func (g *guesses) bucket(key string, burst int, every time.Duration) *rate.Limiter {
	if b := g.young[key]; b != nil {
		return b
	}
	b := g.old[key]
	if b == nil {
		b = rate.NewLimiter(rate.Every(every), max(burst, 1))
	}
	if len(g.young) >= guessersMax {
		g.old, g.young = g.young, make(map[string]*rate.Limiter, guessersMax)
	}
	g.young[key] = b
	return b
}

// guesser is who guesses: a name from an address or, where the browser proves
// that the operator has signed in with it before, that browser alone. So nobody
// who lacks it can make its owner wait.
type guesser struct{ name, ip, device string }

func (g *guesses) all(by guesser) []*rate.Limiter {
	if by.device != "" {
		return []*rate.Limiter{g.bucket("device "+by.device, g.limit.NameBurst, g.limit.NameEvery)}
	}
	return []*rate.Limiter{
		g.bucket("name "+by.name+" from "+network(by.ip), g.limit.NameBurst, g.limit.NameEvery),
		g.bucket("from "+network(by.ip), g.limit.AddressBurst, g.limit.AddressEvery),
		g.bucket("name "+by.name, g.limit.WideBurst, g.limit.WideEvery),
	}
}

// begin takes a guess before it is made, so that guesses made at the same time
// are counted, too. A positive answer says how long to wait instead.
func (g *guesses) begin(by guesser) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	var wait time.Duration
	all := g.all(by)
	for _, b := range all {
		if missing := 1 - b.TokensAt(now); missing > 0 {
			wait = max(wait, time.Duration(missing/float64(b.Limit())*float64(time.Second)))
		}
	}
	if wait > 0 {
		return wait
	}
	for _, b := range all {
		b.AllowN(now, 1)
	}
	return 0
}

// forgive gives a guess back that turned out to be none.
func (g *guesses) forgive(by guesser) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for _, b := range g.all(by) {
		if b.TokensAt(now) < float64(b.Burst()) {
			b.AllowN(now, -1)
		}
	}
}

// alarming reports whether it is time to tell a person.
func (g *guesses) alarming() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if !g.alarmedAt.IsZero() && now.Sub(g.alarmedAt) < alarmEvery {
		return false
	}
	g.alarmedAt = now
	return true
}

// network is what an address is limited by.
func network(ip string) string {
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return ip
	}
	if a = a.Unmap(); a.Is4() {
		return a.String()
	}
	if p, err := a.WithZone("").Prefix(ipv6Bits); err == nil {
		return p.String()
	}
	return a.String()
}

// limited is the answer to one who guesses too often.
func (o *Operators) limited(ctx context.Context, name, ip string, wait time.Duration) error {
	if o.alerts != nil && o.guesses.alarming() {
		message := fmt.Sprintf("too many failed console sign-ins, now throttled: the last one as %q from %s", name, ip)
		if err := o.alerts.Raise(ctx, alert.AuthFailuresSpike, "console", message); err != nil && ctx.Err() == nil {
			o.log.Warn("raise the alert of failed sign-ins", "error", err)
		}
	}
	return &fault.Error{Kind: fault.Limited, Message: "too many failed sign-ins, please wait",
		RetryAfter: wait.Truncate(time.Second) + time.Second,
		Faults:     []fault.Fault{{Code: fault.RateLimited, Type: fault.Authentication, Message: "too many failed sign-ins"}}}
}
