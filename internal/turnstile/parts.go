package turnstile

import (
	"context"
	"math"
	"sync"
)

// Parts bounds what is in work by weight, of each kind and in all, owners in turns: a
// kind of work that hangs keeps what it holds, so it has a part of the whole and never all of it.
type Parts struct {
	all  *Gate
	each int64

	mu sync.Mutex
	of map[string]*Gate
}

// NewParts makes room for so much in all, and so much of each kind.
func NewParts(all, each int64) *Parts {
	return &Parts{all: New(all, math.MaxInt), each: each, of: map[string]*Gate{}}
}

func (p *Parts) part(kind string) *Gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	own, ok := p.of[kind]
	if !ok {
		own = New(p.each, math.MaxInt)
		p.of[kind] = own
	}
	return own
}

// Enter waits for room, first among those of the same kind; see [Gate.Enter].
func (p *Parts) Enter(ctx context.Context, kind, owner string, weight int64) (leave func(), err error) {
	weight = min(weight, p.each)
	leavePart, err := p.part(kind).Enter(ctx, owner, weight)
	if err != nil {
		return nil, err
	}
	leaveAll, err := p.all.Enter(ctx, owner, weight)
	if err != nil {
		leavePart()
		return nil, err
	}
	return func() { leaveAll(); leavePart() }, nil
}
