// Package leaks ends the tests of a package: no goroutine may outlive them.
package leaks

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"go.uber.org/goleak"
)

// atEnd are functions, by a pointer of their own.
var atEnd sync.Map

// AtEnd says how to let go of what a test binary keeps until its end.
func AtEnd(fn func() error) { atEnd.Store(&fn, fn) }

// Main runs the tests, lets go of what they kept, and looks for what they left running.
func Main(m goleak.TestingM) {
	code := m.Run()
	var err error
	atEnd.Range(func(_, fn any) bool {
		err = errors.Join(err, fn.(func() error)())
		return true
	})
	if code == 0 {
		err = errors.Join(err, find())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// looks is how often find looks, half a second each time.
const looks = 120

// find answers what still runs. PostgreSQL's connections are given up behind
// their users, and on a busy machine that takes longer than one look.
func find() (err error) {
	for range looks {
		// A server that the tests themselves started ends with the process.
		if err = goleak.Find(goleak.IgnoreAnyFunction("os/exec.(*Cmd).writerDescriptor.func1")); err == nil {
			return nil
		}
	}
	return err
}
