package account

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"
)

// AuditKey authenticates the entries of audit logs and signs their heads. It is
// a service key, sealed under the master key: who owns the database and not the
// master key can change and rehash a log, and cannot make it hold.
//
// A nil *AuditKey, or one that is not loaded, authenticates nothing.
type AuditKey struct {
	keys ServiceKeys

	mu    sync.RWMutex
	mac   []byte
	sign  ed25519.PrivateKey
	since time.Time
}

// NewAuditKey answers the key of a database. Nothing is read before Load.
func NewAuditKey(keys ServiceKeys) *AuditKey { return &AuditKey{keys: keys} }

// Load reads the key, or makes it the first time. It is called before a write
// begins: the master key may be a network away.
func (k *AuditKey) Load(ctx context.Context) error {
	if k == nil || k.loaded() {
		return nil
	}
	key, err := k.keys.Key(ctx, AuditLogs)
	if err != nil {
		return fmt.Errorf("open the audit key: %w", err)
	}
	mac, err := hkdf.Key(sha256.New, key.Current.Reveal(), nil, "tributary audit entries v1", sha256.Size)
	if err != nil {
		return fmt.Errorf("derive the audit key: %w", err)
	}
	seed, err := hkdf.Key(sha256.New, key.Current.Reveal(), nil, "tributary audit heads v1", ed25519.SeedSize)
	if err != nil {
		return fmt.Errorf("derive the audit key: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mac, k.sign, k.since = mac, ed25519.NewKeyFromSeed(seed), key.Since
	return nil
}

func (k *AuditKey) loaded() bool {
	if k == nil {
		return false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.mac != nil
}

// Sum authenticates the hash of an entry, and with it everything before it; nil
// without a key. The scope keeps an entry of one log out of another.
func (k *AuditKey) Sum(scope string, hash []byte) []byte {
	if !k.loaded() {
		return nil
	}
	h := hmac.New(sha256.New, k.mac)
	fmt.Fprintf(h, "%d:%s", len(scope), scope)
	h.Write(hash)
	return h.Sum(nil)
}

// Proven is an entry and what it brings as proof.
type Proven struct {
	Hash, MAC []byte
	At        time.Time
	Must      bool // an entry of this kind is never written without the key
}

// Wrong says why what an entry brings is not what the key makes, or nothing.
func (k *AuditKey) Wrong(scope string, e Proven) string {
	switch {
	case !k.loaded():
		return ""
	case e.MAC == nil && e.Must && !e.At.Before(k.since):
		return "it was not written by who holds the audit key"
	case e.MAC != nil && !hmac.Equal(e.MAC, k.Sum(scope, e.Hash)):
		return "it is authenticated by another key than ours"
	}
	return ""
}
