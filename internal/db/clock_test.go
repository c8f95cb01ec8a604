package db_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"tributary/internal/db"
)

var noon = time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC)

// Hard case 22: the wall clock jumps, and neither a retry nor a lease is fired or held back.
func TestWallClockJumpsByAnHour(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		c := db.NewClock(noon)
		start := c.Now()
		c.Pass(time.Minute)
		c.Jump(jump)
		if got := c.Now().Sub(start); got < 54*time.Second || got > 66*time.Second {
			t.Errorf("a minute and a jump of %s: %s went by", jump, got)
		}
		before := c.Now()
		c.Pass(10 * time.Second)
		if got := c.Now().Sub(before); got < 9*time.Second || got > 11*time.Second {
			t.Errorf("after a jump of %s, ten seconds took %s", jump, got)
		}
		for range 11 * 60 {
			c.Pass(time.Minute)
			c.Now()
		}
		if got, want := c.Now(), noon.Add(time.Minute+jump+10*time.Second+11*time.Hour); !got.Equal(want) {
			t.Errorf("eleven hours after a jump of %s the clock shows %s, want %s", jump, got, want)
		}
	}
}

// A document is dated by the corrected clock at once, while leases take hours to come round.
func TestDocumentsAreDatedByTheWallClock(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{20 * time.Minute, -20 * time.Minute, 5 * time.Hour, -5 * time.Hour} {
		c := db.NewClock(noon)
		c.Now()
		c.Jump(jump)
		if got := c.Wall(); !got.Equal(noon.Add(jump)) {
			t.Errorf("right after a correction of %s the time of day is %s", jump, got)
		}
		const passed = 2 * time.Hour
		c.Pass(passed)
		if got, want := c.Wall(), noon.Add(passed+jump); !got.Equal(want) {
			t.Errorf("after a correction of %s the time of day is %s, want %s", jump, got, want)
		}
		if off := c.Now().Sub(noon.Add(passed)); off.Abs() > passed/10+time.Second {
			t.Errorf("after a correction of %s leases are off by %s", jump, off)
		}
		if c.Elapsed() != passed {
			t.Errorf("after a correction of %s %s went by, want %s", jump, c.Elapsed(), passed)
		}
	}
	served := db.NewClock(noon)
	served.Server(noon.Add(time.Hour), 0)
	served.Jump(3 * time.Hour) // this machine's clock is not the one that nodes share
	served.Pass(time.Minute)
	if got, want := served.Wall(), noon.Add(time.Hour+time.Minute); !got.Equal(want) {
		t.Errorf("beside a server the time of day is %s, want %s", got, want)
	}
	served.Server(noon.Add(-time.Hour), 0) // the server's clock was corrected
	if got := served.Wall(); !got.Equal(noon.Add(-time.Hour)) {
		t.Errorf("after a correction of the server's clock the time of day is %s", got)
	}
}

func TestTimeAsleepCountsAtOnce(t *testing.T) {
	t.Parallel()
	c := db.NewClock(noon)
	c.Now()
	c.Sleep(8 * time.Hour)
	if got := c.Now(); !got.Equal(noon.Add(8 * time.Hour)) {
		t.Errorf("after eight hours of sleep the clock shows %s", got)
	}
	served := db.NewClock(noon)
	served.Server(noon.Add(time.Hour), 0)
	served.Now()
	served.Sleep(8 * time.Hour)
	if got := served.Now(); got.Before(noon.Add(9*time.Hour)) || got.After(noon.Add(9*time.Hour+time.Second)) {
		t.Errorf("after eight hours of sleep the server's time is taken for %s", got)
	}
}

func TestServersClockIsFollowed(t *testing.T) {
	t.Parallel()
	c := db.NewClock(noon)
	c.Now()
	c.Server(noon.Add(-time.Hour), 100*time.Millisecond)
	if got, want := c.Now(), noon.Add(-time.Hour+50*time.Millisecond); !got.Equal(want) {
		t.Errorf("after the first sample the clock shows %s, want %s", got, want)
	}
	c.Jump(3 * time.Hour) // this machine's own wall clock does not matter
	c.Pass(10 * time.Second)
	c.Server(noon.Add(-time.Hour+10100*time.Millisecond), 0)
	if got, want := c.Now(), noon.Add(-time.Hour+10050*time.Millisecond); got.Sub(want).Abs() > 60*time.Millisecond {
		t.Errorf("the clock shows %s, want %s", got, want)
	}
}

func TestClockNeverGoesBackOrStandsStill(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := db.NewClock(noon)
		last := c.Now()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			by := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "by"))
			slept := time.Duration(0)
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				c.Jump(by - time.Hour/2)
				by = 0
			case 1:
				c.Server(noon.Add(by*3-time.Hour), 0)
				last, by = c.Now(), 0 // the first sample is taken as it is
			case 2:
				c.Sleep(by)
				slept, by = by, 0
			default:
				c.Pass(by)
			}
			now := c.Now()
			if went := now.Sub(last); went < by*9/10-time.Microsecond || went > by*11/10+slept+time.Microsecond {
				t.Fatalf("%s passed and %s of sleep, the clock went on by %s", by, slept, went)
			}
			last = now
		}
	})
}
