package received_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing/filingtest"
	"tributary/internal/incoming"
	"tributary/internal/needs"
	"tributary/internal/received"
)

// abreast is how many documents are read side by side.
const abreast = 8

// run reads what is there until nothing is left, or for as long as a test waits.
func (k *taking) run() {
	k.t.Helper()
	ctx, stop := context.WithTimeout(k.t.Context(), filingtest.Patience)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- k.docs.Run(ctx) }()
	for k.count("SELECT count(*) FROM received WHERE status = 'PROCESSING'") > 0 && ctx.Err() == nil {
		db.Pause(ctx, 10*time.Millisecond)
	}
	if ctx.Err() != nil {
		k.t.Error("documents are left")
	}
	stop()
	filingtest.Must(k.t, <-ended)
}

// meeting ends for all when so many have come, or a test gives up.
type meeting struct {
	left atomic.Int64
	met  chan struct{}
}

func meetingOf(n int) *meeting {
	m := &meeting{met: make(chan struct{})}
	m.left.Store(int64(n))
	return m
}

func (m *meeting) come(t *testing.T) {
	if m.left.Add(-1) == 0 {
		close(m.met)
	}
	select {
	case <-m.met:
	case <-time.After(filingtest.Patience):
		t.Error("too few documents are read side by side")
	}
}

// Documents of one client are read side by side; large ones in twos, and one that was in work when a process ended
// while nothing else is read.
func TestDocumentsAreReadSideBySide(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		all, two := meetingOf(abreast), meetingOf(2)
		var now, large atomic.Int64
		k := reading(t, d, "mem://", func(text []byte) (*incoming.Document, error) {
			defer now.Add(-1)
			beside := now.Add(1) - 1
			switch {
			case bytes.Contains(text, []byte("small")):
				all.come(t)
			case bytes.Contains(text, []byte("suspect")):
				for range 1000 {
					runtime.Gosched()
					beside = max(beside, now.Load()-1)
				}
				if beside != 0 {
					t.Errorf("a suspect is read beside %d others", beside)
				}
			case bytes.Contains(text, []byte("large")):
				large.Add(1)
				two.come(t)
				for range 1000 {
					runtime.Gosched()
					if n := large.Load(); n > 2 {
						t.Errorf("%d large documents are read together", n)
						break
					}
				}
				large.Add(-1)
			}
			return nil, errors.New("no document")
		})
		k.docs.GrownUpAfter(0)
		bring := func(kind string, n, size int) {
			t.Helper()
			var list []received.Arrival
			for i := range n {
				id := fmt.Sprint(kind, i)
				list = append(list, paper(id, id+strings.Repeat(" ", size)))
			}
			_, err := k.bring(list...)
			filingtest.Must(t, err)
		}
		bring("small", abreast, 0)
		k.run()
		bring("suspect", 3, 0)
		filingtest.ExecSQL(t, d, "UPDATE received SET crashes = 1 WHERE status = 'PROCESSING'")
		bring("other", 9, 0)
		k.run()
		bring("large", 6, 1<<20)
		k.run()
	})
}

// A document that ends every process that reads it is given up after three of them; those that were read beside it
// are not.
func TestADocumentThatEndsProcessesIsGivenUpAlone(t *testing.T) {
	needs.NotRaced(t, "another process")
	t.Parallel()
	database, store := dbtest.SQLiteURL(t), "file://"+t.TempDir()
	t.Run("bring", func(t *testing.T) { // whose end closes the database
		k := reading(t, dbtest.Open(t, db.Config{URL: database}), store, nil)
		list := []received.Arrival{paper("poison", "poison")}
		for i := range abreast - 1 {
			list = append(list, paper(fmt.Sprint("d", i), fmt.Sprint("d", i)))
		}
		_, err := k.bring(list...)
		filingtest.Must(t, err)
	})
	self, err := os.Executable()
	filingtest.Must(t, err)
	lives := 1
	for ; lives < 10; lives++ {
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestALife$", "-test.v")
		cmd.Env = append(os.Environ(), lifeVariable+"="+fmt.Sprint(lives)+" "+database+" "+store)
		out, err := cmd.CombinedOutput()
		if err == nil {
			break
		}
		if code := cmd.ProcessState.ExitCode(); code != poisoned {
			t.Fatalf("life %d ended with %d: %s", lives, code, out)
		}
	}
	filingtest.Same(t, "lives", lives, 4)
	k := reading(t, dbtest.Open(t, db.Config{URL: database}), store, nil)
	filingtest.Same(t, "given up", k.count("SELECT count(*) FROM received WHERE result LIKE '%internal_error%'"), 1)
	filingtest.Same(t, "of which is the poison", k.count("SELECT count(*) FROM received WHERE result LIKE '%internal_error%' AND authority_id = 'poison'"), 1)
}

// What was in work when a process ended waits until the next one has lived for a while, and keeps nobody waiting: who
// is killed again and again takes no document for the cause.
func TestAYoungProcessReadsNoSuspects(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var suspects atomic.Int64
		k := reading(t, d, "mem://", func(text []byte) (*incoming.Document, error) {
			if bytes.Contains(text, []byte("suspect")) {
				suspects.Add(1)
			}
			return nil, errors.New("no document")
		})
		k.docs.GrownUpAfter(time.Hour)
		var list []received.Arrival
		for i := range 2 * abreast {
			list = append(list, paper(fmt.Sprint("suspect", i), fmt.Sprint("suspect", i)), paper(fmt.Sprint("other", i), fmt.Sprint("other", i)))
		}
		_, err := k.bring(list...)
		filingtest.Must(t, err)
		filingtest.ExecSQL(t, d, "UPDATE received SET crashes = 1 WHERE authority_id LIKE 'suspect%'")
		ctx, stop := context.WithTimeout(t.Context(), filingtest.Patience)
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- k.docs.Run(ctx) }()
		for k.count("SELECT count(*) FROM received WHERE status = 'PROCESSING' AND crashes = 0") > 0 && ctx.Err() == nil {
			db.Pause(ctx, 10*time.Millisecond)
		}
		stop()
		filingtest.Must(t, <-ended)
		filingtest.Same(t, "suspects that were read", suspects.Load(), 0)
		filingtest.Same(t, "suspects that wait", k.count("SELECT count(*) FROM received WHERE status = 'PROCESSING' AND crashes = 1"), 2*abreast)
	})
}

const (
	lifeVariable = "TRIBUTARY_RECEIVED_LIFE"
	poisoned     = 86
)

// TestALife is a process of [TestADocumentThatEndsProcessesIsGivenUpAlone].
func TestALife(t *testing.T) {
	var life int
	var database, store string
	if n, _ := fmt.Sscan(os.Getenv(lifeVariable), &life, &database, &store); n != 3 {
		t.Skip("only as another process")
	}
	all := meetingOf(abreast)
	k := reading(t, dbtest.Open(t, db.Config{URL: database}), store, func(text []byte) (*incoming.Document, error) {
		if life == 1 {
			all.come(t)
		}
		if bytes.Contains(text, []byte("poison")) {
			os.Exit(poisoned)
		}
		if life == 1 {
			select {} // the process ends now
		}
		return nil, errors.New("no document")
	})
	k.docs.GrownUpAfter(0)
	k.run()
}
