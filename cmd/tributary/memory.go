package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	heapFloor   = 48 << 20 // bytes of heap below which collecting garbage is not worth while
	percentMin  = 100      // the runtime's own setting: from half the floor on nothing changes
	percentMost = 1000
)

// roomForGarbage lets a small heap grow to heapFloor before the collector runs.
// The service's live heap is about ten megabytes; by its own rule the runtime
// would collect ten times a second under load, and each time requests wait.
// Whoever sets GOGC decides for himself.
var roomForGarbage = sync.OnceFunc(func() {
	if os.Getenv("GOGC") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	set := percentMin
	// A finalizer that sets itself again runs once after every collection.
	var collected func(*[16]byte)
	collected = func(mark *[16]byte) {
		metrics.Read(sample)
		if percent := heapPercent(sample[0].Value.Uint64()); percent != set {
			set = percent
			debug.SetGCPercent(percent)
		}
		runtime.SetFinalizer(mark, collected)
	}
	runtime.SetFinalizer(new([16]byte), collected)
})

// heapPercent is the setting with which a heap of so many live bytes grows to
// the floor, in steps, because each change stops everybody for a moment.
func heapPercent(live uint64) int {
	const step = 50
	percent := heapFloor*100/int(max(live, 1<<20)) - 100
	return min(max(percent/step*step, percentMin), percentMost)
}
