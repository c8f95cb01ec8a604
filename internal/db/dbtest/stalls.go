package dbtest

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Stalls adds up for how long the machine itself stood still, so that a test that
// asserts how long something took judges the program and not the host.
type Stalls struct {
	mu    sync.Mutex
	asked time.Time // when the beat under way began
	total time.Duration
}

// usualBeat is what a moment's sleep and a small file on disk may take.
const usualBeat = 20 * time.Millisecond

// WatchStalls begins to watch; it ends with the test.
func WatchStalls(t testing.TB) *Stalls {
	t.Helper()
	s := &Stalls{asked: time.Now()}
	path := filepath.Join(t.TempDir(), "beat")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			if err := touch(path); err != nil {
				t.Errorf("watch for stalls: %v", err)
				return
			}
			s.beat()
		}
	})
	t.Cleanup(func() { close(stop); wg.Wait() })
	return s
}

// touch has nothing to do with what is tested, but waits for the same disk.
func touch(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (s *Stalls) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += max(0, time.Since(s.asked)-usualBeat)
	s.asked = time.Now()
}

// Total says for how long it stood still until now.
func (s *Stalls) Total() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total + max(0, time.Since(s.asked)-usualBeat)
}
