//go:build killpoints

package killpoint

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Armed says that this program can be killed at a point.
const Armed = true

// order is what TRIBUTARY_KILL_AT says.
type order struct {
	point Point
	left  atomic.Int64
}

var armed = sync.OnceValue(func() *order {
	name, count, ok := strings.Cut(os.Getenv("TRIBUTARY_KILL_AT"), ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if !ok || err != nil || n < 1 {
		return nil
	}
	o := &order{point: Point(name)}
	o.left.Store(n)
	return o
})

// Reach ends the process as a power cut would, if it was told to end here.
func Reach(p Point) {
	o := armed()
	if o == nil || o.point != p || o.left.Add(-1) != 0 {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nobody is left to hear of it
	select {}                                      // the signal may take a moment; nothing happens in it
}
