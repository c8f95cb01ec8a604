package main

import (
	"testing"
	"testing/fstest"
)

func TestTheLimitOfAContainerIsFound(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"version 2 in a container": {fstest.MapFS{"proc/self/cgroup": file("0::/"),
			"sys/fs/cgroup/memory.max": file("536870912")}, 512 << 20},
		"version 2, nested": {fstest.MapFS{"proc/self/cgroup": file("0::/a/b"),
			"sys/fs/cgroup/a/b/memory.max": file("max"), "sys/fs/cgroup/a/memory.max": file("1073741824")}, 1 << 30},
		"the smallest counts": {fstest.MapFS{"proc/self/cgroup": file("0::/a/b"),
			"sys/fs/cgroup/a/b/memory.max": file("300000000"), "sys/fs/cgroup/a/memory.max": file("200000000")}, 200_000_000},
		"the host's path": {fstest.MapFS{"proc/self/cgroup": file("0::/docker/ab12"),
			"sys/fs/cgroup/memory.max": file("268435456")}, 256 << 20},
		"version 1": {fstest.MapFS{"proc/self/cgroup": file("5:cpu,cpuacct:/x\n4:memory:/x"),
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("134217728")}, 128 << 20},
		"version 1 without one": {fstest.MapFS{"proc/self/cgroup": file("4:memory:/"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712")}, 0},
		"no limit": {fstest.MapFS{"proc/self/cgroup": file("0::/"), "sys/fs/cgroup/memory.max": file("max")}, 0},
		"a path upwards": {fstest.MapFS{"proc/self/cgroup": file("0::/../../etc"), "etc/memory.max": file("1"),
			"sys/fs/cgroup/memory.max": file("max")}, 0},
		"garbage": {fstest.MapFS{"proc/self/cgroup": file("what\n0::/"), "sys/fs/cgroup/memory.max": file("-7")},
			0},
		"no control groups": {fstest.MapFS{}, 0},
	} {
		if got, found := containerMemory(c.files); found != (c.want > 0) || found && got != c.want {
			t.Errorf("%s: %d %t, want %d", name, got, found, c.want)
		}
	}
}
