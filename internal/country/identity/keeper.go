package identity

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	keptBytesMax = 64 << 20         // of identities held at a time: some 7,000
	keptFor      = 10 * time.Minute // after which a file is opened again
)

// Keeper opens suppliers' credentials and holds what it opened for a while:
// deriving a key from a password is made slow on purpose, and a supplier signs
// many documents in a row. It is safe for concurrent use.
//
// Where there is no more room an arbitrary one goes: thousands of suppliers that
// file in turns would each find that the one used longest ago, its own, has gone.
//
// Failure policy: opened keys live in memory only, at most keptBytesMax of them.
// None is given out after keptFor, and the next credentials that are asked for
// drop those that are older. They are found by a digest over file and password,
// so other credentials never meet another's key.
type Keeper struct {
	mu    sync.Mutex
	kept  map[[sha256.Size]byte]*kept
	bytes int64
	swept time.Time // of what is too old
}

type kept struct {
	once    sync.Once
	until   time.Time
	bytes   int64
	id      *Identity
	problem *Problem
}

// NewKeeper returns a keeper that holds nothing yet.
func NewKeeper() *Keeper { return &Keeper{kept: map[[sha256.Size]byte]*kept{}} }

// PKCS12 is a key with its certificates as an authority hands it out.
//
// Failure policy: nothing of this type is logged, stored or returned to a client.
type PKCS12 struct {
	File     []byte
	Password string
}

// ErrUnusable marks an error that only other credentials can fix.
var ErrUnusable = errors.New("the supplier's credentials do not work")

// Open returns the identity of a file that is valid now. An error wraps [ErrUnusable].
func (k *Keeper) Open(c PKCS12, now time.Time) (*Identity, error) {
	if len(c.File) == 0 {
		return nil, fmt.Errorf("opening the supplier's certificate: %w: there is none", ErrUnusable)
	}
	held := k.find(c, now)
	held.once.Do(func() {
		file, reason := Read(c.File)
		if reason != "" {
			held.problem = &Problem{Reason: reason}
			return
		}
		held.id, held.problem = file.Open(c.Password)
	})
	switch {
	case held.problem != nil && held.problem.Password:
		return nil, fmt.Errorf("opening the supplier's certificate: %w: the password %s", ErrUnusable, held.problem.Reason)
	case held.problem != nil:
		return nil, fmt.Errorf("opening the supplier's certificate: %w: it %s", ErrUnusable, held.problem.Reason)
	case now.After(held.id.Leaf.NotAfter):
		return nil, fmt.Errorf("opening the supplier's certificate: %w: it expired on %s", ErrUnusable,
			held.id.Leaf.NotAfter.UTC().Format(time.DateOnly))
	case now.Before(held.id.Leaf.NotBefore):
		return nil, fmt.Errorf("opening the supplier's certificate: %w: it is not valid before %s", ErrUnusable,
			held.id.Leaf.NotBefore.UTC().Format(time.DateOnly))
	}
	return held.id, nil
}

// find returns the place of credentials.
func (k *Keeper) find(c PKCS12, now time.Time) *kept {
	key := digest(c)
	k.mu.Lock()
	defer k.mu.Unlock()
	if held, ok := k.kept[key]; ok && now.Before(held.until) {
		return held
	}
	k.drop(key)
	held := &kept{until: now.Add(keptFor), bytes: weight(c)}
	k.makeRoom(held.bytes, now)
	k.kept[key] = held
	k.bytes += held.bytes
	return held
}

// makeRoom drops what is too old, once in keptFor or where there is no room,
// and then whatever comes first.
func (k *Keeper) makeRoom(bytes int64, now time.Time) {
	if k.bytes+bytes > keptBytesMax || !now.Before(k.swept.Add(keptFor)) {
		k.swept = now
		for other, held := range k.kept {
			if !now.Before(held.until) {
				k.drop(other)
			}
		}
	}
	for other := range k.kept {
		if k.bytes+bytes <= keptBytesMax {
			return
		}
		k.drop(other)
	}
}

func (k *Keeper) drop(key [sha256.Size]byte) {
	if held, ok := k.kept[key]; ok {
		k.bytes -= held.bytes
		delete(k.kept, key)
	}
}

// weight is what an opened file takes: a key of 2,048 bits with its certificate
// was measured at 8.4 kB for a file of 2.5 kB, and further certificates add to the file.
func weight(c PKCS12) int64 { return 4<<10 + 2*int64(len(c.File)) }

func digest(c PKCS12) (sum [sha256.Size]byte) {
	h := sha256.New()
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(c.File)))
	h.Write(size[:])
	h.Write(c.File)
	h.Write([]byte(c.Password))
	h.Sum(sum[:0])
	return sum
}
