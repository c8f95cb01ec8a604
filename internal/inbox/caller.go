package inbox

import (
	"net/http"
	"net/netip"
	"slices"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// Limits of one address. An authority that is told to come back repeats.
const (
	callsPerSecond = 100
	callsBurst     = 1000

	// UnmatchedBytesMax bounds what is kept of a caller's messages that no filing has
	// taken: one that knows how to sign can name as many documents as it likes.
	UnmatchedBytesMax = 256 << 20
)

// addressOf is where a call comes from. Behind a proxy that nobody said to trust it
// is not known.
func (i *Inbox) addressOf(r *http.Request) (at netip.Addr, known bool) {
	forwarded := r.Header.Values("X-Forwarded-For")
	at = account.AddressOf(r.RemoteAddr, forwarded, i.cfg.TrustProxy)
	return at, at.IsValid() && (i.cfg.TrustProxy || len(forwarded) == 0 && r.Header.Get("Forwarded") == "")
}

// nearby reports whether a caller may be a simulated authority: it stands on this
// machine, or where the operator said. What such callers sign with is in every copy
// of this program.
func (i *Inbox) nearby(r *http.Request) bool {
	at, known := i.addressOf(r)
	named := func(p netip.Prefix) bool { return p.Contains(at) }
	return known && (at.IsLoopback() || slices.ContainsFunc(i.cfg.SimulatorsFrom, named))
}

// pace refuses a caller that calls too often.
func (i *Inbox) pace(r *http.Request) error {
	at, _ := i.addressOf(r)
	if wait := i.callers.Spend(account.Network(at), i.db.Wall()); wait > 0 {
		return &fault.Error{Kind: fault.Limited, RetryAfter: wait, Message: "too many calls from one address"}
	}
	return nil
}

// endpointFor is the endpoint as this caller may speak for it.
func (i *Inbox) endpointFor(r *http.Request, at country.Environment, to country.Endpoint) country.Endpoint {
	to.Simulated = to.Simulated && !bool(at.Live) && i.nearby(r)
	return to
}

// roomFor refuses what a caller adds to messages that nobody wants.
func roomFor(tx *db.Tx, caller string, bytes int64) error {
	if caller == "" {
		return nil
	}
	var kept int64
	if err := tx.Row(unmatchedSQL, caller).Scan(&kept); err != nil {
		return err
	}
	if kept+bytes > UnmatchedBytesMax {
		return fault.New(fault.Limited, "%d bytes of messages from %s wait for documents that are not known", kept, caller)
	}
	return nil
}

const unmatchedSQL = "SELECT coalesce(sum(bytes), 0) FROM inbox_messages WHERE caller = $1 AND taken_at IS NULL"
