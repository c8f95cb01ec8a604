package filing

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// closedFor is what a caller is told to wait while the intake is closed.
const closedFor = 30 * time.Second

// gate is what this process knows of whether the intake is open.
type gate struct {
	closed atomic.Bool
	mu     sync.Mutex
	opened chan struct{} // closed when it is open
}

func newGate() *gate {
	g := &gate{opened: make(chan struct{})}
	close(g.opened)
	return g
}

func (g *gate) set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch was := g.closed.Swap(closed); {
	case closed && !was:
		g.opened = make(chan struct{})
	case was && !closed:
		close(g.opened)
	}
}

// CloseIntake accepts nothing, on any node and after any restart, until
// OpenIntake. Companies that are onboarded from now on may have filed before: each
// is held at its first filing, until the given instant.
func (s *Service) CloseIntake(tx *db.Tx, newcomersUntil time.Time) error {
	return tx.Exec(`INSERT INTO intake (one, closed_at, newcomers_from, newcomers_until) VALUES (1, $1, $1, $2)
		ON CONFLICT (one) DO UPDATE SET closed_at = excluded.closed_at, newcomers_from = excluded.newcomers_from, newcomers_until = excluded.newcomers_until`,
		db.Micros(tx.Now()), db.Micros(newcomersUntil))
}

// OpenIntake ends what CloseIntake began.
func (s *Service) OpenIntake(tx *db.Tx) error { return tx.Exec("UPDATE intake SET closed_at = NULL") }

// LearnIntake opens or closes the intake of this process as it is stored. Call
// it before anything is served, and while it is closed.
func (s *Service) LearnIntake(ctx context.Context) (open bool, err error) {
	var closed bool
	err = s.db.Read(ctx, func(r db.Reader) error {
		return r.Row("SELECT count(*) > 0 FROM intake WHERE closed_at IS NOT NULL").Scan(&closed)
	})
	if err != nil {
		return false, fmt.Errorf("look whether the intake is open: %w", err)
	}
	s.gate.set(closed)
	return !closed, nil
}

// Opened is closed when the intake is open.
func (s *Service) Opened() <-chan struct{} {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return s.gate.opened
}

// errClosed is the answer to submissions until the authorities were asked.
func errClosed() error {
	return &fault.Error{Kind: fault.Unavailable, RetryAfter: closedFor,
		Message: "the service was restored from a backup and is asking the tax authorities what they hold; submit again later",
		Faults:  []fault.Fault{{Code: fault.CodeOverloaded, Type: fault.General, Message: "transactions are not accepted until the restoration ends; reading works"}}}
}
