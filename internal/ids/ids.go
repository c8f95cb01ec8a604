// Package ids makes the names of what clients, operators and the program keep, and
// the places in lists of them.
//
// It owns the random form of an id and the form of a cursor. It does not own ids
// that begin with their time: those of operations and of events are their owners',
// because lists go by them.
package ids

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"tributary/internal/fault"
)

// New is 128 random bits in lower-case hex.
func New() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: the runtime ends the program instead
	return hex.EncodeToString(b[:])
}

// Valid reports whether a text has the form of an id.
func Valid(text string) bool { return Hex(text, 32) }

// Hex reports whether a text is so many lower-case hex digits.
func Hex(text string, digits int) bool {
	return len(text) == digits && strings.Trim(text, "0123456789abcdef") == ""
}

// Cursor is the last row that a page has shown of a list by an instant and an id.
type Cursor struct {
	At int64 // microseconds
	ID string
}

// String is the cursor as it is handed out, opaque to who gets it.
func (c Cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.At, 10) + "." + c.ID))
}

// ReadCursor reads a cursor. The empty one stands before a list that begins with the newest.
func ReadCursor(text string) (Cursor, error) {
	if text == "" {
		return Cursor{At: math.MaxInt64}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	at, last, _ := strings.Cut(string(raw), ".")
	micros, wrong := strconv.ParseInt(at, 10, 64)
	if err != nil || wrong != nil || !Valid(last) {
		return Cursor{}, fault.New(fault.Invalid,
			"invalid list request").With(fault.At("cursor", fault.FieldNotValid, "is not a valid cursor"))
	}
	return Cursor{micros, last}, nil
}

// Page reads how long a page is, 0 for the usual length, and where it begins.
func Page(limit, usual, most int, cursor string) (int, Cursor, error) {
	if limit == 0 {
		limit = usual
	}
	if limit < 1 || limit > most {
		return 0, Cursor{}, fault.New(fault.Invalid,
			"invalid list request").With(fault.At("limit", fault.FieldNotValid, "must be 1 to %d", most))
	}
	from, err := ReadCursor(cursor)
	return limit, from, err
}
