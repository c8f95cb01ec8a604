package account_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/leaks"
	"tributary/internal/secret"
)

func TestMain(m *testing.M) {
	leaks.Main(m)
}

const event = "transactions.transaction_completed"

func operator() audit.Actor { return audit.Actor{Name: "ana", Kid: "k1", IP: "192.0.2.7"} }

func nowhere() netip.Addr { return netip.Addr{} }

// checkURL stands for the webhook guard: it wants https and gives back a normal form.
func checkURL(raw string, _ []netip.Prefix) (string, error) {
	if !strings.HasPrefix(strings.ToLower(raw), "https://") {
		return "", errors.New("only https")
	}
	return "https://" + raw[len("https://"):], nil
}

// journal collects log lines from any goroutine and tells when one arrives.
type journal struct {
	mu    sync.Mutex
	text  bytes.Buffer
	lines chan string
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case j.lines <- string(p):
	default:
	}
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// node is one process's view of the accounts.
type node struct {
	*account.Accounts
	d       *db.DB
	master  *secret.Master
	metrics *prometheus.Registry
	log     *journal
}

func masterFile(t testing.TB) *secret.Master {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master")
	if err := secret.CreateMasterFile(path); err != nil {
		t.Fatal(err)
	}
	return openMaster(t, path)
}

func openMaster(t testing.TB, path string) *secret.Master {
	t.Helper()
	m, err := secret.OpenMaster("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func open(t testing.TB, d *db.DB, change ...func(*account.Options)) *node {
	t.Helper()
	n := &node{d: d, metrics: prometheus.NewRegistry(), log: &journal{lines: make(chan string, 100)}}
	log := slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	alerts, err := alert.New(d, log, n.metrics)
	if err != nil {
		t.Fatal(err)
	}
	o := account.Options{DB: d, Alerts: alerts, Log: log, Metrics: n.metrics, CheckURL: checkURL,
		Events: []string{event, "lookup.batch_validation_completed"}}
	for _, c := range change {
		c(&o)
	}
	if o.Master == nil {
		o.Master = masterFile(t)
	}
	n.master = o.Master
	if n.Accounts, err = account.Open(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) create(t testing.TB, id string) (account.Client, secret.Secret) {
	t.Helper()
	c, key, err := n.CreateClient(context.Background(), operator(),
		account.NewClient{ID: id, Config: account.Config{DisplayName: "Client " + id}})
	if err != nil {
		t.Fatal(err)
	}
	return c, key
}

// auth reports whether a key is accepted, and fails on any refusal that is not the uniform one.
func (n *node) auth(t testing.TB, key secret.Secret) bool {
	t.Helper()
	_, err := n.Authenticate(context.Background(), key.RevealText(), nowhere())
	if err != nil && fault.KindOf(err) != fault.Unauthenticated {
		t.Fatal(err)
	}
	return err == nil
}

func (n *node) verdict(t testing.TB, id string) (v audit.Verdict) {
	t.Helper()
	err := n.d.Read(context.Background(), func(r db.Reader) (err error) {
		v, err = n.VerifyAudit(r, id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (n *node) client(t testing.TB, id string) (c account.Client) {
	t.Helper()
	err := n.d.Read(context.Background(), func(r db.Reader) (err error) {
		c, err = n.Client(r, id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (n *node) audit(t testing.TB, id string) (all []account.Entry) {
	t.Helper()
	err := n.d.Read(context.Background(), func(r db.Reader) (err error) {
		all, err = n.Audit(r, id, 0, 1000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func states(c account.Client) string {
	var all []string
	for _, k := range c.Keys {
		all = append(all, string(k.State))
	}
	return strings.Join(all, " ")
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// faultsOn collects the fields that an error complains about.
func faultsOn(err error) map[string]fault.Code {
	var e *fault.Error
	fields := map[string]fault.Code{}
	if errors.As(err, &e) {
		for _, f := range e.Faults {
			fields[f.Field] = f.Code
		}
	}
	return fields
}
