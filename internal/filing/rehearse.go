package filing

import (
	"time"

	"tributary/internal/killpoint"
)

// For rehearsals: what tests and the simulation change, before Run. A program
// that serves anybody calls none of this.

// Observe calls fn at the points of an operation's journey, see [killpoint.Point].
func (s *Service) Observe(fn func(point, lane string)) {
	s.signal = func(p killpoint.Point, lane string) { fn(string(p), lane) }
}

// LookEvery sets how often idle lanes are looked at, so that virtual days are not spent looking.
func (s *Service) LookEvery(d time.Duration) { s.poll = d }

// SuspectAtOnce lets a young process work on operations that were in work when others ended.
func (s *Service) SuspectAtOnce() { s.suspectsAfter = 0 }

// SuspectLater lets suspects wait for so long after the start.
func (s *Service) SuspectLater(d time.Duration) { s.suspectsAfter = d }

// PauseAtMost lengthens the longest pause between retries and polls, for tests of virtual days.
func (s *Service) PauseAtMost(d time.Duration) { s.pauseMax = d }
