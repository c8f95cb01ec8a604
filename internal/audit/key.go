package audit

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

// Key authenticates the entries of audit logs and signs their heads. It is
// a service key, sealed under the master key: who owns the database and not the
// master key can change and rehash a log, and cannot make it hold.
//
// Logs begin with the key: nobody adds an entry without it. So there is no moment
// from which entries have a proof, which could be moved, and no kind of entry that
// needs none, which others could be made to look like.
//
// It can be renewed: what was made with the keys before it is still proven, and
// nothing is made with them any more. In a log nothing of an older key stands behind
// an entry of a newer one, nor behind heads that a newer one signed.
//
// A nil *Key, or one that is not loaded, authenticates nothing.
type Key struct {
	open  func(context.Context) (Ring, error)
	since func(db.Reader) (int64, error)

	mu    sync.RWMutex
	ring  []derived // oldest first; the last one is used
	known int64     // [Ring.Since]
}

// Ring is the key with those that it has replaced.
type Ring struct {
	Keys  []secret.Secret // oldest first
	Since int64           // of the last one; it tells a renewed ring from the one before
}

// derived is what one key of the ring is used as.
type derived struct {
	mac  []byte
	sign ed25519.PrivateKey
}

// errRenewed ends what began with a key that was replaced meanwhile: a node learns
// of it within seconds, see [Key.Follow].
var errRenewed = &fault.Error{Kind: fault.Unavailable, RetryAfter: 5 * time.Second,
	Message: "the audit key was renewed a moment ago, and this process does not know the new one yet"}

// NewKey is a key that open reads, or makes the first time; since reads when the
// one that is used was made, in a write so that it stays until the commit. Nothing is read before Load.
func NewKey(open func(context.Context) (Ring, error), since func(db.Reader) (int64, error)) *Key {
	return &Key{open: open, since: since}
}

// Load reads the key, or makes it the first time. It is called before a write
// begins: the master key may be a network away.
func (k *Key) Load(ctx context.Context) error {
	if k == nil || k.Loaded() {
		return nil
	}
	return k.read(ctx)
}

// Follow learns of a key that was renewed.
func (k *Key) Follow(ctx context.Context, d *db.DB) error {
	err := d.Read(db.AsService(ctx), k.Current)
	if !errors.Is(err, errRenewed) {
		return err
	}
	return k.read(ctx)
}

// Current fails where the key was renewed since it was read: what is written or
// verified with the older one would not hold.
func (k *Key) Current(r db.Reader) error {
	if !k.Loaded() {
		return nil
	}
	since, err := k.since(r)
	if err != nil {
		return fmt.Errorf("read when the audit key was made: %w", err)
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	if since != k.known {
		return errRenewed
	}
	return nil
}

func (k *Key) read(ctx context.Context) error {
	found, err := k.open(ctx)
	if err != nil {
		return fmt.Errorf("open the audit key: %w", err)
	}
	ring := make([]derived, len(found.Keys))
	for i, key := range found.Keys {
		if ring[i], err = derive(key); err != nil {
			return fmt.Errorf("derive the audit key: %w", err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ring, k.known = ring, found.Since
	return nil
}

func derive(key secret.Secret) (d derived, err error) {
	if d.mac, err = hkdf.Key(sha256.New, key.Reveal(), nil, "tributary audit entries v1", sha256.Size); err != nil {
		return d, err
	}
	seed, err := hkdf.Key(sha256.New, key.Reveal(), nil, "tributary audit heads v1", ed25519.SeedSize)
	if err != nil {
		return d, err
	}
	d.sign = ed25519.NewKeyFromSeed(seed)
	return d, nil
}

// Loaded reports whether entries can be authenticated.
func (k *Key) Loaded() bool { return len(k.keys()) > 0 }

// keys is the ring as it is known now.
func (k *Key) keys() []derived {
	if k == nil {
		return nil
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.ring
}

// sum authenticates the hash of an entry, and with it everything before it; nil
// without a key. The name of its log keeps an entry out of another.
func (k *Key) sum(log string, own Digest) []byte {
	ring := k.keys()
	if len(ring) == 0 {
		return nil
	}
	return ring[len(ring)-1].sum(log, own)
}

func (d derived) sum(log string, own Digest) []byte {
	h := hmac.New(sha256.New, d.mac)
	fmt.Fprintf(h, "%d:%s", len(log), log)
	h.Write(own[:])
	return h.Sum(nil)
}

// maker is the place in the ring of the key that an entry was made with, or why
// there is none. A key that has none knows nothing: 0.
func maker(ring []derived, log string, p *Proof) (at int, wrong string) {
	switch {
	case len(ring) == 0:
		return 0, ""
	case p.MAC == nil:
		return 0, "it was not written with the audit key"
	}
	for at = len(ring) - 1; at >= 0; at-- {
		if hmac.Equal(p.MAC, ring[at].sum(log, p.Own)) {
			return at, ""
		}
	}
	return 0, "it is authenticated with a different key"
}

const replacedWhy = "it was written with an audit key that had been replaced before"

// After finds what was made with a key older than that of heads behind them: who
// has only a key that was replaced has forged it.
func (k *Key) After(h Heads, v Verdict) *Break {
	signer := slices.IndexFunc(k.keys(), func(d derived) bool { return publicKey(d) == h.PublicKey })
	at := slices.IndexFunc(h.Logs, func(head Head) bool { return head.Log == v.Log })
	seq := int64(0) // a log that the heads do not know begins with their key
	if at >= 0 {
		seq = h.Logs[at].Seq
	}
	if signer > 0 && slices.ContainsFunc(v.last[:min(signer, len(v.last))], func(last int64) bool { return last > seq }) {
		return &Break{Seq: seq + 1, Reason: replacedWhy}
	}
	return nil
}
