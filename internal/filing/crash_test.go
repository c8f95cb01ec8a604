package filing_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// childVariable makes this test binary play a process that is killed.
const childVariable = "TRIBUTARY_TRANSACTION_CHILD"

// errand is what the child is told.
type errand struct {
	Database   string
	Simulators string
	Documents  string
	Point      string // where to stop and wait for the end; "" works nothing
	Body       json.RawMessage
	Replaces   bool // documents of a period take each other's place
}

// testless stands in for a test in the child: whatever fails ends the process.
type testless struct {
	testing.TB
	ctx context.Context
}

func (c testless) Helper()                  {}
func (c testless) Cleanup(func())           {}
func (c testless) Context() context.Context { return c.ctx }
func (c testless) Fatal(args ...any)        { fmt.Fprintln(os.Stderr, args...); os.Exit(3) }
func (c testless) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(3)
}

// workUntilKilled submits one body, works up to a point, says so and stands still.
func workUntilKilled() {
	t := testless{ctx: context.Background()}
	var e errand
	must(t, json.Unmarshal([]byte(os.Getenv(childVariable)), &e))
	d, err := db.Open(t.ctx, db.Config{URL: e.Database})
	must(t, err)
	packs := variants()
	if e.Replaces {
		replaceReports(packs)
	}
	n := newNode(t, d, setup{Packs: packs, Simulators: e.Simulators, Documents: e.Documents})
	reached := make(chan struct{})
	n.When(e.Point, func(string) {
		close(reached)
		select {} // for ever: the process is about to be killed
	})
	id, err := n.Submit(t.ctx, caller(client), transaction.Invoice, e.Body)
	must(t, err)
	if e.Point != "" {
		n.Start()
		<-reached
	}
	fmt.Println(id)
	select {}
}

// killAt lets another process submit a body and kills it, as kill -9 does, at
// a point of the operation's journey.
func killAt(t *testing.T, e errand) (operationID string) {
	t.Helper()
	text, err := json.Marshal(e)
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if killed := cmd.Process.Kill(); killed != nil || err != nil {
		t.Fatalf("the other process said %q (%v) and ended with %v (%v)", line, err, cmd.Wait(), killed)
	}
	_ = cmd.Wait() // it was killed
	return strings.TrimSpace(line)
}

// Hard case 2, and every crash window of the journey: the process is killed
// there, and the next one ends what was begun, with one registration, one
// result and one event.
func TestHardCase02KilledAtAnyPointFilesOnce(t *testing.T) {
	needs.NotRaced(t, "another process")
	t.Parallel()
	for _, window := range []struct {
		point      string
		stage      filing.Stage
		registered int // when the process dies
		events     int64
	}{
		{"", filing.Received, 0, 0},
		{"prepared", filing.Prepared, 0, 0},
		{"sent", filing.Sent, 0, 0},
		{"answered", filing.Sent, 1, 0},
		{"settled", filing.Settled, 1, 1},
	} {
		t.Run("after "+string(window.stage)+" "+window.point, func(t *testing.T) {
			t.Parallel()
			a := newAuthorities(t)
			s := a.Setup()
			s.Documents = "file://" + t.TempDir()
			url := dbtest.SQLiteURL(t)
			supplier := furnish(t, url, s)
			id := killAt(t, errand{Database: url, Simulators: a.URL, Documents: s.Documents, Point: window.point,
				Body: invoice(byNumber, supplier, "t1").Body(t)})

			n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s)
			same(t, "stage after the kill", n.Stage(id), string(window.stage))
			same(t, "registrations at the kill", len(a.Registered(byNumber)), window.registered)
			same(t, "events at the kill", n.Events(id), window.events)
			n.Start()
			r := n.Succeeds(id)
			if r.AuthorityID1 == nil || *r.AuthorityID1 != a.Registrations(byNumber)[0].AuthorityID {
				t.Errorf("the result has not the authority's own id: %v", r.AuthorityID1)
			}
			same(t, "registrations", len(a.Registered(byNumber)), 1)
			same(t, "events", n.Events(id), 1)
			same(t, "crash count", one[int64](t, n.DB, "SELECT max(crashes) FROM operations"), 0)
		})
	}
}

// furnish makes a database with one supplier and closes it.
func furnish(t *testing.T, url string, s setup) (supplier string) {
	t.Helper()
	t.Run("furnish", func(t *testing.T) { // whose end closes the database
		supplier = newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Supplier(byNumber, "s1")
	})
	return supplier
}
