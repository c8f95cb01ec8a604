package files

import (
	"net/url"
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
func S3Address(t *testing.T, address, key string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openS3(u)
	if err != nil {
		t.Fatal(err)
	}
	return s.at(key).String()
}
