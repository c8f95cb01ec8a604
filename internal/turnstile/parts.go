package turnstile

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Parts bounds what is in work by weight, of each kind and in all: a kind of work
// that hangs keeps what it holds, so it has a part of the whole and never all of it.
type Parts struct {
	all  *semaphore.Weighted
	each int64

	mu sync.Mutex
	of map[string]*semaphore.Weighted
}

// NewParts makes room for so much in all, and so much of each kind.
func NewParts(all, each int64) *Parts {
	return &Parts{all: semaphore.NewWeighted(all), each: each, of: map[string]*semaphore.Weighted{}}
}

func (p *Parts) part(kind string) *semaphore.Weighted {
	p.mu.Lock()
	defer p.mu.Unlock()
	own, ok := p.of[kind]
	if !ok {
		own = semaphore.NewWeighted(p.each)
		p.of[kind] = own
	}
	return own
}

// Acquire waits for room, first among those of the same kind.
func (p *Parts) Acquire(ctx context.Context, kind string, weight int64) error {
	own := p.part(kind)
	if err := own.Acquire(ctx, weight); err != nil {
		return err
	}
	if err := p.all.Acquire(ctx, weight); err != nil {
		own.Release(weight)
		return err
	}
	return nil
}

// Release gives room back.
func (p *Parts) Release(kind string, weight int64) {
	p.all.Release(weight)
	p.part(kind).Release(weight)
}
