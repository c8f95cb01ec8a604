// Package secret keeps what must not be seen: API keys, tax credentials and the
// keys that seal them.
//
// It owns the [Secret] value that nothing can print, the sealing of secrets
// under a data key per client ([Sealer]), the wrapping of data keys by a master
// key that never enters the database ([Master]), the form of an [APIKey] with
// its digest, and the HMAC of webhook bodies. It does not own storage, the
// states of a key (next, active, retiring, revoked), HTTP or authorisation:
// callers store the bytes it returns and decide who may ask.
//
// Law of [Sealer.Seal] and [Master.NewKey]: what is sealed opens only with the
// same [Context]. A row that was copied to another client, key, purpose or
// version does not open, and no error, log line or panic of this package
// carries a byte of a secret.
//
// Cryptography is Tink's. Vault is asked by four calls of our own and not by
// hashicorp/vault/api (v1.23.0), for the sake of that law: its errors repeat the
// answer's body, which may hold a data key, and the values of variables, which
// may be a token in the wrong place; it reads answers of any length, twice; and
// its filter of VAULT_HEADERS lets x-vault-token through. Each would need a wall
// around it, behind which 13 more modules (HCL, socket addresses, retries) and
// 0.7 MB would stand. Nothing in the four calls is cryptography.
package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// ErrEmpty says that a secret was needed and the given one is empty or wiped.
var ErrEmpty = errors.New("the secret is empty")

// Secret is bytes that no formatter, logger or encoder can print. Only
// [Secret.Reveal] and [Secret.RevealText] give them out, so a search for
// "Reveal" finds every place where a secret leaves. The zero value is an empty
// secret. Copies share the same bytes: wiping one wipes all.
//
// The bytes hide behind a function because fmt prints unexported fields by
// reflection, without asking Format, and debug printers follow pointers too;
// none of them can look into a closure. It also makes == a compile error,
// where a comparison that leaks its timing would otherwise slip in.
type Secret struct {
	vault func() *held
}

type held struct{ bytes []byte }

func (h *held) self() *held { return h }

func hold(b []byte) Secret { return Secret{vault: (&held{bytes: b}).self} }

// New returns a secret with a copy of b; the caller may clear b afterwards.
func New(b []byte) Secret { return hold(append(make([]byte, 0, len(b)), b...)) }

// FromText returns a secret with the bytes of s.
func FromText(s string) Secret { return hold([]byte(s)) }

// Reveal returns the bytes themselves, not a copy, so that Wipe reaches them.
// The caller neither changes nor keeps them.
func (s Secret) Reveal() []byte {
	if s.vault == nil {
		return nil
	}
	b := s.vault().bytes
	return b[:len(b):len(b)]
}

// RevealText returns the secret as text: a copy that Wipe cannot reach.
func (s Secret) RevealText() string { return string(s.Reveal()) }

// IsZero reports whether there is nothing in the secret, or nothing any more.
func (s Secret) IsZero() bool { return len(s.Reveal()) == 0 }

// Equal compares in constant time for secrets of one length.
func (s Secret) Equal(other Secret) bool {
	return subtle.ConstantTimeCompare(s.Reveal(), other.Reveal()) == 1
}

// Wipe clears the bytes of s and of every copy of s, which are empty from then
// on. It must not run while another goroutine uses a copy.
func (s Secret) Wipe() {
	if s.vault == nil {
		return
	}
	h := s.vault()
	clear(h.bytes)
	h.bytes = nil
}

// String returns a fixed text.
func (s Secret) String() string { return redacted }

// GoString returns a fixed text.
func (s Secret) GoString() string { return redacted }

// Format writes a fixed text for every verb and flag.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue returns a fixed text.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON returns a fixed text.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText returns a fixed text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// UnmarshalText takes a secret from a request, a flag or a setting. It refuses
// the text that the marshallers write: whoever reads that back has stored a
// secret by printing it, and would find out only when the first use fails.
func (s *Secret) UnmarshalText(text []byte) error {
	if string(text) == redacted {
		return errors.New("read a secret: it was redacted when it was written; seal secrets to store them")
	}
	*s = New(text)
	return nil
}

// Value refuses to hand a secret to a database; see [Sealer.Seal].
func (s Secret) Value() (driver.Value, error) {
	return nil, errors.New("store a secret: it must be sealed first")
}

// GobEncode refuses; see [Sealer.Seal].
func (s Secret) GobEncode() ([]byte, error) {
	return nil, errors.New("encode a secret: it must be sealed first")
}

// GobDecode refuses, as nothing can have been encoded.
func (s *Secret) GobDecode([]byte) error {
	return errors.New("decode a secret: secrets are never encoded")
}

// HMACHex returns the HMAC-SHA256 of body in lower-case hexadecimal, the form
// of the webhook signature. An empty or wiped key is refused: its signature
// could be forged by anyone.
func HMACHex(key Secret, body []byte) (string, error) {
	if key.IsZero() {
		return "", fmt.Errorf("sign a body: %w", ErrEmpty)
	}
	mac := hmac.New(sha256.New, key.Reveal())
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil)), nil
}
