package secret

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tink-crypto/tink-go/v2/tink"
)

// contextFieldBytesMax bounds each text of a Context; ours are ids.
const contextFieldBytesMax = 255

// The labels keep the two uses of a Context apart: a wrapped data key can never
// be taken for a sealed value, whatever a caller mixes up.
const (
	labelWrap = "tributary data key v1"
	labelSeal = "tributary sealed value v1"
)

// ErrBroken says that sealed or wrapped bytes do not open: they were changed,
// belong to another key, or to another context.
var ErrBroken = errors.New("does not open: changed bytes, another key or another context")

// Context says whose secret it is and what for. It is bound into the
// ciphertext and not stored in it; the caller builds it from the row it reads.
type Context struct {
	Client  string // empty for the service's own secrets
	Kid     string // API key or credential id; empty where there is none
	Purpose string // never empty
	Version int    // of the row's own format, 0 or more
}

// bind returns the associated data. Every text carries its length, so that no
// two different contexts give the same bytes. The form is part of everything
// that is stored: it never changes, a new form gets a new label.
func (c Context) bind(label string) ([]byte, error) {
	if c.Purpose == "" {
		return nil, errors.New("secret context without a purpose")
	}
	if c.Version < 0 {
		return nil, errors.New("secret context with a negative version")
	}
	b := make([]byte, 0, 2*len(label)+len(c.Client)+len(c.Kid)+len(c.Purpose))
	for _, text := range [...]string{label, c.Client, c.Kid, c.Purpose} {
		if len(text) > contextFieldBytesMax {
			return nil, fmt.Errorf("secret context with a text of %d bytes, at most %d are allowed",
				len(text), contextFieldBytesMax)
		}
		b = append(b, byte(len(text)))
		b = append(b, text...)
	}
	return binary.BigEndian.AppendUint64(b, uint64(c.Version)), nil
}

// Sealer seals and opens the secrets of one client with its data key. It is
// safe for concurrent use. Keep it: making one again costs a call to the
// master key, which may be a network away.
type Sealer struct {
	aead   atomic.Pointer[tink.AEAD]
	again  func() (*Sealer, error) // nil: what it has is all there is
	looked atomic.Int64            // when it last looked again, in Unix seconds
}

func newSealer(primitive tink.AEAD) *Sealer {
	s := &Sealer{}
	s.aead.Store(&primitive)
	return s
}

// Follow lets a sealer read its data key again when something does not open:
// another process may have renewed it. It looks once a second at most.
func (s *Sealer) Follow(again func() (*Sealer, error)) { s.again = again }

// followed reports whether the data key was read again.
func (s *Sealer) followed() bool {
	now, last := time.Now().Unix(), s.looked.Load()
	if s.again == nil || now == last || !s.looked.CompareAndSwap(last, now) {
		return false
	}
	fresh, err := s.again()
	if err != nil {
		return false
	}
	s.aead.Store(fresh.aead.Load())
	return true
}

// Seal encrypts plain (AES-256-GCM, fresh nonce) and binds c into it.
func (s *Sealer) Seal(plain Secret, c Context) ([]byte, error) {
	bound, err := c.bind(labelSeal)
	if err != nil {
		return nil, fmt.Errorf("seal for %s: %w", c.Purpose, err)
	}
	sealed, err := (*s.aead.Load()).Encrypt(plain.Reveal(), bound)
	if err != nil {
		return nil, fmt.Errorf("seal for %s: %w", c.Purpose, err)
	}
	return sealed, nil
}

// Open returns what Seal was given with the same context, else [ErrBroken].
func (s *Sealer) Open(sealed []byte, c Context) (Secret, error) {
	bound, err := c.bind(labelSeal)
	if err != nil {
		return Secret{}, fmt.Errorf("open sealed %s: %w", c.Purpose, err)
	}
	plain, err := (*s.aead.Load()).Decrypt(sealed, bound)
	if err != nil && s.followed() {
		plain, err = (*s.aead.Load()).Decrypt(sealed, bound)
	}
	if err != nil {
		return Secret{}, fmt.Errorf("open sealed %s of client %q: %w", c.Purpose, c.Client, ErrBroken)
	}
	return hold(plain), nil
}
