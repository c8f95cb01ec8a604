package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func (f *folder) path(key string) string { return filepath.Join(f.dir, filepath.FromSlash(key)) }

// put writes a file aside and gives it its name once it is whole. A name that is
// there already is kept if its bytes are these: they may be synced and
// committed, the new ones are not yet. Anything else is what a power cut left of
// a file that was never synced, and is replaced.
func (f *folder) put(ctx context.Context, key string, file File) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	name := f.path(key)
	aside, err := f.aside(filepath.Dir(name), file.Bytes)
	if err != nil {
		return fmt.Errorf("write the file of a document: %w", err)
	}
	// A name of its own is not given by renaming: that would silently replace
	// what another writer of the same bytes has synced.
	switch err = os.Link(aside, name); {
	case errors.Is(err, fs.ErrExist) && holds(name, file):
		err = nil
	case errors.Is(err, fs.ErrExist):
		return os.Rename(aside, name)
	}
	return errors.Join(err, os.Remove(aside))
}

// aside writes bytes under a name that nobody knows, in the folder that they are
// meant for: the sweeper finds there what a crash has left.
func (f *folder) aside(dir string, data []byte) (name string, err error) {
	out, err := os.CreateTemp(dir, "new-")
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
		out, err = os.CreateTemp(dir, "new-")
	}
	if err != nil {
		return "", err
	}
	_, err = out.Write(data)
	if err = errors.Join(err, out.Close()); err != nil {
		return "", errors.Join(err, os.Remove(out.Name()))
	}
	return out.Name(), nil
}

func holds(name string, file File) bool {
	there, err := readFile(name, file.Size)
	return err == nil && bytes.Equal(there, file.Bytes)
}

func (f *folder) get(_ context.Context, key string, size int64) ([]byte, error) {
	return readFile(f.path(key), size)
}

// readFile reads a file of an expected size; of a longer one a byte more.
func readFile(name string, size int64) ([]byte, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := readUpTo(in, size)
	return data, errors.Join(err, in.Close())
}

func readUpTo(in io.Reader, size int64) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 0, size+1))
	_, err := io.Copy(buf, io.LimitReader(in, size+1))
	return buf.Bytes(), err
}

func (f *folder) part(_ context.Context, key string, at, size int64) ([]byte, error) {
	in, err := os.Open(f.path(key))
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	n, err := in.ReadAt(data, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:n], errors.Join(err, in.Close())
}

func (f *folder) erase(_ context.Context, key string, _ int64, parts []member) error {
	out, err := os.OpenFile(f.path(key), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for _, m := range parts {
		if err := erasePart(out, m.at, m.size); err != nil {
			return errors.Join(err, out.Close())
		}
	}
	return errors.Join(out.Sync(), out.Close())
}

func writeZeros(f *os.File, at, size int64) error {
	_, err := f.WriteAt(make([]byte, size), at)
	return err
}

func (f *folder) remove(_ context.Context, key string) error { return os.Remove(f.path(key)) }

// each lists the files of one folder: a prefix names one, and folders in it are
// not gone into, see below.
func (f *folder) each(_ context.Context, prefix string, do func([]string) error) error {
	entries, err := os.ReadDir(f.path(prefix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var keys []string
	for _, e := range entries {
		if !e.IsDir() {
			keys = append(keys, strings.TrimSuffix(prefix, "/")+"/"+e.Name())
		}
	}
	return pages(keys, do)
}
