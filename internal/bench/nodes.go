package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"tributary/internal/fault"
	"tributary/internal/server"
)

// The work of nodes is waiting for authorities: one that answers after
// nodeDelay (in a quick run nodeLate), takes one filing per call, and nodeSlots calls of a node at a time.
const (
	nodesMax   = 16
	nodeSlots  = 8
	nodeDelay  = 50 * time.Millisecond
	nodeLate   = 200 * time.Millisecond // of a quick run: all slots are in use on a busy machine, too
	nodeSales  = 960                    // six seconds of one node
	nodeQuick  = 160
	nodeConns  = 32
	nodeEnding = 20 * time.Second
)

// nodes measures what one process settles and what several do, with processes
// of the real program that each take submits and work them off.
func (r *run) nodes(ctx context.Context) error {
	if r.cfg.Nodes < 1 || r.cfg.Nodes > nodesMax {
		return fault.New(fault.Invalid, "--nodes: must be 1 to %d", nodesMax)
	}
	if !strings.HasPrefix(r.cfg.Database, "postgres") {
		return fault.New(fault.Invalid, "--nodes: several nodes need one PostgreSQL: give --database postgres://USER@HOST/NAME")
	}
	at, err := r.place(ctx, "nodes")
	if err != nil {
		return err
	}
	// A node of our own makes suppliers, has the simulators and watches; it works nothing.
	s, err := r.openAt(ctx, at, func(c *server.Config) { c.Worker = false })
	if err != nil {
		return errors.Join(err, at.drop())
	}
	s.drop = at.drop
	return errors.Join(r.scaleOut(ctx, s, at), s.close())
}

func (r *run) scaleOut(ctx context.Context, s *subject, at *place) error {
	sales, delay := nodeSales, nodeDelay
	if r.cfg.Quick {
		sales, delay = nodeQuick, nodeLate // fewer would not keep the slots of two nodes busy
	}
	fmt.Fprintf(r.cfg.Err, "onboarding %d suppliers …\n", sales)
	suppliers, err := s.AddSuppliers(ctx, sales) // one sale each, so that no two can share a call
	if err != nil {
		return err
	}
	authority, err := newSlowAuthority(s.SimulatorsURL(), delay)
	if err != nil {
		return err
	}
	defer authority.Close()
	rates := map[int]float64{}
	for _, n := range []int{1, r.cfg.Nodes} {
		if _, done := rates[n]; done {
			continue
		}
		fmt.Fprintf(r.cfg.Err, "measuring %d node(s) …\n", n)
		before, err := deadlocks(ctx, at.database)
		if err != nil {
			return err
		}
		settled, err := r.withNodes(ctx, s, n, func(i int) (*node, error) {
			return r.startNode(ctx, at, i, authority.URL)
		}, suppliers)
		if err != nil {
			return err
		}
		after, err := deadlocks(ctx, at.database)
		if err != nil {
			return err
		}
		calls, atOnce := authority.anew()
		rates[n] = settled.rate()
		of := fmt.Sprintf("_%d_nodes", n)
		r.report.add("settled_per_second"+of, settled.rate(), "1/s")
		r.report.add("submit_p99"+of, ms(settled.percentile(.99)), "ms")
		r.report.add("filings_per_call"+of, float64(sales)/float64(calls), "")
		r.report.add("calls_at_once"+of, float64(atOnce), "")
		r.report.add("deadlocks"+of, float64(after-before), "")
	}
	r.report.add("settled_nodes_to_one", rates[r.cfg.Nodes]/rates[1], "x")
	return nil
}

// slowAuthority stands before the simulators, answers late and counts calls.
type slowAuthority struct {
	*httptest.Server
	mu                     sync.Mutex
	calls, now, mostAtOnce int
}

func newSlowAuthority(simulators string, delay time.Duration) (*slowAuthority, error) {
	at, err := url.Parse(simulators)
	if err != nil {
		return nil, err
	}
	forward := httputil.NewSingleHostReverseProxy(at)
	a := &slowAuthority{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		a.mu.Lock()
		a.calls++
		a.now++
		a.mostAtOnce = max(a.mostAtOnce, a.now)
		a.mu.Unlock()
		select {
		case <-time.After(delay):
		case <-req.Context().Done():
		}
		a.mu.Lock()
		a.now-- // before the answer: its reader may be here again at once
		a.mu.Unlock()
		forward.ServeHTTP(w, req)
	}))
	return a, nil
}

// anew forgets what was counted, and answers it.
func (a *slowAuthority) anew() (calls, mostAtOnce int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	calls, mostAtOnce = a.calls, a.mostAtOnce
	a.calls, a.mostAtOnce = 0, 0
	return calls, mostAtOnce
}

// withNodes starts nodes, submits a sale of every supplier and waits until all are settled.
func (r *run) withNodes(ctx context.Context, s *subject, n int, start func(i int) (*node, error),
	suppliers []string) (all outcome, err error) {
	var running []*node
	defer func() {
		for _, node := range running {
			err = errors.Join(err, node.end())
		}
	}()
	var addresses []string
	for i := range n {
		node, err := start(i)
		if err != nil {
			return all, err
		}
		running = append(running, node)
		addresses = append(addresses, host(node.url))
	}
	demo := s.Demo()
	l := load{
		address: addresses[0], beside: addresses[1:], connections: nodeConns, total: len(suppliers),
		header: "Authorization: Bearer " + demo.APIKey + "\r\n",
		request: func(i int) (string, []byte) {
			return "/v1/transactions", body(fmt.Sprintf("%s-nodes-%d-%08d", s.mark, n, i), suppliers[i])
		},
	}
	began := time.Now()
	if all, err = l.run(ctx); err != nil {
		return all, err
	}
	if all.refused+all.failed > 0 {
		return all, fmt.Errorf("%d of %d submissions were rejected and %d failed", all.refused, all.requests, all.failed)
	}
	err = s.WaitSettled(ctx)
	all.took = time.Since(began)
	return all, err
}

// node is one process of the program.
type node struct {
	cmd *exec.Cmd
	url string
}

// startNode runs the program until it says that it is ready.
func (r *run) startNode(ctx context.Context, at *place, i int, authority string) (*node, error) {
	cmd := exec.Command(r.cfg.Program, "serve", "--database", at.database, "--data", at.data,
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--simulators", authority, "--authority-slots", fmt.Sprint(nodeSlots))
	log, err := os.Create(filepath.Join(r.dir, fmt.Sprintf("node-%d.log", i)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has its own
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a node: %w", err)
	}
	n := &node{cmd: cmd}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // it may have ended
	defer stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
			n.url = at
			return n, nil
		}
	}
	said, err := os.ReadFile(log.Name())
	return nil, errors.Join(fmt.Errorf("a node exited before it was ready: %s", said), err, lines.Err(), cmd.Wait())
}

func (n *node) end() error {
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("end a node: %w", err)
	}
	late := time.AfterFunc(nodeEnding, func() { _ = n.cmd.Process.Kill() }) // Wait tells
	defer late.Stop()
	return n.cmd.Wait()
}

// deadlocks asks the server how many it has had to break in this database.
func deadlocks(ctx context.Context, database string) (n int64, err error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // one question
	err = conn.QueryRow(ctx, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n)
	return n, err
}
