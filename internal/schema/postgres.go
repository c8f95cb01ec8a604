package schema

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db"
)

const (
	schemaLock = 7420431 // advisory lock of migrations; any number that nobody else uses
	// schemaSettings are those of a session that migrates: a second for a lock on
	// a table, because whoever comes later waits behind us, and any time for the rest.
	schemaSettings  = "SET lock_timeout = '1s'; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = '1min'"
	schemaTell      = time.Second     // another node's migration that takes longer is worth a line
	schemaPause     = 3 * time.Second // between two tries: those who wait get their turn
	schemaQuestions = 5 * time.Second // for a question about how far a step has come
)

// pgSession is the one who migrates, with a session of its own: it holds the
// lock of migrations, and no statement of it runs into the time limits of
// ordinary ones. The lock falls with the session.
//
// Failure policy: a statement that changes a table needs it for itself for a
// moment. It waits for that for a second at most, because everybody else waits
// behind it, and then steps back and tries again, until the deadline of the
// whole migration. Indexes on tables with rows are built concurrently.
type pgSession struct {
	d    *db.DB
	conn *pgx.Conn
}

// openPostgres never waits inside of the server: a session that died behind a
// pooler could hold the lock for ever, and this node would hang without a word.
func openPostgres(ctx context.Context, d *db.DB) (*pgSession, error) {
	conn, err := d.Session(ctx)
	if err != nil {
		return nil, err
	}
	s := &pgSession{d: d, conn: conn}
	if err := s.run(ctx, schemaSettings); err != nil {
		s.close()
		return nil, err
	}
	waited := time.Now()
	for told := false; ; {
		var got bool
		if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", schemaLock).Scan(&got); err != nil {
			s.close()
			return nil, err
		}
		if got {
			return s, nil
		}
		if !told && time.Since(waited) > schemaTell {
			told = true
			d.Log().Info("waiting for another node that migrates", "lock", schemaLock)
		}
		db.Pause(ctx, schemaLockEvery)
	}
}

func (s *pgSession) close() {
	ctx, cancel := context.WithTimeout(context.Background(), schemaQuestions)
	defer cancel()
	_ = s.conn.Close(ctx) // the lock falls with the session, whoever ends it
}

// run sends a script as it is; several statements are one transaction unless they say otherwise.
func (s *pgSession) run(ctx context.Context, script string) error {
	_, err := s.conn.PgConn().Exec(ctx, script).ReadAll()
	return err
}

// exec runs a script in one transaction, as often as it takes to get its locks.
func (s *pgSession) exec(ctx context.Context, script string) error {
	return s.patiently(ctx, func() error {
		err := s.run(ctx, "BEGIN;"+script+";COMMIT")
		if err != nil && !s.conn.IsClosed() {
			err = errors.Join(err, s.run(ctx, "ROLLBACK"))
		}
		return err
	})
}

// patiently repeats what did not get a lock in time.
func (s *pgSession) patiently(ctx context.Context, work func() error) error {
	for try := 1; ; try++ {
		err := work()
		if db.SQLState(err) != db.LockNotAvailable {
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		s.d.Log().Info("a table is in use, the migration steps back and tries again", "try", try, "error", err)
		db.Pause(ctx, schemaPause)
	}
}

// step applies a migration: its transaction, then its indexes one by one, then the record.
func (s *pgSession) step(ctx context.Context, m migration, record string) error {
	script, indexes, err := m.split()
	if err != nil {
		return err
	}
	if len(indexes) == 0 {
		return s.exec(ctx, record+";"+script)
	}
	if err := s.exec(ctx, "CREATE TABLE IF NOT EXISTS schema_begun (version BIGINT PRIMARY KEY, digest TEXT NOT NULL)"); err != nil {
		return fmt.Errorf("make the table of steps under way: %w", err)
	}
	if err := s.begin(ctx, m, script); err != nil {
		return err
	}
	for i, ix := range indexes {
		s.d.Log().Log(ctx, m.level(), "building an index while others write", "index", ix.name, "table", ix.table, "number",
			i+1, "of", len(indexes))
		if err := s.index(ctx, ix); err != nil {
			return fmt.Errorf("index %s: %w", ix.name, err)
		}
	}
	return s.exec(ctx, record+fmt.Sprintf(";DELETE FROM schema_begun WHERE version = %d", m.version))
}

// begin runs the transaction of a step that has more, once.
func (s *pgSession) begin(ctx context.Context, m migration, script string) error {
	var digest string
	err := s.conn.QueryRow(ctx, "SELECT digest FROM schema_begun WHERE version = $1", m.version).Scan(&digest)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s.exec(ctx, script+fmt.Sprintf(";INSERT INTO schema_begun VALUES (%d, '%s')", m.version, m.digest()))
	case err != nil:
		return err
	case digest != m.digest():
		return fmt.Errorf("begun in another form (digest %s, this program has %s): finish it with the program that began it",
			digest, m.digest())
	}
	return nil
}

// index builds one index beside writers. What an interrupted build left is not valid and is removed.
func (s *pgSession) index(ctx context.Context, ix newIndex) error {
	var valid bool
	err := s.conn.QueryRow(ctx, "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)", ix.name).Scan(&valid)
	switch {
	case err == nil && valid:
		return nil
	case err == nil:
		if err := s.patiently(ctx, func() error { return s.run(ctx, "DROP INDEX CONCURRENTLY "+ix.name) }); err != nil {
			return fmt.Errorf("remove what an interrupted build left: %w", err)
		}
	case !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	// The build waits for transactions that are older than itself, which holds
	// nobody up: here the time limit for locks would only break it off.
	if err := s.run(ctx, "SET lock_timeout = 0"); err != nil {
		return err
	}
	begun := time.Now()
	err = telling(ctx, func() { s.tell(ctx, ix, begun) }, func() error { return s.run(ctx, ix.text) })
	return errors.Join(err, s.run(ctx, schemaSettings))
}

// tell says how far the server has come with an index.
func (s *pgSession) tell(ctx context.Context, ix newIndex, begun time.Time) {
	ctx, cancel := context.WithTimeout(ctx, schemaQuestions)
	defer cancel()
	var phase string
	var done, total int64
	err := s.d.Ask(ctx, []any{&phase, &done, &total},
		"SELECT phase, greatest(blocks_done, tuples_done), greatest(blocks_total, tuples_total) FROM pg_stat_progress_create_index WHERE relid = to_regclass($1) LIMIT 1", ix.table)
	if err == nil {
		s.d.Log().Info("building an index", "index", ix.name, "phase", phase, "done", done, "of", total, "for",
			time.Since(begun).Round(time.Second))
	}
}

// newIndex is an index that is built concurrently.
type newIndex struct{ name, table, text string }

var (
	concurrently = regexp.MustCompile(`(?i)^create\s+(?:unique\s+)?index\s+concurrently\s+([a-z_0-9]+)\s+on\s+([a-z_0-9]+)`)
	sqlComment   = regexp.MustCompile(`--[^\n]*`)
)

// split parts a script into its transaction and the indexes behind it.
func (m migration) split() (script string, indexes []newIndex, err error) {
	at := strings.Index(strings.ToLower(m.script), "index concurrently")
	if at < 0 {
		return m.script, nil, nil
	}
	at = strings.LastIndexByte(m.script[:at], '\n') + 1
	for _, text := range strings.Split(sqlComment.ReplaceAllString(m.script[at:], ""), ";") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		parts := concurrently.FindStringSubmatch(text)
		if parts == nil {
			return "", nil, fmt.Errorf("only CREATE INDEX CONCURRENTLY may follow the first of them, not %q", text)
		}
		indexes = append(indexes, newIndex{name: parts[1], table: parts[2], text: text})
	}
	return m.script[:at], indexes, nil
}
