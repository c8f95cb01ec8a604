package server

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
		none := &fault.Error{Kind: fault.Unavailable, Message: "nothing can be stored", RetryAfter: writeProbeEvery}
		return none.Because(p.err)
	}
	return nil
}

// metric looks when it is asked for.
func (p *writeProbe) metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tributary_writable",
		Help: "Whether this node can store anything: 1, or 0 as on a full disk or a database that only reads."},
		func() float64 {
			if p.possible(context.Background()) != nil {
				return 0
			}
			return 1
		})
}
