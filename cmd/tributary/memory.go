package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	garbageRoom = 40 << 20 // bytes of garbage that may lie about before it is collected
	percentMin  = 40       // of the live heap: a large one is not walked through for every 40 MiB
	percentMost = 1000
)

// roomForGarbage lets garbageRoom bytes of garbage gather before the collector
// runs, whatever is alive. The service's live heap is about ten megabytes; by its
// own rule the runtime would collect ten times a second under load, and each time
// requests wait. At full load it is seventy, and the rule would let as much garbage
// gather again. Whoever sets GOGC decides for himself.
var roomForGarbage = sync.OnceFunc(func() {
	if os.Getenv("GOGC") != "" {
		return
	}
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	set := 100 // the runtime's own
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

// heapPercent is the setting with which a heap of so many live bytes gathers
// that much, in steps, because each change stops everybody for a moment.
func heapPercent(live uint64) int {
	const step = 20
	percent := garbageRoom * 100 / int(max(live, 1<<20))
	return min(max(percent/step*step, percentMin), percentMost)
}
