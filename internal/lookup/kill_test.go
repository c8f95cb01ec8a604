package lookup_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tributary/internal/authority/vies"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lookup"
	"tributary/internal/schema"
)

// The part of a process that is killed while it works.
const (
	childVariable    = "TRIBUTARY_LOOKUP_TEST_CHILD" // its database
	childVIES        = "TRIBUTARY_LOOKUP_TEST_VIES"  // its register
	childEntries     = 1600
	childEntriesPass = 800
)

func workUntilKilled() {
	ctx := context.Background()
	d, err := db.Open(ctx, db.Config{URL: os.Getenv(childVariable)})
	if err == nil {
		var vies *lookup.VIES
		vies, err = lookup.NewVIES(lookup.VIESConfig{BaseURL: os.Getenv(childVIES)})
		if err == nil {
			var l *lookup.Lookups
			if l, err = newLookups(d, vies); err == nil {
				err = l.Run(ctx)
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// killMidway starts a process that works jobs and kills it when the gate holds its questions.
func killMidway(t *testing.T, url string, g *gate) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+url, childVIES+"="+g.URL+vies.Path)
	var said strings.Builder
	child.Stderr = &said
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	died := make(chan error, 1)
	go func() { died <- child.Wait() }()
	select {
	case <-g.reached:
		_ = child.Process.Kill() // it is waited for
		if err := <-died; err == nil {
			t.Error("a worker that was killed ended well")
		}
	case err := <-died:
		t.Fatalf("the worker ended by itself: %v %s", err, said.String())
	}
	g.release()
}

func TestABatchSurvivesAKill(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		ctx := context.Background()
		g := newGate(t, childEntriesPass)
		entries := manyEntries(t, childEntries-100)
		entries = append(entries, entries[:100]...) // asked once, whichever process answers the twin
		open := func() *desk {
			d, err := db.Open(ctx, db.Config{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			l, err := newLookups(d, g.register(t))
			if err != nil {
				t.Fatal(err)
			}
			return &desk{Lookups: l, t: t, d: d}
		}
		before := open()
		if _, err := schema.Migrate(ctx, before.d); err != nil {
			t.Fatal(err)
		}
		id := before.create(entries).BatchID
		if err := before.d.Close(); err != nil {
			t.Fatal(err)
		}

		killMidway(t, url, g)

		after := open()
		defer func() { _ = after.d.Close() }() // the test's last act
		stored := after.answers(id)
		if stored < childEntriesPass-500-32 || stored > childEntriesPass+100 {
			t.Errorf("%d answers were stored before the kill", stored)
		}
		after.start()
		defer after.halt()
		if got := after.finished(client, id); got != lookup.Completed {
			t.Errorf("the batch is %s", got)
		}
		_, all := after.all(id)
		for i, v := range all {
			if v.Status != lookup.StatusRegistered || v.TaxIdentificationNumber != entries[i].Number {
				t.Fatalf("entry %d: %+v", i, v)
			}
		}
		if n := after.answers(id); len(all) != childEntries || n != childEntries {
			t.Errorf("%d entries, %d answers", len(all), n)
		}
		after.wantOneEvent(id)
		// Asked twice is only what had no stored answer at the kill: less than a group of them, with what was under way.
		if n := int(g.asked.Load()); n < childEntries-100 || n > childEntries-100+500+32 {
			t.Errorf("%d questions for %d numbers, %d answers stored before the kill", n, childEntries-100, stored)
		}
	})
}
