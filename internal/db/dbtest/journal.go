package dbtest

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// Journal collects log lines from any goroutine.
type Journal struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends.
func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// String is everything so far.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// Await waits until something is said.
func (j *Journal) Await(t testing.TB, text string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(j.String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the log never says %q:\n%s", text, j.String())
		}
	}
}

// Reset forgets what was said.
func (j *Journal) Reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text.Reset()
}
