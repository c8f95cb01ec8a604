package server_test

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/official/xxwire"
	"tributary/internal/recovery"
	"tributary/internal/secret"
	"tributary/internal/server"
	"tributary/internal/transaction"
)

// demoIn opens a demo in a folder, which outlives it. Nothing runs before run.
func demoIn(t *testing.T, dir string, restored bool, packs ...country.Pack) *program {
	t.Helper()
	p := &program{dir: dir, inbox: newInbox(), ended: make(chan error, 1)}
	t.Cleanup(p.inbox.server.Close)
	p.inbox.trust(demoKey)
	var err error
	p.Server, err = open(t.Context(), server.Config{
		Demo: true, API: true, Worker: true, Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", Simulators: "127.0.0.1:0",
		Callbacks: "127.0.0.1:0", Data: dir, Version: "test", Restored: restored, Packs: append(packs, hastySpain()),
		APIKey: secret.New([]byte(demoKey)), WebhookURL: p.inbox.server.URL, WebhookRetryBase: 50 * time.Millisecond,
		AuthorityRetryBase: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run serves until the returned function is called, at the latest when the test ends.
func (p *program) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	go func() { p.ended <- p.Run(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			if err := errors.Join(<-p.ended, p.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	<-p.Ready()
	return stop
}

// silentLists is the reference country with an authority that does not answer
// what it holds before speak is called.
func silentLists(t *testing.T) (pack country.Pack, speak func()) {
	t.Helper()
	speaks := make(chan struct{})
	pack = packOf(transaction.ReferenceCode)
	simulator := pack.Simulator
	pack.Simulator = func(d *authority.Desk) http.Handler {
		next := simulator(d)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == xxwire.PathList {
				select {
				case <-speaks:
				case <-r.Context().Done(): // whoever asked has gone
				}
			}
			next.ServeHTTP(w, r)
		})
	}
	speak = sync.OnceFunc(func() { close(speaks) })
	t.Cleanup(speak)
	return pack, speak
}

// script says what the authority of XX does next.
func (p *program) script(t *testing.T, step string) { p.scripted(t, "xx", step) }

// scripted tells an authority how to behave at the next call.
func (p *program) scripted(t *testing.T, code, step string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.SimulatorsURL()+"/_control/"+code+"/script",
		strings.NewReader(`{"steps":[`+step+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	if a := exchange(t, r); a.status/100 != 2 {
		t.Fatalf("the script: %d %s", a.status, a.body)
	}
}

// ended polls a result: events of the lost life went to its own receiver.
func (c *caller) ended(t *testing.T, operation string) object {
	t.Helper()
	var got object
	eventually(t, "operation "+operation+" has ended", func() bool {
		got = c.want(t, http.StatusOK, "GET", "/v1/transactions/"+operation, nil).json(t)
		return got["status"] != "PROCESSING"
	})
	return got
}

func putBack(t *testing.T, backup, database string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(database + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := os.Rename(backup, database); err != nil {
		t.Fatal(err)
	}
}

// Hard case 15 through the front door, with five authorities: a backup from
// the middle of the day is restored, the intake stays closed until they were
// asked, also after a restart without the flag; then the client submits its
// day again and nothing is registered twice.
func TestHardCase15ARestoredProgramOpensWhenTheAuthoritiesWereAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	database, backup := filepath.Join(dir, "tributary.db"), filepath.Join(dir, "backup.db")
	seeded(t, dir, "")
	p := demoIn(t, dir, false)
	stop := p.run(t)
	c := p.as(demoKey)
	day := []object{}
	for _, id := range []string{"before", "after"} {
		day = append(day, p.sale(t, "XX-"+id, nil))
		for code, a := range realAuthorities(t) {
			day = append(day, p.abroad(t, a, code+"-"+id+"-1"))
		}
	}
	ids := map[string]object{}
	submit := func(body object) object { return c.ended(t, c.submit(t, "/v1/transactions", body)) }
	for i, body := range day {
		if i == len(day)/2 {
			if err := db.Backup(t.Context(), "sqlite:"+database, backup); err != nil {
				t.Fatal(err)
			}
		}
		got := submit(body)
		if got["status"] != "SUCCESS" {
			t.Fatalf("%v: %v", body["transaction_id"], got["errors"])
		}
		ids[body["transaction_id"].(string)] = got
	}
	known := ids["XX-before"]["operation_id"].(string)
	stop()
	putBack(t, backup, database)

	silent, _ := silentLists(t)
	p = demoIn(t, dir, true, silent)
	stop = p.run(t)
	p.refusesSubmits(t, day[len(day)/2], known)
	stop() // in the middle

	silent, speak := silentLists(t)
	p = demoIn(t, dir, false, silent)
	stop = p.run(t)
	p.refusesSubmits(t, day[len(day)/2], known)
	speak()
	c = p.as(demoKey)
	select {
	case <-p.Opened():
	case <-time.After(patience):
		t.Fatal("the intake stays closed")
	}
	// A chain that went on without us; an access point lists nothing, nor do a platform and SdI.
	held := map[string]string{"ES": "chain", "BE": "unlisted", "FR": "unlisted", "IT": "unlisted"}
	for _, body := range day {
		id := body["transaction_id"].(string)
		operation := c.submit(t, "/v1/transactions", body)
		if code, when, _ := strings.Cut(id, "-"); held[code] != "" && strings.HasPrefix(when, "after") {
			continue // until a person decides
		}
		got := c.ended(t, operation)
		if got["status"] != "SUCCESS" || got["tax_authority_id_1"] != ids[id]["tax_authority_id_1"] ||
			got["tax_authority_id_1"] == nil {
			t.Errorf("%s: %v with id %v, was %v; %v", id, got["status"], got["tax_authority_id_1"],
				ids[id]["tax_authority_id_1"], got["errors"])
		}
	}
	for code := range realAuthorities(t) {
		p.holdsOnce(t, code, 2)
		if got, want := p.restoredState(t, p.Demo().Suppliers[code]), cmp.Or(held[code], "asked"); got != want {
			t.Errorf("%s is %q, want %q", code, got, want)
		}
	}
	stop()
}

// refusesSubmits asserts that the intake is closed and everything else is not.
func (p *program) refusesSubmits(t *testing.T, body object, known string) {
	t.Helper()
	select {
	case <-p.Opened():
		t.Fatal("the intake is open before the authorities were asked")
	default:
	}
	c := p.as(demoKey)
	refused := c.want(t, http.StatusServiceUnavailable, "POST", "/v1/transactions", body)
	if refused.header.Get("Retry-After") == "" || refused.code(t) != "overloaded" {
		t.Errorf("%v %s", refused.header, refused.body)
	}
	c.want(t, http.StatusOK, "POST", "/v1/transactions/validate", body)
	c.want(t, http.StatusOK, "GET", "/v1/transactions/"+known, nil)
	c.want(t, http.StatusOK, "GET", "/readyz", nil)
}

// holdsOnce asserts that an authority holds so many numbers, each once.
func (p *program) holdsOnce(t *testing.T, code string, numbers int) {
	t.Helper()
	times := map[string]int{}
	for _, entry := range p.book(t, code) {
		times[entry.(object)["number"].(string)]++
	}
	for number, n := range times {
		if n != 1 {
			t.Errorf("%s: %s is registered %d times", code, number, n)
		}
	}
	if len(times) != numbers {
		t.Errorf("%s holds %v", code, times)
	}
}

// restoredState is where the restoration stands with a supplier.
func (p *program) restoredState(t *testing.T, supplier string) (state string) {
	t.Helper()
	guest, err := db.Open(t.Context(), db.Config{URL: "sqlite:" + filepath.Join(p.dir, "tributary.db"), NoWorkers: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = guest.Close() }() // read only
	err = guest.Read(t.Context(), func(r db.Reader) error {
		list, _, err := recovery.Restored(r)
		for _, s := range list {
			if s.SupplierID == supplier {
				state = s.State
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return state
}
