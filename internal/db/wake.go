package db

import "sync"

// wakes carries "there is work" to the pumps of this process.
type wakes struct {
	mu     sync.Mutex
	queues map[string][]chan struct{}
}

// listen returns a channel that is signalled after a Wake of the queue.
func (w *wakes) listen(queue string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queues == nil {
		w.queues = map[string][]chan struct{}{}
	}
	ch := make(chan struct{}, 1)
	w.queues[queue] = append(w.queues[queue], ch)
	return ch
}

func (w *wakes) leave(queue string, ch chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.queues[queue]
	for i, c := range all {
		if c == ch {
			w.queues[queue] = append(all[:i:i], all[i+1:]...)
			return
		}
	}
}

func (w *wakes) wake(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.queues[queue] {
		signal(ch)
	}
}

func (w *wakes) all() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, chs := range w.queues {
		for _, ch := range chs {
			signal(ch)
		}
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Listen returns a channel that is signalled after a [Tx.Wake] of a queue, here or on
// another node, until leave is called.
func (d *DB) Listen(queue string) (wake <-chan struct{}, leave func()) {
	ch := d.wakes.listen(queue)
	return ch, func() { d.wakes.leave(queue, ch) }
}

// OldRows is the name under which it is said that rows of whatever age are due again.
func OldRows(queue string) string { return queue + " old" }

// Wake tells the workers of a queue, here and on other nodes, that rows are due.
func (d *DB) Wake(queue string) { d.wakeAll([]string{queue}) }

func (d *DB) wakeAll(queues []string) {
	var last string
	for _, q := range queues {
		if q == last {
			continue // groups mostly wake one queue
		}
		last = q
		d.wakes.wake(q)
		d.eng.notify(q)
	}
}
