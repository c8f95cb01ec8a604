package server

import (
	"context"
	"sync"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
)

const (
	writeProbeEvery = time.Second // at most: anybody may ask, and each look is a commit
	writeProbeFor   = 2 * time.Second
)

// writeProbe finds out whether anything can be stored.
type writeProbe struct {
	db *db.DB

	mu  sync.Mutex
	at  time.Time
	err error
}

// possible answers nil where something can be stored, or could a moment ago.
func (p *writeProbe) possible(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() || time.Since(p.at) >= writeProbeEvery {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeProbeFor) // the answer is for others, too
		defer cancel()
		p.err = ProbeWrite(ctx, p.db)
		p.at = time.Now()
	}
	if p.err != nil {
		return (&fault.Error{Kind: fault.Unavailable, Message: "nothing can be stored", RetryAfter: writeProbeEvery}).Because(p.err)
	}
	return nil
}

func (p *writeProbe) gauge() float64 {
	if p.possible(context.Background()) != nil {
		return 0
	}
	return 1
}
