package document_test

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
	"tributary/internal/document"
	"tributary/internal/fault"
)

// batch is so many small documents of one settled batch.
func batch(n int) (files []document.File) {
	for i := range n {
		files = append(files, document.NewFile(bytes.Repeat(text("document %d. ", i), 100)))
	}
	return files
}

// issueAll keeps files in one call and attaches each to an operation of its number.
func (s *shop) issueAll(files []document.File) (list []document.Attachment) {
	s.t.Helper()
	must(s.t, s.Keep(context.Background(), files...))
	for i, f := range files {
		list = append(list, visual("a", fmt.Sprint(i), f))
	}
	must(s.t, s.attach(list...))
	for i := range list {
		list[i] = s.of("a", fmt.Sprint(i))[0]
	}
	return list
}

// serves fails the test unless every document is served as it was kept.
func (s *shop) serves(list []document.Attachment, files []document.File) {
	s.t.Helper()
	for i, a := range list {
		if got, err := s.fetch(a); err != nil || !bytes.Equal(got, files[i].Bytes) {
			s.t.Fatalf("document %d: %d bytes, %v", i, len(got), err)
		}
	}
}

func TestSmallFilesKeptTogetherAreOneFileThatEveryToolReads(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		files := batch(100)
		list := s.issueAll(files)
		if got := s.files(); len(got) != 1 {
			t.Fatalf("%d files for a batch of small documents: %v", len(got), got)
		}
		s.serves(list, files)
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
		for _, f := range files {
			if found[f.SHA256] != string(f.Bytes) || !strings.Contains(found["index"], f.SHA256) {
				t.Fatalf("the archive has no %s", f.SHA256)
			}
		}
		s.Store = s.open() // a restarted process
		s.clock.pass(5 * time.Hour)
		if n := s.sweep(0); n != 0 {
			t.Errorf("swept %d", n)
		}
		s.serves(list, files)
	})
}

func TestPacksAtAndPastTheirLimits(t *testing.T) {
	t.Parallel()
	filled := func(size, i int) document.File { return document.NewFile(append(make([]byte, size-1), byte(i+1))) }
	for _, c := range []struct {
		name         string
		files        []document.File
		packs, alone int
	}{
		{"a document at the limit", []document.File{filled(document.PackedBytesMax, 0), filled(document.PackedBytesMax, 1)}, 1, 0},
		{"a document past it", []document.File{filled(document.PackedBytesMax+1, 0), filled(10, 1), filled(10, 2)}, 1, 1},
		{"as many as fit", batch(document.PackFilesMax), 1, 0},
		{"one more", batch(document.PackFilesMax + 1), 1, 1},
		{"as many bytes as fit", func() (list []document.File) {
			for i := range document.PackBytesMax / document.PackedBytesMax {
				list = append(list, filled(document.PackedBytesMax, i))
			}
			return list
		}(), 1, 0},
		{"a byte more", func() (list []document.File) {
			for i := range document.PackBytesMax / document.PackedBytesMax {
				list = append(list, filled(document.PackedBytesMax, i))
			}
			return append(list, filled(1, 99))
		}(), 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openShop(t, dbtest.SQLite(t))
			list := s.issueAll(c.files)
			packs, alone := 0, 0
			for _, name := range s.files() {
				if strings.HasSuffix(name, ".tar") {
					packs++
				} else {
					alone++
				}
			}
			if packs != c.packs || alone != c.alone {
				t.Errorf("%d packs and %d files of their own, want %d and %d", packs, alone, c.packs, c.alone)
			}
			s.serves(list, c.files)
		})
	}
}

// The years of one client end before those of another whose documents lie in the same pack.
func TestADocumentOfAPackIsForgottenAlone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		files := batch(10)
		list := s.issueAll(files)
		s.clock.pass(3 * time.Hour)
		s.sweep(0)
		s.drop("a", "3", "7")
		if n := s.sweep(0); n != 2 {
			t.Errorf("swept %d, want 2", n)
		}
		pack, err := os.ReadFile(s.files()[0])
		must(t, err)
		for i, f := range files {
			if there := bytes.Contains(pack, f.Bytes); there != (i != 3 && i != 7) {
				t.Errorf("the bytes of document %d are there: %v", i, there)
			}
		}
		s.serves(list[:3], files[:3])
		s.serves(list[8:], files[8:])
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
	files := batch(10)
	list := s.issueAll(files)
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
	s.serves(list[:9], files[:9])
	for i := range 9 {
		s.drop("a", fmt.Sprint(i))
	}
	if s.sweep(0); len(s.files()) != 0 {
		t.Errorf("nothing mentions it, and it is still there: %v", s.files())
	}
}

// Nodes that share a folder write packs beside each other, and each sweeps all of them.
func TestNodesThatShareAFolderPackBesideEachOther(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	s := openShop(t, d)
	nodes := []*document.Store{s.Store, s.open(), s.open()}
	var wg sync.WaitGroup
	for n, node := range nodes {
		wg.Go(func() {
			for i := range 10 {
				var list []document.Attachment
				var files []document.File
				for j := range 8 {
					f := document.NewFile(text("node %d, batch %d, document %d", n, i, j%7)) // one of them twice
					files = append(files, f)
					list = append(list, visual(scopeOf(n), fmt.Sprintf("%d-%d", i, j), f))
				}
				if err := node.Keep(context.Background(), files...); err != nil {
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
	if files, want := len(s.files()), s.mentioned(); files != want {
		t.Errorf("%d files for %d places", files, want)
	}
}

// A folder that is copied into an object store stays readable, and forgets like one.
func TestPacksInAnObjectStoreAreReadAndForgotten(t *testing.T) {
	s := openShop(t, dbtest.SQLite(t))
	files := batch(10)
	list := s.issueAll(files)
	remote, address := openBucket(t)
	for _, name := range s.files() {
		rel, err := filepath.Rel(s.dir, name)
		must(t, err)
		data, err := os.ReadFile(name)
		must(t, err)
		remote.blobs[filepath.ToSlash(rel)] = data
	}
	s.Store = s.open(func(c *document.Config) { c.URL = address })
	s.serves(list, files)
	s.clock.pass(5 * time.Hour)
	s.drop("a", "4")
	if n := s.sweep(0); n != 1 {
		t.Errorf("swept %d", n)
	}
	s.serves(list[:4], files[:4])
	s.serves(list[5:], files[5:])
	for _, data := range remote.blobs {
		if bytes.Contains(data, files[4].Bytes) {
			t.Error("the forgotten document is still there")
		}
	}
	for i := range 10 {
		s.drop("a", fmt.Sprint(i))
	}
	if s.sweep(0); len(remote.blobs) != 0 {
		t.Errorf("left %d objects", len(remote.blobs))
	}
}
