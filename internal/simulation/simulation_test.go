package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/leaks"
	"tributary/internal/simulation"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestDiceFallAlikeInAnyOrder(t *testing.T) {
	simulation.Run(t, 20, func(t *testing.T, d simulation.Dice) {
		first, second := d.Of("call", "a", 1).Uint64(), d.Of("call", "b", 1).Uint64()
		if again := d.Of("call", "a", 1).Uint64(); again != first || first == second {
			t.Errorf("%d and %d, then %d", first, second, again)
		}
		if before := d.Fate("x", 1); d.Fate("x", 1) != before {
			t.Error("a fate changes")
		}
	})
}

// carried is what became of one call.
type carried struct {
	took    time.Duration
	arrived int
	said    string
	err     error
}

// carry makes one call with a fate to a server that answers at once.
func carry(t *testing.T, fate simulation.Fate, patience time.Duration) (c carried) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var flights sync.WaitGroup
		var mu sync.Mutex
		wire := simulation.NewWire(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			c.arrived++
			fmt.Fprintf(w, "heard %s", body)
		}), func(*http.Request, []byte) simulation.Fate { return fate }, &flights)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://server.test/", strings.NewReader("words"))
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		reply, err := country.Exchange(&http.Client{Transport: wire}, r, 1<<10)
		c.took, c.said, c.err = time.Since(begun), string(reply.Body), err
		flights.Wait()
	})
	return c
}

func TestTheWireDoesWhatAFateSays(t *testing.T) {
	const patience = 30 * time.Second
	for name, c := range map[string]struct {
		fate     simulation.Fate
		arrived  int
		said     string
		notTaken bool
		took     time.Duration
	}{
		"well":      {said: "heard words", arrived: 1},
		"refused":   {fate: simulation.Fate{Refused: true}, notTaken: true},
		"lost":      {fate: simulation.Fate{Lost: true}},
		"mute":      {fate: simulation.Fate{Mute: true}, arrived: 1},
		"cut":       {fate: simulation.Fate{Cut: true}, arrived: 1},
		"late":      {fate: simulation.Fate{Delay: time.Minute}, arrived: 1, took: patience},
		"late back": {fate: simulation.Fate{Back: time.Minute}, arrived: 1, took: patience},
		"twice":     {fate: simulation.Fate{Again: time.Hour}, arrived: 2, said: "heard words"},
		"proxy": {fate: simulation.Fate{Lost: true, Page: 502},
			said: "<!DOCTYPE html>\n<html><body><h1>502</h1></body></html>\n"},
		"proxy back": {fate: simulation.Fate{Page: 504, Back: time.Second}, arrived: 1,
			said: "<!DOCTYPE html>\n<html><body><h1>504</h1></body></html>\n", took: time.Second},
	} {
		got := carry(t, c.fate, patience)
		if got.arrived != c.arrived || got.said != c.said || (got.err == nil) != (c.said != "") ||
			errors.Is(got.err, country.ErrNotTaken) != c.notTaken || got.took != c.took {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A killed process leaves what it had committed, and nothing after.
func TestRemainsAreWhatWasCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := func(url string) *db.DB {
			d, err := db.Open(context.Background(), db.Config{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() }) // a test's own
			return d
		}
		write := func(d *db.DB, sql string) {
			if err := d.Write(context.Background(), func(tx *db.Tx) error { return tx.Exec(sql) }); err != nil {
				t.Fatal(err)
			}
		}
		url := "sqlite:" + t.TempDir() + "/tributary.db"
		d := open(url)
		write(d, "CREATE TABLE said (word TEXT)")
		write(d, "INSERT INTO said VALUES ('before')")
		next := open(simulation.Remains(t, url))
		write(d, "INSERT INTO said VALUES ('after')")
		var words string
		if err := next.Read(context.Background(), func(r db.Reader) error {
			return r.Row("SELECT group_concat(word) FROM said").Scan(&words)
		}); err != nil || words != "before" {
			t.Errorf("%q %v", words, err)
		}
	})
}
