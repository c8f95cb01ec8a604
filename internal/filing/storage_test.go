//go:build linux

package filing_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/document"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/needs"
	"tributary/internal/simulation"
	"tributary/internal/transaction"
)

// accepted checks that everything that was answered with an id comes to its
// end: SUCCESS, one registration for each transaction, one event for each operation.
func accepted(t *testing.T, n *node, a *authorities, ids map[string]string) {
	t.Helper()
	for id, transactionID := range ids {
		if r := n.Succeeds(id); string(r.TransactionID) != transactionID {
			t.Errorf("operation %s is of %s, was promised for %s", id, r.TransactionID, transactionID)
		}
	}
	// What nobody was told of may exist as well: its commit was cut off. It ends alike.
	n.Until("nothing is open", func() bool {
		return one[int64](t, n.DB, "SELECT count(*) FROM operations WHERE status = 'PROCESSING'") == 0
	})
	same(t, "failures", one[int64](t, n.DB, "SELECT count(*) FROM operations WHERE status <> 'SUCCESS'"), 0)
	same(t, "events", one[int64](t, n.DB, "SELECT count(DISTINCT resource_id) FROM webhook_events"),
		one[int64](t, n.DB, "SELECT count(*) FROM operations"))
	same(t, "registrations", int64(len(a.Registered(byNumber))), one[int64](t, n.DB, "SELECT count(*) FROM transactions"))
	same(t, "operations without a body", one[int64](t, n.DB,
		"SELECT count(*) FROM operations WHERE operation_id NOT IN (SELECT operation_id FROM bodies)"), 0)
}

// Hard case 14: where space is missing nothing is accepted, reads go on, what
// was accepted before waits, and when there is space again everything ends.
func TestHardCase14AFullDiskAcceptsNothingAndLosesNothing(t *testing.T) {
	needs.NotRaced(t, "on SQLite")
	t.Parallel()
	disk := simulation.SmallDisk(t, 12<<20)
	a := newAuthorities(t)
	s := a.Setup()
	s.Documents = "file://" + disk.Dir + "/documents"
	page := bytes.Repeat([]byte("page"), 4<<10)
	s.Render = func(_ context.Context, issued filing.Issued) (document.Rendering, error) {
		return document.Rendering{PDF: append([]byte(issued.OperationID), page...)}, nil
	}
	n := newNode(t, dbtest.Open(t, db.Config{URL: "sqlite:" + disk.Dir + "/tributary.db"}), s)
	supplier := n.Supplier(byNumber, "s1")
	ids, refused := map[string]string{}, 0
	hand := func(name string) {
		id, err := n.Submit(t.Context(), caller(client), transaction.Invoice, invoice(byNumber, supplier, name).Body(t))
		switch {
		case err == nil:
			ids[id] = name
		case fault.KindOf(err) == fault.Unavailable:
			refused++
		default:
			t.Errorf("a submit on a full disk answers %v", err)
		}
	}
	for i := range 20 {
		hand(fmt.Sprint("before", i))
	}
	disk.Fill(64 << 10)
	for i := range 60 {
		hand(fmt.Sprint("full", i))
	}
	if refused == 0 || len(ids) < 20 {
		t.Fatalf("%d were accepted, %d refused: the disk is not full", len(ids), refused)
	}
	for id := range ids {
		same(t, "what is read on a full disk", n.Show(id).Status, filing.Processing)
	}
	// Now the workers try on the full disk, and fail at whatever they must write.
	n.Start()
	n.Until("a lane was visited", func() bool { return strings.Contains(n.Log.String(), "the disk is full") })
	if failed := one[int64](t, n.DB, "SELECT count(*) FROM operations WHERE status = 'FAILURE'"); failed > 0 {
		t.Errorf("%d operations failed because our disk is full", failed)
	}
	disk.Empty()
	hand("after")
	accepted(t, n, a, ids)
	t.Logf("%d accepted, %d refused", len(ids), refused)
}

// storageChild makes the test binary submit on a disk that breaks: how long
// files may become, database, simulators, documents and supplier follow.
const storageChild = "TRIBUTARY_TRANSACTION_STORAGE_CHILD"

func TestStorageChild(t *testing.T) {
	text := os.Getenv(storageChild)
	if text == "" {
		t.Skip("only as a child of TestHardCase14AnErrorAtTheNthWriteLosesNothing")
	}
	e := strings.Split(text, " ")
	limit, err := strconv.ParseUint(e[0], 10, 64)
	must(t, err)
	n := newNode(t, dbtest.Open(t, db.Config{URL: e[1]}), setup{Packs: variants(), Simulators: e[2], Documents: e[3]})
	signal.Ignore(syscall.SIGXFSZ)
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}))
	n.Start()
	var mu sync.Mutex // whole lines
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 40 {
				name := fmt.Sprintf("w%d-%d", w, i)
				id, err := n.Submit(t.Context(), caller(client), transaction.Invoice, invoice(byNumber, e[4], name).Body(t))
				mu.Lock()
				if err == nil {
					fmt.Println("accepted", id, name)
				} else {
					fmt.Println(fault.KindOf(err), err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// An error at some write, each time at another one: from then on the process
// refuses or ends, and what it had accepted is there when the next one starts.
func TestHardCase14AnErrorAtTheNthWriteLosesNothing(t *testing.T) {
	needs.NotRaced(t, "another process")
	t.Parallel()
	places := 6
	if text := os.Getenv("TRIBUTARY_STORAGE_FAULTS"); text != "" {
		var err error
		places, err = strconv.Atoi(text)
		must(t, err)
	}
	for n := range places {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			// The log grows by frames of a page and 24 bytes; a step that shares no
			// factor with them meets every part of a frame.
			breakAt(t, uint64(150_000+n*17_041))
		})
	}
}

func breakAt(t *testing.T, limit uint64) {
	dir := t.TempDir()
	a := newAuthorities(t)
	s := a.Setup()
	s.Documents = "file://" + dir + "/documents"
	url := "sqlite:" + dir + "/tributary.db"
	supplier := furnish(t, url, s)
	cmd := exec.Command(os.Args[0], "-test.run=^TestStorageChild$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s %s %s %s", storageChild, limit, url, a.URL, s.Documents,
		supplier))
	out, err := cmd.Output()
	ids, refused := map[string]string{}, 0
	for line := range strings.Lines(string(out)) {
		switch words := strings.Fields(line); {
		case len(words) == 3 && words[0] == "accepted":
			ids[words[1]] = words[2]
		case words[0] == fmt.Sprint(fault.Unavailable):
			refused++
		case words[0] == "PASS" || words[0] == "coverage:":
		default:
			t.Errorf("a submit on a broken disk answers %s", line)
		}
	}
	if _, ended := err.(*exec.ExitError); len(ids) == 0 || !ended && refused == 0 {
		t.Fatalf("%d were accepted, %d refused, the process ended with %v: nothing broke\n%.2000s", len(ids), refused, err,
			out)
	}
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Start()
	accepted(t, n, a, ids)
	t.Logf("writes past byte %d fail: %d accepted, %d refused, the process ended with %v", limit, len(ids), refused, err)
}
