package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/lease"
)

func (s *shop) sweep(olderThan time.Duration) int {
	s.t.Helper()
	n, err := s.Sweep(context.Background(), olderThan)
	must(s.t, err)
	return n
}

// mentioned counts the distinct files that attachments name.
func (s *shop) mentioned() (n int) {
	s.t.Helper()
	must(s.t, s.db.Read(context.Background(), func(r db.Reader) error {
		return r.Row("SELECT count(*) FROM (SELECT DISTINCT shelf, archive, CASE archive WHEN '' THEN sha256 END FROM attachments WHERE place = 'store') AS places").Scan(&n)
	}))
	return n
}

func TestACrashBetweenKeepAndAttachLeavesNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		a := s.issue("a", "1", []byte("attached"))
		must(t, s.Keep(context.Background(), files.NewFile([]byte("orphan 1")), files.NewFile([]byte("orphan 2"))))
		// A process killed while it writes leaves a temporary file.
		torn := filepath.Join(filepath.Dir(s.files()[0]), strings.Repeat("f", 64)+".18a.tmp")
		must(t, os.WriteFile(torn, []byte("half"), 0o600))
		s.Store = s.open() // the crash: nothing is remembered
		s.clock.set(time.Date(2026, 3, 1, 11, 59, 59, 0, time.UTC))
		if n := s.sweep(0); n != 0 || len(s.files()) != 3 {
			t.Fatalf("swept %d before the hour was over, left %v", n, s.files())
		}
		s.clock.set(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		if n := s.sweep(time.Hour); n != 3 || len(s.files()) != 1 {
			t.Fatalf("swept %d, left %v", n, s.files())
		}
		if got, err := s.fetch(a); err != nil || string(got) != "attached" {
			t.Errorf("served %q, %v", got, err)
		}
		if n := s.sweep(0); n != 0 {
			t.Errorf("swept %d again", n)
		}
	})
}

func TestSweepWaitsAsLongAsItIsTold(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	must(t, s.Keep(context.Background(), files.NewFile([]byte("orphan"))))
	s.clock.set(time.Date(2026, 3, 2, 10, 59, 59, 0, time.UTC))
	if n := s.sweep(24 * time.Hour); n != 0 {
		t.Errorf("swept %d too early", n)
	}
	s.clock.set(time.Date(2026, 3, 2, 11, 0, 0, 0, time.UTC))
	if n := s.sweep(24 * time.Hour); n != 1 {
		t.Errorf("swept %d", n)
	}
}

func TestSweepLeavesNoEmptyFolders(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	must(t, s.Keep(context.Background(), files.NewFile([]byte("orphan"))))
	shelf := filepath.Dir(filepath.Dir(s.files()[0]))
	s.clock.pass(3 * time.Hour)
	if s.sweep(0) != 1 {
		t.Error("nothing was swept")
	}
	if _, err := os.Stat(shelf); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the shelf is still there: %v", err)
	}
}

// The settling of an operation may stall for hours between Keep and Attach.
func TestALateAttachIsRefusedAndKeepingAgainHelps(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		f := files.NewFile([]byte("slow"))
		must(t, s.Keep(context.Background(), f))
		s.clock.pass(3 * time.Hour)
		if s.sweep(0) != 1 {
			t.Fatal("the file was not swept")
		}
		if err := s.attach(visual("a", "op", f)); !errors.Is(err, files.ErrNotKept) {
			t.Errorf("a swept file was attached: %v", err)
		}
		must(t, s.Keep(context.Background(), f))
		must(t, s.attach(visual("a", "op", f)))
		if got, err := s.fetch(s.of("a", "op")[0]); err != nil || string(got) != "slow" {
			t.Errorf("served %q, %v", got, err)
		}
	})
}

// Another node's sweeper closes shelves that this process has not heard of.
func TestAShelfClosedByAnotherNodeIsNotAttachedFrom(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		f := files.NewFile([]byte("slow"))
		must(t, s.Keep(context.Background(), f))
		ahead := newHand()
		ahead.pass(5 * time.Hour)
		other := s.open(func(c *files.Config) { c.Now = ahead.now })
		if n, err := other.Sweep(context.Background(), 0); n != 1 || err != nil {
			t.Fatalf("swept %d, %v", n, err)
		}
		if err := s.attach(visual("a", "op", f)); !errors.Is(err, files.ErrNotKept) {
			t.Errorf("attached: %v", err)
		}
		// Our clock is behind; a shelf that is still open must be found all the same.
		must(t, s.Keep(context.Background(), f))
		must(t, s.attach(visual("a", "op", f)))
		if _, err := s.fetch(s.of("a", "op")[0]); err != nil {
			t.Error(err)
		}
	})
}

// An Attach that is under way when a shelf is being closed is waited for.
func TestASweepWaitsForAnAttachThatHasBegun(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	s := openShop(t, d)
	f := files.NewFile([]byte("content"))
	must(t, s.Keep(context.Background(), f))
	inside, finish := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	wg.Go(func() {
		err := d.Write(context.Background(), func(tx *db.Tx) error {
			if err := s.Attach(tx, visual("a", "op", f)); err != nil {
				return err
			}
			once.Do(func() { close(inside) })
			<-finish
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-inside
	s.clock.pass(5 * time.Hour) // as if the write had stalled
	swept := make(chan int)
	wg.Go(func() {
		n, err := s.Sweep(context.Background(), 0)
		if err != nil {
			t.Error(err)
		}
		swept <- n
	})
	must(t, waitsForLock(d))
	select {
	case n := <-swept:
		t.Fatalf("the sweep did not wait; it removed %d", n)
	default:
	}
	close(finish)
	if n := <-swept; n != 0 {
		t.Errorf("removed %d", n)
	}
	wg.Wait()
	if got, err := s.fetch(s.of("a", "op")[0]); err != nil || string(got) != "content" {
		t.Errorf("served %q, %v", got, err)
	}
}

// waitsForLock returns once somebody waits for an advisory lock of this database: others share its server.
func waitsForLock(d *db.DB) error {
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) {
		var waiting bool
		err := d.Read(context.Background(), func(r db.Reader) error {
			return r.Row("SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))").Scan(&waiting)
		})
		if waiting || err != nil {
			return err
		}
	}
	return errors.New("nobody waits for a lock")
}

// Whatever the order of keeping, attaching, sweeping, restarting and passing
// time: what is attached can be read, and in the end nothing else is there.
func TestAttachedFilesAreNeverSwept(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	count := 0
	rapid.Check(t, func(rt *rapid.T) {
		count++
		s := openShop(t, d)
		var pending []files.File
		attached := map[string]string{} // content by operation
		steps := rapid.IntRange(1, 25).Draw(rt, "steps")
		for step := range steps {
			switch rapid.IntRange(0, 6).Draw(rt, "step") {
			case 0, 1:
				var several []files.File // they go into an archive
				for _, content := range rapid.SliceOfN(rapid.IntRange(0, 4), 1, 3).Draw(rt, "contents") {
					several = append(several, files.NewFile(text("%d", content)))
				}
				if err := s.Keep(context.Background(), several...); err != nil {
					rt.Fatal(err)
				}
				pending = append(pending, several...)
			case 2:
				if len(pending) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(pending)-1).Draw(rt, "pending")
				f, op := pending[i], fmt.Sprintf("%d-%d", count, step)
				pending = append(pending[:i], pending[i+1:]...)
				switch err := s.attach(visual("a", op, f)); {
				case err == nil:
					attached[op] = string(f.Bytes)
				case !errors.Is(err, files.ErrNotKept):
					rt.Fatal(err)
				}
			case 3:
				s.clock.pass(time.Duration(rapid.IntRange(1, 200).Draw(rt, "minutes")) * time.Minute)
			case 4:
				if _, err := s.Sweep(context.Background(), 0); err != nil {
					rt.Fatal(err)
				}
			case 5:
				s.Store = s.open()
			case 6:
				for op := range attached {
					s.drop("a", op)
					delete(attached, op)
					break
				}
			}
		}
		for op, content := range attached {
			if got, err := s.fetch(s.of("a", op)[0]); err != nil || string(got) != content {
				rt.Fatalf("operation %s: %q, %v", op, got, err)
			}
		}
		s.clock.pass(5 * time.Hour)
		if _, err := s.Sweep(context.Background(), 0); err != nil {
			rt.Fatal(err)
		}
		for op, content := range attached {
			if got, err := s.fetch(s.of("a", op)[0]); err != nil || string(got) != content {
				rt.Fatalf("after the last sweep, operation %s: %q, %v", op, got, err)
			}
		}
		if held, want := len(s.files()), s.mentioned(); held != want {
			rt.Fatalf("%d files for %d places", held, want)
		}
		must(t, d.Write(context.Background(), func(tx *db.Tx) error { // the next run begins anew, at the same hour
			for _, table := range []string{"attachments", "document_store", "document_sweeps"} {
				if err := tx.Exec("DELETE FROM " + table); err != nil {
					return err
				}
			}
			return nil
		}))
	})
}

// Workers keep and attach while time flies and a sweeper is always at work.
func TestSweepingWhileOthersAttach(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		var workers, sweeper sync.WaitGroup
		stop := make(chan struct{})
		sweeper.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s.clock.pass(7 * time.Minute)
				if _, err := s.Sweep(context.Background(), 0); err != nil {
					t.Error(err)
				}
			}
		})
		for w := range 4 {
			workers.Go(func() {
				for i := range 30 {
					f := files.NewFile(text("content %d", i%7)) // shared between workers and hours
					for {
						if err := s.Keep(context.Background(), f); err != nil && fault.KindOf(err) != fault.Unavailable {
							t.Error(err)
							return
						}
						err := s.attach(visual(scopeOf(w), fmt.Sprint(i), f))
						if err == nil {
							break
						}
						if !errors.Is(err, files.ErrNotKept) {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		workers.Wait()
		close(stop)
		sweeper.Wait()
		for w := range 4 {
			for i := range 30 {
				if got, err := s.fetch(s.of(scopeOf(w), fmt.Sprint(i))[0]); err != nil ||
					string(got) != fmt.Sprintf("content %d", i%7) {
					t.Fatalf("worker %d, file %d: %q, %v", w, i, got, err)
				}
			}
		}
		s.clock.pass(5 * time.Hour)
		s.sweep(0)
		if held, want := len(s.files()), s.mentioned(); held != want {
			t.Errorf("%d files for %d places", held, want)
		}
	})
}

func TestASweepThatWasCutOffIsDoneAgain(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	must(t, s.Keep(context.Background(), files.NewFile([]byte("1"))))
	s.clock.pass(time.Hour)
	must(t, s.Keep(context.Background(), files.NewFile([]byte("2"))))
	s.clock.pass(40 * 24 * time.Hour) // many empty shelves on the way
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Sweep(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled sweep says %v", err)
	}
	if n := s.sweep(0); n != 2 || len(s.files()) != 0 {
		t.Errorf("swept %d, left %v", n, s.files())
	}
}

func TestAShelfWithMoreThanAPageIsSweptWhole(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t), func(c *files.Config) { c.URL = "mem://" })
	var content []files.File
	var list []files.Attachment
	for i := range 2100 {
		f := files.NewFile(text("%d", i))
		content = append(content, f)
		if i%3 == 0 {
			list = append(list, visual("a", fmt.Sprint(i), f))
		}
	}
	must(t, s.Keep(context.Background(), content...))
	must(t, s.attach(list...))
	s.clock.pass(5 * time.Hour)
	if n := s.sweep(0); n != 1400 {
		t.Errorf("swept %d, want 1400", n)
	}
	for i := 0; i < len(list); i += 20 {
		if _, err := s.fetch(s.of("a", list[i].OperationID)[0]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFileKeptTooSlowlyIsSweptAgain(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	s.SyncWith(func([]string) error { // the sweeper passes while we stall
		s.clock.pass(4 * time.Hour)
		return nil
	})
	f := files.NewFile([]byte("slow"))
	wantKind(t, s.Keep(context.Background(), f), fault.Unavailable)
	s.sweep(0)
	if len(s.files()) != 0 {
		t.Errorf("left %v", s.files())
	}
	if err := s.attach(visual("a", "op", f)); !errors.Is(err, files.ErrNotKept) {
		t.Errorf("attached: %v", err)
	}
}

// drop deletes the attachments of operations as their owner would.
func (s *shop) drop(clientID string, operations ...string) (n int) {
	s.t.Helper()
	must(s.t, s.db.Write(context.Background(), func(tx *db.Tx) (err error) {
		n, err = s.Drop(tx, clientID, operations)
		return err
	}))
	return n
}

func TestDroppedDocumentsAreGoneWithTheirFiles(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		ctx := context.Background()
		old := s.issue("a", "1", []byte("shared"))
		twin := s.issue("b", "2", []byte("shared")) // the same bytes, the same hour
		report := files.NewFile([]byte("<r/>"))
		must(t, s.attach(files.Attachment{ClientID: "a", OperationID: "1", Kind: "REPORT", Type: "XML",
			Place: files.InRecord, SHA256: report.SHA256, Size: report.Size}))
		own := s.issue("a", "3", []byte("another"))
		address := s.URL(old)
		s.clock.pass(3 * time.Hour)
		s.sweep(0) // has passed this shelf
		if n := s.drop("b", "1", "3"); n != 0 {
			t.Errorf("dropped %d of another client", n)
		}
		if n := s.drop("a", "1", "3", "unknown"); n != 3 {
			t.Errorf("dropped %d, want 3", n)
		}
		for _, a := range []files.Attachment{old, own} {
			_, err := s.fetch(a)
			wantKind(t, err, fault.NotFound)
		}
		_, err := s.Open(ctx, ask(t, address))
		if err == nil {
			t.Error("an address of before still works")
		}
		if n := s.sweep(0); n != 1 {
			t.Errorf("%d files removed, want the one that nobody shares", n)
		}
		if got, err := s.fetch(twin); err != nil || string(got) != "shared" {
			t.Errorf("the other client's document: %q, %v", got, err)
		}
		if s.drop("b", "2"); s.sweep(0) != 1 || len(s.files()) != 0 {
			t.Errorf("left %v", s.files())
		}
	})
}

// A crash after the rows are gone must not leave their files for ever.
func TestADropThatWasCutOffLeavesNoFiles(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	s.issue("a", "1", []byte("x"))
	s.clock.set(s.clock.now().AddDate(2, 0, 0))
	s.sweep(0) // has passed this shelf long ago
	shelf := filepath.Dir(filepath.Dir(s.files()[0]))
	s.drop("a", "1")
	must(t, os.Rename(shelf, shelf+".away")) // the store is not there when the files should go
	must(t, os.WriteFile(shelf, nil, 0o600))
	if _, err := s.Sweep(context.Background(), 0); err == nil {
		t.Fatal("swept a store that is not there")
	}
	must(t, os.Remove(shelf))
	must(t, os.Rename(shelf+".away", shelf))
	if n := s.sweep(0); n != 1 || len(s.files()) != 0 {
		t.Errorf("swept %d, left %v", n, s.files())
	}
}

func TestThePeriodicJobSweeps(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		must(t, s.Keep(context.Background(), files.NewFile([]byte("orphan"))))
		s.clock.set(s.clock.now().AddDate(2, 0, 0))
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- lease.RunTasks(ctx, d, s.Tasks()...) }()
		deadline := time.Now().Add(2 * time.Minute)
		for len(s.files()) > 0 && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond) // a task has no signal to give
		}
		stop()
		must(t, <-done)
		if left := s.files(); len(left) != 0 {
			t.Errorf("left %v", left)
		}
	})
}
