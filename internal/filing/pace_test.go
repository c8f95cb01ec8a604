package filing_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"tributary/internal/db/dbtest"
	"tributary/internal/document"
	"tributary/internal/filing"
)

// While submits wait in numbers, documents are drawn by a quarter of the
// processors; everything is still settled.
func TestWorkStepsBackWhileSubmitsWait(t *testing.T) {
	t.Parallel()
	o := newAuthorities(t).Setup()
	var now, most atomic.Int64
	o.Render = func(context.Context, filing.Issued) (document.Rendering, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		runtime.Gosched()
		return document.Rendering{PDF: []byte("%PDF")}, nil
	}
	n := newNode(t, dbtest.SQLite(t), o)
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
	n.Start()
	for _, id := range ids {
		n.Succeeds(id)
	}
	if most.Load() > int64(max(1, processors/4)) || most.Load() == 0 {
		t.Errorf("%d documents were drawn at once by %d processors", most.Load(), processors)
	}
}
