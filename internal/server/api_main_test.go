package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/authority/aeat"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/leaks"
	"tributary/internal/secret"
	"tributary/internal/server"
	"tributary/internal/webhook"
)

// The README's key: its lines are run against the program of the tests.
const demoKey = "trb_test_demo_0123456789012345678901234567890123456789012"

const patience = 10 * time.Minute // for what a machine under load does in the end; never waited out when all is well

func TestMain(m *testing.M) {
	leaks.AtEnd(func() (err error) {
		for _, p := range []*program{started.busy, started.quiet} {
			if p != nil {
				err = errors.Join(err, p.stop())
			}
		}
		if begun.dir != "" {
			err = errors.Join(err, os.RemoveAll(begun.dir))
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		return err
	})
	leaks.Main(m)
}

// program is a whole running demo with a receiver of its webhooks.
type program struct {
	*server.Server
	cfg      server.Config
	inbox    *inbox
	dir      string
	cancel   context.CancelFunc
	ended    chan error
	stranger string // key of a second client
	limited  string // key of a client with a rate limit as in serve
	weighed  string // key of a client whose requests are weighed by their bytes
}

// started are the two programs that all tests share: starting one costs more
// than most tests. busy does its work; quiet accepts and never works, so that
// thousands of bodies leave nothing behind but rows.
var started struct {
	once        [2]sync.Once
	busy, quiet *program
	err         [2]error
}

func busy(t testing.TB) *program {
	t.Helper()
	started.once[0].Do(func() { started.busy, started.err[0] = start(true, "") })
	if started.err[0] != nil {
		t.Fatal(started.err[0])
	}
	return started.busy
}

func quiet(t testing.TB) *program {
	t.Helper()
	started.once[1].Do(func() { started.quiet, started.err[1] = start(false, "") })
	if started.err[1] != nil {
		t.Fatal(started.err[1])
	}
	return started.quiet
}

// start runs a demo; database is empty for a file of its own.
func start(worker bool, database string) (*program, error) {
	return startAt(worker, database, nil)
}

// startAt is start with another clock for retention; nil: the clock of the machine.
func startAt(worker bool, database string, now func() time.Time) (*program, error) {
	dir, err := os.MkdirTemp("", "tributary-api-test-")
	if err != nil {
		return nil, err
	}
	p := &program{dir: dir, inbox: newInbox(), ended: make(chan error, 1)}
	p.cfg = server.Config{
		Demo: true, API: true, Worker: worker, Listen: "127.0.0.1:0", Simulators: "127.0.0.1:0", Callbacks: "127.0.0.1:0",
		Data: dir, Database: database, Version: "test",
		APIKey: secret.New([]byte(demoKey)), WebhookURL: p.inbox.server.URL, DocumentTTL: time.Second,
		WebhookRetryBase: 50 * time.Millisecond, AuthorityRetryBase: 50 * time.Millisecond,
		Packs: []country.Pack{hastySpain()},
	}.AtTime(now)
	if err := seed(dir, database); err != nil {
		return nil, err
	}
	if err := p.launch(); err != nil {
		return nil, err
	}
	if p.stranger, err = p.newClient("stranger", account.Rate{}); err != nil {
		return nil, err
	}
	if p.limited, err = p.newClient("limited", account.Rate{PerSecond: 1, Burst: 3}); err != nil {
		return nil, err
	}
	if p.weighed, err = p.newClient("weighed", account.Rate{PerSecond: 1, Burst: 100}); err != nil {
		return nil, err
	}
	p.inbox.trust(demoKey, p.stranger, p.limited)
	return p, p.await()
}

// hastySpain is Spain with an AEAT that does not ask to wait between two calls:
// how the wait is kept is tested where filing is.
func hastySpain() country.Pack {
	pack := packOf("ES")
	pack.Simulator = aeat.Habits{Page: 10_000}.New
	return pack
}

// packOf is one of the world's packs.
func packOf(code string) country.Pack {
	packs, err := world.Packs()
	if err != nil {
		panic(err)
	}
	return packs[slices.IndexFunc(packs, func(p country.Pack) bool { return p.Code == code })]
}

// launch opens the program and lets it go.
func (p *program) launch() (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	if p.Server, err = open(ctx, p.cfg); err == nil {
		go func() { p.ended <- p.Run(ctx) }()
	}
	return err
}

func (p *program) await() error {
	select {
	case <-p.Ready():
		return nil
	case err := <-p.ended:
		return fmt.Errorf("the program ended: %w", err)
	}
}

// restart ends the program and starts it again on the same folder and database.
func (p *program) restart() error {
	p.cancel()
	if err := errors.Join(<-p.ended, p.Close()); err != nil {
		return err
	}
	if err := p.launch(); err != nil {
		return err
	}
	return p.await()
}

func (p *program) newClient(id string, rate account.Rate) (string, error) {
	_, key, err := p.Accounts().CreateClient(context.Background(), audit.Actor{Name: "test"},
		account.NewClient{ID: id, Config: account.Config{
			DisplayName: id, Countries: map[string]country.UseCase{account.AllCountries: country.Both}, Rate: rate,
			Webhooks: account.Webhooks{All: p.inbox.server.URL},
		}})
	return key.RevealText(), err
}

func (p *program) stop() error {
	p.cancel()
	err := errors.Join(<-p.ended, p.Close())
	p.inbox.server.Close()
	return errors.Join(err, os.RemoveAll(p.dir))
}

// inbox is a client's receiver: it verifies and keeps every notification.
type inbox struct {
	server *httptest.Server
	mu     sync.Mutex
	keys   []secret.Secret
	got    map[string][]webhook.Notification // by resource_id
	wrong  []error
	change chan struct{} // closed at every arrival
}

func newInbox() *inbox {
	b := &inbox{got: map[string][]webhook.Notification{}, change: make(chan struct{})}
	b.server = httptest.NewServer(b)
	return b
}

func (b *inbox) trust(keys ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range keys {
		b.keys = append(b.keys, secret.New([]byte(k)))
	}
}

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	var n webhook.Notification
	if err == nil {
		err = webhook.ErrSignature
		for _, key := range b.keys {
			if n, err = webhook.VerifyHeaders(body, webhook.Signed{Header: r.Header}, key,
				webhook.Freshness{Now: time.Now(), Max: time.Minute}); err == nil {
				break
			}
		}
	}
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		b.wrong = append(b.wrong, fmt.Errorf("%s %s %q: %w", r.Method, r.Header, body, err))
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	b.got[n.ResourceID] = append(b.got[n.ResourceID], n)
	close(b.change)
	b.change = make(chan struct{})
}

// await returns the notifications of a resource once there are n of them.
func (b *inbox) await(t testing.TB, resourceID string, n int) []webhook.Notification {
	t.Helper()
	late := time.After(patience)
	for {
		b.mu.Lock()
		got, change, wrong := b.got[resourceID], b.change, b.wrong
		b.mu.Unlock()
		if len(wrong) > 0 {
			t.Fatalf("a notification could not be verified: %v", wrong[0])
		}
		if len(got) >= n {
			return got
		}
		select {
		case <-change:
		case <-late:
			t.Fatalf("%d notifications of %s after %s, want %d", len(got), resourceID, patience, n)
		}
	}
}
