package webhook_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/guard"
	"tributary/internal/secret"
	"tributary/internal/webhook"
)

// office is a whole deliverer with a configuration that tests change as an
// operator would: from one moment to the next.
type office struct {
	*webhook.Hooks
	d *db.DB

	mu      sync.Mutex
	targets map[string]string // by client, or by client and event type
	keys    map[string]webhook.Keys
	changed chan struct{}
	log     strings.Builder
}

const client = "c_acme"

type officeOption func(*webhook.Config)

// newOffice returns an office whose one client is to be told at target.
func newOffice(t testing.TB, d *db.DB, roots *x509.CertPool, options ...officeOption) *office {
	t.Helper()
	o := &office{d: d, targets: map[string]string{}, keys: map[string]webhook.Keys{client: {Current: key("k1")}},
		changed: make(chan struct{})}
	log := slog.New(slog.NewTextHandler(o, nil))
	alerts, err := alert.New(d, log, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	guard := newGuard(t, guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	c := webhook.Config{
		DB: d, Alerts: alerts, Log: log, BaseURL: "https://api.example/", Metrics: prometheus.NewRegistry(),
		Target: o.target, Keys: o.keysOf, Changed: o.changes, Ladder: webhook.Ladder{Base: 20 * time.Millisecond},
	}
	for _, option := range options {
		option(&c)
	}
	if c.Sender == nil {
		s := must(webhook.NewSender(patient(webhook.SenderConfig{Guard: guard, Roots: roots})))(t)
		t.Cleanup(s.Close)
		c.Sender = s
	}
	if o.Hooks, err = webhook.New(c); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.Write(p)
}

func (o *office) logged() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.String()
}

func (o *office) target(_ context.Context, clientID, event string) (webhook.Target, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if url, ok := o.targets[clientID+" "+event]; ok {
		return webhook.Target{URL: url}, url != "", nil
	}
	url, ok := o.targets[clientID]
	return webhook.Target{URL: url}, ok && url != "", nil
}

func (o *office) keysOf(_ context.Context, clientID string) (webhook.Keys, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k, ok := o.keys[clientID]; ok {
		return k, nil
	}
	return webhook.Keys{}, webhook.ErrNoKey
}

func (o *office) changes() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed
}

// change edits the configuration and tells the deliverer.
func (o *office) change(edit func(targets map[string]string, keys map[string]webhook.Keys)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	edit(o.targets, o.keys)
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *office) setTarget(name, url string) {
	o.change(func(targets map[string]string, _ map[string]webhook.Keys) { targets[name] = url })
}

// open runs the deliverer until the returned function is called or the test ends.
func (o *office) open(t testing.TB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func event(resource string) webhook.Event {
	return webhook.Event{ClientID: client, Type: webhook.TransactionCompleted, ResourceID: resource,
		ResourcePath: "/v1/transactions/" + resource}
}

func (o *office) notify(t testing.TB, events ...webhook.Event) {
	t.Helper()
	if err := o.d.Write(context.Background(), func(tx *db.Tx) error { return o.Notify(tx, events...) }); err != nil {
		t.Fatal(err)
	}
}

func (o *office) list(t testing.TB, f webhook.Filter) []webhook.EventRow {
	t.Helper()
	if f.Limit == 0 {
		f.Limit = webhook.LimitMax
	}
	rows, _, err := o.List(context.Background(), client, f)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func (o *office) one(t testing.TB) webhook.EventRow {
	t.Helper()
	rows := o.list(t, webhook.Filter{})
	if len(rows) != 1 {
		t.Fatalf("%d events", len(rows))
	}
	return rows[0]
}

func (o *office) tries(t testing.TB, id string) []webhook.Try {
	t.Helper()
	return must(o.Tries(context.Background(), client, id))(t)
}

func (o *office) alerts(t testing.TB, name alert.Name) []alert.Alert {
	t.Helper()
	var all []alert.Alert
	err := o.d.Read(context.Background(), func(r db.Reader) (err error) {
		all, err = alert.List(r, alert.Filter{Name: name})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// eventually waits for a state that only the database or another goroutine can tell of.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within two minutes: %s", what)
		}
		tick := time.NewTimer(5 * time.Millisecond)
		<-tick.C
	}
}

// received is one request a receiver got.
type received struct {
	webhook.Notification
	header http.Header
	body   []byte
	at     time.Time
}

// inbox is a receiver that believes nothing unsigned and remembers everything.
type inbox struct {
	mu     sync.Mutex
	got    []received
	key    secret.Secret
	answer func(n int, r received, w http.ResponseWriter, req *http.Request) // nil: 200; n counts from 1
	wrong  []error
	news   chan struct{}
}

func newInbox() *inbox { return &inbox{key: keyText("k1"), news: make(chan struct{}, 1)} }

func (b *inbox) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r := received{header: req.Header.Clone(), body: body, at: time.Now()}
	b.mu.Lock()
	if err == nil {
		r.Notification, err = webhook.VerifyHeaders(body, webhook.Signed{Header: req.Header}, b.key, webhook.Freshness{})
	}
	if req.Method != http.MethodPost || req.Header.Get("Content-Type") != "application/json" {
		err = errors.Join(err, errors.New(req.Method+" "+req.Header.Get("Content-Type")))
	}
	if err != nil {
		b.wrong = append(b.wrong, err)
	}
	b.got = append(b.got, r)
	n, answer := len(b.got), b.answer
	b.mu.Unlock()
	select {
	case b.news <- struct{}{}:
	default:
	}
	switch {
	case err != nil:
		w.WriteHeader(http.StatusUnauthorized)
	case answer != nil:
		answer(n, r, w, req)
	}
}

func (b *inbox) all() []received {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]received(nil), b.got...)
}

func (b *inbox) set(answer func(n int, r received, w http.ResponseWriter, req *http.Request)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = answer
}

// wait returns what was received once there are n requests.
func (b *inbox) wait(t testing.TB, n int) []received {
	t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	for {
		if got := b.all(); len(got) >= n {
			return got
		}
		select {
		case <-b.news:
		case <-deadline.C:
			t.Fatalf("%d of %d requests within two minutes", len(b.all()), n)
		}
	}
}

func (b *inbox) check(t testing.TB) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.wrong) > 0 {
		t.Errorf("%d requests were refused, the first: %v", len(b.wrong), b.wrong[0])
	}
}

// status answers every request alike.
func status(code int) func(int, received, http.ResponseWriter, *http.Request) {
	return func(_ int, _ received, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// receiver starts b behind HTTPS, certified for all times: virtual ones, too.
func (b *inbox) receiver(t testing.TB) (url string, roots *x509.CertPool) {
	t.Helper()
	s, pool := serveTimeless(t, b)
	return s.URL + "/hook", pool
}

func serveTimeless(t testing.TB, h http.Handler) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	k := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "receiver"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, k.Public(), k))(t)
	s := &httptest.Server{
		Listener: must(net.Listen("tcp", "127.0.0.1:0"))(t), Config: &http.Server{Handler: h, ErrorLog: discardLog()},
		TLS: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: k}}},
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(must(x509.ParseCertificate(der))(t))
	return s, pool
}
