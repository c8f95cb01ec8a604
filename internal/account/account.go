// Package account keeps the provider's clients: who they are, which API keys
// speak for them, how their product is configured, and who changed what.
//
// It owns clients, API keys with their states, the data keys that seal a
// client's secrets, product configuration, rate limits and the audit log. It
// does not own sealing itself (package secret), the rules for webhook addresses
// (they are passed in), companies, HTTP or the console's operators. Law of
// [Accounts.Authenticate]: once warm it decides from memory, without decryption
// and without a database round trip, and every refusal looks the same.
//
// A client is of one environment, test or live, for its whole life, and all its
// keys are of that environment: transaction_ids are one space per client, so a
// test transaction must never stand in the way of a live one.
//
// Failure policy: every change is one write that holds the change, its audit
// entries and a count-up of one version row. This process sees it before the
// call returns; others see it by polling that row, within a second. While the
// database cannot be reached, what is known goes on being accepted: requests
// need the database anyway, and a wrong 401 would make clients change keys.
package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/secret"
)

const (
	pollEvery      = 500 * time.Millisecond // half of the second that other nodes may lag behind
	refreshTimeout = 3 * time.Second
)

// Options say what accounts stand on. DB and CheckURL are required; without
// Master nothing can be sealed or signed, which is enough for listing.
type Options struct {
	DB      *db.DB
	Master  *secret.Master
	Alerts  *alert.Alerts         // nil: none are raised
	Log     *slog.Logger          // nil: discarded
	Metrics prometheus.Registerer // nil: none

	// CheckURL normalises a webhook address, or says why it is refused; allow are
	// the private networks open to this client.
	CheckURL func(address string, allow []netip.Prefix) (string, error)
	Events   []string       // the event types a webhook may be configured for
	Atlas    *country.Atlas // nil: any ISO country can be enabled
	Audit    *audit.Key     // nil: entries of the audit log are not authenticated
	Failures FailureLimit   // zero: failed authentication is not limited
}

// Accounts is the register of clients. It is safe for concurrent use.
type Accounts struct {
	db       *db.DB
	master   *secret.Master
	alerts   *alert.Alerts
	log      *slog.Logger
	rules    rules
	failures *failures
	audit    *audit.Key

	snapshot atomic.Pointer[snapshot]
	turn     chan struct{} // one refresh at a time
	begun    atomic.Int64  // refreshes begun
	done     int64         // the last begun that ended well; guarded by turn
	unknown  *unknownKids
	openings singleflight.Group

	mu      sync.Mutex
	sealers map[dataKey]*secret.Sealer
	texts   map[audit.Digest]secret.Secret // opened keys, by digest
	logos   recent[[]byte]
}

// read asks on the service's own behalf, also while a client's request is answered: what is found is kept for all.
func (a *Accounts) read(ctx context.Context, fn func(db.Reader) error) error {
	return a.db.Read(db.AsService(ctx), fn)
}

// Open reads every client, so that the first request is as fast as the next.
func Open(ctx context.Context, o Options) (*Accounts, error) {
	if o.DB == nil || o.CheckURL == nil {
		return nil, errors.New("open accounts: a database and a check of webhook addresses are needed")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &Accounts{
		db: o.DB, master: o.Master, alerts: o.Alerts, log: o.Log, audit: o.Audit,
		rules: rules{checkURL: o.CheckURL, events: o.Events, atlas: o.Atlas},
		turn:  make(chan struct{}, 1), unknown: newUnknownKids(),
		sealers: map[dataKey]*secret.Sealer{}, texts: map[audit.Digest]secret.Secret{}, logos: newRecent[[]byte](logosKept),
	}
	var err error
	if a.failures, err = newFailures(o.Failures, o.Metrics); err != nil {
		return nil, fmt.Errorf("open accounts: %w", err)
	}
	a.snapshot.Store(emptySnapshot())
	if err := a.Refresh(ctx); err != nil {
		return nil, fmt.Errorf("open accounts: %w", err)
	}
	return a, nil
}

// Run keeps up with changes made by other processes and watches for spikes of
// failed authentication, until ctx ends.
func (a *Accounts) Run(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	healthy := true
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := a.Refresh(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && healthy {
			a.log.Warn("check for changed clients: continuing with the cached ones", "error", err)
		}
		healthy = err == nil
		a.watchFailures(ctx)
	}
}

// Changed returns a channel that is closed when a client, a key or a
// configuration changes next. Deliveries that wait for a key listen to it.
func (a *Accounts) Changed() <-chan struct{} { return a.snapshot.Load().changed }

// Refresh reads what has changed since the last look. Callers that arrive while
// one is under way share the next one.
func (a *Accounts) Refresh(ctx context.Context) error {
	want := a.begun.Load() + 1 // only one that begins from now on has certainly seen what the caller knows
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-a.turn }()
	if a.done >= want {
		return nil
	}
	number := a.begun.Add(1)
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	old := a.snapshot.Load()
	next, err := a.readSnapshot(ctx, old)
	if err != nil {
		return fmt.Errorf("read changed clients: %w", err)
	}
	a.done = number
	if next != old {
		a.snapshot.Store(next)
		a.forgetTexts(next)
		close(old.changed)
	}
	return nil
}

// catchUp makes a committed change known in this process. The change stands
// whatever happens here, so an error is only told: Run tries again.
func (a *Accounts) catchUp(ctx context.Context) {
	if err := a.Refresh(context.WithoutCancel(ctx)); err != nil {
		a.log.Warn("the change is stored but not yet visible to this process", "error", err)
	}
}
