package typeset_test

import (
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// A line that is kept holds its own text, not the body of megabytes from which
// the text was cut.
func TestKeptLinesHoldNothingOfTheBodyTheyCameFrom(t *testing.T) {
	set, font := setter(t)
	freed := make(chan struct{})
	func() {
		body := []byte(strings.Repeat(`{"name":"Darjeeling First Flush – 100 g"}`, 1<<15))
		runtime.AddCleanup(&body[0], func(freed chan struct{}) { close(freed) }, freed)
		text := unsafe.String(&body[0], len(body))
		name := text[9 : 9+strings.Index(text[9:], `"`)]
		font.Lang = text[2:4]
		for range 2 {
			if line := set.Line(font, name); line.Width == 0 {
				t.Error("nothing was set")
			}
			if lines := set.Wrap(font, name, 6000); len(lines) < 2 {
				t.Error("nothing was wrapped")
			}
		}
	}()
	for late := time.After(2 * time.Minute); ; {
		runtime.GC()
		select {
		case <-freed:
			runtime.KeepAlive(set)
			return
		case <-late:
			t.Fatal("the body is still held")
		case <-time.After(10 * time.Millisecond): // cleanups run beside the collector
		}
	}
}
