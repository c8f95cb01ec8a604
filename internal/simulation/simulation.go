// Package simulation lets tests take the state machines of the program through
// seeded bad luck in virtual time.
//
// It owns the seeds and how one is replayed, the dice that a plan is drawn
// with, a folder in memory, the death of a process, and a network that loses,
// delays, repeats, reorders and cuts what it carries. It refuses to know any
// machine: what is submitted and what must hold afterwards is said by the test
// beside the machine. Law of [Run]: everything a plan decides follows from the
// seed alone, so a seed that fails once can be looked at again.
package simulation

import (
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

// SeedsAll is what the shares that the machines' tests name add up to. make test
// takes the first seedsGate of them, make long seedsLong.
const (
	SeedsAll  = 1000
	seedsGate = 200
	seedsLong = 10_000
)

const (
	seedVariable  = "TRIBUTARY_SIM_SEED"  // only this one, in every machine
	seedsVariable = "TRIBUTARY_SIM_SEEDS" // so many over all machines instead of SeedsAll
)

// Run calls fn for each seed of a machine's share, each in a bubble of virtual
// time and beside the others. A seed that fails says how it is run again.
func Run(t *testing.T, share int, fn func(t *testing.T, d Dice)) {
	t.Helper()
	needs.NotRaced(t, "SQLite is Go here, and a bubble runs one goroutine after another")
	all := uint64(seedsGate)
	if needs.IsLong() {
		all = seedsLong
	}
	first, count := uint64(1), max(1, all*uint64(share)/SeedsAll/slowdown)
	if text := os.Getenv(seedsVariable); text != "" {
		count = number(t, seedsVariable, text) * uint64(share) / SeedsAll
	}
	if text := os.Getenv(seedVariable); text != "" {
		first, count = number(t, seedVariable, text), 1
	}
	dbtest.SQLite(t) // what databases are copied from is made outside of the bubbles
	for seed := first; seed < first+count; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			name := t.Name()
			defer func() {
				if t.Failed() {
					t.Logf("replay: %s=%d go test -count=1 -run '^%s$' ./internal/%s", seedVariable, seed, filepath.Dir(name), folder())
				}
			}()
			synctest.Test(t, func(t *testing.T) { fn(t, Dice{seed}) })
		})
	}
}

func number(t *testing.T, name, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// folder is the package under test: tests run in its folder.
func folder() string {
	dir, err := os.Getwd()
	if err != nil {
		return "..."
	}
	return filepath.Base(dir)
}

// Dice answer by name. Asked for the same words they fall alike, whoever asks
// first: what befalls a call does not depend on which goroutine was faster.
type Dice struct{ seed uint64 }

// Of returns the numbers that belong to some words.
func (d Dice) Of(words ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q", words)
	return rand.New(rand.NewPCG(d.seed, h.Sum64()))
}

// Chance reports whether something befalls what the words name, in p of 100 cases.
func (d Dice) Chance(p int, words ...any) bool { return d.Of(words...).IntN(100) < p }

// Between is a duration from a range.
func Between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)+1))
}

// Remains copies a SQLite database as a process that is killed at this instant
// leaves it, and returns the address of the copy. It is called in a bubble
// while the database is open: nothing else in the bubble is at work then, so
// what is copied is what was written, the write-ahead log included.
func Remains(t testing.TB, url string) string {
	t.Helper()
	synctest.Wait()
	from := dbtest.SQLitePath(url)
	to := filepath.Join(t.TempDir(), "tributary.db")
	for _, ending := range []string{"", "-wal"} {
		if err := copyFile(to+ending, from+ending); err != nil && (ending == "" || !os.IsNotExist(err)) {
			t.Fatal(err)
		}
	}
	return "sqlite:" + to
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, fs.FileMode(0o600))
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close() // the first error tells more
		return err
	}
	return out.Close()
}
