package api_test

import (
	"testing"
	"time"

	"tributary/internal/api"
)

// Under overload the log gets one line a second, which says how many it stands for.
func TestRefusalsAreLoggedOnceASecond(t *testing.T) {
	t.Parallel()
	next := api.Refusals()
	at := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after  time.Duration
		silent int64
		speak  bool
	}{{0, 0, true}, {1, 0, false}, {time.Second - 1, 0, false}, {time.Second, 2, true}, {time.Second + 1, 0, false},
		{2 * time.Second, 1, true}} {
		if silent, speak := next(at.Add(c.after)); silent != c.silent || speak != c.speak {
			t.Errorf("after %s: %d silent, spoken %v; want %d, %v", c.after, silent, speak, c.silent, c.speak)
		}
	}
}
