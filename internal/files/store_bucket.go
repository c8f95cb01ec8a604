package files

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
)

func (s *Store) key(shelf, sum string) string { return s.prefix + shelf + "/" + sum[:2] + "/" + sum }

// write puts files on a shelf and syncs them. It answers where those lie that
// went into archives, by their sums.
func (s *Store) write(ctx context.Context, shelf string, files []File) (map[string]spot, error) {
	if len(files) == 0 {
		return nil, nil
	}
	if s.folder == nil {
		return nil, s.writeEach(ctx, shelf, files)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var own []File
	var small []*parcel
	for _, f := range files {
		if f.Size <= archivedBytesMax {
			small = append(small, &parcel{own: s.key(shelf, f.SHA256), folder: s.archives(shelf), file: f})
		} else {
			own = append(own, f)
		}
	}
	if err := s.writeEach(ctx, shelf, own); err != nil {
		return nil, err
	}
	paths := make([]string, len(own))
	for i, f := range own {
		paths[i] = filepath.FromSlash(s.key(shelf, f.SHA256))
	}
	unwritten, unsynced := s.folder.keep(paths, small)
	if unsynced != nil {
		err := fmt.Errorf("sync documents: %w", unsynced)
		s.die(err)
		return nil, err
	}
	spots := make(map[string]spot, len(small))
	for _, p := range small {
		spots[p.file.SHA256] = p.spot
	}
	return spots, unwritten
}

// writeEach gives every file a place of its own.
func (s *Store) writeEach(ctx context.Context, shelf string, files []File) error {
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
				errs[i] = s.bucket.put(ctx, s.key(shelf, files[i].SHA256), files[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
