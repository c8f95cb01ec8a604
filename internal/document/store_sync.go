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
	syncer func(paths []string) error

	mu   sync.Mutex
	last *syncRound // running or over
	next *syncRound // gathers while last is running
}

// syncRound is one sync and those who wait for it.
type syncRound struct {
	before *syncRound // the next one waits for it
	paths  []string
	done   chan struct{}
	err    error
}

func newFolder(dir string) (*folder, error) {
	f := &folder{dir: dir}
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
		r = &syncRound{before: f.last, done: make(chan struct{})}
		f.next = r
	}
	r.paths = append(r.paths, paths...)
	f.mu.Unlock()
	if leader {
		if r.before != nil {
			<-r.before.done
		}
		f.mu.Lock()
		f.last, f.next = r, nil // whoever writes from here on is too late for this round
		r.before = nil
		f.mu.Unlock()
		r.err = f.syncer(r.paths)
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
