package account

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"golang.org/x/time/rate"

	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// snapshot is everything authentication needs, as of one version. It is never
// changed, only replaced: readers take no lock.
type snapshot struct {
	version int64
	clients map[string]*card
	keys    map[string]*entry // by kid; revoked keys are not here
	changed chan struct{}     // closed when the snapshot is replaced
}

// card is one client in the snapshot.
type card struct {
	profile Profile
	limiter *rate.Limiter // nil: no limit
	keys    []bookKey
	limited []LimitedKey
	secrets []bookKey // of webhooks, oldest first; without a state
}

type bookKey struct {
	kid    string
	state  State
	digest audit.Digest
}

type entry struct {
	digest audit.Digest
	caller Caller
}

// Profile is what the service needs to know of a client while it works for it.
type Profile struct {
	ClientID string
	Live     bool
	Config   *Config // shared by everyone: read only
}

// Caller is who a request comes from.
type Caller struct {
	Profile
	Kid     string
	Limits  *LimitedKey // of the key; nil: it has none
	limiter *rate.Limiter
}

// costBytes is what one request of the rate limit pays for: a body of a mebibyte
// takes sixteen times the memory and the time of a small one.
const costBytes = 64 << 10

// Cost is how many requests of a rate limit so many bytes of a body or an
// answer stand for: one for each 64 KiB begun, one at least.
func Cost(size int64) int { return int(max(1, (size+costBytes-1)/costBytes)) }

// Allow spends requests of the client's rate limit at an instant, or answers
// fault.Limited with the time to come back. No single request costs more than
// the burst: it would never be served.
func (c Caller) Allow(now time.Time, cost int) error {
	if c.limiter == nil {
		return nil
	}
	r := c.limiter.ReserveN(now, min(cost, c.limiter.Burst()))
	wait := r.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	r.CancelAt(now)
	return limited("rate limit exceeded", wait)
}

// Spend takes what a request cost beyond what Allow was told. The next one waits for it.
func (c Caller) Spend(now time.Time, cost int) {
	if c.limiter != nil && cost > 0 {
		c.limiter.ReserveN(now, min(cost, c.limiter.Burst()))
	}
}

func limited(message string, wait time.Duration) *fault.Error {
	return &fault.Error{
		Kind: fault.Limited, Message: message, RetryAfter: max(wait, time.Second),
		Faults: []fault.Fault{{Code: fault.RateLimited, Type: fault.General,
			Message: "wait for Retry-After before the next request"}},
	}
}

const versionNone = -1 // before any: a look since then reads everything

func emptySnapshot() *snapshot {
	return &snapshot{version: versionNone, clients: map[string]*card{}, keys: map[string]*entry{}, changed: make(chan struct{})}
}

// readSnapshot returns old when nothing has changed, else a new snapshot.
func (a *Accounts) readSnapshot(ctx context.Context, old *snapshot) (*snapshot, error) {
	base := old
	var version int64
	var cards []*card
	err := a.read(ctx, func(r db.Reader) error {
		if err := r.Row(versionSQL).Scan(&version); err != nil {
			return err
		}
		if version == old.version {
			return nil
		}
		if version < old.version {
			base = emptySnapshot() // a backup was restored under us: nothing we know can be trusted
		}
		var err error
		cards, err = a.readCards(r, base.version)
		return err
	})
	if err != nil {
		return nil, err
	}
	if version == old.version {
		return old, nil
	}
	a.dropSealers(cards)
	return base.with(version, cards), nil
}

// readCards reads the clients that changed after a version, with their usable keys.
func (a *Accounts) readCards(r db.Reader, since int64) ([]*card, error) {
	byID := map[string]*card{}
	cards, err := db.Collect(r, func(scan func(...any) error) (*card, error) {
		c, text := &card{}, ""
		if err := scan(&c.profile.ClientID, &c.profile.Live, &text); err != nil {
			return nil, err
		}
		c.profile.Config = new(Config)
		if err := json.Unmarshal([]byte(text), c.profile.Config); err != nil {
			// One damaged row must not keep the revocation of another client's key from being seen.
			a.log.Error("the configuration of a client is not readable: its keys are rejected", "client", c.profile.ClientID,
				"error", err)
			c.profile.Config = nil
		}
		byID[c.profile.ClientID] = c
		return c, nil
	}, changedClientsSQL, since)
	if err != nil {
		return nil, fmt.Errorf("read clients: %w", err)
	}
	rows, err := r.Query(changedKeysSQL, since)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	err = rows.Each(func(scan func(...any) error) error {
		var id string
		var k bookKey
		var sum []byte
		if err := scan(&id, &k.kid, &k.state, &sum); err != nil {
			return err
		}
		c := byID[id]
		if copy(k.digest[:], sum) == len(k.digest) && len(sum) == len(k.digest) && c != nil && c.profile.Config != nil {
			c.keys = append(c.keys, k)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	if err := readLimited(r, since, byID); err != nil {
		return nil, err
	}
	return cards, readSecrets(r, since, byID)
}

// readSecrets adds the webhook secrets of the clients that changed after a version.
func readSecrets(r db.Reader, since int64, byID map[string]*card) error {
	rows, err := r.Query(changedSecretsSQL, since)
	if err != nil {
		return fmt.Errorf("read webhook secrets: %w", err)
	}
	err = rows.Each(func(scan func(...any) error) error {
		var id string
		var s bookKey
		var sum []byte
		if err := scan(&id, &s.kid, &sum); err != nil {
			return err
		}
		copy(s.digest[:], sum) // one of another length opens nothing
		if c := byID[id]; c != nil {
			c.secrets = append(c.secrets, s)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read webhook secrets: %w", err)
	}
	return nil
}

// with returns the snapshot of a later version, in which some clients have changed.
func (b *snapshot) with(version int64, cards []*card) *snapshot {
	next := &snapshot{version: version, clients: maps.Clone(b.clients), keys: maps.Clone(b.keys), changed: make(chan struct{})}
	for _, c := range cards {
		before := next.clients[c.profile.ClientID]
		if before != nil {
			for _, k := range before.keys {
				delete(next.keys, k.kid)
			}
			for _, k := range before.limited {
				delete(next.keys, k.Kid)
			}
		}
		if c.profile.Config == nil {
			delete(next.clients, c.profile.ClientID)
			continue
		}
		c.limiter = limiterFor(c.profile.Config.Rate, before)
		next.clients[c.profile.ClientID] = c
		for _, k := range c.keys {
			next.keys[k.kid] = &entry{digest: k.digest, caller: Caller{Profile: c.profile, Kid: k.kid, limiter: c.limiter}}
		}
		for i := range c.limited {
			k := &c.limited[i]
			next.keys[k.Kid] = &entry{digest: k.digest, caller: Caller{Profile: c.profile, Kid: k.Kid, Limits: k, limiter: c.limiter}}
		}
	}
	return next
}

// limiterFor keeps the bucket as full as it was unless the limit itself has
// changed: configuring a logo is no way to a fresh burst.
func limiterFor(r Rate, before *card) *rate.Limiter {
	if r.PerSecond == 0 {
		return nil
	}
	if before != nil && before.limiter != nil && before.profile.Config.Rate == r {
		return before.limiter
	}
	return rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst)
}

// Profile returns a client from memory; one that this process has not heard of
// is looked for in the database. Unknown: fault.NotFound.
func (a *Accounts) Profile(ctx context.Context, clientID string) (Profile, error) {
	c, err := a.card(ctx, clientID)
	if err != nil {
		return Profile{}, err
	}
	return c.profile, nil
}

func (a *Accounts) card(ctx context.Context, clientID string) (*card, error) {
	if c := a.snapshot.Load().clients[clientID]; c != nil {
		return c, nil
	}
	if err := a.Refresh(ctx); err != nil {
		return nil, err
	}
	if c := a.snapshot.Load().clients[clientID]; c != nil {
		return c, nil
	}
	return nil, unknownClient(clientID)
}

func unknownClient(id string) error {
	return fault.New(fault.NotFound, "unknown client %q", id).
		With(fault.Fault{Code: fault.CodeNotFound, Type: fault.General, Message: "unknown client"})
}
