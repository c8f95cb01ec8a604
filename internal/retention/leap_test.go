package retention

import (
	"testing"
	"time"
)

// TestALeapIsDoubtedAtItsLimits: a gap of thirty days is none, one past it is a
// leap; it is doubted for a week and not longer.
func TestALeapIsDoubtedAtItsLimits(t *testing.T) {
	now := time.Date(2040, 6, 30, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, c := range map[string]struct {
		rounds []time.Time // newest first
		want   time.Time
	}{
		"the first round ever":       {nil, time.Time{}},
		"thirty days after the last": {[]time.Time{ago(leapMin)}, time.Time{}},
		"a moment more":              {[]time.Time{ago(leapMin + 1)}, now.Add(leapWait)},
		"almost a week after a leap": {[]time.Time{ago(leapWait - 1), ago(20 * leapMin)}, now.Add(1)},
		"a week after it":            {[]time.Time{ago(leapWait), ago(20 * leapMin)}, time.Time{}},
		"a clock that was put back": {[]time.Time{now.AddDate(9, 0, 0), ago(time.Hour), ago(25 * time.Hour)},
			time.Time{}},
		"ahead, put back, and off for long": {[]time.Time{now.AddDate(9, 0, 0), ago(2 * leapMin)}, now.Add(leapWait)},
	} {
		if got := doubted(c.rounds, now); !got.Equal(c.want) {
			t.Errorf("%s: until %v, want %v", name, got, c.want)
		}
	}
}
