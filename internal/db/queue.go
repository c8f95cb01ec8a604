package db

import (
	"errors"
	"sync"
	"time"

	"tributary/internal/fault"
)

// writeQueue holds the writes that wait for a commit. It is bounded: a full
// queue answers at once instead of growing.
type writeQueue struct {
	mu     *sync.RWMutex
	closed *bool
	ch     chan *write
}

func newWriteQueue(capacity int) writeQueue {
	return writeQueue{mu: new(sync.RWMutex), closed: new(bool), ch: make(chan *write, capacity)}
}

func (q writeQueue) add(w *write) error {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if *q.closed {
		return unavailable(errors.New("the database is closing"))
	}
	select {
	case q.ch <- w:
		return nil
	default:
		return fault.Overloaded("the write queue")
	}
}

// take fills group with what is waiting, up to its capacity; it blocks only
// for the first. False: the queue is closed and empty.
func (q writeQueue) take(group *[]*write) bool {
	w, ok := <-q.ch
	if !ok {
		return false
	}
	*group = append((*group)[:0], w)
	for len(*group) < cap(*group) {
		select {
		case w, ok := <-q.ch:
			if !ok {
				return true
			}
			*group = append(*group, w)
		default:
			return true
		}
	}
	return true
}

// close refuses new writes; those accepted are still taken.
func (q writeQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !*q.closed {
		*q.closed = true
		close(q.ch)
	}
}

// startAll marks the group as running and drops members whose callers went
// away, and those that waited so long that there is no time left to store them:
// their callers must hear something before they hang up.
func startAll(group []*write) []*write {
	live := group[:0]
	for _, w := range group {
		switch {
		case !w.begin():
			w.finish(w.ctx.Err())
		case time.Until(w.until) < w.least:
			w.finish(unavailable(errTooLate))
		default:
			live = append(live, w)
		}
	}
	return live
}
