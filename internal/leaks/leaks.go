// Package leaks ends the tests of a package: no goroutine may outlive them.
package leaks

import (
	"fmt"
	"os"
	"sync"

	"go.uber.org/goleak"
)

// Main runs the tests and looks for what they left running.
func Main(m goleak.TestingM, apart ...goleak.Option) {
	code := m.Run()
	if code == 0 {
		if err := Find(apart...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// kept are functions, by a pointer of their own.
var kept sync.Map

// Keep says how to let go of what a test binary keeps until its end.
func Keep(let func()) { kept.Store(&let, let) }

// looks is how often Find looks, half a second each time.
const looks = 120

// Find answers what still runs. PostgreSQL's connections are given up behind
// their users, and on a busy machine that takes longer than one look.
func Find(apart ...goleak.Option) (err error) {
	kept.Range(func(_, let any) bool {
		let.(func())()
		return true
	})
	// A server that the tests themselves started ends with the process.
	apart = append(apart, goleak.IgnoreAnyFunction("os/exec.(*Cmd).writerDescriptor.func1"))
	for range looks {
		if err = goleak.Find(apart...); err == nil {
			return nil
		}
	}
	return err
}
