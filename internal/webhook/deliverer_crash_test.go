package webhook_test

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
	"tributary/internal/schema"
)

const (
	childURL    = "TRIBUTARY_WEBHOOK_CHILD_DATABASE"
	childTarget = "TRIBUTARY_WEBHOOK_CHILD_TARGET"
	childRoots  = "TRIBUTARY_WEBHOOK_CHILD_ROOTS"
	childEvents = "TRIBUTARY_WEBHOOK_CHILD_EVENTS"
)

// TestDelivererChild is the program that TestKillLosesNothing kills: it notifies
// without end, says what it was promised, and delivers.
func TestDelivererChild(t *testing.T) {
	t.Parallel()
	if os.Getenv(childURL) == "" {
		t.Skip("only as a child of TestKillLosesNothing")
	}
	d, err := db.Open(t.Context(), db.Config{URL: os.Getenv(childURL)})
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(os.Getenv(childRoots)))
	o := newOffice(t, d, pool)
	o.setTarget(client, os.Getenv(childTarget))
	o.open(t)
	fmt.Println("open")
	for i := 0; os.Getenv(childEvents) != ""; i++ {
		id := fmt.Sprintf("%d-%d", os.Getpid(), i)
		e, f := event(id+"-a"), event(id+"-b")
		e.Series, f.Series = id, id
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return o.Notify(tx, e, f) }); err != nil {
			t.Fatal(err)
		}
		fmt.Println("stored", e.ResourceID)
		fmt.Println("stored", f.ResourceID)
	}
	select {} // until killed
}

// child starts the program and collects what it says it has stored.
func child(t *testing.T, env ...string) (kill func() (stored []string)) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestDelivererChild$")
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out := must(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan []string)
	opened := make(chan struct{})
	go func() {
		var stored []string
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if lines.Text() == "open" {
				close(opened)
			}
			if id, ok := strings.CutPrefix(lines.Text(), "stored "); ok {
				stored = append(stored, id)
			}
		}
		if err := lines.Err(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
		ended <- stored
	}()
	<-opened
	return func() []string {
		_ = cmd.Process.Kill() // it may be dead already
		stored := <-ended
		_ = cmd.Wait() // killed on purpose
		return stored
	}
}

func TestKillLosesNothing(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "programs beside this one")
	dbtest.EachURL(t, func(t *testing.T, url string) {
		b := newInbox()
		s, _ := serveTimeless(t, b)
		roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		env := []string{childURL + "=" + url, childTarget + "=" + s.URL + "/hook", childRoots + "=" + string(roots)}
		migrated := must(db.Open(t.Context(), db.Config{URL: url}))(t)
		if _, err := schema.Migrate(t.Context(), migrated); err != nil {
			t.Fatal(err)
		}
		if err := migrated.Close(); err != nil {
			t.Fatal(err)
		}
		seed := uint64(1)
		if needs.IsLong() {
			seed = rand.Uint64()
			t.Logf("seed %d", seed)
		}
		dice := rand.New(rand.NewPCG(seed, 0))
		var stored []string
		repeats := 0
		for range 2 {
			kill := child(t, append(env, childEvents+"=yes")...)
			b.wait(t, len(b.all())+20+dice.IntN(100))
			stored = append(stored, kill()...)
			repeats += leased(t, url)
		}
		kill := child(t, env...)
		eventually(t, "everything that was stored has arrived", func() bool {
			heard := b.heard()
			for _, id := range stored {
				if heard[id] == 0 {
					return false
				}
			}
			return len(stored) > 0
		})
		kill()
		got, distinct := len(b.all()), len(b.heard())
		if got-distinct > repeats {
			t.Errorf("%d events arrived again, %d were in flight when the program was killed", got-distinct, repeats)
		}
		t.Logf("%d stored, %d arrived, %d of them again, at most %d allowed", len(stored), distinct, got-distinct, repeats)
		b.check(t)
	})
}

// leased is how many deliveries were in flight when the holder died.
func leased(t *testing.T, url string) (n int) {
	t.Helper()
	d := must(db.Open(t.Context(), db.Config{URL: url, NoWorkers: true}))(t)
	defer func() { _ = d.Close() }() // only read
	err := d.Read(context.Background(), func(r db.Reader) error {
		return r.Row("SELECT count(*) FROM webhook_events WHERE lease_until IS NOT NULL").Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (b *inbox) heard() map[string]int {
	heard := map[string]int{}
	for _, r := range b.all() {
		heard[r.ResourceID]++
	}
	return heard
}
