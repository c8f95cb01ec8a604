package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// table prints the figures, with the change against an earlier report.
func table(w io.Writer, r *Report, compare string) {
	var before Report
	if compare != "" {
		text, err := os.ReadFile(compare)
		if err == nil {
			err = json.Unmarshal(text, &before)
		}
		if err != nil {
			fmt.Fprintf(w, "--compare %s: %v\n", compare, err)
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\n%s, %d CPUs, %s\n\n", r.Engine, r.CPUs, r.StartedAt)
	for _, f := range r.Figures {
		change := ""
		if old, ok := before.find(f.Name); ok && old != 0 {
			change = fmt.Sprintf("%+.1f %%", 100*(f.Value-old)/old)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", f.Name, strconv.FormatFloat(f.Value, 'f', 2, 64), f.Unit, change)
	}
	_ = t.Flush() // a table on a terminal
}

func sortTimes(times []time.Duration) { slices.Sort(times) }

// rssWatch samples the process's resident memory.
type rssWatch struct {
	mu   sync.Mutex
	most int64 // since the beginning
	part int64 // since part was asked for last
	quit chan struct{}
	done chan struct{}
}

func watchRSS() *rssWatch {
	w := &rssWatch{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			w.mu.Lock()
			now := residentBytes()
			w.most, w.part = max(w.most, now), max(w.part, now)
			w.mu.Unlock()
			select {
			case <-w.quit:
				return
			case <-tick.C:
			}
		}
	}()
	return w
}

func (w *rssWatch) peak() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

// anew forgets the highest value of the part before, and answers it.
func (w *rssWatch) anew() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.part
	w.part = residentBytes()
	return before
}

func (w *rssWatch) stop() {
	close(w.quit)
	<-w.done
}

// residentBytes reads the kernel's own figure; 0 where there is none.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
