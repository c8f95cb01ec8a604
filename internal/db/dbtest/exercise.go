package dbtest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tributary/internal/db"
	"tributary/internal/fault"

	"github.com/jackc/pgx/v5"
)

// Exercise is the conformance suite of an engine: what every caller of the
// verbs may rely on. fresh returns the address of a new, empty database, such
// as [SQLiteURL] and [PostgresURL].
func Exercise(t *testing.T, fresh func(testing.TB) string) {
	d := Open(t, db.Config{URL: fresh(t)})
	for name, test := range map[string]func(*testing.T, *db.DB, string){
		"a write is visible once it returns":           writeIsVisible,
		"an error stores nothing":                      errorStoresNothing,
		"a panic is raised in the caller":              panicIsRaised,
		"a write function that ends its goroutine":     goexitIsRaised,
		"a swallowed error stores nothing":             swallowedErrorStoresNothing,
		"a stale write stores nothing":                 staleStoresNothing,
		"updates of many rows":                         updatesOfMany,
		"set-based inserts":                            insertSets,
		"insert answers what RETURNING gives":          insertReturning,
		"NULL and every type come back as stored":      nullsAndTypes,
		"time is fixed in a commit, never goes back":   timeIsFixed,
		"a read is one snapshot and waits for nobody":  readIsSnapshot,
		"many reads at once with new statements":       readsInParallel,
		"a lock orders writers":                        lockOrders,
		"hints run after the commit only":              hintsFollowTheCommit,
		"a failing member does not hurt its group":     failingMember,
		"a read that fails leaves the reader usable":   readFails,
		"a cancelled context before the write":         cancelledBefore,
		"gathered calls: one bad one spoils no other":  gatherKeepsApart,
		"a list as one argument and NULL for the zero": lists,
	} {
		t.Run(name, func(t *testing.T) {
			table := "x" + strings.Map(func(r rune) rune {
				if r >= 'a' && r <= 'z' {
					return r
				}
				return -1
			}, name)
			blob := map[string]string{"sqlite": "BLOB", "postgres": "BYTEA"}[d.Engine()]
			write(t, d, func(tx *db.Tx) error {
				return tx.Exec("CREATE TABLE " + table + " (id TEXT PRIMARY KEY, n BIGINT, raw " + blob + ", yes BOOLEAN, note TEXT)")
			})
			test(t, d, table)
		})
	}
	t.Run("a write cancelled while it waits never runs", func(t *testing.T) { cancelledWhileQueued(t, fresh(t)) })
	t.Run("a full queue answers at once", func(t *testing.T) { fullQueue(t, fresh(t)) })
	t.Run("close answers everything accepted", func(t *testing.T) { closeAnswers(t, fresh(t)) })
}

func write(t testing.TB, d *db.DB, fn func(*db.Tx) error) {
	t.Helper()
	if err := d.Write(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

// ids are the ids of a table, in order.
func ids(t testing.TB, d *db.DB, table string) (all []string) {
	t.Helper()
	err := d.Read(context.Background(), func(r db.Reader) (err error) {
		all, err = db.Collect(r, scanID, "SELECT id FROM "+table+" ORDER BY id")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func scanID(scan func(...any) error) (id string, err error) { return id, scan(&id) }

func wantIDs(t testing.TB, d *db.DB, table, want string) {
	t.Helper()
	if got := strings.Join(ids(t, d, table), " "); got != want {
		t.Errorf("stored rows: %q, want %q", got, want)
	}
}

func insertID(table, id string) func(*db.Tx) error {
	return func(tx *db.Tx) error { return tx.Insert(table, "id,n", []any{id, 1}) }
}

func writeIsVisible(t *testing.T, d *db.DB, table string) {
	write(t, d, func(tx *db.Tx) error {
		if err := tx.Insert(table, "id,n", []any{"a", 1}, []any{"b", 2}); err != nil {
			return err
		}
		var n int
		if err := tx.Row("SELECT count(*) FROM " + table).Scan(&n); err != nil || n != 2 {
			return fmt.Errorf("a write sees %d of its own rows: %w", n, err)
		}
		if err := tx.ExecEachOne("UPDATE "+table+" SET n = $1 WHERE id = $2", [][]any{{10, "a"}, {20, "b"}}); err != nil {
			return err
		}
		return tx.ExecEach("UPDATE "+table+" SET note = $1 WHERE n > $2", [][]any{{"big", 15}, {"none", 1000}})
	})
	wantIDs(t, d, table, "a b")
	err := d.Read(context.Background(), func(r db.Reader) error {
		var n int
		var note string
		if err := r.Row("SELECT n, note FROM "+table+" WHERE id = $1", "b").Scan(&n, &note); err != nil || n != 20 ||
			note != "big" {
			return fmt.Errorf("b is %d %q: %w", n, note, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func errorStoresNothing(t *testing.T, d *db.DB, table string) {
	mine := errors.New("mine")
	err := d.Write(context.Background(), func(tx *db.Tx) error {
		return errors.Join(insertID(table, "lost")(tx), mine)
	})
	if !errors.Is(err, mine) {
		t.Errorf("error is %v, want the function's own", err)
	}
	err = d.Write(context.Background(), func(tx *db.Tx) error {
		return errors.Join(insertID(table, "twin")(tx), insertID(table, "twin")(tx))
	})
	if err == nil || fault.KindOf(err) != fault.Internal {
		t.Errorf("a broken constraint answers %v (%v)", err, fault.KindOf(err))
	}
	wantIDs(t, d, table, "")
}

func panicIsRaised(t *testing.T, d *db.DB, table string) {
	said := func() (said any) {
		defer func() { said = recover() }()
		_ = d.Write(context.Background(), func(tx *db.Tx) error {
			_ = insertID(table, "lost")(tx)
			panic("out of rope")
		})
		return nil
	}()
	if !strings.Contains(fmt.Sprint(said), "out of rope") || !strings.Contains(fmt.Sprint(said), "panicIsRaised") {
		t.Errorf("the caller hears %v, want the panic and where it was", said)
	}
	write(t, d, insertID(table, "next"))
	wantIDs(t, d, table, "next")
}

func goexitIsRaised(t *testing.T, d *db.DB, table string) {
	for range 8 { // more than there are committers
		said := func() (said any) {
			defer func() { said = recover() }()
			_ = d.Write(context.Background(), func(tx *db.Tx) error {
				_ = insertID(table, "lost")(tx)
				endGoroutine()
				return nil
			})
			return nil
		}()
		if said == nil {
			t.Error("a write function that ended its goroutine was acknowledged")
		}
	}
	write(t, d, insertID(table, "next"))
	wantIDs(t, d, table, "next")
}

func swallowedErrorStoresNothing(t *testing.T, d *db.DB, table string) {
	write(t, d, insertID(table, "first"))
	for name, swallow := range map[string]func(tx *db.Tx){
		"constraint": func(tx *db.Tx) { _ = insertID(table, "first")(tx) },
		"stale":      func(tx *db.Tx) { _ = tx.ExecOne("UPDATE "+table+" SET n = 2 WHERE id = $1", "nobody") },
		"no table":   func(tx *db.Tx) { _ = tx.Row("SELECT 1 FROM nowhere").Scan(new(int)) },
	} {
		err := d.Write(context.Background(), func(tx *db.Tx) error {
			swallow(tx)
			_ = insertID(table, "after")(tx)
			return nil
		})
		if err == nil || errors.Is(err, db.ErrOutcomeUnknown) {
			t.Errorf("%s: the write answers %v, want its failure", name, err)
		}
	}
	wantIDs(t, d, table, "first")
}

func staleStoresNothing(t *testing.T, d *db.DB, table string) {
	write(t, d, func(tx *db.Tx) error { return tx.Insert(table, "id,n", []any{"a", 1}, []any{"b", 1}) })
	update := "UPDATE " + table + " SET n = n + 1 WHERE id = $1"
	for name, fn := range map[string]func(*db.Tx) error{
		"no row":      func(tx *db.Tx) error { return tx.ExecOne(update, "c") },
		"two rows":    func(tx *db.Tx) error { return tx.ExecOne("UPDATE " + table + " SET n = n + 1") },
		"one of many": func(tx *db.Tx) error { return tx.ExecEachOne(update, [][]any{{"a"}, {"c"}, {"b"}}) },
	} {
		err := d.Write(context.Background(), func(tx *db.Tx) error {
			if err := insertID(table, "lost")(tx); err != nil {
				return err
			}
			return fn(tx)
		})
		if !errors.Is(err, db.ErrStale) {
			t.Errorf("%s: error is %v, want ErrStale", name, err)
		}
	}
	wantIDs(t, d, table, "a b")
	var sum int
	if err := d.Read(context.Background(), func(r db.Reader) error {
		return r.Row("SELECT sum(n) FROM " + table).Scan(&sum)
	}); err != nil || sum != 2 {
		t.Errorf("n adds up to %d after stale writes, want 2 (%v)", sum, err)
	}
}

func lockOrders(t *testing.T, d *db.DB, table string) {
	const writers, times = 16, 8
	write(t, d, func(tx *db.Tx) error { return tx.Insert(table, "id,n", []any{"x", 0}, []any{"y", 0}) })
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			chain := string("xy"[w%2])
			for range times {
				err := d.Write(context.Background(), func(tx *db.Tx) error {
					if err := tx.Lock("chain " + chain); err != nil {
						return err
					}
					var n int
					if err := tx.Row("SELECT n FROM "+table+" WHERE id = $1", chain).Scan(&n); err != nil {
						return err
					}
					return tx.ExecOne("UPDATE "+table+" SET n = $1 WHERE id = $2", n+1, chain)
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, chain := range []string{"x", "y"} {
		var n int
		err := d.Read(context.Background(), func(r db.Reader) error {
			return r.Row("SELECT n FROM "+table+" WHERE id = $1", chain).Scan(&n)
		})
		if err != nil || n != writers/2*times {
			t.Errorf("chain %s counted to %d, want %d: two writers read the same link (%v)", chain, n, writers/2*times, err)
		}
	}
}

func hintsFollowTheCommit(t *testing.T, d *db.DB, table string) {
	var ran atomic.Int32
	write(t, d, func(tx *db.Tx) error {
		tx.OnCommit(func() { ran.Add(1) })
		return insertID(table, "a")(tx)
	})
	if ran.Load() != 1 {
		t.Errorf("the hint of a committed write ran %d times", ran.Load())
	}
	_ = d.Write(context.Background(), func(tx *db.Tx) error {
		tx.OnCommit(func() { ran.Add(1) })
		return errors.Join(insertID(table, "a")(tx), errors.New("no"))
	})
	_ = d.Write(context.Background(), func(tx *db.Tx) error {
		tx.OnCommit(func() { ran.Add(1) })
		return tx.ExecOne("UPDATE " + table + " SET n = 1 WHERE id = 'nobody'")
	})
	if ran.Load() != 1 {
		t.Error("the hint of a write that failed ran")
	}
}

// SQLitePath is the file of a SQLite address.
func SQLitePath(url string) string { return filepath.Clean(strings.TrimPrefix(url, "sqlite:")) }

// TerminateSessions ends the sessions of a server for which a condition holds.
func TerminateSessions(t testing.TB, url, where string) {
	t.Helper()
	d, err := db.Open(context.Background(), db.Config{URL: url, NoWorkers: true})
	must(t, err)
	defer func() { _ = d.Close() }() // a connection to end others
	must(t, d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tributary' AND datname = current_database() AND pid <> pg_backend_pid() AND " + where)
	}))
}

// Connect connects with plain pgx: what a statement may do is the server's word, not ours.
func Connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // a test's own connection
	return conn
}

// Count is the number that a statement answers.
func Count(t testing.TB, d *db.DB, sql string) (n int) {
	t.Helper()
	must(t, d.Read(context.Background(), func(r db.Reader) error { return r.Row(sql).Scan(&n) }))
	return n
}
