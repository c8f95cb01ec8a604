package wire

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"tributary/internal/official/ksefwire"
)

const (
	keysFor = 6 * time.Hour // after which the Ministry's keys are asked for again
)

// keyring holds the Ministry's public keys. They change without notice, so a
// refused one is dropped and the list is read again.
type keyring struct {
	mu    sync.Mutex
	list  []ksefwire.PublicKey
	until time.Time
}

// encrypt encrypts a text for KSeF with RSA-OAEP and SHA-256, and says with
// which key.
func (ch *Client) encrypt(ctx context.Context, usage string, text []byte) (cipher []byte, keyID string, err error) {
	chosen, err := ch.publicKey(ctx, usage)
	if err != nil {
		return nil, "", err
	}
	cert, err := x509.ParseCertificate(chosen.Certificate)
	if err != nil {
		return nil, "", fmt.Errorf("reading the Ministry's certificate: %w", err)
	}
	key, ok := cert.PublicKey.(*rsa.PublicKey)
	if !ok || key.N.BitLen() < ksefwire.KeyBitsMin {
		return nil, "", fmt.Errorf("the Ministry's key for %s is no RSA key of %d bits or more", usage, ksefwire.KeyBitsMin)
	}
	cipher, err = rsa.EncryptOAEP(sha256.New(), rand.Reader, key, text, nil)
	if err != nil {
		return nil, "", fmt.Errorf("encrypting for KSeF: %w", err)
	}
	return cipher, chosen.PublicKeyID, nil
}

// publicKey chooses as ksef-docs asks (klucze-publiczne-do-szyfrowania.md,
// section 4.1): of those for the usage that are valid now, the one that became
// valid last.
func (ch *Client) publicKey(ctx context.Context, usage string) (ksefwire.PublicKey, error) {
	ch.keys.mu.Lock()
	defer ch.keys.mu.Unlock()
	now := ch.Now()
	if !now.Before(ch.keys.until) {
		var list []ksefwire.PublicKey
		if _, err := ch.callJSON(ctx, request{method: http.MethodGet, path: ksefwire.PathKeys, want: http.StatusOK}, nil,
			&list); err != nil {
			return ksefwire.PublicKey{}, fmt.Errorf("asking for the Ministry's keys: %w", err)
		}
		ch.keys.list, ch.keys.until = list, now.Add(keysFor)
	}
	var chosen ksefwire.PublicKey
	for _, k := range ch.keys.list {
		if !slices.Contains(k.Usage, usage) || now.Before(k.ValidFrom) || now.After(k.ValidTo) {
			continue
		}
		if chosen.PublicKeyID == "" || k.ValidFrom.After(chosen.ValidFrom) {
			chosen = k
		}
	}
	if chosen.PublicKeyID == "" {
		ch.keys.until = time.Time{}
		return ksefwire.PublicKey{}, fmt.Errorf("KSeF publishes no valid key for %s", usage)
	}
	return chosen, nil
}

// forgetKeys makes the next use read the list again.
func (ch *Client) forgetKeys() {
	ch.keys.mu.Lock()
	defer ch.keys.mu.Unlock()
	ch.keys.until = time.Time{}
}
