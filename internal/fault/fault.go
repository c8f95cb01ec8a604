// Package fault says what can go wrong and how it is told.
//
// It owns the kinds of failure that decide an HTTP status, the published codes
// and the faults a client reads, each with the client's own dotted field path.
// It does not own logging, HTTP or storage. Law: an error that is not an
// [*Error] is Internal; its text is for the operator and never for a client.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Kind decides what the caller can do about a failure.
type Kind uint8

// The kinds. The zero value is Internal, so that a forgotten kind never looks harmless.
const (
	Internal        Kind = iota // our defect or an unexpected condition: 500
	Invalid                     // the request cannot be accepted as it is: 400
	Unauthenticated             // no or unknown key: 401
	Forbidden                   // known, but not allowed: 403
	NotFound                    // unknown, or not the caller's: 404
	Conflict                    // contradicts what is stored: 409
	Expired                     // was there, is over: 410
	TooLarge                    // a limit on size: 413
	MediaType                   // not JSON: 415
	Limited                     // too many requests of this caller: 429
	Unavailable                 // we cannot now; the same request may work later: 503
)

var kindNames = [...]string{"internal", "invalid", "unauthenticated", "forbidden", "not found", "conflict",
	"expired", "too large", "media type", "limited", "unavailable"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Type says which party a fault speaks of.
type Type string

// The types of docs/specification.md, section 12.
const (
	Validation     Type = "validation"
	Authentication Type = "authentication"
	TaxAuthority   Type = "tax_authority"
	Warning        Type = "warning"
	General        Type = "general"
)

// Fault is one thing a client can read and act on. Its JSON form is part of the API.
type Fault struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Type    Type   `json:"type"`
	Field   string `json:"field"` // dotted path with indices from 0, as the client spelled it; empty when no field is meant
}

// At returns a validation fault on a field. The message always begins with the path: clients rely on it.
func At(field string, code Code, format string, args ...any) Fault {
	return Fault{Code: code, Type: Validation, Field: field, Message: field + " " + fmt.Sprintf(format, args...)}
}

// Reason is the message without the path, for whoever says it of another field.
func (f Fault) Reason() string { return strings.TrimPrefix(f.Message, f.Field+" ") }

// Warn returns a fault that hinders nothing. field may be empty.
func Warn(field string, code Code, format string, args ...any) Fault {
	f := Fault{Code: code, Type: Warning, Field: field, Message: fmt.Sprintf(format, args...)}
	if field != "" {
		f.Message = field + " " + f.Message
	}
	return f
}

// Error is a failure whose kind is known.
type Error struct {
	Kind       Kind
	Message    string        // for the client: one sentence without internals
	Faults     []Fault       // for the client: everything that is wrong, not only the first
	RetryAfter time.Duration // Limited and Unavailable: when to come back
	cause      error         // for the operator
}

// New returns an error of a known kind with one sentence for the client.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Because returns e with the operator's cause attached.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// With returns e with faults attached.
func (e *Error) With(faults ...Fault) *Error {
	c := *e
	c.Faults = append(append([]Fault(nil), e.Faults...), faults...)
	return &c
}

func (e *Error) Error() string {
	text := e.Message
	for _, f := range e.Faults {
		text += "; " + f.Message
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

func (e *Error) Unwrap() error { return e.cause }

// KindOf returns the kind of err; anything unknown is Internal.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// Overloaded is the answer of every bounded queue that is full.
func Overloaded(what string) *Error {
	return &Error{
		Kind: Unavailable, Message: "the service is overloaded, please retry", RetryAfter: time.Second,
		Faults: []Fault{{Code: CodeOverloaded, Type: General, Message: what + " is full"}},
	}
}

// Printable is text as a terminal can be shown it: what others wrote may not
// steer it.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

// Count is a number with its noun: 1 transaction, 2 transactions.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
