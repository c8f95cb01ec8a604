package db

import (
	"errors"
	"strings"
	"syscall"

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
