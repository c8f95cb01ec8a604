package simulation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Disk is a file system of its own that can be filled up.
type Disk struct {
	Dir string
	t   testing.TB
}

// SmallDisk mounts a file system in memory of so many bytes. Only root may do
// that: a test without the right to is skipped.
func SmallDisk(t testing.TB, bytes int) *Disk {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skipf("a small file system cannot be mounted here (%v): run as root to see a full disk", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return &Disk{Dir: dir, t: t}
}

func (d *Disk) ballast() string { return filepath.Join(d.Dir, "ballast") }

// Fill leaves so many bytes free.
func (d *Disk) Fill(free int) {
	d.t.Helper()
	d.Empty()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(d.Dir, &fs); err != nil {
		d.t.Fatal(err)
	}
	size := int(fs.Bavail)*int(fs.Bsize) - free
	if size <= 0 {
		return
	}
	if err := os.WriteFile(d.ballast(), []byte(strings.Repeat("x", size)), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// Empty gives the room back that Fill took.
func (d *Disk) Empty() {
	d.t.Helper()
	if err := os.Remove(d.ballast()); err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
}
