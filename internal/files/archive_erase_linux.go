package files

import (
	"os"

	"golang.org/x/sys/unix"
)

// erasePart makes a part of a file read as zeros and gives its room back, where
// the file system can.
func erasePart(f *os.File, at, size int64) error {
	if unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, size) == nil {
		return nil
	}
	return writeZeros(f, at, size)
}
