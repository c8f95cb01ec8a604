package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"tributary/internal/fault"
)

// bucket is where files lie: a folder, an S3-compatible store, or the memory of
// a test. What is not there is fs.ErrNotExist.
type bucket interface {
	// put stores a file under a key, whatever lies there. When it returns, readers
	// see all of it; a folder is not yet synced.
	put(ctx context.Context, key string, f File) error
	// get returns a file of an expected size; of a longer one a little more than that.
	get(ctx context.Context, key string, size int64) ([]byte, error)
	// part returns a part of a file: fewer bytes only where the file ends before.
	part(ctx context.Context, key string, at, size int64) ([]byte, error)
	// erase makes parts of a file of size bytes read as zeros, for good.
	erase(ctx context.Context, key string, size int64, parts []member) error
	remove(ctx context.Context, key string) error
	// each hands over the keys that begin with a prefix, at most listMax at once.
	// Those may be removed meanwhile.
	each(ctx context.Context, prefix string, do func(keys []string) error) error
	close() error
}

// Schemes of addresses.
const (
	schemeFile   = "file"
	schemeS3     = "s3"
	schemeMemory = "mem"
)

// openBucket opens what Config.URL names.
func (s *Store) openBucket() error {
	u, err := url.Parse(s.cfg.URL)
	if err != nil {
		return fault.New(fault.Invalid, "document store: the address cannot be read") // it may hold a password
	}
	switch u.Scheme {
	case schemeFile:
		if u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || !filepath.IsAbs(u.Path) {
			return fault.New(fault.Invalid, "document store %q: want file:///FOLDER", s.cfg.URL)
		}
		return s.openFolder(filepath.Clean(u.Path))
	case schemeS3:
		s.remote = true
		s.bucket, err = openS3(u)
		return err
	case schemeMemory:
		s.bucket = &memory{files: map[string][]byte{}}
		return nil
	default:
		return fault.New(fault.Invalid, "document store with scheme %q: want file:///FOLDER or s3://BUCKET", u.Scheme)
	}
}

// openFolder opens a folder, which is made if it is missing. Documents are
// personal data: nobody else on the machine may look inside.
func (s *Store) openFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of documents: %w", err)
	}
	if err := syncPath(filepath.Dir(dir)); err != nil && !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("sync the folder above the documents: %w", err)
	}
	f, err := newFolder(dir)
	if err != nil {
		return fmt.Errorf("open the folder of documents: %w", err)
	}
	s.folder, s.bucket = f, f
	return nil
}

// pages hands over a list in pieces.
func pages(keys []string, do func([]string) error) error {
	for page := range slices.Chunk(keys, listMax) {
		if err := do(page); err != nil {
			return err
		}
	}
	return nil
}

// memory is the bucket of tests.
type memory struct {
	mu    sync.Mutex
	files map[string][]byte
}

func (m *memory) put(_ context.Context, key string, f File) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[key] = slices.Clone(f.Bytes)
	return nil
}

func (m *memory) get(_ context.Context, key string, _ int64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.files[key]
	if !ok {
		return nil, fmt.Errorf("read %s: %w", key, fs.ErrNotExist)
	}
	return slices.Clone(data), nil
}

func (m *memory) part(ctx context.Context, key string, at, size int64) ([]byte, error) {
	data, err := m.get(ctx, key, 0)
	return data[min(at, int64(len(data))):min(at+size, int64(len(data)))], err
}

func (m *memory) erase(ctx context.Context, key string, size int64, parts []member) error {
	data, err := m.get(ctx, key, size)
	if err != nil {
		return err
	}
	return m.put(ctx, key, NewFile(without(data, parts)))
}

func (m *memory) remove(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, key)
	return nil
}

func (m *memory) each(_ context.Context, prefix string, do func([]string) error) error {
	m.mu.Lock()
	var keys []string
	for key := range m.files {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	m.mu.Unlock()
	slices.Sort(keys)
	return pages(keys, do)
}

func (m *memory) close() error { return nil }
