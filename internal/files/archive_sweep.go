package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"tributary/internal/db"
)

const (
	mentionedInArchiveSQL = "SELECT archive_at FROM attachments WHERE shelf = $1 AND place = 'store' AND archive = $2 AND "
	// archiveMentionedSQL walks the shelf: it is asked only of an archive whose list cannot be read.
	archiveMentionedSQL = "SELECT EXISTS (SELECT 1 FROM attachments WHERE shelf = $1 AND place = 'store' AND archive = $2)"
)

// sweepArchives erases from the archives of a closed shelf what no attachment
// mentions, and removes archives of which nothing is left.
//
// Failure policy: a document in an archive ends as surely as a file of its own does.
// Erasing is done in place and can be done again, so a sweep that is cut off is
// repeated; it never moves what stays, so readers and other nodes that sweep the
// same folder see nothing of it. An archive whose list is damaged is removed only if
// nothing mentions it, and else left for a person to look at.
func (w sweep) sweepArchives(ctx context.Context, shelf string) (removed int, err error) {
	err = w.s.bucket.each(ctx, w.s.archives(shelf), func(keys []string) error {
		for _, key := range keys {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, err := w.sweepArchive(ctx, shelf, key)
			removed += n
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // another node was faster
				return fmt.Errorf("sweep %s: %w", key, err)
			}
		}
		return nil
	})
	if err == nil && w.s.folder != nil {
		w.s.folder.removeEmpty([]string{w.s.archives(shelf)})
	}
	return removed, err
}

func (w sweep) sweepArchive(ctx context.Context, shelf, key string) (removed int, err error) {
	members, err := w.members(ctx, key)
	if errors.Is(err, errArchiveDamaged) {
		return w.sweepDamaged(ctx, shelf, key, err)
	}
	if err != nil {
		return 0, err
	}
	mentioned, err := w.mentionedOf(ctx, shelf, key, members)
	if err != nil {
		return 0, err
	}
	if len(mentioned) == 0 {
		return len(members), w.s.bucket.remove(ctx, key)
	}
	var gone []member
	for _, m := range members {
		if mentioned[m.at] {
			continue
		}
		there, err := w.s.bucket.part(ctx, key, m.at, m.size)
		if err != nil {
			return 0, err
		}
		if !erased(there) {
			gone = append(gone, m)
		}
	}
	if len(gone) == 0 {
		return 0, nil
	}
	return len(gone), w.s.bucket.erase(ctx, key, archiveEnd(members), gone)
}

// members reads what an archive holds.
func (w sweep) members(ctx context.Context, key string) ([]member, error) {
	at, size, err := indexPlace(key)
	if err != nil {
		return nil, err
	}
	text, err := w.s.bucket.part(ctx, key, at, size)
	if err != nil {
		return nil, err
	}
	return readIndex(text)
}

// mentionedOf answers where the documents of an archive begin that attachments mention.
func (w sweep) mentionedOf(ctx context.Context, shelf, key string, members []member) (map[int64]bool, error) {
	sums := make([]string, len(members))
	for i, m := range members {
		sums[i] = m.sum
	}
	mentioned := map[int64]bool{}
	err := w.s.db.Read(ctx, func(r db.Reader) error {
		list, err := db.Collect(r, func(scan func(...any) error) (at int64, err error) { return at, scan(&at) },
			mentionedInArchiveSQL+w.s.db.In("sha256", "$3"), shelf, path.Base(key), db.Strings(sums))
		for _, at := range list {
			mentioned[at] = true
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what is mentioned of an archive: %w", err)
	}
	return mentioned, nil
}

// sweepDamaged judges an archive that a crash cut off, or whose list was damaged later.
func (w sweep) sweepDamaged(ctx context.Context, shelf, key string, damage error) (removed int, err error) {
	var mentioned bool
	err = w.s.db.Read(ctx, func(r db.Reader) error {
		return r.Row(archiveMentionedSQL, shelf, path.Base(key)).Scan(&mentioned)
	})
	if err != nil {
		return 0, fmt.Errorf("ask whether an archive is mentioned: %w", err)
	}
	if mentioned {
		w.s.log.Error("an archive of documents is damaged; what its list names cannot be erased", "archive", key, "error", damage)
		return 0, nil
	}
	return 1, w.s.bucket.remove(ctx, key)
}

func erased(data []byte) bool {
	for _, b := range data {
		if b != 0 {
			return false
		}
	}
	return true
}

// without is an archive in which members are erased.
func without(data []byte, gone []member) []byte {
	for _, m := range gone {
		clear(data[min(m.at, int64(len(data))):min(m.at+m.size, int64(len(data)))])
	}
	return data
}
