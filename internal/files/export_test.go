package files

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// SyncWith replaces how the store syncs its folder, so that tests can see, hold and fail a sync.
func (s *Store) SyncWith(sync func(paths []string) error) { s.folder.syncer = sync }

// SyncEach syncs files one by one, as on systems that cannot sync a whole file system.
func (s *Store) SyncEach(paths []string) error { return s.folder.syncEach(paths) }

// SyncWhole syncs the file system.
func (s *Store) SyncWhole(paths []string) error { return s.folder.syncWhole(paths) }

// Limits of archives.
const (
	ArchivedBytesMax = archivedBytesMax
	ArchiveBytesMax  = archiveBytesMax
	ArchiveFilesMax  = archiveFilesMax
)

// S3Address is where a key of a bucket is asked for.
func S3Address(t *testing.T, address, key string) (asked string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openS3(u)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.transport.RoundTripper = line(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Has("location") { // nobody named the region
			text := `<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></LocationConstraint>`
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text))}, nil
		}
		asked = r.URL.String()
		cancel()
		return nil, ctx.Err()
	})
	if _, err := s.get(ctx, key, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	return asked
}

type line func(*http.Request) (*http.Response, error)

func (l line) RoundTrip(r *http.Request) (*http.Response, error) { return l(r) }
