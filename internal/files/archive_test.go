package files_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/files"
)

// batch is so many small documents of one settled batch.
func batch(n int) (content []files.File) {
	for i := range n {
		content = append(content, files.NewFile(bytes.Repeat(text("document %d. ", i), 100)))
	}
	return content
}

// issueAll keeps files in one call and attaches each to an operation of its number.
func (s *shop) issueAll(content []files.File) (list []files.Attachment) {
	s.t.Helper()
	must(s.t, s.Keep(context.Background(), content...))
	for i, f := range content {
		list = append(list, visual("a", fmt.Sprint(i), f))
	}
	must(s.t, s.attach(list...))
	for i := range list {
		list[i] = s.of("a", fmt.Sprint(i))[0]
	}
	return list
}

// serves fails the test unless every document is served as it was kept.
func (s *shop) serves(list []files.Attachment, content []files.File) {
	s.t.Helper()
	for i, a := range list {
		if got, err := s.fetch(a); err != nil || !bytes.Equal(got, content[i].Bytes) {
			s.t.Fatalf("document %d: %d bytes, %v", i, len(got), err)
		}
	}
}

func TestSmallFilesKeptTogetherAreOneFileThatEveryToolReads(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		content := batch(100)
		list := s.issueAll(content)
		if got := s.files(); len(got) != 1 {
			t.Fatalf("%d files for a batch of small documents: %v", len(got), got)
		}
		s.serves(list, content)
		in, err := os.Open(s.files()[0])
		must(t, err)
		defer func() { _ = in.Close() }() // only read
		archive := tar.NewReader(in)
		found := map[string]string{}
		for {
			h, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			data, err := io.ReadAll(archive)
			must(t, err)
			found[h.Name] = string(data)
		}
		for _, f := range content {
			if found[f.SHA256] != string(f.Bytes) || !strings.Contains(found["index"], f.SHA256) {
				t.Fatalf("the archive has no %s", f.SHA256)
			}
		}
		s.Store = s.open() // a restarted process
		s.clock.pass(5 * time.Hour)
		if n := s.sweep(0); n != 0 {
			t.Errorf("swept %d", n)
		}
		s.serves(list, content)
	})
}

func TestPacksAtAndPastTheirLimits(t *testing.T) {
	t.Parallel()
	filled := func(size, i int) files.File { return files.NewFile(append(make([]byte, size-1), byte(i+1))) }
	for _, c := range []struct {
		name            string
		content         []files.File
		archives, alone int
	}{
		{"a document at the limit", []files.File{filled(files.ArchivedBytesMax, 0), filled(files.ArchivedBytesMax, 1)}, 1, 0},
		{"a document past it", []files.File{filled(files.ArchivedBytesMax+1, 0), filled(10, 1), filled(10, 2)}, 1, 1},
		{"as many as fit", batch(files.ArchiveFilesMax), 1, 0},
		{"one more", batch(files.ArchiveFilesMax + 1), 1, 1},
		{"as many bytes as fit", func() (list []files.File) {
			for i := range files.ArchiveBytesMax / files.ArchivedBytesMax {
				list = append(list, filled(files.ArchivedBytesMax, i))
			}
			return list
		}(), 1, 0},
		{"a byte more", func() (list []files.File) {
			for i := range files.ArchiveBytesMax / files.ArchivedBytesMax {
				list = append(list, filled(files.ArchivedBytesMax, i))
			}
			return append(list, filled(1, 99))
		}(), 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openShop(t, dbtest.SQLite(t))
			list := s.issueAll(c.content)
			archives, alone := 0, 0
			for _, name := range s.files() {
				if strings.HasSuffix(name, ".tar") {
					archives++
				} else {
					alone++
				}
			}
			if archives != c.archives || alone != c.alone {
				t.Errorf("%d archives and %d files of their own, want %d and %d", archives, alone, c.archives, c.alone)
			}
			s.serves(list, c.content)
		})
	}
}

// The years of one client end before those of another whose documents lie in the same archive.
func TestADocumentOfAPackIsForgottenAlone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		content := batch(10)
		list := s.issueAll(content)
		s.clock.pass(3 * time.Hour)
		s.sweep(0)
		s.drop("a", "3", "7")
		if n := s.sweep(0); n != 2 {
			t.Errorf("swept %d, want 2", n)
		}
		archive, err := os.ReadFile(s.files()[0])
		must(t, err)
		for i, f := range content {
			if there := bytes.Contains(archive, f.Bytes); there != (i != 3 && i != 7) {
				t.Errorf("the bytes of document %d are there: %v", i, there)
			}
		}
		s.serves(list[:3], content[:3])
		s.serves(list[8:], content[8:])
		_, err = s.fetch(list[3])
		wantKind(t, err, fault.NotFound)
		s.drop("a", "0")
		if n := s.sweep(0); n != 1 { // what is erased already is not erased again
			t.Errorf("swept %d, want 1", n)
		}
		s.drop("a", "1", "2", "4", "5", "6", "8", "9")
		if n := s.sweep(0); n == 0 || len(s.files()) != 0 {
			t.Errorf("swept %d, left %v", n, s.files())
		}
	})
}

func TestAPackThatACrashCutOffIsSwept(t *testing.T) {
	t.Parallel()
	for _, left := range []int64{0, 100, 700, 3000} {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			s := openShop(t, dbtest.SQLite(t))
			must(t, s.Keep(context.Background(), batch(20)...))
			must(t, os.Truncate(s.files()[0], left))
			s.Store = s.open()
			s.clock.pass(5 * time.Hour)
			if n := s.sweep(0); n == 0 || len(s.files()) != 0 {
				t.Errorf("swept %d, left %v", n, s.files())
			}
		})
	}
}

// A list that was damaged could name other places: nothing is erased by it.
func TestAPackWithADamagedListKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	content := batch(10)
	list := s.issueAll(content)
	name := s.files()[0]
	data, err := os.ReadFile(name)
	must(t, err)
	data[512+70] ^= 1 // a digit of the first place
	must(t, os.WriteFile(name, data, 0o600))
	s.clock.pass(5 * time.Hour)
	s.drop("a", "9")
	if n := s.sweep(0); n != 0 {
		t.Errorf("swept %d", n)
	}
	s.serves(list[:9], content[:9])
	for i := range 9 {
		s.drop("a", fmt.Sprint(i))
	}
	if s.sweep(0); len(s.files()) != 0 {
		t.Errorf("nothing mentions it, and it is still there: %v", s.files())
	}
}

// Nodes that share a folder write archives beside each other, and each sweeps all of them.
func TestNodesThatShareAFolderPackBesideEachOther(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	s := openShop(t, d)
	nodes := []*files.Store{s.Store, s.open(), s.open()}
	var wg sync.WaitGroup
	for n, node := range nodes {
		wg.Go(func() {
			for i := range 10 {
				var list []files.Attachment
				var content []files.File
				for j := range 8 {
					f := files.NewFile(text("node %d, batch %d, document %d", n, i, j%7)) // one of them twice
					content = append(content, f)
					list = append(list, visual(scopeOf(n), fmt.Sprintf("%d-%d", i, j), f))
				}
				if err := node.Keep(context.Background(), content...); err != nil {
					t.Error(err)
					return
				}
				if err := d.Write(context.Background(), func(tx *db.Tx) error { return node.Attach(tx, list[1:]...) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s.clock.pass(5 * time.Hour)
	for _, node := range nodes {
		wg.Go(func() {
			if _, err := node.Sweep(context.Background(), 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for n := range nodes {
		for i := range 10 {
			for j := 1; j < 8; j++ {
				got, err := s.fetch(s.of(scopeOf(n), fmt.Sprintf("%d-%d", i, j))[0])
				if want := fmt.Sprintf("node %d, batch %d, document %d", n, i, j%7); err != nil || string(got) != want {
					t.Fatalf("%q, %v, want %q", got, err, want)
				}
			}
		}
	}
	if held, want := len(s.files()), s.mentioned(); held != want {
		t.Errorf("%d files for %d places", held, want)
	}
}

// A folder that is copied into an object store stays readable, and forgets like one.
func TestPacksInAnObjectStoreAreReadAndForgotten(t *testing.T) {
	s := openShop(t, dbtest.SQLite(t))
	content := batch(10)
	list := s.issueAll(content)
	remote, address := openBucket(t)
	mark, err := filepath.Glob(filepath.Join(s.dir, "*", "owner"))
	must(t, err)
	for _, name := range append(s.files(), mark...) {
		rel, err := filepath.Rel(s.dir, name)
		must(t, err)
		data, err := os.ReadFile(name)
		must(t, err)
		remote.blobs[filepath.ToSlash(rel)] = data
	}
	s.Store = s.open(func(c *files.Config) { c.URL = address })
	s.serves(list, content)
	s.clock.pass(5 * time.Hour)
	s.drop("a", "4")
	if n := s.sweep(0); n != 1 {
		t.Errorf("swept %d", n)
	}
	s.serves(list[:4], content[:4])
	s.serves(list[5:], content[5:])
	for _, data := range remote.blobs {
		if bytes.Contains(data, content[4].Bytes) {
			t.Error("the forgotten document is still there")
		}
	}
	for i := range 10 {
		s.drop("a", fmt.Sprint(i))
	}
	if s.sweep(0); len(remote.blobs) != 1 { // the store's mark
		t.Errorf("left %d objects", len(remote.blobs))
	}
}
