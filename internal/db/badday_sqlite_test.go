package db_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
)

// openAgain opens what another process has left, without a word about its schema.
func openAgain(t *testing.T, url string) *db.DB {
	t.Helper()
	d, err := db.Open(context.Background(), db.Config{URL: url})
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	return d
}

// stored are the ids in the table of acknowledged writes.
func stored(t testing.TB, d *db.DB) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	must(t, d.Read(context.Background(), func(r db.Reader) error {
		ids, err := db.Collect(r, func(s func(...any) error) (id string, err error) {
			return id, s(&id)
		}, "SELECT id FROM acked")
		for _, id := range ids {
			all[id] = true
		}
		return err
	}))
	return all
}

// Hard case 14, and the law of Write: nil means on disk.
func TestKilledInGroupCommitLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.EachURL(t, func(t *testing.T, url string) {
		const rounds = 4
		ids := map[string]bool{}
		for round := range rounds {
			c := dbtest.StartChild(t, "writer", url, fmt.Sprint("round", round))
			c.Want("ready")
			for range 50 + 37*round { // a different moment each time
				ids[c.Hear()] = true
			}
			c.Signal(syscall.SIGKILL)
			rest, _ := c.Rest()
			for i, id := range rest {
				if i < len(rest)-1 { // the last line may be torn
					ids[id] = true
				}
			}
		}
		d := openAgain(t, url)
		have := stored(t, d)
		for id := range ids {
			if !have[id] {
				t.Errorf("%s was acknowledged and is lost", id)
			}
		}
		t.Logf("%d rounds of SIGKILL, %d writes acknowledged, %d stored", rounds, len(ids), len(have))
	})
}

// descriptors are the open files of this process whose name ends with suffix.
func descriptors(suffix string) (fds []int) {
	entries, err := os.ReadDir("/proc/self/fd")
	dbtest.Check(err)
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasSuffix(name, suffix) {
			fd, err := strconv.Atoi(e.Name())
			dbtest.Check(err)
			fds = append(fds, fd)
		}
	}
	return fds
}

// replaceLog puts a device in the place of the log and returns how to put the log back.
func replaceLog(path, device string) (restore func()) {
	// With the log empty, what is stored is read from the file alone.
	raw, err := sql.Open("sqlite", "file:"+path)
	dbtest.Check(err)
	_, err = raw.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	dbtest.Check(err)
	dbtest.Check(raw.Close())
	dev, err := os.OpenFile(device, os.O_RDWR, 0)
	dbtest.Check(err)
	// The writer's, and on a slow machine also that of the connection which moves the log into the file.
	kept := map[int]int{}
	for _, fd := range descriptors("-wal") {
		kept[fd], err = syscall.Dup(fd)
		dbtest.Check(err)
		dbtest.Check(syscall.Dup3(int(dev.Fd()), fd, 0))
	}
	if len(kept) == 0 {
		dbtest.Check(errors.New("no log is open"))
	}
	return func() {
		for fd, log := range kept {
			dbtest.Check(syscall.Dup3(log, fd, 0))
		}
	}
}

func openAcked(url string) *db.DB {
	d, err := db.Open(context.Background(), db.Config{URL: url})
	dbtest.Check(err)
	dbtest.Check(d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Exec("CREATE TABLE acked (id TEXT PRIMARY KEY)")
	}))
	dbtest.Check(addAcked(d, "before"))
	return d
}

func addAcked(d *db.DB, id string) error {
	return d.Write(context.Background(), func(tx *db.Tx) error { return tx.Insert("acked", "id", []any{id}) })
}

func playFullDisk(args []string) {
	d := openAcked(args[0])
	restore := replaceLog(dbtest.SQLitePath(args[0]), "/dev/full")
	for i := range 3 {
		err := addAcked(d, fmt.Sprint("full", i))
		dbtest.Tell("%v: %v", fault.KindOf(err), err)
	}
	count := func() (n int) {
		dbtest.Check(d.Read(context.Background(), func(r db.Reader) error {
			return r.Row("SELECT count(*) FROM acked").Scan(&n)
		}))
		return n
	}
	dbtest.Tell("reads %d", count())
	restore()
	dbtest.Check(addAcked(d, "after"))
	dbtest.Tell("reads %d", count())
	dbtest.Check(d.Close())
}

// Hard case 14: no acknowledgement, reads go on, and it heals by itself.
func TestFullDiskRefusesWritesAndKeepsReading(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	url := dbtest.SQLiteURL(t)
	said, code := dbtest.StartChild(t, "full disk", url).Rest()
	if code != 0 || len(said) != 5 {
		t.Fatalf("the process ended with %d and said %q", code, said)
	}
	for _, line := range said[:3] {
		if !strings.HasPrefix(line, "unavailable: ") || !strings.Contains(line, "the disk is full") {
			t.Errorf("a write on a full disk answers %q", line)
		}
	}
	if said[3] != "reads 1" || said[4] != "reads 2" {
		t.Errorf("reads on a full disk and after: %q, %q", said[3], said[4])
	}
	d := openAgain(t, url)
	if have := stored(t, d); len(have) != 2 || !have["before"] || !have["after"] {
		t.Errorf("stored %v", have)
	}
}

func playLostFsync(args []string) {
	d := openAcked(args[0])
	replaceLog(dbtest.SQLitePath(args[0]), "/dev/null")
	dbtest.Tell("answer: %v", addAcked(d, "lost")) // must not be reached: the process ends first
}

// Hard case 14: after an fsync error the page cache can lie. The process ends,
// and the next one checks the file before it is ready.
func TestFsyncErrorEndsTheProcess(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	url := dbtest.SQLiteURL(t)
	marker := dbtest.SQLitePath(url) + ".check"
	said, code := dbtest.StartChild(t, "lost fsync", url).Rest()
	if code != 1 || len(said) != 0 {
		t.Fatalf("the process ended with %d and said %q, want it to end before it answers", code, said)
	}
	cause, err := os.ReadFile(marker)
	if err != nil || !strings.Contains(string(cause), "disk I/O error") {
		t.Errorf("the marker for the next start holds %q (%v)", cause, err)
	}
	d := openAgain(t, url)
	if have := stored(t, d); len(have) != 1 || !have["before"] {
		t.Errorf("stored %v", have)
	}
	if _, err := os.Stat(marker); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the marker is still there after the check: %v", err)
	}
}

func TestDamagedFileIsRefusedAfterAStorageError(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	url := dbtest.SQLiteURL(t)
	path := dbtest.SQLitePath(url)
	d, err := db.Open(context.Background(), db.Config{URL: url})
	must(t, err)
	must(t, d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Exec("CREATE TABLE acked (id TEXT PRIMARY KEY)")
	}))
	for i := range 500 {
		must(t, addAcked(d, fmt.Sprintf("%0200d", i)))
	}
	must(t, d.Close())
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt(make([]byte, 3*4096), 5*4096)
	must(t, errors.Join(err, f.Close(), os.WriteFile(path+".check", []byte("disk I/O error\n"), 0o600)))
	_, err = db.Open(context.Background(), db.Config{URL: url})
	if err == nil || !strings.Contains(err.Error(), "integrity check") ||
		!strings.Contains(err.Error(), "restore a backup") {
		t.Errorf("a damaged file opens with %v", err)
	}
}

// After Config.Fatal was called nothing is acknowledged any more, even when it returns.
func TestNothingIsAcknowledgedAfterAFatalError(t *testing.T) {
	t.Parallel()
	var fatal []error
	url := dbtest.SQLiteURL(t)
	d, err := db.Open(context.Background(), db.Config{URL: url, Fatal: func(err error) { fatal = append(fatal, err) }})
	must(t, err)
	defer func() { _ = d.Close() }() // its log is gone
	must(t, d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Exec("CREATE TABLE acked (id TEXT PRIMARY KEY)")
	}))
	restore := replaceLogOf(t, dbtest.SQLitePath(url))
	first := addAcked(d, "lost")
	restore()
	second := addAcked(d, "late")
	if fault.KindOf(first) != fault.Unavailable || fault.KindOf(second) != fault.Unavailable || len(fatal) != 1 {
		t.Errorf("writes answer %v and %v, fatal was called with %v", first, second, fatal)
	}
	if have := stored(t, d); len(have) != 0 {
		t.Errorf("stored %v", have)
	}
}

// replaceLogOf is replaceLog for the database at path in this process.
func replaceLogOf(t *testing.T, path string) (restore func()) {
	t.Helper()
	for _, fd := range descriptors(path + "-wal") {
		dev, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
		must(t, err)
		t.Cleanup(func() { _ = dev.Close() }) // a device
		kept, err := syscall.Dup(fd)
		must(t, err)
		must(t, syscall.Dup3(int(dev.Fd()), fd, 0))
		return func() { must(t, errors.Join(syscall.Dup3(kept, fd, 0), syscall.Close(kept))) }
	}
	t.Fatal("the log is not open")
	return nil
}

// openFolder is a temporary folder that other users may enter.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tributary-readonly-")
	must(t, err)
	t.Cleanup(func() { _, _ = os.Chmod(dir, 0o700), os.RemoveAll(dir) }) // a test's own folder
	return dir
}

func TestReadOnlyStorageIsNamed(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	for name, prepare := range map[string]func(dir, path string) error{
		"folder": func(dir, path string) error { return os.Chmod(dir, 0o555) },
		"file": func(dir, path string) error {
			return errors.Join(os.Chmod(dir, 0o777), os.Chmod(path, 0o444), os.Remove(path+".lock"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := openFolder(t)
			path := filepath.Join(dir, "tributary.db")
			d, err := db.Open(context.Background(), db.Config{URL: "sqlite:" + path})
			must(t, err)
			must(t, d.Close())
			must(t, prepare(dir, path))
			said, code := dbtest.StartChild(t, "open as nobody", "sqlite:"+path).Rest()
			if text := strings.Join(said, "\n"); code != 1 || !strings.Contains(text, path) ||
				!strings.Contains(text, "read-only") && !strings.Contains(text, "must be writable") {
				t.Errorf("exit code %d, message %q: want the path and what is wrong", code, text)
			}
		})
	}
}

func TestSecondServerIsRefusedAndAGuestIsNot(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	url := dbtest.SQLiteURL(t)
	c := dbtest.StartChild(t, "open", url)
	c.Want("open")
	_, err := db.Open(context.Background(), db.Config{URL: url})
	if !errors.Is(err, db.ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(c.Pid())) ||
		!strings.Contains(err.Error(), dbtest.SQLitePath(url)) {
		t.Fatalf("a second server hears %v, want ErrInUse with the path and process %d", err, c.Pid())
	}
	guest, err := db.Open(context.Background(), db.Config{URL: url, NoWorkers: true})
	must(t, err)
	must(t, guest.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Exec("CREATE TABLE acked (id TEXT PRIMARY KEY)")
	}))
	must(t, addAcked(guest, "guest"))
	must(t, guest.Close())
	c.Say("done")
	if said, code := c.Rest(); code != 0 {
		t.Errorf("the server ended with %d: %v", code, said)
	}
	d := openAgain(t, url) // the lock is free again
	if have := stored(t, d); !have["guest"] {
		t.Error("the guest's write is lost")
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dir := t.TempDir()
	text := filepath.Join(dir, "letter.txt")
	must(t, os.WriteFile(text, []byte(strings.Repeat("Dear Sir or Madam, ", 1000)), 0o600))
	for url, want := range map[string]string{
		"sqlite:" + text:            "not a SQLite database",
		"sqlite:" + dir:             "cannot be opened",
		"sqlite:":                   "a path is missing",
		"mysql://u:geheim@h/x":      "want sqlite:PATH or postgres://",
		"postgres://u:geheim@h:x/y": "not a valid postgres:// URL",
		"postgres://u:geheim@127.0.0.1:1/x?sslmode=disable": "reach postgres://",
	} {
		_, err := db.Open(context.Background(), db.Config{URL: url})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: error %v, want %q and no password", url, err, want)
		}
	}
}

// The log must not grow without end, and must be moved while writes go on. In
// virtual time whoever moves it is done before the next write.
func TestLogIsMovedIntoTheFile(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	url := dbtest.SQLiteURL(t)
	synctest.Test(t, func(t *testing.T) {
		d := openAgain(t, url)
		must(t, d.Write(context.Background(), func(tx *db.Tx) error {
			return tx.Exec("CREATE TABLE heavy (id TEXT PRIMARY KEY, body BLOB)")
		}))
		body := make([]byte, 400<<10) // a hundred pages
		for i := range 80 {
			must(t, d.Write(context.Background(), func(tx *db.Tx) error {
				return tx.Insert("heavy", "id,body", []any{fmt.Sprint(i), body})
			}))
			synctest.Wait()
		}
		log, err := os.Stat(dbtest.SQLitePath(url) + "-wal")
		must(t, err)
		file, err := os.Stat(dbtest.SQLitePath(url))
		must(t, err)
		if log.Size() > 20<<20 || file.Size() < 20<<20 {
			t.Errorf("after 32 MB the log has %d MB and the file %d MB", log.Size()>>20, file.Size()>>20)
		}
	})
}
