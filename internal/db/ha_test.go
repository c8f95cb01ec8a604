package db_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

// pair is a primary and its standby. Every commit waits for the standby, so
// what was acknowledged is on both.
type pair struct{ primary, standby *dbtest.Server }

func startPair(t *testing.T) pair {
	t.Helper()
	dbtest.PostgresURL(t)                                         // skips where there is none
	primary, err := dbtest.StartServer(os.TempDir(), "fsync=off") // what a killed server wrote is in the page cache
	must(t, err)
	t.Cleanup(func() { _ = primary.Stop() }) // a test's own server
	standby, err := primary.Replica(os.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = standby.Stop() }) // a test's own server
	conn, err := pgx.Connect(t.Context(), primary.URL())
	must(t, err)
	defer func() { _ = conn.Close(context.Background()) }() // a test's own connection
	_, err = conn.Exec(t.Context(), "ALTER SYSTEM SET synchronous_standby_names = '*'")
	must(t, err)
	_, err = conn.Exec(t.Context(), "SELECT pg_reload_conf()")
	must(t, err)
	return pair{primary, standby}
}

// url names both servers; which one takes writes is found out.
func (p pair) url() string {
	return fmt.Sprintf("postgres://tributary@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable&target_session_attrs=read-write", p.primary.Port(), p.standby.Port())
}

// The short form of `make ha`: a standby alone is refused; the primary dies under
// load and the standby is promoted, nothing that was acknowledged is lost and
// writes go on; and what an operator brings back must not be older than what was
// served before.
func TestPromotionLosesNothing(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "servers of their own")
	p := startPair(t)
	if d, err := db.Open(t.Context(), db.Config{URL: p.standby.URL(), NoWorkers: true}); err == nil {
		_ = d.Close() // it should not have been opened
		t.Error("a standby is taken for a server that takes writes")
	}
	d := dbtest.Open(t, db.Config{URL: p.url()})
	must(t, d.CheckCluster(t.Context(), false))
	l := startLoad(t, d, 8)
	l.until(200)
	must(t, p.primary.Kill())
	must(t, p.standby.Promote())
	healed(d, "healed")
	l.until(200)
	l.end(d)
	must(t, d.CheckCluster(t.Context(), false))
	must(t, d.Close()) // it writes down by itself where it is served
	timelineThatWentBackIsNoticed(t, p.standby.URL())
}

func timelineThatWentBackIsNoticed(t *testing.T, url string) {
	t.Helper()
	d, err := db.Open(t.Context(), db.Config{URL: url, NoWorkers: true})
	must(t, err)
	must(t, d.CheckCluster(t.Context(), false))
	must(t, d.Write(t.Context(), func(tx *db.Tx) error { // as if a third timeline had been served
		return tx.ExecOne("UPDATE db_meta SET value = replace(value, ' 2', ' 3') WHERE key = 'cluster'")
	}))
	if err := d.CheckCluster(t.Context(), false); !errors.Is(err, db.ErrOldTimeline) {
		t.Errorf("a timeline that went back passes: %v", err)
	}
	must(t, d.CheckCluster(t.Context(), true))
	must(t, d.CheckCluster(t.Context(), false)) // from now on this is where it is served
	must(t, d.Close())
}

// A primary that hangs is replaced and then wakes up, believing that it still is
// one. Nobody asks it anything again, and a process that starts now does not
// either as long as it reaches both.
func TestFrozenPrimaryIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	needs.Long(t, "a server that says nothing is noticed by its silence")
	p := startPair(t)
	d := dbtest.Open(t, db.Config{URL: p.url()})
	db.SetPatience(d, 4*time.Second) // a little more than connecting takes where the first host says nothing
	l := startLoad(t, d, 8)
	l.until(200)
	must(t, p.primary.Freeze())
	must(t, p.standby.Promote())
	after := healed(d, "after the promotion")
	must(t, p.primary.Thaw())
	seen := func(d *db.DB) (found bool, err error) {
		err = d.Read(context.Background(), func(r db.Reader) error {
			return r.Row("SELECT count(*) = 1 FROM acked WHERE id = $1", after).Scan(&found)
		})
		return found, err
	}
	for i := range 60 {
		if i%10 == 0 {
			db.ResetConnections(d)
		}
		if found, err := seen(d); err == nil && !found {
			t.Fatal("a read was answered by the server that was replaced")
		}
	}
	l.until(100)
	fresh, err := db.Open(t.Context(), db.Config{URL: p.url(), NoWorkers: true})
	must(t, err)
	if found, err := seen(fresh); err != nil || !found {
		t.Errorf("a process that starts beside both servers sees %t (%v)", found, err)
	}
	must(t, fresh.Close())
	l.end(d)
}
