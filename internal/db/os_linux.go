package db

import (
	"errors"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// giveUpSilentPeer ends a connection whose bytes are not acknowledged: keepalive
// looks only at idle ones.
func giveUpSilentPeer(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var set error
	err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(pgSilence.Milliseconds()))
	})
	return errors.Join(err, set)
}

// timeAsleep is how long this machine has been suspended since it was started:
// the monotonic clock stands still meanwhile, the boot clock does not.
func timeAsleep() time.Duration {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - mono.Nano())
}
