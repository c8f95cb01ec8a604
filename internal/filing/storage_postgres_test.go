package filing_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// crowd are clients that submit without end and, when they hear 503, the same
// again, as clients are told to.
type crowd struct {
	t       *testing.T
	n       *node
	stop    atomic.Bool
	wg      sync.WaitGroup
	answers atomic.Int64
	refused atomic.Int64
	mu      sync.Mutex
	ids     map[string]string
}

func gather(t *testing.T, n *node, supplier string, clients int) *crowd {
	t.Helper()
	c := &crowd{t: t, n: n, ids: map[string]string{}}
	for w := range clients {
		c.wg.Go(func() {
			for i := 0; !c.stop.Load(); i++ {
				c.insist(fmt.Sprintf("w%d-%d", w, i), supplier)
			}
		})
	}
	return c
}

// insist submits one transaction until it is accepted.
func (c *crowd) insist(name, supplier string) {
	body := invoice(byNumber, supplier, name).Body(c.t)
	for !c.stop.Load() {
		id, err := c.n.Submit(context.Background(), caller(client), transaction.Invoice, body)
		c.answers.Add(1)
		if err == nil {
			c.mu.Lock()
			c.ids[id] = name
			c.mu.Unlock()
			return
		}
		c.refused.Add(1)
		if fault.KindOf(err) != fault.Unavailable {
			c.t.Errorf("on a bad day a submit answers %v", err)
			return
		}
		time.Sleep(20 * time.Millisecond) // as a client would
	}
}

// until waits for so many more answers.
func (c *crowd) until(more int64) {
	for from := c.answers.Load(); c.answers.Load() < from+more; {
		time.Sleep(time.Millisecond) // a crowd has no signal to give
	}
}

// leave ends the submitting and holds every answer against what became of it.
func (c *crowd) leave(a *authorities) {
	c.t.Helper()
	c.stop.Store(true)
	c.wg.Wait()
	accepted(c.t, c.n, a, c.ids)
	c.t.Logf("%d accepted, %d refused", len(c.ids), c.refused.Load())
}

// Sessions are ended while clients submit and lanes are worked: every 202 ends
// in one result, and nothing is filed twice.
func TestTerminatedSessionsLoseNoTransaction(t *testing.T) {
	t.Parallel()
	address := dbtest.MigratedURL(t)
	a := newAuthorities(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: address}), a.Setup())
	supplier := n.Supplier(byNumber, "s1")
	n.Start()
	c := gather(t, n, supplier, 8)
	ended := 0
	for range 6 {
		c.until(25)
		ended += endSessions(t, address)
	}
	c.until(25)
	c.leave(a)
	if ended < 6 {
		t.Errorf("only %d sessions were ended: the test tests nothing", ended)
	}
}

// endSessions terminates everybody else's sessions on the database.
func endSessions(t *testing.T, address string) (ended int) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, address)
	must(t, err)
	defer func() { _ = conn.Close(ctx) }() // a test's own connection
	must(t, conn.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&ended))
	return ended
}

// The server itself is killed and comes back: the same promise.
func TestAKilledServerLosesNoTransaction(t *testing.T) {
	needs.NotRaced(t, "a server of its own")
	t.Parallel()
	dbtest.PostgresURL(t) // skips where there is none
	s, err := dbtest.StartServer(os.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	a := newAuthorities(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: s.URL()}), a.Setup())
	supplier := n.Supplier(byNumber, "s1")
	n.Start()
	c := gather(t, n, supplier, 4)
	kills := 1
	if needs.IsLong() {
		kills = 5
	}
	for range kills {
		c.until(30)
		must(t, s.Kill())
		c.until(16) // refusals
		must(t, s.Start())
	}
	c.until(30)
	c.leave(a)
	if c.refused.Load() == 0 {
		t.Error("nothing was refused: the test tests nothing")
	}
}

// Hard case 13 at every byte: the connection ends after k bytes of the submit's
// COMMIT and its answer. The client hears 503 and submits again; one
// registration, and every operation, told of or not, has its result and event.
func TestHardCase13CutAfterAnyByteOfCommitFilesOnce(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one commit after the other")
	u, err := url.Parse(dbtest.MigratedURL(t))
	must(t, err)
	s := dbtest.StartProxy(t, u.Host)
	u.Host = s.Addr()
	a := newAuthorities(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: u.String()}), a.Setup())
	supplier := n.Supplier(byNumber, "s1")
	all := int64(len(dbtest.CommitMessage) + len("C\x00\x00\x00\x0bCOMMIT\x00") + len("Z\x00\x00\x00\x05I"))
	c := &crowd{t: t, n: n, ids: map[string]string{}}
	missed := int64(0) // cuts that hit a commit of the program's own
	for k := range all {
		before := c.refused.Load()
		for try := range 5 {
			s.Cut.Store(k)
			if c.insist(fmt.Sprintf("cut-%02d-%d", k, try), supplier); c.refused.Load() > before {
				break
			}
			missed++
		}
		if s.Fired.Load() != k+1+missed || c.refused.Load() == before {
			t.Errorf("after %d of %d bytes: %d cuts so far, %d missed, %d refusals", k, all, s.Fired.Load(), missed,
				c.refused.Load()-before)
		}
	}
	stored := one[int64](t, n.DB, "SELECT count(*) FROM operations")
	// Cut in the COMMIT nothing is stored; cut in its answer the first try is.
	same(t, "operations", stored, 2*all-int64(len(dbtest.CommitMessage))+missed)
	n.Start()
	c.leave(a)
}
