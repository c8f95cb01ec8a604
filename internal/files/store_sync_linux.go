package files

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// canSyncWhole reports whether syncfs tells of write errors: from Linux 5.8 on
// (syncfs(2), section Versions). Before, it would hide them.
func canSyncWhole() bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var major, minor int
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); n != 2 {
		return false
	}
	return major > 5 || major == 5 && minor >= 8
}

func syncFileSystem(f *os.File) error {
	for {
		if err := unix.Syncfs(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("syncfs", err)
		}
	}
}
