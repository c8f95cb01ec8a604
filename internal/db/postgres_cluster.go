package db

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrOldTimeline reports a server that was left behind: another one has taken
// over since, and what was written there is not here.
var ErrOldTimeline = errors.New(
	"the database server is on an older timeline than one that was seen before: another server has taken over from it, or an older state was brought back")

// ErrOtherCluster reports a server with another cluster of databases.
var ErrOtherCluster = errors.New("the database server is another one than before (its system identifier differs)")

// errStandby reports a server that takes no writes.
var errStandby = errors.New("the database server is a standby and takes no writes")

// cluster remembers which servers this process was connected to. Every
// promotion of a standby begins a new timeline with a higher number, so the
// highest one is where the writes are.
//
// Failure policy: a server on a lower timeline is not used, neither for writes
// nor for reads: a primary that was frozen, replaced and woke up again would
// answer with what was true before. The first connection to a higher timeline
// ends all others. Where a provider hides timelines nothing is checked.
type cluster struct {
	moved func() // called when a higher timeline was seen

	mu       sync.Mutex
	system   string
	timeline int64
	hidden   bool
}

const identitySQL = `SELECT (SELECT system_identifier FROM pg_control_system())::text, pg_is_in_recovery()::text,
	CASE WHEN pg_is_in_recovery() THEN '00000000' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END`

// admit looks at the server behind a new connection.
func (c *cluster) admit(ctx context.Context, conn *pgconn.PgConn) error {
	c.mu.Lock()
	hidden := c.hidden
	c.mu.Unlock()
	if hidden {
		return nil
	}
	results, err := conn.Exec(ctx, identitySQL).ReadAll()
	if err != nil {
		if state := SQLState(err); state == InsufficientPrivilege || state == undefinedFunction || state == notSupported {
			c.mu.Lock()
			c.hidden = true
			c.mu.Unlock()
			return nil
		}
		return fmt.Errorf("ask the server who it is: %w", err)
	}
	row := results[0].Rows[0]
	if string(row[1]) == "true" {
		return errStandby
	}
	timeline, err := strconv.ParseInt(string(row[2]), 16, 64)
	if err != nil {
		return fmt.Errorf("read the server's timeline: %w", err)
	}
	return c.observe(string(row[0]), timeline)
}

func (c *cluster) observe(system string, timeline int64) error {
	c.mu.Lock()
	before := c.timeline
	switch {
	case c.system != "" && c.system != system:
		defer c.mu.Unlock()
		return fmt.Errorf("%w: %s, before %s", ErrOtherCluster, system, c.system)
	case timeline < before:
		c.mu.Unlock()
		return fmt.Errorf("%w: %d, before %d", ErrOldTimeline, timeline, before)
	}
	c.system, c.timeline = system, timeline
	c.mu.Unlock()
	if before != 0 && timeline > before {
		c.moved()
	}
	return nil
}

func (c *cluster) known() (system string, timeline int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.system, c.timeline
}

// CheckCluster compares the server with the one that the database was last
// served from, and remembers it. accept takes an older timeline: whoever brings
// an older state back on purpose starts as after a restored backup.
//
// Failure policy: a timeline that went back has lost what was written on the
// later one, and is refused. A higher one is what a failover leaves; whether it
// lost acknowledged commits cannot be seen from here, because that depends on
// how the standby was fed. Another cluster is what a dump leaves, or an upgrade.
func (d *DB) CheckCluster(ctx context.Context, accept bool) error {
	e, ok := d.eng.(*pgEngine)
	if !ok {
		return nil
	}
	system, timeline := e.cluster.known()
	if system == "" {
		return nil // hidden by the provider
	}
	var stored string
	err := d.Read(ctx, func(r Reader) error {
		return r.Row("SELECT value FROM db_meta WHERE key = 'cluster'").Scan(&stored)
	})
	if err != nil && !errors.Is(err, ErrNoRows) {
		return fmt.Errorf("read which server was used before: %w", err)
	}
	var oldSystem string
	var oldTimeline int64
	_, _ = fmt.Sscan(stored, &oldSystem, &oldTimeline) // nothing stored is nothing known
	switch {
	case oldSystem == system && oldTimeline == timeline:
		return nil
	case oldSystem == "":
	case oldSystem != system:
		d.log.Warn("the database is served by another cluster than before: if it was restored from something older than what was acknowledged, stop and start with --restored",
			"before", oldSystem, "now", system)
	case timeline < oldTimeline && !accept:
		return fmt.Errorf("%w: %d, before %d. Start with --restored if this is meant", ErrOldTimeline, timeline, oldTimeline)
	default:
		d.log.Warn("the database changed its timeline: a failover, or a restored backup", "before", oldTimeline, "now", timeline)
	}
	return e.rememberCluster(ctx, system, timeline)
}

func (e *pgEngine) rememberCluster(ctx context.Context, system string, timeline int64) error {
	err := e.d.Write(ctx, func(tx *Tx) error {
		return tx.Exec("INSERT INTO db_meta (key, value) VALUES ('cluster', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value", fmt.Sprint(system, " ", timeline))
	})
	if err != nil {
		return fmt.Errorf("remember which server is used: %w", err)
	}
	return nil
}
