package filing_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
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
		time.Sleep(2 * time.Millisecond) // as a client would
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
	t.Parallel()
	dbtest.PostgresURL(t) // skips where there is none
	s, err := dbtest.StartServer(os.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	a := newAuthorities(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: s.URL()}), a.Setup())
	supplier := n.Supplier(byNumber, "s1")
	n.Start()
	c := gather(t, n, supplier, 8)
	for range 2 {
		c.until(60)
		must(t, s.Kill())
		c.until(16) // refusals
		must(t, s.Start())
	}
	c.until(60)
	c.leave(a)
	if c.refused.Load() == 0 {
		t.Error("nothing was refused: the test tests nothing")
	}
}

// scissors cut a connection to PostgreSQL after so many bytes of a COMMIT and its answer.
type scissors struct {
	cutter
	pass atomic.Int64 // of the next COMMIT; -1: everything
	cuts atomic.Int64
}

var commitText = []byte("Q\x00\x00\x00\x0bcommit\x00")

func newScissors(t *testing.T, to string) *scissors {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &scissors{cutter: cutter{l: l, to: to}}
	s.pass.Store(-1)
	s.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.carry(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); s.wg.Wait() })
	return s
}

func (s *scissors) carry(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", s.to)
	if err != nil {
		return
	}
	defer to.Close()
	var left atomic.Int64 // bytes of the answer that still pass; -1: all
	left.Store(-1)
	s.wg.Go(func() {
		defer from.Close()
		defer to.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := to.Read(buf)
			if rest := left.Load(); rest >= 0 {
				_, _ = from.Write(buf[:min(int64(n), rest)]) // cut right after
				return
			}
			if _, bad := from.Write(buf[:n]); err != nil || bad != nil {
				return
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if at := bytes.Index(buf[:n], commitText); at >= 0 {
			if pass := s.pass.Swap(-1); pass >= 0 {
				s.cuts.Add(1)
				whole := int64(len(commitText))
				left.Store(max(pass-whole, 0))
				_, _ = to.Write(buf[:int64(at)+min(pass, whole)]) // cut right after
				if pass >= whole {
					_, _ = io.Copy(io.Discard, from) // until the answer's side cuts
				}
				return
			}
		}
		if _, bad := to.Write(buf[:n]); err != nil || bad != nil {
			return
		}
	}
}

// Hard case 13 at every byte: the connection ends after k bytes of the submit's
// COMMIT and its answer. The client hears 503 and submits again; one
// registration, and every operation, told of or not, has its result and event.
func TestHardCase13CutAfterAnyByteOfCommitFilesOnce(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(dbtest.MigratedURL(t))
	must(t, err)
	s := newScissors(t, u.Host)
	u.Host = s.l.Addr().String()
	a := newAuthorities(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: u.String()}), a.Setup())
	supplier := n.Supplier(byNumber, "s1")
	all := int64(len(commitText) + len("C\x00\x00\x00\x0bCOMMIT\x00") + len("Z\x00\x00\x00\x05I"))
	c := &crowd{t: t, n: n, ids: map[string]string{}}
	for k := range all {
		before := c.refused.Load()
		s.pass.Store(k)
		c.insist(fmt.Sprintf("cut-%02d", k), supplier)
		if s.cuts.Load() != k+1 || c.refused.Load() == before {
			t.Errorf("after %d of %d bytes: %d cuts so far, %d refusals", k, all, s.cuts.Load(), c.refused.Load()-before)
		}
	}
	stored := one[int64](t, n.DB, "SELECT count(*) FROM operations")
	// Cut in the COMMIT nothing is stored; cut in its answer the first try is.
	same(t, "operations", stored, 2*all-int64(len(commitText)))
	n.Start()
	c.leave(a)
}
