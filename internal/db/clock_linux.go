package db

import (
	"time"

	"golang.org/x/sys/unix"
)

// timeAsleep is how long this machine has been suspended since it was started:
// the monotonic clock stands still meanwhile, the boot clock does not.
func timeAsleep() time.Duration {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - mono.Nano())
}
