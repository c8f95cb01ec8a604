package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"tributary/internal/fault"
)

// openBucket opens what Config.URL names.
func (s *Store) openBucket(ctx context.Context) error {
	u, err := url.Parse(s.cfg.URL)
	if err != nil {
		return fault.New(fault.Invalid, "document store: the address cannot be read") // it may hold a password
	}
	switch u.Scheme {
	case fileblob.Scheme:
		if u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || !filepath.IsAbs(u.Path) {
			return fault.New(fault.Invalid, "document store %q: want file:///FOLDER", s.cfg.URL)
		}
		return s.openFolder(filepath.Clean(u.Path))
	case s3blob.Scheme:
		opener := &s3blob.URLOpener{}
		s.remote = true
		s.bucket, err = opener.OpenBucketURL(ctx, u)
	case memblob.Scheme:
		s.bucket = memblob.OpenBucket(nil)
	default:
		return fault.New(fault.Invalid, "document store with scheme %q: want file:///FOLDER or s3://BUCKET", u.Scheme)
	}
	if err != nil {
		return fmt.Errorf("open the document store: %w", err)
	}
	return nil
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
	var err error
	// No side files; temporary files beside the final ones, because a rename
	// cannot cross file systems and the sweeper finds what a crash has left.
	s.bucket, err = fileblob.OpenBucket(dir, &fileblob.Options{DirFileMode: 0o700, NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return fmt.Errorf("open the folder of documents: %w", err)
	}
	s.folder, err = newFolder(dir)
	if err != nil {
		return errors.Join(fmt.Errorf("open the folder of documents: %w", err), s.bucket.Close())
	}
	return nil
}

func (s *Store) key(shelf, sum string) string { return s.prefix + shelf + "/" + sum[:2] + "/" + sum }

// write puts files on a shelf and syncs them.
func (s *Store) write(ctx context.Context, shelf string, files []File) error {
	if len(files) == 0 {
		return nil
	}
	writers := writersRemote
	if !s.remote {
		writers = writersLocal
	}
	errs := make([]error, len(files))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(writers, len(files)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(files); i = int(next.Add(1)) - 1 {
				errs[i] = s.putFile(ctx, s.key(shelf, files[i].SHA256), files[i])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil || s.folder == nil {
		return err
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = filepath.FromSlash(s.key(shelf, f.SHA256))
	}
	if err := s.folder.sync(paths); err != nil {
		err = fmt.Errorf("sync documents: %w", err)
		s.die(err)
		return err
	}
	return nil
}

// putFile writes one file unless it is there. What is there is read first:
// after a power cut an unsynced file may have its name and not its content.
// S3 is asked for no condition: writing equal bytes again is atomic there, and
// not every compatible store knows conditions.
func (s *Store) putFile(ctx context.Context, key string, f File) error {
	err := s.putOnce(ctx, key, f, !s.remote)
	if gcerrors.Code(err) != gcerrors.FailedPrecondition {
		return err
	}
	there, err := s.read(ctx, key, f.Size)
	if err == nil && bytes.Equal(there, f.Bytes) {
		return nil
	}
	return s.putOnce(ctx, key, f, false)
}

func (s *Store) putOnce(ctx context.Context, key string, f File, onlyNew bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := s.bucket.NewWriter(ctx, key, &blob.WriterOptions{ContentType: "application/octet-stream", IfNotExist: onlyNew})
	if err != nil {
		return err
	}
	if _, err := w.Write(f.Bytes); err != nil {
		cancel() // before Close, or half a file gets its final name
		return errors.Join(err, w.Close())
	}
	return w.Close()
}

// read returns a blob of an expected size; of a longer one only the beginning.
func (s *Store) read(ctx context.Context, key string, size int64) ([]byte, error) {
	r, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, size+1)
	buf := bytes.NewBuffer(data)
	_, err = io.Copy(buf, io.LimitReader(r, size+1))
	return buf.Bytes(), errors.Join(err, r.Close())
}
