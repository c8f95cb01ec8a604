package files_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"tributary/internal/db/dbtest"
	"tributary/internal/files"
)

// BenchmarkKeep stores documents of 40 KiB, in groups as settling does, and
// compares one sync for a group with one for each file.
func BenchmarkKeep(b *testing.B) {
	content := make([]byte, 40<<10)
	for i := range content {
		content[i] = byte(rand.Int())
	}
	var serial atomic.Int64
	group := func(n int) []files.File {
		made := make([]files.File, n)
		for i := range made {
			c := append([]byte(nil), content...)
			copy(c, fmt.Sprint(serial.Add(1)))
			made[i] = files.NewFile(c)
		}
		return made
	}
	for _, c := range []struct {
		name          string
		size, callers int
		each          bool
	}{
		{name: "group=1", size: 1, callers: 1},
		{name: "group=100", size: 100, callers: 1},
		{name: "group=100/callers=4", size: 100, callers: 4},
		{name: "group=1/callers=64", size: 1, callers: 64},
		{name: "group=100/each", size: 100, callers: 1, each: true},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := openShop(b, dbtest.SQLite(b), func(cfg *files.Config) { cfg.PendingMax = 1 << 30 })
			if c.each {
				s.SyncWith(s.SyncEach)
			}
			kept := 0
			for b.Loop() {
				b.StopTimer()
				groups := make([][]files.File, c.callers)
				for i := range groups {
					groups[i] = group(c.size)
				}
				b.StartTimer()
				var wg sync.WaitGroup
				for _, content := range groups {
					wg.Go(func() {
						if err := s.Keep(context.Background(), content...); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
				kept += c.callers * c.size
			}
			b.ReportMetric(float64(kept)/b.Elapsed().Seconds(), "documents/s")
		})
	}
}
