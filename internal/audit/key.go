package audit

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"tributary/internal/secret"
)

// Key authenticates the entries of audit logs and signs their heads. It is
// a service key, sealed under the master key: who owns the database and not the
// master key can change and rehash a log, and cannot make it hold.
//
// A nil *Key, or one that is not loaded, authenticates nothing.
type Key struct {
	open func(context.Context) (key secret.Secret, since time.Time, err error)

	mu    sync.RWMutex
	mac   []byte
	sign  ed25519.PrivateKey
	since time.Time
}

// NewKey is a key that open reads, or makes the first time. Nothing is read before Load.
func NewKey(open func(context.Context) (key secret.Secret, since time.Time, err error)) *Key {
	return &Key{open: open}
}

// Load reads the key, or makes it the first time. It is called before a write
// begins: the master key may be a network away.
func (k *Key) Load(ctx context.Context) error {
	if k == nil || k.loaded() {
		return nil
	}
	key, since, err := k.open(ctx)
	if err != nil {
		return fmt.Errorf("open the audit key: %w", err)
	}
	mac, err := hkdf.Key(sha256.New, key.Reveal(), nil, "tributary audit entries v1", sha256.Size)
	if err != nil {
		return fmt.Errorf("derive the audit key: %w", err)
	}
	seed, err := hkdf.Key(sha256.New, key.Reveal(), nil, "tributary audit heads v1", ed25519.SeedSize)
	if err != nil {
		return fmt.Errorf("derive the audit key: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mac, k.sign, k.since = mac, ed25519.NewKeyFromSeed(seed), since
	return nil
}

func (k *Key) loaded() bool {
	if k == nil {
		return false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.mac != nil
}

// sum authenticates the hash of an entry, and with it everything before it; nil
// without a key. The name of its log keeps an entry out of another.
func (k *Key) sum(log string, own Digest) []byte {
	if !k.loaded() {
		return nil
	}
	h := hmac.New(sha256.New, k.mac)
	fmt.Fprintf(h, "%d:%s", len(log), log)
	h.Write(own[:])
	return h.Sum(nil)
}

// wrong says why what an entry brings is not what the key makes, or nothing.
func (k *Key) wrong(log string, p *Proof) string {
	switch {
	case !k.loaded():
		return ""
	case p.MAC == nil && p.Must && !p.At.Before(k.since):
		return "it was not written with the audit key"
	case p.MAC != nil && !hmac.Equal(p.MAC, k.sum(log, p.Own)):
		return "it is authenticated with a different key"
	}
	return ""
}
