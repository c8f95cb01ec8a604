package files_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/secret"
)

// hand is a clock that a test moves.
type hand struct{ at atomic.Int64 }

func newHand() *hand {
	h := &hand{}
	h.at.Store(time.Date(2026, 3, 1, 10, 20, 30, 0, time.UTC).UnixMicro())
	return h
}

func (h *hand) now() time.Time               { return time.UnixMicro(h.at.Load()).UTC() }
func (h *hand) pass(d time.Duration)         { h.at.Add(d.Microseconds()) }
func (h *hand) set(t time.Time)              { h.at.Store(t.UnixMicro()) }
func scopeOf(i int) string                   { return fmt.Sprintf("client-%d", i) }
func text(format string, args ...any) []byte { return fmt.Appendf(nil, format, args...) }

// shop is a store with its folder and clock.
type shop struct {
	*files.Store
	t       testing.TB
	db      *db.DB
	dir     string
	change  []func(*files.Config) // of its configuration
	clock   *hand
	records map[string][]byte // by operation and kind
}

func openShop(t testing.TB, d *db.DB, change ...func(*files.Config)) *shop {
	t.Helper()
	s := &shop{t: t, db: d, dir: filepath.Join(t.TempDir(), "documents"), clock: newHand(), records: map[string][]byte{},
		change: change}
	s.Store = s.open(change...)
	return s
}

// open opens the store again, as a restarted process would.
func (s *shop) open(change ...func(*files.Config)) *files.Store {
	s.t.Helper()
	store, err := files.OpenStore(context.Background(), s.config(change...))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := store.Close(); err != nil {
			s.t.Errorf("close the store: %v", err)
		}
	})
	return store
}

func (s *shop) config(change ...func(*files.Config)) files.Config {
	cfg := files.Config{
		DB: s.db, URL: "file://" + s.dir, BaseURL: "https://docs.example",
		SigningKey: secret.FromText(strings.Repeat("k", 32)), Now: s.clock.now,
		Record: func(_ db.Reader, a files.Attachment) ([]byte, error) { return s.records[a.OperationID+a.Kind], nil },
		Fatal:  func(err error) { s.t.Errorf("the store died: %v", err) },
	}
	for _, fn := range change {
		fn(&cfg)
	}
	return cfg
}

// attach attaches in a write of its own.
func (s *shop) attach(list ...files.Attachment) error {
	return s.db.Write(context.Background(), func(tx *db.Tx) error { return s.Attach(tx, list...) })
}

// visual is the attachment of a file.
func visual(client, operation string, f files.File) files.Attachment {
	return files.Attachment{ClientID: client, OperationID: operation, Kind: "VISUAL", Type: "PDF", Place: files.InStore,
		SHA256: f.SHA256, Size: f.Size}
}

// issue keeps and attaches a file and returns its attachment as stored.
func (s *shop) issue(client, operation string, content []byte) files.Attachment {
	s.t.Helper()
	f := files.NewFile(content)
	must(s.t, s.Keep(context.Background(), f))
	must(s.t, s.attach(visual(client, operation, f)))
	return s.of(client, operation)[0]
}

func (s *shop) of(client, operation string) (list []files.Attachment) {
	s.t.Helper()
	must(s.t, s.db.Read(context.Background(), func(r db.Reader) (err error) {
		list, err = s.Of(r, client, operation)
		return err
	}))
	return list
}

// files lists everything below the folder.
func (s *shop) files() (list []string) {
	s.t.Helper()
	must(s.t, filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a sweeper was faster
		}
		if err == nil && !e.IsDir() && e.Name() != "owner" {
			list = append(list, path)
		}
		return err
	}))
	return list
}

// fetch opens with the owner's key and reads everything.
func (s *shop) fetch(a files.Attachment) ([]byte, error) {
	c, err := s.Open(context.Background(),
		files.Request{ResourceID: a.ResourceID, Format: strings.ToLower(a.Type), ClientID: a.ClientID})
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(c)
	return data, errors.Join(err, c.Close())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t testing.TB, err error, kind fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Errorf("error is %v, of kind %s; want %s", err, fault.KindOf(err), kind)
	}
}

func TestAttachmentsOfAnOperationComeInOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		f, report := files.NewFile([]byte("%PDF")), files.NewFile([]byte("<r/>"))
		must(t, s.Keep(context.Background(), f))
		record := func(kind, typ string) files.Attachment {
			return files.Attachment{ClientID: "a", OperationID: "op", Kind: kind, Type: typ, Place: files.InRecord,
				SHA256: report.SHA256, Size: report.Size, CreatedAt: s.clock.now()}
		}
		must(t, s.attach(record("RECEIPT", "JSON"), visual("a", "op", f), record("REPORT", "XML")))
		must(t, s.attach(record("REPORT", "JSON")))
		list := s.of("a", "op")
		var got []string
		for _, a := range list {
			got = append(got, a.Kind+" "+a.Type)
			if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(a.ResourceID) || a.ClientID != "a" || a.OperationID != "op" ||
				!a.CreatedAt.Equal(s.clock.now()) {
				t.Errorf("stored %+v", a)
			}
		}
		if want := []string{"VISUAL PDF", "REPORT JSON", "REPORT XML", "RECEIPT JSON"}; !slices.Equal(got, want) {
			t.Errorf("order is %v, want %v", got, want)
		}
		if list[0].SHA256 != f.SHA256 || list[0].Size != f.Size || list[0].Place != files.InStore {
			t.Errorf("the visual is stored as %+v", list[0])
		}
		if len(s.of("b", "op")) != 0 || len(s.of("a", "other")) != 0 {
			t.Error("attachments are shown to another client or operation")
		}
		must(t, s.attach())
		must(t, s.Keep(context.Background()))
	})
}

func TestOneKindAndTypeIsAttachedOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		a := s.issue("a", "op", []byte("one"))
		f := files.NewFile([]byte("two"))
		must(t, s.Keep(context.Background(), f))
		if err := s.attach(visual("a", "op", f)); err == nil {
			t.Error("an operation has two visuals")
		}
		if got, err := s.fetch(a); err != nil || string(got) != "one" {
			t.Errorf("served %q, %v", got, err)
		}
	})
}

func TestEqualFilesShareOnePlaceAndAreWrittenOnce(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	var synced [][]string
	s.SyncWith(func(paths []string) error { synced = append(synced, paths); return nil })
	same := files.NewFile([]byte("same"))
	must(t, s.Keep(context.Background(), same, same))
	must(t, s.attach(visual("a", "1", same), visual("b", "2", same)))
	must(t, s.Keep(context.Background(), same)) // forgotten by now, but there
	must(t, s.attach(visual("a", "3", same)))
	if held := s.files(); len(held) != 1 {
		t.Errorf("files: %v", held)
	}
	if len(synced) != 2 || len(synced[0]) != 1 {
		t.Errorf("synced %v", synced)
	}
	for _, path := range s.files() {
		rel, _ := filepath.Rel(s.dir, path)
		if !regexp.MustCompile(`^[0-9a-f]{32}/2026-03-01T10/([0-9a-f]{2})/[0-9a-f]{64}$`).MatchString(rel) ||
			filepath.Base(path)[:2] != filepath.Base(filepath.Dir(path)) {
			t.Errorf("a file lies at %s", rel)
		}
	}
	for _, id := range []string{"1", "3"} {
		if got, err := s.fetch(s.of("a", id)[0]); err != nil || string(got) != "same" {
			t.Errorf("served %q, %v", got, err)
		}
	}
}

// A power cut may leave a name without content: what is there is not believed unread.
func TestATornFileIsWrittenAgain(t *testing.T) {
	t.Parallel()
	for name, torn := range map[string]string{"empty": "", "half": "con", "other": "CONTENT",
		"longer": "content and more"} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, dbtest.SQLite(t))
			f := files.NewFile([]byte("content"))
			must(t, s.Keep(context.Background(), f))
			must(t, os.WriteFile(s.files()[0], []byte(torn), 0o600))
			s.Store = s.open()
			must(t, s.Keep(context.Background(), f))
			must(t, s.attach(visual("a", "op", f)))
			if got, err := s.fetch(s.of("a", "op")[0]); err != nil || string(got) != "content" {
				t.Errorf("served %q, %v", got, err)
			}
			if len(s.files()) != 1 {
				t.Errorf("left behind: %v", s.files())
			}
		})
	}
}

func TestNothingIsAttachedThatWasNotKept(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		f := files.NewFile([]byte("never kept"))
		if err := s.attach(visual("a", "op", f)); !errors.Is(err, files.ErrNotKept) {
			t.Errorf("attached: %v", err)
		}
		must(t, s.Keep(context.Background(), f))
		s.Store = s.open() // a restarted process keeps again, it does not believe
		if err := s.attach(visual("a", "op", f)); !errors.Is(err, files.ErrNotKept) {
			t.Errorf("attached after a restart: %v", err)
		}
		if len(s.of("a", "op")) != 0 {
			t.Error("a refused attachment is stored")
		}
	})
}

func TestAFailedWriteCanAttachLater(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	f := files.NewFile([]byte("x"))
	must(t, s.Keep(context.Background(), f))
	changed := errors.New("changed my mind")
	err := s.db.Write(context.Background(), func(tx *db.Tx) error {
		return errors.Join(s.Attach(tx, visual("a", "op", f)), changed)
	})
	if !errors.Is(err, changed) || len(s.of("a", "op")) != 0 {
		t.Fatalf("write: %v", err)
	}
	must(t, s.attach(visual("a", "op", f)))
}

func TestAFailedSyncAcknowledgesNothingAnyMore(t *testing.T) {
	t.Parallel()
	var fatal error
	s := openShop(t, dbtest.SQLite(t), func(c *files.Config) { c.Fatal = func(err error) { fatal = err } })
	broken := errors.New("input/output error")
	s.SyncWith(func([]string) error { return broken })
	f := files.NewFile([]byte("x"))
	err := s.Keep(context.Background(), f)
	wantKind(t, err, fault.Unavailable)
	if !errors.Is(fatal, broken) {
		t.Errorf("the process was told %v", fatal)
	}
	s.SyncWith(func([]string) error { return nil }) // the next sync finds nothing dirty, and lies
	wantKind(t, s.Keep(context.Background(), f), fault.Unavailable)
	if err := s.attach(visual("a", "op", f)); !errors.Is(err, files.ErrNotKept) {
		t.Errorf("attached: %v", err)
	}
}

func TestConcurrentKeepsShareASync(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	must(t, s.Keep(t.Context(), files.NewFile([]byte("the store is marked")))) // by the database, outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		var rounds [][]string
		gate := make(chan struct{})
		s.SyncWith(func(paths []string) error {
			rounds = append(rounds, paths)
			<-gate
			return nil
		})
		var done atomic.Int64
		keep := func(i int) {
			go func() {
				if err := s.Keep(context.Background(), files.NewFile(text("file %d", i))); err != nil {
					t.Error(err)
				}
				done.Add(1)
			}()
		}
		keep(0)
		synctest.Wait()
		for i := range 20 {
			keep(i + 1)
		}
		synctest.Wait()
		if done.Load() != 0 || len(rounds) != 1 {
			t.Fatalf("%d returned, %d syncs", done.Load(), len(rounds))
		}
		gate <- struct{}{}
		synctest.Wait()
		// The first sync began before the others had written: it counts for one.
		if done.Load() != 1 || len(rounds) != 2 {
			t.Fatalf("after the first sync %d returned, %d syncs", done.Load(), len(rounds))
		}
		gate <- struct{}{}
		synctest.Wait()
		if done.Load() != 21 || len(rounds) != 2 || len(rounds[1]) != 1 { // twenty small files in one archive
			t.Fatalf("after the second sync %d returned, %d syncs", done.Load(), len(rounds))
		}
	})
}

func TestBothWaysToSyncWork(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	for name, sync := range map[string]func([]string) error{"each": s.SyncEach, "whole": s.SyncWhole} {
		s.SyncWith(sync)
		f := files.NewFile(text("by %s", name))
		must(t, s.Keep(context.Background(), f))
		must(t, s.attach(visual("a", name, f)))
	}
	if err := s.SyncEach([]string{"not/there"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there was synced: %v", err)
	}
}

func TestKeepAtAndPastItsLimits(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t), func(c *files.Config) { c.PendingMax, c.URL = 3, "mem://" })
	ctx := context.Background()
	large := files.NewFile(make([]byte, files.FileBytesMax))
	must(t, s.Keep(ctx, large))
	wantKind(t, s.Keep(ctx, files.NewFile(make([]byte, files.FileBytesMax+1))), fault.TooLarge)
	must(t, s.Keep(ctx, files.NewFile([]byte("2")), files.NewFile([]byte("3"))))
	four := files.NewFile([]byte("4"))
	wantKind(t, s.Keep(ctx, four), fault.Unavailable)
	must(t, s.attach(visual("a", "1", large)))
	must(t, s.Keep(ctx, four))
	wantKind(t, s.Keep(ctx, files.NewFile([]byte("5"))), fault.Unavailable)
	s.clock.pass(3 * time.Hour) // what was never attached is forgotten and swept
	must(t, s.Keep(ctx, files.NewFile([]byte("5"))))
	for _, f := range []files.File{{}, {SHA256: strings.Repeat("G", 64)},
		{SHA256: "../../../../" + four.SHA256[12:], Size: 1, Bytes: []byte("4")},
		{SHA256: four.SHA256, Size: 2, Bytes: []byte("4")}} {
		if err := s.Keep(ctx, f); err == nil {
			t.Errorf("kept %+v", f)
		}
	}
}

func TestKeepOfACancelledCallerKeepsNothing(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f := files.NewFile([]byte("x"))
	if err := s.Keep(ctx, f); !errors.Is(err, context.Canceled) {
		t.Errorf("kept: %v", err)
	}
	if len(s.files()) != 0 {
		t.Errorf("files: %v", s.files())
	}
}

func TestAFullDiskIsUnavailableAndNotFatal(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	a := s.issue("a", "1", []byte("before"))
	folder := filepath.Dir(filepath.Dir(filepath.Dir(s.files()[0])))
	must(t, os.Rename(folder, folder+".away"))
	must(t, os.WriteFile(folder, nil, 0o600)) // no folder can be made here: as good as no space
	wantKind(t, s.Keep(context.Background(), files.NewFile([]byte("x"))), fault.Unavailable)
	must(t, os.Remove(folder))
	must(t, os.Rename(folder+".away", folder))
	s.issue("a", "2", []byte("x"))
	if _, err := s.fetch(a); err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	bad := map[string]func(*files.Config){
		"short key":          func(c *files.Config) { c.SigningKey = secret.FromText(strings.Repeat("k", 31)) },
		"no key":             func(c *files.Config) { c.SigningKey = secret.Secret{} },
		"short previous key": func(c *files.Config) { c.PreviousKey = secret.FromText("short") },
		"ttl below":          func(c *files.Config) { c.TTL = time.Second - 1 },
		"ttl above":          func(c *files.Config) { c.TTL = 24*time.Hour + 1 },
		"no base URL":        func(c *files.Config) { c.BaseURL = "" },
		"base URL with path": func(c *files.Config) { c.BaseURL = "/docs" },
		"base URL query":     func(c *files.Config) { c.BaseURL = "https://x?y=z" },
		"no URL":             func(c *files.Config) { c.URL = "" },
		"relative folder":    func(c *files.Config) { c.URL = "file://documents" },
		"folder with query":  func(c *files.Config) { c.URL += "?metadata=skip" },
		"unknown store":      func(c *files.Config) { c.URL = "ftp://x" },
	}
	for name, change := range bad {
		if _, err := files.OpenStore(context.Background(), s.config(change)); err == nil ||
			fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, change := range []func(*files.Config){
		func(c *files.Config) { c.TTL = time.Second },
		func(c *files.Config) { c.TTL = 24 * time.Hour },
	} {
		s.open(change)
	}
}

func TestNobodyElseOnTheMachineCanLookInside(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	s.issue("a", "op", []byte("private"))
	must(t, filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			info, err := e.Info()
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
			}
		}
		return err
	}))
}

// Two databases that were given one folder must not sweep each other's files.
func TestDatabasesShareAFolderWithoutHarm(t *testing.T) {
	t.Parallel()
	one, two := openShop(t, dbtest.SQLite(t)), openShop(t, dbtest.SQLite(t))
	two.dir = one.dir
	two.Store = two.open()
	a, b := one.issue("a", "op", []byte("same")), two.issue("a", "op", []byte("same"))
	for _, s := range []*shop{one, two} {
		s.clock.pass(5 * time.Hour)
		if n, err := s.Sweep(context.Background(), 0); n != 0 || err != nil {
			t.Errorf("swept %d, %v", n, err)
		}
	}
	if _, err := one.fetch(a); err != nil {
		t.Error(err)
	}
	if _, err := two.fetch(b); err != nil {
		t.Error(err)
	}
}

func TestManyKeepAndAttachAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := range 5 {
					var content []files.File
					var list []files.Attachment
					for n := range 10 {
						f := files.NewFile(text("content %d %d", i, n)) // the same for every worker
						content = append(content, f)
						list = append(list, visual(scopeOf(w), fmt.Sprintf("%d-%d", i, n), f))
					}
					if err := s.Keep(context.Background(), content...); err != nil {
						t.Error(err)
					}
					if err := s.attach(list...); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if held := s.files(); len(held) > 40 {
			t.Errorf("%d files of 40 calls", len(held))
		}
		for w := range 8 {
			for i := range 5 {
				for n := range 10 {
					if got, err := s.fetch(s.of(scopeOf(w), fmt.Sprintf("%d-%d", i, n))[0]); err != nil ||
						string(got) != fmt.Sprintf("content %d %d", i, n) {
						t.Fatalf("worker %d, file %d-%d: %q, %v", w, i, n, got, err)
					}
				}
			}
		}
	})
}
