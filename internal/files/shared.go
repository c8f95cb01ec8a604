package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// Nodes of one PostgreSQL share their documents. A folder is shared when it
// holds the folder of the store, which the node that registered the store made.
// Without this check two nodes with folders of their own both work, and each
// serves only what it has drawn itself.

// sharedWithin is how long a node waits for the folder that another one, which
// registered the store a moment ago, is about to make.
const sharedWithin = 3 * time.Second

// checkShared refuses a folder that is not the store's. first: this process registered it.
func (s *Store) checkShared(ctx context.Context, first bool) error {
	if s.folder == nil || s.db.Engine() != "postgres" {
		return nil
	}
	own := filepath.Join(s.folder.dir, filepath.FromSlash(s.prefix))
	if first {
		if err := os.MkdirAll(own, 0o700); err != nil {
			return fmt.Errorf("make the folder of the store: %w", err)
		}
		return syncPath(s.folder.dir)
	}
	ctx, cancel := context.WithTimeout(ctx, sharedWithin)
	defer cancel()
	again := time.NewTicker(sharedWithin / 30)
	defer again.Stop()
	for {
		_, err := os.Stat(own)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return notShared(own)
		case <-again.C:
		}
	}
}

func notShared(own string) error {
	return fault.New(fault.Invalid, "the documents of this database are not in the folder of --documents: %s is missing. "+
		"Nodes of one database need one folder that all of them see, or s3://BUCKET. If the documents were lost, or this is the shared folder "+
		"and empty, make that folder and start again", own)
}

// CheckShared is what doctor asks about a folder before a node starts: nil where
// there is nothing to share, or it is shared.
func CheckShared(r db.Reader, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != schemeFile {
		return err
	}
	var id, open string
	switch err := r.Row(storeSQL).Scan(&id, &open); {
	case errors.Is(err, db.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("read the store of documents: %w", err)
	}
	own := filepath.Join(filepath.Clean(u.Path), id)
	if _, err := os.Stat(own); errors.Is(err, fs.ErrNotExist) {
		return notShared(own)
	}
	return nil
}
