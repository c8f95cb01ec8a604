package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// The form of an API key: trb_(test|live)_<kid>_<secret>.
const (
	testPrefix     = "trb_test_"
	livePrefix     = "trb_live_" // as long as testPrefix
	kidBytesMax    = 16
	secretBytesMin = 43
	secretBytesMax = 128
	keyBytesMin    = len(testPrefix) + 1 + len("_") + secretBytesMin
	keyBytesMax    = len(testPrefix) + kidBytesMax + len("_") + secretBytesMax

	kidBytesNew = 12 // 36^12: two keys of one store practically never meet; the store still has the last word

	kidLetters = "0123456789abcdefghijklmnopqrstuvwxyz"
	// Letters and digits only, so that a double click takes the whole secret.
	// 62^43 is just above 2^256.
	secretLetters = kidLetters + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// ErrKeyMalformed says that a text is no API key. It never says more, because
// the text may be a real key with a slip.
var ErrKeyMalformed = errors.New("not an API key")

// APIKey is one key of a client. It is stored twice: as a digest, so that a
// request is authenticated without decryption, and sealed, because its whole
// text is the HMAC secret of the client's webhooks. It prints as its prefix and
// kid, which are no secrets.
type APIKey struct {
	live     bool
	kid      string
	text     Secret
	secretAt int // where the secret part begins in text
}

// NewAPIKey makes a key with 256 bits from the system's random source.
func NewAPIKey(live bool) APIKey {
	prefix := testPrefix
	if live {
		prefix = livePrefix
	}
	text := make([]byte, 0, len(prefix)+kidBytesNew+len("_")+secretBytesMin)
	text = append(text, prefix...)
	text = appendRandom(text, kidLetters, kidBytesNew)
	kid := string(text[len(prefix):])
	text = append(text, '_')
	secretAt := len(text)
	text = appendRandom(text, secretLetters, secretBytesMin)
	return APIKey{live: live, kid: kid, text: hold(text), secretAt: secretAt}
}

// appendRandom appends n letters, each equally likely: of six random bits those
// that name no letter are thrown away, where a remainder would favour the first.
func appendRandom(dst []byte, letters string, n int) []byte {
	var pool [64]byte
	for n > 0 {
		_, _ = rand.Read(pool[:]) // never returns an error; it ends the program when the system has no randomness
		for _, b := range pool {
			if i := int(b & 63); i < len(letters) && n > 0 {
				dst = append(dst, letters[i])
				n--
			}
		}
	}
	clear(pool[:])
	return dst
}

// ParseAPIKey reads a key exactly: no spaces, no other alphabet, no length
// outside the limits. The only error is [ErrKeyMalformed].
func ParseAPIKey(text string) (APIKey, error) {
	if len(text) < keyBytesMin || len(text) > keyBytesMax {
		return APIKey{}, ErrKeyMalformed
	}
	key := APIKey{}
	switch text[:len(testPrefix)] {
	case testPrefix:
	case livePrefix:
		key.live = true
	default:
		return APIKey{}, ErrKeyMalformed
	}
	kid, secret, found := strings.Cut(text[len(testPrefix):], "_")
	if !found || len(kid) < 1 || len(kid) > kidBytesMax ||
		len(secret) < secretBytesMin || len(secret) > secretBytesMax {
		return APIKey{}, ErrKeyMalformed
	}
	for i := range len(kid) {
		if !isKidLetter(kid[i]) {
			return APIKey{}, ErrKeyMalformed
		}
	}
	for i := range len(secret) {
		if c := secret[i]; !isKidLetter(c) && (c < 'A' || c > 'Z') && c != '-' {
			return APIKey{}, ErrKeyMalformed
		}
	}
	key.kid = strings.Clone(kid) // a kid kept in a map must not keep the whole key in memory
	key.text = FromText(text)
	key.secretAt = len(text) - len(secret)
	return key, nil
}

func isKidLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// Live reports whether the key reaches real authorities.
func (k APIKey) Live() bool { return k.live }

// Kid returns the public id by which the key is looked up.
func (k APIKey) Kid() string { return k.kid }

// Text returns the whole key: what is sealed, what signs, what is shown once.
func (k APIKey) Text() Secret { return k.text }

// Digest returns the SHA-256 of the secret part, which is what is stored for
// lookup. A plain hash is enough for 256 random bits: there is nothing to guess.
func (k APIKey) Digest() [sha256.Size]byte {
	if k.text.IsZero() {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(k.text.Reveal()[k.secretAt:])
}

// Matches compares the digest in constant time. A zero or wiped key matches
// nothing.
func (k APIKey) Matches(digest []byte) bool {
	if k.text.IsZero() {
		return false
	}
	own := k.Digest()
	return subtle.ConstantTimeCompare(own[:], digest) == 1
}

// String returns the prefix and the kid; the secret part stays hidden.
func (k APIKey) String() string {
	prefix := testPrefix
	if k.live {
		prefix = livePrefix
	}
	return prefix + k.kid + "_" + redacted
}

// GoString returns what String returns.
func (k APIKey) GoString() string { return k.String() }

// Format writes what String returns, for every verb and flag.
func (k APIKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// LogValue returns what String returns.
func (k APIKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText returns what String returns.
func (k APIKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
