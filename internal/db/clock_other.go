//go:build !linux

package db

import "time"

// timeAsleep is not known here; the clock catches up slowly after a sleep.
func timeAsleep() time.Duration { return 0 }
