package filing

import (
	"time"

	"tributary/internal/killpoint"
)

// Observe calls fn at the points of an operation's journey, see [killpoint.Point]. Before Run.
func (s *Service) Observe(fn func(point, lane string)) {
	s.signal = func(p killpoint.Point, lane string) { fn(string(p), lane) }
}

// LookEvery sets how often idle lanes are looked at, so that virtual days are not spent looking. Before Run.
func (s *Service) LookEvery(d time.Duration) { s.poll = d }

// SuspectAtOnce lets a young process work on operations that were in work when others ended. Before Run.
func (s *Service) SuspectAtOnce() { s.suspectsAfter = 0 }

// SuspectLater lets suspects wait for so long after the start.
func (s *Service) SuspectLater(d time.Duration) { s.suspectsAfter = d }

// PauseAtMost lengthens the longest pause between retries and polls, for tests of virtual days. Before Run.
func (s *Service) PauseAtMost(d time.Duration) { s.pauseMax = d }

// Backoff is the pause after the n-th failure in a row, with a given jitter in [0, 1).
func Backoff(base time.Duration, n int64, jitter float64) time.Duration {
	s := &Service{cfg: Config{RetryBase: base}, jitter: func() float64 { return jitter }}
	return s.backoff(n)
}

// Limits that tests go to and past.
const (
	WaitingMax   = waitingMax
	CrashesMax   = crashesMax
	BatchMax     = batchMax
	RetryMax     = retryMax
	RetryBase    = retryBaseDefault
	LanesAtOnce  = lanesAtOnce
	SuspectsLook = suspectsLook
)
