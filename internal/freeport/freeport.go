// Package freeport gives tests ports for programs that must be told theirs.
//
// Asking the kernel for a free port and closing it again is not enough: until
// the program listens, any other process may be given the same port, for a
// listener or for the near end of a connection. These ports lie below the range
// that the kernel gives away by itself, and each is locked for the life of the
// process that asked.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

const (
	lowest  = 12000 // well-known servers of the distribution listen below
	highest = 32000 // Linux gives away ports from 32768 on
	tries   = 1000
)

// locks keeps the locked files open: the kernel drops a lock with its file.
var (
	mu    sync.Mutex
	locks []*os.File
)

// New is a port on 127.0.0.1 that nobody listens on and that no other process
// will be given by New until this one ends.
func New() (int, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("tributary-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	for range tries {
		port := lowest + rand.IntN(highest-lowest)
		free, err := take(filepath.Join(dir, strconv.Itoa(port)), port)
		if err != nil || free {
			return port, err
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d after %d tries", lowest, highest, tries)
}

// take locks the file of a port and keeps the lock if nobody listens there.
func take(path string, port int) (free bool, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	defer func() {
		if !free {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		return false, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false, nil // somebody who does not ask here listens
	}
	if err := l.Close(); err != nil {
		return false, err
	}
	mu.Lock()
	defer mu.Unlock()
	locks = append(locks, f)
	return true, nil
}
