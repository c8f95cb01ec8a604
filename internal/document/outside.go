package document

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"tributary/internal/fault"
)

// Outside is a folder or an S3-compatible store with small files that are only
// ever added: what they prove is worth something because who writes the database
// does not write here. Give the store a retention of its own (object lock).
type Outside struct {
	dir    string // "": a store
	bucket bucket
	prefix string
}

// OpenOutside opens file:///FOLDER or s3://BUCKET[/PREFIX]. A folder is there
// already: one that was meant to be mounted and is not must not be made.
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
		if about, err := os.Stat(u.Path); err != nil || !about.IsDir() {
			return nil, fault.New(fault.Invalid, "%s is not a folder that can be read", u.Path)
		}
		return &Outside{dir: filepath.Clean(u.Path)}, nil
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

// Put adds a file. When it returns nil the file is on disk, or the store has it.
func (o *Outside) Put(ctx context.Context, name string, text []byte) (err error) {
	if o.bucket != nil {
		return o.bucket.put(ctx, o.prefix+name, NewFile(text))
	}
	f, err := os.OpenFile(filepath.Join(o.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write outside: %w", err)
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
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
	found, err := filepath.Glob(filepath.Join(o.dir, prefix+"*"))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	for _, name := range found {
		last = max(last, name)
	}
	return readFile(last, bytesMax)
}

// Close lets go of connections.
func (o *Outside) Close() error {
	if o.bucket == nil {
		return nil
	}
	return o.bucket.close()
}
