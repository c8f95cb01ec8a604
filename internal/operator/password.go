package operator

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"tributary/internal/fault"
	"tributary/internal/secret"
)

// Limits of a password.
const (
	passwordMin = 12  // characters
	passwordMax = 512 // bytes: more is no secret, only work
)

// Cost is what one guess of a password costs. It is stored in the hash, so it
// can be raised: older hashes go on working and are renewed at the next sign-in.
type Cost struct {
	MemoryKiB uint32
	Passes    uint32
	Lanes     uint8
}

// costDefault is the first choice of the OWASP Password Storage Cheat Sheet,
// section Argon2id, which also keeps a sign-in within 19 MiB.
func costDefault() Cost { return Cost{MemoryKiB: 19 * 1024, Passes: 2, Lanes: 1} }

// Bounds of costs in a stored hash; whoever can write hashes must not be able
// to make a sign-in take all memory.
const (
	memoryKiBMax = 1 << 20
	passesMax    = 64
	saltBytes    = 16
	hashBytes    = 32
)

// hashing computes hashes, two at a time: they are dear on purpose, and a flood
// of sign-ins must not take the memory the service needs.
type hashing struct {
	cost  Cost
	slots chan struct{}
	decoy string // is compared where there is no operator, so that a guess takes the same time
}

const hashesAtOnce = 2

func newHashing(c Cost) *hashing {
	if c == (Cost{}) {
		c = costDefault()
	}
	h := &hashing{cost: c, slots: make(chan struct{}, hashesAtOnce)}
	h.decoy = c.encode(make([]byte, saltBytes), make([]byte, hashBytes))
	return h
}

func (c Cost) derive(password secret.Secret, salt []byte, size uint32) []byte {
	return argon2.IDKey(password.Reveal(), salt, c.Passes, c.MemoryKiB, c.Lanes, size)
}

// encode writes the usual text form of argon2id hashes.
func (c Cost) encode(salt, sum []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.MemoryKiB, c.Passes, c.Lanes,
		b64.EncodeToString(salt), b64.EncodeToString(sum))
}

var errHash = errors.New("the stored password hash cannot be read")

// parseHash reads what encode has written.
func parseHash(text string) (c Cost, salt, sum []byte, err error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return c, nil, nil, errHash
	}
	costs := strings.Split(parts[3], ",")
	if len(costs) != 3 {
		return c, nil, nil, errHash
	}
	memory, ok1 := cost(costs[0], "m=", memoryKiBMax)
	passes, ok2 := cost(costs[1], "t=", passesMax)
	lanes, ok3 := cost(costs[2], "p=", 255)
	salt, err4 := base64.RawStdEncoding.Strict().DecodeString(parts[4])
	sum, err5 := base64.RawStdEncoding.Strict().DecodeString(parts[5])
	if !ok1 || !ok2 || !ok3 || err4 != nil || err5 != nil || len(salt) < 8 || len(salt) > 64 || len(sum) < 16 || len(sum) > 64 {
		return c, nil, nil, errHash
	}
	return Cost{MemoryKiB: uint32(memory), Passes: uint32(passes), Lanes: uint8(lanes)}, salt, sum, nil
}

// cost reads one of the parameters: a plain decimal from 1 to most.
func cost(text, prefix string, most uint64) (uint64, bool) {
	digits, ok := strings.CutPrefix(text, prefix)
	n, err := strconv.ParseUint(digits, 10, 32)
	return n, ok && err == nil && n >= 1 && n <= most && digits == strconv.FormatUint(n, 10)
}

// hash makes the stored form of a password.
func (h *hashing) hash(ctx context.Context, password secret.Secret) (string, error) {
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	defer func() { <-h.slots }()
	salt := make([]byte, saltBytes)
	rand.Read(salt) // never fails: the runtime ends the program instead
	return h.cost.encode(salt, h.cost.derive(password, salt, hashBytes)), nil
}

// matches compares in constant time. An empty stored form is nobody's: it costs
// the same and never matches. stale: the form has other costs than new ones.
func (h *hashing) matches(ctx context.Context, stored string, password secret.Secret) (ok, stale bool, err error) {
	nobody := stored == ""
	if nobody {
		stored = h.decoy
	}
	c, salt, sum, err := parseHash(stored)
	if err != nil {
		return false, false, err
	}
	if err := h.enter(ctx); err != nil {
		return false, false, err
	}
	defer func() { <-h.slots }()
	same := subtle.ConstantTimeCompare(c.derive(password, salt, uint32(len(sum))), sum) == 1
	return same && !nobody, c != h.cost, nil
}

func (h *hashing) enter(ctx context.Context) error {
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// checkPassword refuses what is guessed first. It asks for length, not for
// kinds of characters (NIST SP 800-63B, section 5.1.1.2).
func checkPassword(name string, password secret.Secret) error {
	text := password.RevealText()
	wrong := ""
	switch {
	case utf8.RuneCountInString(text) < passwordMin:
		wrong = fmt.Sprintf("must have at least %d characters", passwordMin)
	case len(text) > passwordMax:
		wrong = fmt.Sprintf("must have at most %d bytes", passwordMax)
	case len(name) >= 4 && strings.Contains(strings.ToLower(text), name):
		wrong = "must not contain the operator's name"
	case trivial(text):
		wrong = "is too easy to guess: it consists of common words, keyboard runs, numbers or repetitions; use four unrelated words"
	default:
		return nil
	}
	return invalid(fault.At("password", fault.FieldNotValid, "%s", wrong))
}
