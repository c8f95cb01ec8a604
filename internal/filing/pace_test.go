package filing_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/document"
	"tributary/internal/filing"
	"tributary/internal/filing/filingtest"
)

// While submits wait in numbers, nothing is taken, prepared or drawn before the
// work has earned it; everything is still settled.
func TestWorkStepsBackWhileSubmitsWait(t *testing.T) {
	t.Parallel()
	o := newAuthorities(t).Setup()
	var first atomic.Int64
	var n *filingtest.Node
	o.Render = func(context.Context, filing.Issued) (document.Rendering, error) {
		first.CompareAndSwap(0, int64(n.DB.Elapsed()))
		return document.Rendering{PDF: []byte("%PDF")}, nil
	}
	n = newNode(t, sqlite(t), o)
	processors := runtime.GOMAXPROCS(0)
	for range 4*processors - 1 {
		defer n.DB.Pace().Submit()()
	}
	if n.DB.Pace().Pressed() {
		t.Error("one less than the limit presses")
	}
	defer n.DB.Pace().Submit()()
	if !n.DB.Pace().Pressed() {
		t.Error("submits at the limit do not press")
	}
	var ids []string
	for s := range 6 {
		supplier := n.Supplier(byNumber, fmt.Sprint("s", s))
		for i := range 5 {
			ids = append(ids, n.File(invoice(byNumber, supplier, fmt.Sprint("t", s, "-", i))))
		}
	}
	began := n.DB.Elapsed()
	n.DB.Pace().Spent(time.Hour) // all that can be owed
	n.Start()
	for _, id := range ids {
		n.Succeeds(id)
	}
	const owed = 500 * time.Millisecond
	if least := owed * 4 / time.Duration(processors); time.Duration(first.Load())-began < least {
		t.Errorf("a document was drawn after %s; what was owed is earned after %s", time.Duration(first.Load())-began, least)
	}
}
