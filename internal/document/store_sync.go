package document

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// folder syncs what was written below a folder of this machine. Those who wait
// at the same time share one sync.
//
// Failure policy: a sync counts only for what was written before it began.
// Whoever comes while one is running waits for the next.
type folder struct {
	dir    string
	whole  *os.File // where the system can sync a whole file system and tells of errors; else nil
	mu     sync.Mutex
	next   *syncRound
	turn   chan struct{} // holds a token while a round is running
	syncer func(paths []string) error
}

// syncRound is one sync and those who wait for it.
type syncRound struct {
	paths []string
	done  chan struct{}
	err   error
}

func newFolder(dir string) (*folder, error) {
	f := &folder{dir: dir, turn: make(chan struct{}, 1)}
	f.syncer = f.syncEach
	if canSyncWhole() {
		whole, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		f.whole, f.syncer = whole, f.syncWhole
	}
	return f, nil
}

func (f *folder) close() error {
	if f.whole == nil {
		return nil
	}
	return f.whole.Close()
}

// sync returns when the files, given below the folder, are on disk with the
// folders that lead to them.
func (f *folder) sync(paths []string) error {
	f.mu.Lock()
	r, leader := f.next, f.next == nil
	if leader {
		r = &syncRound{done: make(chan struct{})}
		f.next = r
	}
	r.paths = append(r.paths, paths...)
	f.mu.Unlock()
	if leader {
		f.turn <- struct{}{}
		f.mu.Lock()
		f.next = nil // whoever writes from here on is too late for this round
		f.mu.Unlock()
		r.err = f.syncer(r.paths)
		<-f.turn
		close(r.done)
	}
	<-r.done
	return r.err
}

// syncWhole is one call whatever the number of files. It also writes what
// others have written to the same file system, which they would sync anyway.
func (f *folder) syncWhole(paths []string) error {
	err := syncFileSystem(f.whole)
	if errors.Is(err, errors.ErrUnsupported) {
		return f.syncEach(paths)
	}
	return err
}

// syncEach syncs every file and then every folder on the way to it.
func (f *folder) syncEach(paths []string) error {
	folders := map[string]bool{}
	for _, path := range paths {
		if err := syncPath(filepath.Join(f.dir, path)); err != nil {
			return err
		}
		for path != "." {
			path = filepath.Dir(path)
			folders[path] = true
		}
	}
	for path := range folders {
		if err := syncPath(filepath.Join(f.dir, path)); err != nil {
			return err
		}
	}
	return nil
}

// syncPath syncs one file or the entries of one folder.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
