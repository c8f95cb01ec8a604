package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"tributary/internal/fault"
)

// Outside is a folder or an S3-compatible store with small files that are only
// ever added: what they prove is worth something because who writes the database
// does not write here. Give the store a retention of its own (object lock).
// Where there is no such place, one file holds what was written last.
type Outside struct {
	dir    string // "": a store
	file   string // in dir: the one that is replaced; "": each is a new one
	bucket bucket
	prefix string
}

// OpenOutside opens file:///FOLDER, file:///FOLDER/NAME.jsonl, which is one file,
// or s3://BUCKET[/PREFIX]. A folder is there already: one that was meant to be
// mounted and is not must not be made.
func OpenOutside(address string) (*Outside, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the address cannot be read") // it may hold a password
	}
	switch u.Scheme {
	case schemeFile:
		if u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || !filepath.IsAbs(u.Path) {
			return nil, fault.New(fault.Invalid, "%q: want file:///FOLDER", address)
		}
		o := &Outside{dir: filepath.Clean(u.Path)}
		if strings.HasSuffix(o.dir, ".jsonl") {
			o.dir, o.file = filepath.Dir(o.dir), filepath.Base(o.dir)
		}
		if about, err := os.Stat(o.dir); err != nil || !about.IsDir() {
			return nil, fault.New(fault.Invalid, "%s is not a folder that can be read", o.dir)
		}
		return o, nil
	case schemeS3:
		at := *u
		at.Path = ""
		b, err := openS3(&at)
		if err != nil {
			return nil, err
		}
		prefix := u.EscapedPath()
		if prefix != "" {
			prefix = prefix[1:] + "/"
		}
		return &Outside{bucket: b, prefix: prefix}, nil
	}
	return nil, fault.New(fault.Invalid, "want file:///FOLDER or s3://BUCKET")
}

// Writable tells whether a folder takes files; a store is asked when it is needed.
func (o *Outside) Writable() error {
	if o.bucket != nil {
		return nil
	}
	aside, err := os.CreateTemp(o.dir, ".new-")
	if err != nil {
		return fmt.Errorf("write outside: %w", err)
	}
	return errors.Join(aside.Close(), os.Remove(aside.Name()))
}

// Put adds a file, or replaces the one that there is. When it returns nil the file is on disk, or the store has it.
func (o *Outside) Put(ctx context.Context, name string, text []byte) (err error) {
	if o.bucket != nil {
		return o.bucket.put(ctx, o.prefix+name, NewFile(text))
	}
	// Aside first: a file that a crash left torn must never be the last one.
	aside, err := os.CreateTemp(o.dir, ".new-")
	if err != nil {
		return fmt.Errorf("write outside: %w", err)
	}
	_, err = aside.Write(text)
	if err == nil {
		err = aside.Sync()
	}
	err = errors.Join(err, aside.Close())
	switch {
	case err == nil && o.file != "":
		err = os.Rename(aside.Name(), filepath.Join(o.dir, o.file))
	case err == nil:
		err = os.Link(aside.Name(), filepath.Join(o.dir, name)) // never over another
	}
	if gone := os.Remove(aside.Name()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	if err == nil {
		err = syncPath(o.dir)
	}
	if err != nil {
		return fmt.Errorf("write outside: %w", err)
	}
	return nil
}

// Last reads the file whose name is the last of those that begin with a prefix; nil: there is none.
func (o *Outside) Last(ctx context.Context, prefix string, bytesMax int64) ([]byte, error) {
	last := ""
	if o.bucket != nil {
		err := o.bucket.each(ctx, o.prefix+prefix, func(keys []string) error {
			for _, key := range keys {
				last = max(last, key)
			}
			return nil
		})
		if err != nil || last == "" {
			return nil, err
		}
		return o.bucket.get(ctx, last, bytesMax)
	}
	if o.file != "" {
		text, err := readFile(filepath.Join(o.dir, o.file), bytesMax)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return text, err
	}
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return nil, fmt.Errorf("read what is outside: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			last = max(last, e.Name())
		}
	}
	if last == "" {
		return nil, nil
	}
	return readFile(filepath.Join(o.dir, last), bytesMax)
}

// Close lets go of connections.
func (o *Outside) Close() error {
	if o.bucket == nil {
		return nil
	}
	return o.bucket.close()
}
