//go:build unix

package secret

import (
	"io/fs"
	"syscall"
)

// ownerOf is the number of the user whose a file is; -1: nobody says.
func ownerOf(info fs.FileInfo) int {
	if about, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(about.Uid)
	}
	return -1
}
