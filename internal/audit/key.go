package audit

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"sync"

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
// A nil *Key, or one that is not loaded, authenticates nothing.
type Key struct {
	open func(context.Context) (secret.Secret, error)

	mu   sync.RWMutex
	mac  []byte
	sign ed25519.PrivateKey
}

// NewKey is a key that open reads, or makes the first time. Nothing is read before Load.
func NewKey(open func(context.Context) (secret.Secret, error)) *Key {
	return &Key{open: open}
}

// Load reads the key, or makes it the first time. It is called before a write
// begins: the master key may be a network away.
func (k *Key) Load(ctx context.Context) error {
	if k == nil || k.Loaded() {
		return nil
	}
	key, err := k.open(ctx)
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
	k.mac, k.sign = mac, ed25519.NewKeyFromSeed(seed)
	return nil
}

// Loaded reports whether entries can be authenticated.
func (k *Key) Loaded() bool {
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
	if !k.Loaded() {
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
	case !k.Loaded():
		return ""
	case p.MAC == nil:
		return "it was not written with the audit key"
	case !hmac.Equal(p.MAC, k.sum(log, p.Own)):
		return "it is authenticated with a different key"
	}
	return ""
}
