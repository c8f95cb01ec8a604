package files

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// folder writes and syncs below a folder of this machine. Those who wait at the
// same time share one sync, and their small files share archives.
//
// Failure policy: a sync counts only for what was written before it began.
// Whoever comes while one is running waits for the next.
type folder struct {
	dir    string
	buffer bytes.Buffer // of the archive that is being written, by one round at a time
	whole  *os.File     // where the system can sync a whole file system and tells of errors; else nil
	syncer func(paths []string) error

	mu   sync.Mutex
	last *syncRound // running or over
	next *syncRound // gathers while last is running
}

// syncRound is one sync and those who wait for it.
type syncRound struct {
	before *syncRound // the next one waits for it
	paths  []string   // written by those who wait
	small  []*parcel
	done   chan struct{}

	unwritten error // the small files are not there, and that is all
	unsynced  error // what is on disk is unknown
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

// keep writes small files, and returns when they and the files of paths, given
// below the folder, are on disk with the folders that lead to them.
func (f *folder) keep(paths []string, small []*parcel) (unwritten, unsynced error) {
	f.mu.Lock()
	r, leader := f.next, f.next == nil
	if leader {
		r = &syncRound{before: f.last, done: make(chan struct{})}
		f.next = r
	}
	r.paths, r.small = append(r.paths, paths...), append(r.small, small...)
	f.mu.Unlock()
	if leader {
		if r.before != nil {
			<-r.before.done
		}
		f.mu.Lock()
		f.last, f.next = r, nil // whoever writes from here on is too late for this round
		r.before = nil
		f.mu.Unlock()
		f.lead(r)
		close(r.done)
	}
	<-r.done
	return r.unwritten, r.unsynced
}

// lead does what a round is for.
func (f *folder) lead(r *syncRound) {
	archives, err := f.writeParcels(r.small)
	r.unwritten, r.small = err, nil
	if paths := append(r.paths, archives...); len(paths) > 0 {
		r.unsynced = f.syncer(paths)
	}
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
