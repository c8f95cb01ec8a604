package account

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"tributary/internal/audit"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

const (
	// unknownFor is how long a kid that the database does not know is refused
	// without asking again. A key made meanwhile is found in the snapshot after the next poll.
	unknownFor     = time.Second
	unknownKidsMax = 4096
	// Looking for unknown kids spends database reads; somebody who invents kids gets this many and no more.
	lookupsPerSecond = 50
	lookupsBurst     = 50
)

// Why authentication failed. Only the metric tells; callers hear one answer for all.
const (
	reasonMalformed = "malformed"
	reasonUnknown   = "unknown"
	reasonMismatch  = "mismatch"
	reasonExpired   = "expired"
)

// Authenticate finds the caller of a key text. from is the address the request
// came from, the zero Addr when it is not known. Every refusal is the same
// fault.Unauthenticated, or fault.Limited after too many of them; a right key
// is never refused because others failed. The kid is public, so finding it by
// map leaks nothing; the secret is compared by digest in constant time, and
// against a dummy when there is no such kid.
func (a *Accounts) Authenticate(ctx context.Context, keyText string, from netip.Addr) (Caller, error) {
	key, err := secret.ParseAPIKey(keyText)
	if err != nil {
		return Caller{}, a.refuse("", from, reasonMalformed)
	}
	found := a.snapshot.Load().keys[key.Kid()]
	if found == nil {
		if found, err = a.lookFor(ctx, key.Kid()); err != nil {
			return Caller{}, err
		}
	}
	if found == nil {
		var dummy audit.Digest
		key.Matches(dummy[:])
		return Caller{}, a.refuse(key.Kid(), from, reasonUnknown)
	}
	if !key.Matches(found.digest[:]) || key.Live() != found.caller.Live {
		return Caller{}, a.refuse(key.Kid(), from, reasonMismatch)
	}
	return found.caller, a.admits(found.caller, from)
}

// lookFor asks the database for a kid this process has not heard of: it may
// have been made a moment ago by another node.
func (a *Accounts) lookFor(ctx context.Context, kid string) (*entry, error) {
	if !a.unknown.ask(kid, time.Now()) {
		return nil, nil
	}
	if err := a.Refresh(ctx); err != nil {
		return nil, err
	}
	found := a.snapshot.Load().keys[kid]
	if found == nil {
		a.unknown.remember(kid, time.Now())
	}
	return found, nil
}

func (a *Accounts) refuse(kid string, from netip.Addr, reason string) error {
	// The alert about many of these points to this line; the key id is public.
	if a.failures.telling.Allow() {
		a.log.Warn("a request was rejected because of its API key", "reason", reason, "kid", fault.Clip(kid, kidShownMax),
			"ip", from.String(), "refused", a.failures.total.Load()+1)
	}
	if wait := a.failures.count(kid, from, reason, time.Now()); wait > 0 {
		return limited("too many failed attempts", wait)
	}
	return fault.New(fault.Unauthenticated, "the API key is missing or not valid").
		With(fault.Fault{Code: fault.CodeUnauthenticated, Type: fault.Authentication, Message: "send a valid API key"})
}

const (
	kidShownMax       = 64
	refusalsPerSecond = 5 // lines of log; a flood must not fill the disk
	refusalsBurst     = 100
)

// unknownKids remembers for a moment which kids do not exist.
type unknownKids struct {
	mu      sync.Mutex
	kids    recent[time.Time]
	lookups *rate.Limiter
}

func newUnknownKids() *unknownKids {
	return &unknownKids{kids: newRecent[time.Time](unknownKidsMax), lookups: rate.NewLimiter(lookupsPerSecond, lookupsBurst)}
}

// ask reports whether the database may be asked for a kid now.
func (u *unknownKids) ask(kid string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if since, known := u.kids.get(kid); known && now.Sub(since) < unknownFor {
		return false
	}
	return u.lookups.AllowN(now, 1)
}

func (u *unknownKids) remember(kid string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.kids.put(kid, now)
}
