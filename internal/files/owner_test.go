package files_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/files"
	"tributary/internal/files/filestest"
)

// copyOf is the shop as a copy of its database has it: the same store, the same clock.
func (s *shop) copyOf() *shop {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "copy.db")
	must(s.t, db.Backup(context.Background(), "sqlite:"+s.db.Path(), path))
	twin := &shop{t: s.t, db: dbtest.Open(s.t, db.Config{URL: "sqlite:" + path}), dir: s.dir, clock: s.clock,
		records: s.records, change: s.change}
	twin.Store = twin.open(twin.change...)
	return twin
}

func (s *shop) says(act func(*db.Tx) error) {
	s.t.Helper()
	must(s.t, s.db.Write(context.Background(), act))
}

func (s *shop) claim(tx *db.Tx) error { return files.Claim(tx, s.clock.now()) }

func (s *shop) ownership() (o files.Ownership) {
	s.t.Helper()
	must(s.t, s.db.Read(context.Background(), func(r db.Reader) (err error) {
		o, err = files.OwnershipOf(r)
		return err
	}))
	return o
}

// eachStore runs a test with files on disk, and with an S3 server.
func eachStore(t *testing.T, fn func(t *testing.T, s *shop)) {
	t.Run("folder", func(t *testing.T) { fn(t, openShop(t, dbtest.SQLite(t))) })
	t.Run("object store", func(t *testing.T) {
		_, address := openBucket(t)
		fn(t, openShop(t, dbtest.SQLite(t), func(c *files.Config) { c.URL = address }))
	})
	t.Run("S3 server", func(t *testing.T) {
		address, _ := filestest.S3(t, "docs")
		fn(t, openShop(t, dbtest.SQLite(t), func(c *files.Config) { c.URL = address }))
	})
}

// A database brought back from a backup takes what came after it for forgotten, and removes none of it.
func TestARestoredDatabaseDestroysNoDocuments(t *testing.T) {
	eachStore(t, func(t *testing.T, s *shop) {
		s.issue("a", "before", []byte("before"))
		back := s.copyOf()
		s.clock.pass(2 * time.Minute)
		after := s.issue("a", "after", []byte("after"))
		s.clock.pass(5 * time.Hour)
		if n := back.sweep(0); n != 0 {
			t.Fatalf("the backup swept %d", n)
		}
		if o := back.ownership(); o.State != "contested" || o.Certain() {
			t.Errorf("the backup believes %+v", o)
		}
		if _, err := s.fetch(after); err != nil {
			t.Fatalf("what came after the backup: %v", err)
		}
		// The operator says that the backup is the real one: what it may not know is kept all the same.
		back.says(s.claim)
		orphan := files.NewFile([]byte("of a later day"))
		s.clock.pass(24 * time.Hour)
		must(t, back.Keep(t.Context(), orphan))
		s.clock.pass(5 * time.Hour)
		if n := back.sweep(0); n != 1 {
			t.Errorf("swept %d, want the one orphan of the day after", n)
		}
		if _, err := s.fetch(after); err != nil {
			t.Fatalf("what came after the backup, claimed: %v", err)
		}
		// What it replaces comes back: both stop once more.
		for _, one := range []*shop{s, back} {
			if n := one.sweep(0); n != 0 || one.ownership().State != "contested" {
				t.Errorf("swept %d and believes %+v", n, one.ownership())
			}
		}
		back.says(back.claim)
		back.says(files.Release)
		if n := back.sweep(0); n != 1 {
			t.Errorf("released, swept %d", n)
		}
		if _, err := s.fetch(after); err == nil {
			t.Error("released, and nothing was removed")
		}
	})
}

// A copy that is used with the store of its original stops, and so does the original, until somebody says which one is
// real.
func TestACopiedDatabaseStopsBothUntilSomebodyDecides(t *testing.T) {
	eachStore(t, func(t *testing.T, s *shop) {
		s.issue("a", "before", []byte("before"))
		s.clock.pass(5 * time.Hour)
		twin := s.copyOf()
		if n := twin.sweep(0); n != 0 { // the copy is faster, and takes the store for its own
			t.Fatalf("swept %d", n)
		}
		orphan := files.NewFile([]byte("nothing mentions it"))
		must(t, twin.Keep(t.Context(), orphan))
		live := s.issue("a", "live", []byte("live"))
		s.clock.pass(5 * time.Hour)
		for _, one := range []*shop{twin, s, twin} {
			if n := one.sweep(0); n != 0 || one.ownership().State != "contested" {
				t.Errorf("swept %d, believes %+v", n, one.ownership())
			}
		}
		s.says(s.claim)
		for _, one := range []*shop{twin, s, twin, s} {
			if n := one.sweep(0); n != 0 {
				t.Errorf("swept %d", n)
			}
		}
		if s.ownership().State != "ours" || twin.ownership().State != "contested" {
			t.Errorf("the real one believes %+v, the copy %+v", s.ownership(), twin.ownership())
		}
		s.says(files.Release)
		if n := s.sweep(0); n != 1 { // what the copy has left
			t.Errorf("swept %d", n)
		}
		if _, err := s.fetch(live); err != nil {
			t.Error(err)
		}
	})
}

func TestNothingIsSweptWhileARestorationIsOpen(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	a := s.issue("a", "1", []byte("dropped before the backup"))
	must(t, s.Keep(t.Context(), files.NewFile([]byte("orphan"))))
	s.clock.pass(5 * time.Hour)
	s.drop(a.ClientID, a.OperationID)
	s.says(files.Hold)
	if n := s.sweep(0); n != 0 {
		t.Fatalf("swept %d", n)
	}
	if err := s.db.Write(t.Context(), files.Release); err == nil {
		t.Error("released while the restoration is open")
	}
	s.says(func(tx *db.Tx) error { return files.EndHold(tx, s.clock.now()) })
	if n := s.sweep(0); n != 0 {
		t.Fatalf("swept %d of what the backup may not know", n)
	}
	s.says(files.Release)
	if n := s.sweep(0); n != 2 {
		t.Errorf("released, swept %d", n)
	}
}

// A crash between the two places of the mark is no doubt.
// Several nodes move the mark. One that was slow puts back what was the mark before: still ours, and no copy's.
func TestAMarkThatASlowNodePutsBackIsOurs(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	must(t, s.Keep(t.Context(), files.NewFile([]byte("one"))))
	mark, err := filepath.Glob(filepath.Join(s.dir, "*", "owner"))
	must(t, err)
	old, err := os.ReadFile(mark[0])
	must(t, err)
	for range 63 {
		s.sweep(0)
	}
	must(t, os.WriteFile(mark[0], old, 0o600))
	if s.sweep(0); s.ownership().State != "ours" {
		t.Errorf("the mark before last: %+v", s.ownership())
	}
	for range 64 {
		s.sweep(0)
	}
	must(t, os.WriteFile(mark[0], old, 0o600))
	if _, err := s.Sweep(t.Context(), 0); err != nil || s.ownership().State != "contested" {
		t.Errorf("a mark of long ago: %v %+v", err, s.ownership())
	}
}

func TestAMarkThatIsOnItsWayIsOurs(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	must(t, s.Keep(t.Context(), files.NewFile([]byte("one"))))
	mark, err := filepath.Glob(filepath.Join(s.dir, "*", "owner"))
	must(t, err)
	for _, written := range []bool{false, true} {
		next := strings.Repeat("ab", 16)
		s.says(func(tx *db.Tx) error { return tx.Exec("UPDATE document_store SET next_mark = $1", next) })
		if written {
			must(t, os.WriteFile(mark[0], []byte(next), 0o600))
		}
		s.clock.pass(5 * time.Hour)
		s.sweep(0)
		if o := s.ownership(); o.State != "ours" {
			t.Errorf("written %v: %+v", written, o)
		}
	}
}
