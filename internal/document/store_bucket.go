package document

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
)

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
				errs[i] = s.bucket.put(ctx, s.key(shelf, files[i].SHA256), files[i])
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
