package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"tributary/internal/db"
	"tributary/internal/lease"
)

// Sweeping.
const (
	sweepAfter = time.Hour // a shelf is swept when its last file is at least this old
	sweepEvery = 30 * time.Minute

	listMax       = 1000 // blobs or rows handled at once
	shelvesCommit = 24   // shelves swept before that is recorded
)

// errNotOurs ends a sweep during which another database came.
var errNotOurs = errors.New("the store is no longer certain to be ours")

// Sweep removes blobs that no attachment mentions and that are older than
// olderThan, which is never less than an hour, and returns how many those were.
// Several nodes may sweep at the same time.
//
// Failure policy: a shelf is closed in the database before it is looked at, so
// that what is not mentioned then is never mentioned again. A sweep that is
// cut off is done again from where the last one was recorded. Nothing is removed
// from a store that may be another database's, see owner.go.
func (s *Store) Sweep(ctx context.Context, olderThan time.Duration) (removed int, err error) {
	w := sweep{s}
	own, ours, err := w.prove(ctx)
	if err != nil || !ours || !own.Certain() {
		return 0, err
	}
	to := shelfOf(s.now().Add(-max(olderThan, sweepAfter))) // shelves before it ended by then
	var from string
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if err := w.closeShelves(tx, to); err != nil {
			return err
		}
		return tx.Row(sweptSQL).Scan(&from)
	})
	if err != nil {
		return 0, fmt.Errorf("close shelves before %s: %w", to, err)
	}
	s.heard(to)
	removed, err = w.sweepListed(ctx, own, to)
	if err != nil {
		return removed, err
	}
	count := 0
	for shelf := from; shelf < to; shelf = shelfOf(shelfEnd(shelf)) {
		if own.holds(shelf) {
			continue // whoever releases it puts it on the list
		}
		n, err := w.sweepShelf(ctx, shelf)
		removed += n
		if err != nil {
			return removed, fmt.Errorf("sweep shelf %s: %w", shelf, err)
		}
		if count++; count%shelvesCommit == 0 {
			if err := w.advance(ctx, shelfOf(shelfEnd(shelf))); err != nil {
				return removed, err
			}
		}
	}
	if from < to {
		err = w.advance(ctx, to)
	}
	if removed > 0 {
		s.log.Info("removed files that nothing mentions", "files", removed)
	}
	return removed, err
}

// sweep removes what nothing mentions from shelves that have ended.
type sweep struct{ s *Store }

func (w sweep) advance(ctx context.Context, to string) error {
	err := w.s.db.Write(ctx, func(tx *db.Tx) error { return tx.Exec(advanceSQL, to) })
	if err != nil {
		return fmt.Errorf("record that shelves before %s are swept: %w", to, err)
	}
	return nil
}

// sweepAgain has a shelf swept once more by the next sweep.
func (s *Store) sweepAgain(ctx context.Context, shelf string) error {
	err := s.db.Write(ctx, func(tx *db.Tx) error { return tx.Exec(repeatSQL, shelf) })
	if err != nil {
		return fmt.Errorf("have shelf %s swept again: %w", shelf, err)
	}
	return nil
}

// sweepListed sweeps closed shelves that were put on the list.
func (w sweep) sweepListed(ctx context.Context, own Ownership, to string) (removed int, err error) {
	var list []string
	err = w.s.db.Read(ctx, func(r db.Reader) (err error) {
		list, err = db.Collect(r, scanText, againSQL, to)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("list shelves to sweep again: %w", err)
	}
	for _, shelf := range own.open(list) {
		n, err := w.sweepShelf(ctx, shelf)
		removed += n
		if err == nil {
			err = w.s.db.Write(ctx, func(tx *db.Tx) error { return tx.Exec(doneSQL, shelf) })
		}
		if err != nil {
			return removed, fmt.Errorf("sweep shelf %s again: %w", shelf, err)
		}
	}
	return removed, nil
}

// sweepShelf removes what no attachment mentions from a closed shelf. It goes
// by folders where there are any: listing a folder's page reads all of it.
func (w sweep) sweepShelf(ctx context.Context, shelf string) (removed int, err error) {
	if stays, err := w.stays(ctx); err != nil || !stays {
		return 0, errors.Join(err, errNotOurs)
	}
	prefixes := []string{w.s.prefix + shelf + "/"}
	if w.s.folder != nil {
		if prefixes, err = w.s.folder.below(prefixes[0]); err != nil {
			return 0, err
		}
	}
	for _, prefix := range prefixes {
		err := w.s.bucket.each(ctx, prefix, func(keys []string) error {
			n, err := w.removeUnmentioned(ctx, shelf, keys)
			removed += n
			return err
		})
		if err != nil {
			return removed, fmt.Errorf("sweep %s: %w", prefix, err)
		}
	}
	if w.s.folder != nil {
		w.s.folder.removeEmpty(append(prefixes, w.s.prefix+shelf))
	}
	n, err := w.sweepArchives(ctx, shelf)
	return removed + n, err
}

func (w sweep) removeUnmentioned(ctx context.Context, shelf string, page []string) (removed int, err error) {
	if len(page) == 0 {
		return 0, nil
	}
	names := make([]string, len(page))
	for i, key := range page {
		names[i] = path.Base(key)
	}
	mentioned := map[string]bool{}
	err = w.s.db.Read(ctx, func(r db.Reader) error {
		list, err := db.Collect(r, scanText, mentionedSQL+w.s.db.In("sha256", "$2"), shelf, db.Strings(names))
		for _, sum := range list {
			mentioned[w.s.key(shelf, sum)] = true
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read what is mentioned of shelf %s: %w", shelf, err)
	}
	for _, key := range page {
		if mentioned[key] {
			continue
		}
		if err := w.s.bucket.remove(ctx, key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, fmt.Errorf("remove %s: %w", key, err)
		}
		removed++
	}
	return removed, nil
}

// Drop deletes the attachments of operations in the caller's write; the sweeper
// then removes the files that no other attachment mentions. It answers how many
// attachments those were.
//
// Failure policy: the shelves are put on the sweeper's list in the commit that
// deletes the attachments, so a crash leaves nothing behind.
func (s *Store) Drop(tx *db.Tx, clientID string, operations []string) (dropped int, err error) {
	rows, err := db.Collect(tx, func(scan func(...any) error) (a Attachment, err error) { return a, scan(&a.Place, &a.shelf) },
		"DELETE FROM attachments WHERE client_id = $1 AND "+s.db.In("operation_id", "$2")+" RETURNING place, shelf",
		clientID, db.Strings(operations))
	if err != nil {
		return 0, fmt.Errorf("drop attachments: %w", err)
	}
	listed := map[string]bool{}
	for _, a := range rows {
		if a.Place != InStore || listed[a.shelf] {
			continue
		}
		listed[a.shelf] = true
		if err := tx.Exec(repeatSQL, a.shelf); err != nil {
			return 0, fmt.Errorf("have shelf %s swept again: %w", a.shelf, err)
		}
	}
	return len(rows), nil
}

func scanText(scan func(...any) error) (text string, err error) {
	err = scan(&text)
	return text, err
}

// below lists the folders of a folder, as prefixes of keys; none if it is not there.
func (f *folder) below(prefix string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(f.dir, filepath.FromSlash(prefix)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var prefixes []string
	for _, e := range entries {
		if e.IsDir() {
			prefixes = append(prefixes, prefix+e.Name()+"/")
		}
	}
	return prefixes, err
}

// removeEmpty removes folders that have nothing in them any more.
func (f *folder) removeEmpty(prefixes []string) {
	for _, prefix := range prefixes {
		_ = os.Remove(filepath.Join(f.dir, filepath.FromSlash(prefix))) // one that is not empty stays
	}
}

// Tasks are what is done again and again.
func (s *Store) Tasks() []lease.Task {
	return []lease.Task{lease.Every("document_sweep", sweepEvery, func(ctx context.Context) error {
		_, err := s.Sweep(ctx, sweepAfter)
		return err
	})}
}
