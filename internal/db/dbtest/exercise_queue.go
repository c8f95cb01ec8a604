package dbtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
)

func endGoroutine() { runtime.Goexit() }

// crowd is more writes than any engine has committers.
const crowd = 30

func failingMember(t *testing.T, d *db.DB, table string) {
	write(t, d, insertID(table, "first"))
	mine := errors.New("mine")
	var wg sync.WaitGroup
	good := 0
	for i := range 120 {
		id := fmt.Sprintf("%03d", i)
		var fn func(tx *db.Tx) error
		var want func(error) bool
		switch i % 6 {
		case 1: // fails after something was queued
			fn, want = func(tx *db.Tx) error {
				return errors.Join(insertID(table, id)(tx), mine)
			}, func(err error) bool { return errors.Is(err, mine) }
		case 2: // fails after something was sent
			fn = func(tx *db.Tx) error {
				return errors.Join(insertID(table, id)(tx), tx.Row("SELECT 1").Scan(new(int)), mine)
			}
			want = func(err error) bool { return errors.Is(err, mine) }
		case 3: // breaks a constraint
			fn, want = insertID(table, "first"), func(err error) bool { return err != nil && fault.KindOf(err) == fault.Internal }
		case 4: // is stale
			fn = func(tx *db.Tx) error {
				return errors.Join(insertID(table, id)(tx), tx.ExecOne("UPDATE "+table+" SET n = 0 WHERE id = 'nobody'"))
			}
			want = func(err error) bool { return errors.Is(err, db.ErrStale) }
		case 5: // panics
			fn, want = func(tx *db.Tx) error { _ = insertID(table, id)(tx); panic(id) }, nil
		default:
			fn, want = insertID(table, "good"+id), func(err error) bool { return err == nil }
			good++
		}
		wg.Go(func() {
			defer func() {
				if p := recover(); (p != nil) != (want == nil) {
					t.Errorf("write %d: panic %v", i, p)
				}
			}()
			if err := d.Write(context.Background(), fn); want != nil && !want(err) {
				t.Errorf("write %d answers %v", i, err)
			}
		})
	}
	wg.Wait()
	if got := len(ids(t, d, table)); got != good+1 {
		t.Errorf("%d rows are stored, want the %d good ones and the first", got, good)
	}
}

func cancelledBefore(t *testing.T, d *db.DB, table string) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Write(ctx, insertID(table, "lost")); !errors.Is(err, context.Canceled) {
		t.Errorf("write answers %v", err)
	}
	if err := d.Read(ctx, func(db.Reader) error {
		t.Error("a cancelled read ran")
		return nil
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("read answers %v", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	err := d.Write(ctx, func(tx *db.Tx) error {
		cancel() // too late: it runs, and its outcome is told
		if err := insertID(table, "kept")(tx); err != nil {
			return err
		}
		return tx.Context().Err()
	})
	if err != nil {
		t.Errorf("a write cancelled while it ran answers %v", err)
	}
	wantIDs(t, d, table, "kept")
}

// occupied opens a database of one write per commit and keeps a committer busy
// until release is called.
func occupied(t *testing.T, url string, queueMax int) (d *db.DB, release func()) {
	d = Open(t, db.Config{URL: url, GroupMax: 1, QueueMax: queueMax})
	write(t, d, func(tx *db.Tx) error { return tx.Exec("CREATE TABLE x (id TEXT PRIMARY KEY, n BIGINT)") })
	inside, wait, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- d.Write(context.Background(), func(*db.Tx) error {
			close(inside)
			<-wait
			return nil
		})
	}()
	<-inside
	return d, func() {
		close(wait)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func cancelledWhileQueued(t *testing.T, url string) {
	d, release := occupied(t, url, 100)
	ctx, cancel := context.WithCancel(context.Background())
	type answer struct {
		id  string
		err error
	}
	answers, hold := make(chan answer, crowd), make(chan struct{})
	var running atomic.Int32
	for i := range crowd {
		go func() {
			id := fmt.Sprintf("%02d", i)
			answers <- answer{id, d.Write(ctx, func(tx *db.Tx) error {
				running.Add(1)
				<-hold
				return insertID("x", id)(tx)
			})}
		}()
	}
	cancel()
	stored := 0
	for i := range crowd {
		if i == crowd-8 { // whatever could start has started: let it end
			close(hold)
			release()
		}
		a := <-answers
		if a.err == nil {
			stored++
		} else if !errors.Is(a.err, context.Canceled) {
			t.Errorf("write %s answers %v", a.id, a.err)
		}
	}
	if got := len(ids(t, d, "x")); got != stored || int(running.Load()) != stored {
		t.Errorf("%d writes are stored and %d ran, %d were acknowledged", got, running.Load(), stored)
	}
}

func fullQueue(t *testing.T, url string) {
	const room = 4
	d, release := occupied(t, url, room)
	answers, hold := make(chan error, crowd), make(chan struct{})
	for i := range crowd {
		go func() {
			answers <- d.Write(context.Background(), func(tx *db.Tx) error {
				<-hold
				return insertID("x", fmt.Sprintf("%02d", i))(tx)
			})
		}()
	}
	refused := 0
	for refused < crowd-room-4 { // answers while every committer is busy
		err := <-answers
		if fault.KindOf(err) != fault.Unavailable {
			t.Fatalf("a full queue answers %v", err)
		}
		refused++
	}
	close(hold)
	release()
	stored := 0
	for range crowd - refused {
		if err := <-answers; err == nil {
			stored++
		} else if fault.KindOf(err) != fault.Unavailable {
			t.Error(err)
		}
	}
	if got := len(ids(t, d, "x")); got != stored || stored < room {
		t.Errorf("%d rows stored, %d acknowledged, want at least the %d that found room", got, stored, room)
	}
}

func closeAnswers(t *testing.T, url string) {
	d, err := db.Open(context.Background(), db.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	write(t, d, func(tx *db.Tx) error { return tx.Exec("CREATE TABLE x (id TEXT PRIMARY KEY, n BIGINT)") })
	var acknowledged, refused atomic.Int32
	var writers, begun sync.WaitGroup
	begun.Add(crowd)
	for w := range crowd {
		writers.Go(func() {
			for i := 0; ; i++ {
				err := d.Write(context.Background(), insertID("x", fmt.Sprintf("%d-%d", w, i)))
				if i == 0 {
					begun.Done()
				}
				if err != nil {
					if fault.KindOf(err) != fault.Unavailable {
						t.Error(err)
					}
					refused.Add(1)
					return
				}
				acknowledged.Add(1)
			}
		})
	}
	begun.Wait()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	ended := make(chan struct{})
	go func() { writers.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("a write was never answered")
	}
	if err := d.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if err := d.Read(context.Background(), func(db.Reader) error { return nil }); err == nil {
		t.Error("a closed database is read")
	}
	again, err := db.Open(context.Background(), db.Config{URL: url, NoWorkers: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }() // tested above
	if got := len(ids(t, again, "x")); got != int(acknowledged.Load()) || refused.Load() != crowd {
		t.Errorf("%d rows after closing, %d were acknowledged", got, acknowledged.Load())
	}
}

func gatherKeepsApart(t *testing.T, d *db.DB, table string) {
	g := db.NewGather(d, func(tx *db.Tx, in []string) ([]int, error) {
		rows, out := make([][]any, len(in)), make([]int, len(in))
		for i, id := range in {
			if id == "panic" {
				panic("poison")
			}
			rows[i], out[i] = []any{id, len(in)}, len(id)
		}
		return out, tx.Insert(table, "id,n", rows...)
	})
	defer g.Close()
	var wg sync.WaitGroup
	for i := range 100 {
		id := fmt.Sprintf("%04d", i)
		bad := i%25 == 7
		if i%25 == 8 {
			id = "panic"
		} else if bad {
			id = "twin"
		}
		wg.Go(func() {
			defer func() {
				if p := recover(); (p != nil) != (id == "panic") {
					t.Errorf("call %s panics with %v", id, p)
				}
			}()
			out, err := g.Do(context.Background(), id)
			if !bad && (err != nil || out != len(id)) {
				t.Errorf("call %s answers %d, %v", id, out, err)
			}
		})
	}
	wg.Wait()
	if got := len(ids(t, d, table)); got != 92+1 {
		t.Errorf("%d rows, want the 92 good ones and one twin", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := g.Do(ctx, "late"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call answers %v", err)
	}
	g.Close()
	if _, err := g.Do(context.Background(), "closed"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a closed gatherer answers %v", err)
	}
}
