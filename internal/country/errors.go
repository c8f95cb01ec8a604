package country

import (
	"errors"
	"fmt"
	"runtime/debug"

	"tributary/internal/country/identity"
)

// ErrNotTaken marks an error after which the authority certainly holds nothing of the call.
var ErrNotTaken = errors.New("nothing was submitted")

// ErrNotAskable marks the answer of a Find that has nobody to ask: what an
// authority of class N holds of this filing only a person can find out.
var ErrNotAskable = errors.New("the authority cannot be asked")

// ErrCredentials marks an error that only new credentials can fix: expired,
// revoked, unreadable or refused by the authority before it read the filing.
var ErrCredentials = identity.ErrUnusable

// ErrPanic marks what a pack did instead of answering.
var ErrPanic = errors.New("panic")

// Safely turns a panic of a pack into an error: one transaction must not end the process.
func Safely(what string, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %w: %v\n%s", what, ErrPanic, p, debug.Stack())
		}
	}()
	return fn()
}
