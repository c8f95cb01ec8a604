package db

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// peers is this node's line to the others on PostgreSQL: one session that
// holds the node's advisory lock and listens for wake-ups.
//
// Failure policy: the lock falls with the session, so when a process dies the
// others see it at once instead of waiting for its leases to run out; when a
// whole machine vanishes they run out. A lost wake-up costs at most one poll
// interval. When this session breaks, leases of this node may be taken over
// although it lives; the fencing token keeps that safe.
type peers struct {
	e       *pgEngine
	key     int64
	conn    *pgx.Conn
	mu      sync.Mutex
	pending map[string]bool
	kick    chan struct{}
	nodes   atomic.Int64 // that live, this one included; as of the last look
}

const (
	notifyChannel = "tributary_wake"
	// notifyEvery is the pause between two wake-ups that a node hears under load,
	// whoever sends them: every node hears all of them, so senders share the time
	// and what is sent and heard does not grow with the square of their number.
	// NOTIFY takes a server-wide lock at commit, too: spend few of them.
	notifyEvery    = 10 * time.Millisecond
	clockEvery     = 10 * time.Second
	clockTries     = 4
	ReconnectEvery = 500 * time.Millisecond
	reconnectTell  = 20               // tries between two lines in the log
	peerAnswer     = 10 * time.Second // for connecting, over all hosts of the address
	peerSilence    = 10 * time.Second // after which a server that says nothing is asked whether it lives
)

func newPeers(e *pgEngine) *peers {
	key, _ := strconv.ParseInt(e.d.node, 10, 64)
	return &peers{e: e, key: key, pending: map[string]bool{}, kick: make(chan struct{}, 1)}
}

func (p *peers) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, peerAnswer)
	defer cancel()
	conn, err := p.e.session(ctx)
	if err != nil {
		return err
	}
	// Shared: after a cut the server may not have noticed that the old session is gone.
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock_shared($1)", p.key); err != nil {
		_ = conn.Close(ctx) // the first error tells more
		return fmt.Errorf("take the node's lock: %w", err)
	}
	if _, err := conn.Exec(ctx, "LISTEN "+notifyChannel); err != nil {
		_ = conn.Close(ctx) // the first error tells more
		return err
	}
	p.conn = conn
	return nil
}

func (p *peers) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { p.sendLoop(ctx) })
	wg.Go(func() { p.clockLoop(ctx) })
	defer wg.Wait()
	defer p.hangUp(ctx)
	for ctx.Err() == nil {
		if p.hear(ctx) {
			continue
		}
		p.hangUp(ctx)
		for try := 0; ctx.Err() == nil; try++ {
			err := p.connect(ctx)
			if err == nil {
				p.e.reset()       // the others may lead to a server that is no longer the one
				p.e.d.wakes.all() // whatever was said meanwhile is lost
				break
			}
			if try%reconnectTell == 0 && ctx.Err() == nil {
				p.e.d.log.Error("the database cannot be reached", "error", err)
			}
			Pause(ctx, ReconnectEvery)
		}
	}
}

// hear waits for a wake-up; false when the session is broken. In silence it asks
// the server now and then whether it still lives: a frozen one never hangs up.
func (p *peers) hear(ctx context.Context) bool {
	wait, cancel := context.WithTimeout(ctx, peerSilence)
	defer cancel()
	n, err := p.conn.WaitForNotification(wait)
	switch {
	case err == nil:
		p.e.d.wakes.wake(n.Payload)
		return true
	case ctx.Err() != nil || p.conn.IsClosed() || wait.Err() == nil:
		return false
	}
	ask, cancel := context.WithTimeout(ctx, pgQuestionFor)
	defer cancel()
	return p.conn.Ping(ask) == nil
}

func (p *peers) hangUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = p.conn.Close(ctx) // it is broken or we are leaving
}

// notify asks sendLoop to tell the other nodes.
func (p *peers) notify(queue string) {
	p.mu.Lock()
	p.pending[queue] = true
	p.mu.Unlock()
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

func (p *peers) sendLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.kick:
		}
		p.mu.Lock()
		queues := p.pending
		p.pending = map[string]bool{}
		p.mu.Unlock()
		for q := range queues {
			if err := p.tell(ctx, q); err != nil && ctx.Err() == nil {
				p.e.d.log.Warn("tell other nodes", "queue", q, "error", err)
			}
		}
		Pause(ctx, notifyEvery*time.Duration(max(1, p.nodes.Load())))
	}
}

// look counts the nodes that live.
func (p *peers) look() error {
	live, _, err := p.e.alive()
	if err == nil {
		p.nodes.Store(int64(len(live)))
	}
	return err
}

func (p *peers) tell(ctx context.Context, queue string) error {
	ctx, cancel := context.WithTimeout(ctx, pgQuestionFor)
	defer cancel()
	_, err := p.e.work.Exec(ctx, "SELECT pg_notify($1, $2)", notifyChannel, queue)
	return err
}

// clockLoop samples the server's clock, and remembers where the database is
// served from once that has changed.
func (p *peers) clockLoop(ctx context.Context) {
	_, remembered := p.e.cluster.known() // written down by CheckCluster
	for ctx.Err() == nil {
		if err := p.look(); err != nil && ctx.Err() == nil {
			p.e.d.log.Warn("count the nodes", "error", err)
		}
		Pause(ctx, clockEvery)
		if err := p.e.sampleClock(ctx); err != nil && ctx.Err() == nil {
			p.e.d.log.Warn("sample the database's clock", "error", err)
		}
		if system, timeline := p.e.cluster.known(); timeline != remembered && ctx.Err() == nil {
			p.e.d.log.Warn("the database changed its timeline: a failover", "before", remembered, "now", timeline)
			if p.e.rememberCluster(ctx, system, timeline) == nil {
				remembered = timeline
			}
		}
	}
}

func Pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (e *pgEngine) notify(queue string) {
	if e.peers != nil {
		e.peers.notify(queue)
	}
}

// alive lists the nodes whose session lives, by their advisory locks. Absence
// is not certain death: a session can be cut and come back.
func (e *pgEngine) alive() (live map[string]bool, certain bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), pgQuestionFor)
	defer cancel()
	rows, err := e.work.Query(ctx, `SELECT ((classid::bigint << 32) | objid::bigint)::text FROM pg_locks
		WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	if err != nil {
		return nil, false, err
	}
	live = map[string]bool{e.d.node: true}
	var node string
	_, err = pgx.ForEachRow(rows, []any{&node}, func() error {
		live[node] = true
		return nil
	})
	return live, false, err
}
