package authority

import (
	"context"
	"sync"
)

// background is what a simulated authority does after it has answered, such as
// calling back. It ends with its desk.
type background struct {
	ctx  context.Context
	stop context.CancelFunc
	all  sync.WaitGroup
}

// Go runs something beside the calls of others until it ends or the desk is
// closed, which ends ctx and waits.
func (d *Desk) Go(fn func(ctx context.Context)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return // nobody would wait for it
	}
	if d.beside.ctx == nil {
		d.beside.ctx, d.beside.stop = context.WithCancel(context.Background())
	}
	ctx := d.beside.ctx
	d.beside.all.Go(func() { fn(ctx) })
}

// rest ends what runs beside and waits for it.
func (d *Desk) rest() {
	d.mu.Lock()
	stop := d.beside.stop
	d.mu.Unlock()
	if stop != nil {
		stop()
		d.beside.all.Wait()
	}
}
