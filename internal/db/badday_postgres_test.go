package db_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
)

// load writes from several goroutines and keeps what was answered.
type load struct {
	t       *testing.T
	d       *db.DB
	stop    atomic.Bool
	wg      sync.WaitGroup
	mu      sync.Mutex
	acked   map[string]bool
	unknown map[string]bool
	refused map[string]bool
	answers atomic.Int64
}

func startLoad(t *testing.T, d *db.DB, writers int) *load {
	t.Helper()
	must(t, d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Exec("CREATE TABLE acked (id TEXT PRIMARY KEY)")
	}))
	l := &load{t: t, d: d, acked: map[string]bool{}, unknown: map[string]bool{}, refused: map[string]bool{}}
	for w := range writers {
		l.wg.Go(func() {
			for i := 0; !l.stop.Load(); i++ {
				l.note(fmt.Sprintf("%d-%d", w, i), w%2 == 0)
			}
		})
	}
	return l
}

// note writes one id and keeps the answer. reads: the write looks before it stores.
func (l *load) note(id string, reads bool) {
	err := l.d.Write(context.Background(), func(tx *db.Tx) error {
		if reads {
			if err := tx.Row("SELECT count(*) FROM acked WHERE id = $1", id).Scan(new(int)); err != nil {
				return err
			}
		}
		return tx.Insert("acked", "id", []any{id})
	})
	l.mu.Lock()
	switch {
	case err == nil:
		l.acked[id] = true
	case errors.Is(err, db.ErrOutcomeUnknown):
		l.unknown[id] = true
	default:
		l.refused[id] = true
	}
	l.mu.Unlock()
	if err != nil && fault.KindOf(err) != fault.Unavailable {
		l.t.Errorf("a write on a bad day answers %v (%v), want Unavailable", err, fault.KindOf(err))
	}
	l.answers.Add(1)
	if err != nil {
		time.Sleep(time.Millisecond) // as a client would
	}
}

// until waits for so many more answers.
func (l *load) until(more int64) {
	for from := l.answers.Load(); l.answers.Load() < from+more; {
		time.Sleep(time.Millisecond) // a load has no signal to give
	}
}

// end stops the load and holds the answers against the table.
func (l *load) end(d *db.DB) {
	l.t.Helper()
	l.stop.Store(true)
	l.wg.Wait()
	// Those who only read have connections of their own, which are found broken one by one as well.
	for d.Read(context.Background(), func(r db.Reader) error { return r.Row("SELECT 1").Scan(new(int)) }) != nil {
		runtime.Gosched()
	}
	have := stored(l.t, d)
	for id := range l.acked {
		if !have[id] {
			l.t.Errorf("%s was acknowledged and is lost", id)
		}
	}
	for id := range l.refused {
		if have[id] {
			l.t.Errorf("%s was refused for certain and is stored", id)
		}
	}
	l.t.Logf("%d acknowledged, %d unknown, %d refused", len(l.acked), len(l.unknown), len(l.refused))
}

func TestTerminatedSessionsLoseNothing(t *testing.T) {
	t.Parallel()
	address := dbtest.MigratedURL(t)
	d := dbtest.Open(t, db.Config{URL: address})
	l := startLoad(t, d, 12)
	for range 8 {
		l.until(60)
		dbtest.TerminateSessions(t, address, "true")
		// A connection that was ended in the pool is noticed by the statement itself where nothing began before it.
		for range 3 {
			err := d.ReadEach(t.Context(), func(r db.Reader) error { return r.Row("SELECT 1").Scan(new(int)) })
			if err != nil && fault.KindOf(err) != fault.Unavailable {
				t.Errorf("a read on an ended session: %v", err)
			}
		}
	}
	l.until(60)
	l.end(d)
	healed(d, "healed")
}

func TestKilledServerLosesNothing(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "a server of its own")
	dbtest.PostgresURL(t)                                   // skips where there is none
	s, err := dbtest.StartServer(os.TempDir(), "fsync=off") // what a killed server wrote is in the page cache
	must(t, err)
	defer func() { _ = s.Stop() }() // a test's own server
	d := dbtest.Open(t, db.Config{URL: s.URL()})
	l := startLoad(t, d, 12)
	l.until(200)
	must(t, s.Kill())
	l.until(30)
	for _, read := range []func(context.Context, func(db.Reader) error) error{d.Read, d.ReadEach} {
		if err := read(context.Background(), func(r db.Reader) error {
			return r.Row("SELECT 1").Scan(new(int))
		}); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a read without a server answers %v", err)
		}
	}
	must(t, s.Start())
	healed(d, "healed")
	l.end(d)
}

// healed writes until a write is acknowledged: connections are found broken one
// by one. Each try has a name of its own, because one whose outcome was unknown
// may have been stored. It answers the name that was.
func healed(d *db.DB, name string) string {
	for try := 0; ; try++ {
		if id := fmt.Sprintf("%s %d", name, try); addAcked(d, id) == nil {
			return id
		}
	}
}

// Hard case 13: the answer to COMMIT is lost. Nobody hears "stored" of
// something that is not, and nobody hears "not stored" for certain.
func TestConnectionCutInCommit(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	address := dbtest.MigratedURL(t)
	u, err := url.Parse(address)
	must(t, err)
	p := dbtest.StartProxy(t, u.Host)
	direct := dbtest.Open(t, db.Config{URL: address})
	u.Host = p.Addr()
	d := dbtest.Open(t, db.Config{URL: u.String()})
	must(t, d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Exec("CREATE TABLE acked (id TEXT PRIMARY KEY)")
	}))
	whole := int64(len(dbtest.CommitMessage))
	answerLength := int64(len("C\x00\x00\x00\x0bCOMMIT\x00") + len("Z\x00\x00\x00\x05I"))
	for pass := range whole + answerLength + 1 {
		var id string
		var err error
		p.Cut.Store(pass)
		for try := 0; p.Fired.Load() != pass+1; try++ { // a machine that stands still gets no connection to cut
			id = fmt.Sprintf("cut-%02d-%d", pass, try)
			if err = addAcked(d, id); err == nil && p.Fired.Load() != pass+1 {
				t.Fatalf("cut %d did not happen", pass)
			}
		}
		have := stored(t, direct)[id]
		switch {
		case err == nil && !have:
			t.Errorf("cut after %d bytes: acknowledged and lost", pass)
		case err == nil && pass < whole+answerLength:
			t.Errorf("cut after %d bytes: acknowledged without an answer", pass)
		case err != nil && (!errors.Is(err, db.ErrOutcomeUnknown) || fault.KindOf(err) != fault.Unavailable):
			t.Errorf("cut after %d bytes: error %v, want ErrOutcomeUnknown", pass, err)
		case pass < whole && have:
			t.Errorf("cut after %d bytes of COMMIT: stored", pass)
		case pass >= whole && !have:
			t.Errorf("cut after the whole COMMIT: not stored")
		}
	}
	healed(d, "healed")
}

// A server that hangs must not hold the writes for ever.
func TestSilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	address := dbtest.MigratedURL(t)
	u, err := url.Parse(address)
	must(t, err)
	p := dbtest.StartProxy(t, u.Host)
	u.Host = p.Addr()
	d := dbtest.Open(t, db.Config{URL: u.String(), NoWorkers: true})
	must(t, d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Exec("CREATE TABLE acked (id TEXT PRIMARY KEY)")
	}))
	db.SetPatience(d, 200*time.Millisecond)
	p.Mute.Store(true)
	if err := addAcked(d, "lost"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a write to a silent server answers %v", err)
	}
	p.Mute.Store(false)
	db.SetPatience(d, time.Minute)
	after := healed(d, "healed")
	if have := stored(t, d); have["lost"] || !have[after] {
		t.Errorf("stored %v", have)
	}
}

func TestConnectionsCutInCommitUnderLoad(t *testing.T) {
	t.Parallel()
	address := dbtest.MigratedURL(t)
	u, err := url.Parse(address)
	must(t, err)
	p := dbtest.StartProxy(t, u.Host)
	u.Host = p.Addr()
	d := dbtest.Open(t, db.Config{URL: u.String()})
	l := startLoad(t, d, 12)
	for cut := range int64(20) {
		p.Cut.Store(cut * 2)
		for p.Fired.Load() <= cut {
			l.until(1)
		}
		l.until(10)
	}
	l.end(d)
	if len(l.unknown) == 0 {
		t.Error("no outcome was unknown: the test tests nothing")
	}
}

// A connection that broke while it lay idle is not the next reader's trouble. One
// that breaks when something was answered is: what was told is not told twice.
func TestAReadThatFindsABrokenConnectionTakesAnother(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedURL(t)
	d := dbtest.Open(t, db.Config{URL: url})
	owner := dbtest.Connect(t, url)
	cut := func(state string) {
		t.Helper()
		_, err := owner.Exec(t.Context(), `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'tributary' AND state ~ $1 AND query !~* 'listen' AND pid <> pg_backend_pid()`, state)
		must(t, err)
	}
	for _, read := range []func(context.Context, func(db.Reader) error) error{d.Read, d.ReadEach} {
		one := func(r db.Reader) error { return r.Row("SELECT 1").Scan(new(int)) }
		for range 3 {
			must(t, read(t.Context(), one))
			cut("^idle$")
			must(t, read(t.Context(), one))
		}
		times := 0
		err := read(t.Context(), func(r db.Reader) error {
			times++
			must(t, one(r))
			cut("^idle")
			return one(r)
		})
		if fault.KindOf(err) != fault.Unavailable || times != 1 {
			t.Errorf("a connection that breaks in the middle: %v, read %d times", err, times)
		}
		must(t, read(t.Context(), one)) // on a connection that is whole
		times = 0
		err = read(t.Context(), func(r db.Reader) error {
			times++
			return r.Row("SELECT 1 FROM nowhere").Scan(new(int))
		})
		if err == nil || times != 1 {
			t.Errorf("a wrong statement: %v, read %d times", err, times)
		}
	}
}
