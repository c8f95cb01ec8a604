package db

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"tributary/internal/fault"
)

const (
	pgConnectTimeout = 3 * time.Second  // for each of the hosts that the address names, unless it says connect_timeout
	pgSilence        = 10 * time.Second // how long a vanished machine goes unnoticed, here and there
	pgIdleInTx       = time.Minute      // a stalled node must not hold locks for ever
	pgPingAfter      = time.Second      // a connection that lay idle for longer is tried before it is used
)

// prepareSessions says how every session begins.
//
// Settings are made by SET after the start, not as startup parameters: a
// PgBouncer refuses those it does not know, and in session mode what was SET
// stays with the session. The check of the server is made per host, so that one
// that must not be used lets the next one of the address have its turn.
func (e *pgEngine) prepareSessions() {
	conn := e.cfg.ConnConfig
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = pgConnectTimeout
	}
	conn.DialFunc = dialServer
	conn.LookupFunc = e.hosts.lookup(conn.LookupFunc)
	conn.RuntimeParams["application_name"] = "tributary"
	wanted := conn.ValidateConnect // target_session_attrs
	conn.ValidateConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		if wanted != nil {
			if err := wanted(ctx, c); err != nil {
				return err
			}
		}
		if err := e.settle(ctx, c, pgUse{statement: pgStatementFor}); err != nil {
			return err
		}
		if err := e.cluster.admit(ctx, c); err != nil {
			return err
		}
		e.hosts.used(c.Conn().RemoteAddr())
		return nil
	}
}

// longer is how much longer than by default everything waits that may have to connect first: an address that says
// connect_timeout=10 means it.
func (e *pgEngine) longer() time.Duration {
	return max(e.cfg.ConnConfig.ConnectTimeout-pgConnectTimeout, 0)
}

// settle makes a session's settings. PostgreSQL's own random_page_cost is that of
// turning disks: with it, a hundred rows by their keys are looked for by reading
// the whole table. Its own compression of long values takes several times as long as
// lz4, which most servers have. Whoever has set another value decides for himself.
func (e *pgEngine) settle(ctx context.Context, c *pgconn.PgConn, use pgUse) error {
	script := fmt.Sprintf(`SET timezone = 'UTC'; SET idle_in_transaction_session_timeout = %d; SET statement_timeout = %d; SET lock_timeout = %d;
		SET tcp_keepalives_idle = %d; SET tcp_keepalives_interval = %d; SET tcp_keepalives_count = 2; SET tcp_user_timeout = %d;
		SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local');
		SELECT set_config('random_page_cost', '1.1', false) WHERE current_setting('random_page_cost') = '4';
		SELECT set_config(name, 'lz4', false) FROM pg_settings WHERE name = 'default_toast_compression' AND source = 'default' AND 'lz4' = ANY (enumvals)`,
		pgIdleInTx.Milliseconds(), use.statement.Milliseconds(), use.lock.Milliseconds(),
		int(pgSilence/2/time.Second), max(int(pgSilence/4/time.Second), 1), pgSilence.Milliseconds())
	if _, err := c.Exec(ctx, script).ReadAll(); err != nil {
		return fmt.Errorf("make the session's settings: %w", err)
	}
	return nil
}

func (e *pgEngine) newPool(ctx context.Context, use pgUse) (*pgxpool.Pool, error) {
	cfg := e.cfg.Copy()
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = use.conns, 0, 0
	cfg.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error {
		e.hosts.order(conn)
		return nil
	}
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error { return e.settle(ctx, c.PgConn(), use) }
	cfg.AfterRelease = func(c *pgx.Conn) bool {
		c.PgConn().CustomData()[usedAt] = time.Now()
		return true
	}
	cfg.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	cfg.PrepareConn = func(ctx context.Context, c *pgx.Conn) (bool, error) { return e.stillThere(ctx, c), nil }
	return pgxpool.NewWithConfig(ctx, cfg)
}

const usedAt = "used at" // key of what a connection remembers

// stillThere tries a connection that lay idle. When it does not answer, the
// others that lie beside it are given up with it: trying them one after the
// other would make the caller wait for each.
func (e *pgEngine) stillThere(ctx context.Context, c *pgx.Conn) bool {
	used, ok := c.PgConn().CustomData()[usedAt].(time.Time)
	if !ok || time.Since(used) < pgPingAfter {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, pgPingAfter)
	defer cancel()
	if c.Ping(ctx) == nil {
		return true
	}
	e.reset()
	return false
}

// lookAround asks every server that the address names who it is, so that of two
// that both believe to be the primary the later one is used. Whoever does not
// answer has no say.
func (e *pgEngine) lookAround(ctx context.Context) {
	if len(e.cfg.ConnConfig.Fallbacks) == 0 {
		return
	}
	seen := map[string]bool{}
	for _, at := range servers(e.cfg.ConnConfig) {
		where := fmt.Sprint(at.Host, " ", at.Port)
		if seen[where] {
			continue // the same host without TLS
		}
		seen[where] = true
		alone := e.cfg.ConnConfig.Copy()
		alone.Host, alone.Port, alone.TLSConfig, alone.Fallbacks = at.Host, at.Port, at.TLSConfig, nil
		if c, err := pgx.ConnectConfig(ctx, alone); err == nil {
			_ = c.Close(ctx) // it was only for looking
		}
	}
	e.hosts.last.Store(nil) // who was looked at last is not who is used
}

// session opens a connection of its own, beside the pools.
func (e *pgEngine) session(ctx context.Context) (*pgx.Conn, error) {
	conn := e.cfg.ConnConfig.Copy()
	e.hosts.order(conn)
	return pgx.ConnectConfig(ctx, conn)
}

// dialServer connects so that a machine which vanished without a word is
// noticed: otherwise a commit would wait for its answer for a quarter of an hour.
func dialServer(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: pgSilence / 2, Interval: pgSilence / 4, Count: 2},
		Control:         giveUpSilentPeer,
	}
	return d.DialContext(ctx, network, addr)
}

// refuseTransactionPooling finds out whether sessions are really ours. Behind a
// pooler that lends a session for one transaction only, LISTEN, prepared
// statements and the lock of a migration go to whoever comes next; some of that
// fails, some of it leaks in silence.
//
// A pooler shows by the number of the server's process, which it does not know
// when it greets a client. A session that was lent and given back is then found
// in the hands of a second client while the first is still connected.
func (e *pgEngine) refuseTransactionPooling(ctx context.Context) error {
	first, err := e.session(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = first.Close(context.WithoutCancel(ctx)) }() // it was only for looking
	mine, err := backend(ctx, first, "")
	if err != nil || mine == first.PgConn().PID() {
		return err
	}
	second, err := e.session(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = second.Close(context.WithoutCancel(ctx)) }() // it was only for looking
	for range poolerLooks {
		if mine, err = backend(ctx, first, ""); err != nil {
			return err
		}
		theirs, err := backend(ctx, second, "BEGIN;")
		if err != nil {
			if SQLState(err) != "" { // statement mode does not know BEGIN
				return errTransactionPooling
			}
			return err
		}
		if _, err := second.PgConn().Exec(ctx, "ROLLBACK").ReadAll(); err != nil {
			return err
		}
		if mine == theirs {
			return errTransactionPooling
		}
	}
	return nil
}

const poolerLooks = 5 // other clients of the pooler may come in between

var errTransactionPooling = fault.New(fault.Invalid,
	"database: the address leads through a pooler that lends sessions for one transaction or statement. "+
		"This program needs sessions of its own (LISTEN, locks, prepared statements): set pool_mode = session for this database in PgBouncer, or give the server's own address")

// backend is the number of the server's process behind a connection.
func backend(ctx context.Context, c *pgx.Conn, before string) (uint32, error) {
	results, err := c.PgConn().Exec(ctx, before+"SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return 0, err
	}
	last := results[len(results)-1]
	if len(last.Rows) != 1 {
		return 0, errors.New("the server does not know its own process")
	}
	var pid uint32
	_, err = fmt.Sscan(string(last.Rows[0][0]), &pid)
	return pid, err
}

// Danger is a setting of the database server under which acknowledged data can be lost.
type Danger struct {
	Setting, Value string
	Harm, Fix      string
	Ours           bool // this program puts it right for its own sessions
}

// Dangers looks at the server's settings. What a session of ours can put right
// (synchronous_commit) is reported all the same: other programs write there too,
// and an operator who switched it off may have switched off more.
func (d *DB) Dangers(ctx context.Context) (list []Danger, err error) {
	if d.Engine() != "postgres" {
		return nil, nil // the file's settings are ours
	}
	known := map[string]Danger{
		"fsync": {Harm: "a power failure or a crash of the machine can destroy the whole cluster",
			Fix: "set fsync = on and restart the server"},
		"full_page_writes": {Harm: "a crash in the middle of a write can leave broken pages",
			Fix: "set full_page_writes = on and reload the server"},
		"synchronous_commit": {
			Harm: "a commit is acknowledged before it is on disk; this program switches it on for its own sessions",
			Fix:  "set synchronous_commit = on for the server, the database and the role", Ours: true},
	}
	err = d.Read(ctx, func(r Reader) error {
		list, err = Collect(r, func(scan func(...any) error) (Danger, error) {
			var name, value string
			err := scan(&name, &value)
			found := known[name]
			found.Setting, found.Value = name, value
			return found, err
		}, "SELECT name, reset_val FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND reset_val IN ('off', 'local') ORDER BY name")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the server's settings: %w", err)
	}
	return list, nil
}
