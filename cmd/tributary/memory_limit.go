package main

import (
	"bufio"
	"io/fs"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// memoryShare of a container's memory is what the runtime may fill before it
// collects harder: the rest is for SQLite, which keeps its memory outside of the
// runtime's, for stacks of threads and for the kernel's buffers.
const memoryShare = 0.8

// withinMemory tells the runtime the limit of the container, so that it collects
// rather than being killed. Whoever sets GOMEMLIMIT decides for himself.
func withinMemory() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if limit, found := containerMemory(os.DirFS("/")); found {
		debug.SetMemoryLimit(int64(float64(limit) * memoryShare))
	}
}

// unlimited is above every real limit: version 1 says "none" with a huge number.
const unlimited = 1 << 50

// containerMemory is the smallest limit of the control groups that the process
// is in, of version 2 and of version 1. The files are those of a root.
func containerMemory(root fs.FS) (limit int64, found bool) {
	groups, err := root.Open("proc/self/cgroup")
	if err != nil {
		return 0, false // not Linux, or no control groups
	}
	defer func() { _ = groups.Close() }() // it was only read
	limit = unlimited
	for lines := bufio.NewScanner(groups); lines.Scan(); {
		// hierarchy:controllers:path; of version 2 the first is 0 and the second empty
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[1] == "":
			limit = min(limit, groupLimit(root, "sys/fs/cgroup", parts[2], "memory.max"))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			limit = min(limit, groupLimit(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	return limit, limit < unlimited
}

// groupLimit is the smallest limit from a group up to the mount: each holds for
// all below it. Inside of a container the path may be the host's, of which only
// the mount itself can be seen.
func groupLimit(root fs.FS, mount, group, file string) int64 {
	least := int64(unlimited)
	for at := path.Join(mount, path.Clean("/"+group)); strings.HasPrefix(at, mount); at = path.Dir(at) {
		text, err := fs.ReadFile(root, path.Join(at, file))
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
			least = min(least, n)
		}
	}
	return least
}
