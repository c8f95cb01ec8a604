package filing_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/country/world"

	"tributary/internal/filing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	_ "gocloud.dev/blob/memblob"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/document"
	"tributary/internal/fault"
	"tributary/internal/guard"
	"tributary/internal/onboarding"
	"tributary/internal/secret"
	"tributary/internal/transaction"
	"tributary/internal/webhook"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		workUntilKilled()
		return
	}
	// The private PostgreSQL of dbtest lives as long as the test binary; this is the copier of its log.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("os/exec.(*Cmd).writerDescriptor.func1"))
}

// patience is how long a test waits for what must come; it is never waited out when all is well.
const patience = 30 * time.Second

const client = "c_one"

// authorities are simulated ones behind a real HTTP server: XX by number, and
// one for each other class.
type authorities struct {
	t     testing.TB
	sims  *country.Simulators
	url   string
	packs []country.Pack
}

// Codes of the reference authority's variants.
const (
	byNumber  = "XX"
	byHash    = "XH"
	byKey     = "XY"
	byChain   = "XC"
	byNothing = "XN"
)

func variants() []country.Pack {
	return []country.Pack{
		world.Reference(transaction.ReferenceCode, country.ByNumber), world.Reference(byHash, country.ByHash), world.Reference(byKey, country.ByKey),
		world.Reference(byChain, country.ByChain), world.Reference(byNothing, country.ByNothing),
	}
}

func newAuthorities(t testing.TB) *authorities {
	t.Helper()
	packs := variants()
	sims, err := country.NewSimulators(t.TempDir(), packs...)
	must(t, err)
	server := httptest.NewServer(sims)
	t.Cleanup(func() {
		server.Close()
		must(t, sims.Close())
	})
	return &authorities{t: t, sims: sims, url: server.URL, packs: packs}
}

func (a *authorities) script(code string, steps ...country.Step) {
	a.t.Helper()
	desk, _ := a.sims.Desk(code)
	must(a.t, desk.SetScript(steps))
}

// registered lists the numbers an authority holds, in order of registration.
func (a *authorities) registered(code string) (numbers []string) {
	a.t.Helper()
	desk, _ := a.sims.Desk(code)
	all, err := desk.Registrations()
	must(a.t, err)
	for _, r := range all {
		numbers = append(numbers, r.Number)
	}
	return numbers
}

func (a *authorities) registrations(code string) []country.Registration {
	a.t.Helper()
	desk, _ := a.sims.Desk(code)
	all, err := desk.Registrations()
	must(a.t, err)
	return all
}

// node is one process: the slices a transaction needs, on one database.
type node struct {
	*filing.Service
	t         testing.TB
	d         *db.DB
	companies *onboarding.Companies
	hooks     *webhook.Hooks
	alerts    *alert.Alerts
	log       *journal

	mu      sync.Mutex
	at      map[string]func(lane string) // what to do at a point
	changed chan struct{}
	halt    func()
}

// setup says what a node stands on.
type setup struct {
	packs      []country.Pack
	simulators string // their URL
	retryBase  time.Duration
	render     func(ctx context.Context, issued filing.Issued) ([]byte, bool, error)
	documents  string // URL of the store; default in memory
	target     func(ctx context.Context, clientID, event string) (webhook.Target, bool, error)
	master     string // file of the master key; needed where companies have credentials
}

func (a *authorities) setup() setup { return setup{packs: a.packs, simulators: a.url} }

// journal collects log lines from any goroutine.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func newNode(t testing.TB, d *db.DB, s setup) *node {
	t.Helper()
	n := &node{t: t, d: d, log: &journal{}, at: map[string]func(string){}, changed: make(chan struct{}, 1), halt: func() {}}
	log := slog.New(slog.NewTextHandler(n.log, nil))
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: s.packs, Simulators: s.simulators})
	must(t, err)
	n.alerts, err = alert.New(d, log, prometheus.NewRegistry())
	must(t, err)
	n.hooks = newHooks(t, n, s)
	if s.documents == "" {
		s.documents = "mem://"
	}
	store, err := document.OpenStore(t.Context(), document.Config{
		DB: d, URL: s.documents, BaseURL: "https://api.example.test", SigningKey: secret.New([]byte(strings.Repeat("k", 32))), Log: log, Alerts: n.alerts,
		Record: func(r db.Reader, a document.Attachment) ([]byte, error) { return n.Stored(r, a) },
	})
	must(t, err)
	n.companies = onboarding.New(onboarding.Config{
		DB: d, Atlas: atlas, BaseURL: "https://api.example.test", Alerts: n.alerts, Log: log, Sealer: sealers(t, s.master),
		CredentialsChanged: filing.ResumeLanes,
	})
	if s.retryBase == 0 {
		s.retryBase = 20 * time.Millisecond
	}
	n.Service = filing.New(filing.Config{
		DB: d, Atlas: atlas, Companies: n.companies, Documents: store, Hooks: n.hooks, Alerts: n.alerts, Log: log,
		RetryBase: s.retryBase, Render: s.render,
	})
	n.SuspectAtOnce()
	n.Observe(n.observe)
	t.Cleanup(func() {
		n.stop()
		n.Close()
		must(t, store.Close())
		atlas.Close()
		if t.Failed() && testing.Verbose() {
			t.Log(n.log)
		}
	})
	return n
}

func newHooks(t testing.TB, n *node, s setup) *webhook.Hooks {
	t.Helper()
	demo, err := guard.New(guard.Config{Demo: true})
	must(t, err)
	sender, err := webhook.NewSender(webhook.SenderConfig{Guard: demo})
	must(t, err)
	if s.target == nil {
		s.target = func(context.Context, string, string) (webhook.Target, bool, error) {
			return webhook.Target{}, false, nil
		}
	}
	hooks, err := webhook.New(webhook.Config{
		DB: n.d, Alerts: n.alerts, BaseURL: "https://api.example.test", Sender: sender, Target: s.target,
		Keys: func(context.Context, string) (webhook.Keys, error) {
			return webhook.Keys{Current: webhook.Key{ID: "k1", Text: secret.New([]byte("trb_test_k1_" + strings.Repeat("s", 43)))}}, nil
		},
	})
	must(t, err)
	t.Cleanup(sender.Close)
	return hooks
}

func sealers(t testing.TB, path string) func(context.Context, string) (*secret.Sealer, error) {
	t.Helper()
	if path == "" {
		return nil
	}
	master, err := secret.OpenMaster("file:" + path)
	must(t, err)
	var mu sync.Mutex
	made := map[string]*secret.Sealer{}
	return func(_ context.Context, clientID string) (*secret.Sealer, error) {
		mu.Lock()
		defer mu.Unlock()
		if s := made[clientID]; s != nil {
			return s, nil
		}
		whose := secret.Context{Client: clientID, Purpose: "tax_credentials"}
		wrapped, err := master.NewKey(whose)
		if err != nil {
			return nil, err
		}
		s, err := master.Open(wrapped, whose)
		made[clientID] = s
		return s, err
	}
}

func newMaster(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master")
	must(t, secret.CreateMasterFile(path))
	return path
}

func (n *node) observe(point, lane string) {
	n.mu.Lock()
	act := n.at[point]
	n.mu.Unlock()
	if act != nil {
		act(lane)
	}
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// when does something at a point of the journey.
func (n *node) when(point string, act func(lane string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at[point] = act
}

// start runs the workers until stop, or the end of the test.
func (n *node) start() *node {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Run(ctx) //nolint:errcheck // it has none
	}()
	n.halt = func() {
		cancel()
		<-done
		n.halt = func() {}
	}
	return n
}

func (n *node) stop() { n.halt() }

// until waits for a condition that a visit of a lane brings about.
func (n *node) until(what string, holds func() bool) {
	n.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !holds() {
		select {
		case <-n.changed:
		case <-deadline.C:
			n.t.Fatalf("waited in vain until %s\n%s", what, n.log)
		}
	}
}

// caller is a client's test side, with every use case.
func caller(scope string) filing.Caller {
	return filing.Caller{Scope: scope, UseCase: func(string) (country.UseCase, bool) { return country.Both, true }}
}

// supplier onboards a company, or finds it.
func (n *node) supplier(code, name string, change ...func(*onboarding.NewCompany)) string {
	n.t.Helper()
	return n.supplierOf(client, code, name, change...)
}

func (n *node) supplierOf(scope, code, name string, change ...func(*onboarding.NewCompany)) string {
	n.t.Helper()
	company := onboarding.NewCompany{
		ExternalID: name, CountryCode: code, LanguageCode: "en", LegalName: "Company " + name, CompanyNumber: "n-" + name,
		Address:   transaction.Address{CountryCode: "XX", City: "Exampleton", PostalCode: "12345", AddressLine1: "1 Sample Street"},
		TaxNumber: code + "-" + name, TaxRegime: transaction.VAT,
	}
	for _, fn := range change {
		fn(&company)
	}
	id, err := n.companies.Ensure(context.Background(), scope, company)
	must(n.t, err)
	return id
}

func taxNumber(number string) func(*onboarding.NewCompany) {
	return func(c *onboarding.NewCompany) { c.TaxNumber = number }
}

// paper is a body in the making.
type paper map[string]any

// invoice is a whole document over 22710: net 18168, tax 4542.
func invoice(code, supplier, id string) paper {
	return paper{
		"country_code": code, "currency_code": "EUR", "language_code": "EN", "transaction_date": "2026-03-01T12:30:00Z",
		"transaction_id": id, "transaction_number": "N-" + id, "supplier": map[string]any{"id": supplier},
		"items": []any{item(3, 7570)},
	}
}

func item(quantity, price int64) map[string]any {
	return map[string]any{"number": 1, "name": "Widget", "quantity": quantity, "unit_price": price,
		"tax_breakdowns": []any{map[string]any{"rate": 25, "regime": "VAT"}}}
}

// correction is the short body of a credit or cancellation.
func correction(code, original, id string) paper {
	return paper{"country_code": code, "transaction_date": "2026-03-02T12:30:00Z", "transaction_id": id, "transaction_number": "N-" + id,
		"reference_transaction_id": original, "note": "returned"}
}

func (p paper) with(path string, value any) paper {
	p[path] = value
	return p
}

func (p paper) adjusts(original string, price int64) paper {
	return p.with("reference_transaction_id", original).with("items", []any{item(1, price)})
}

func (p paper) body(t testing.TB) []byte {
	t.Helper()
	text, err := json.Marshal(p)
	must(t, err)
	return text
}

// submit hands a body over and returns its operation.
func (n *node) submit(kind transaction.Kind, p paper) string {
	n.t.Helper()
	return n.submitAs(client, kind, p)
}

func (n *node) submitAs(scope string, kind transaction.Kind, p paper) string {
	n.t.Helper()
	id, err := n.Submit(context.Background(), caller(scope), kind, p.body(n.t))
	must(n.t, err)
	return id
}

func (n *node) file(p paper) string { n.t.Helper(); return n.submit(transaction.Invoice, p) }

// result reads an operation as it is.
func (n *node) result(id string) *filing.Result {
	n.t.Helper()
	r, err := n.Result(context.Background(), client, id)
	must(n.t, err)
	return r
}

// settled waits for an operation's end.
func (n *node) settled(id string) *filing.Result {
	n.t.Helper()
	var r *filing.Result
	n.until("operation "+id+" is settled", func() bool {
		r = n.result(id)
		return r.Status != filing.Processing
	})
	return r
}

// succeeds and fails wait for an end and compare the codes that come with it, in order.
func (n *node) succeeds(id string, codes ...fault.Code) *filing.Result {
	n.t.Helper()
	return n.ends(id, filing.Success, codes...)
}

func (n *node) fails(id string, codes ...fault.Code) *filing.Result {
	n.t.Helper()
	return n.ends(id, filing.Failure, codes...)
}

func (n *node) ends(id string, status filing.Status, codes ...fault.Code) *filing.Result {
	n.t.Helper()
	r := n.settled(id)
	if r.Status != status || !slices.Equal(codesOf(r), codes) {
		n.t.Fatalf("operation %s of %s ended %s with %v, want %s with %v\n%+v", id, r.TransactionID, r.Status, codesOf(r), status, codes, r.Errors)
	}
	return r
}

func codesOf(r *filing.Result) (codes []fault.Code) {
	for _, f := range r.Errors {
		codes = append(codes, f.Code)
	}
	return codes
}

// one reads one value of the database.
func one[T any](t testing.TB, d *db.DB, sql string, args ...any) (v T) {
	t.Helper()
	must(t, d.Read(context.Background(), func(r db.Reader) error { return r.Row(sql, args...).Scan(&v) }))
	return v
}

func execSQL(t testing.TB, d *db.DB, sql string, args ...any) {
	t.Helper()
	must(t, d.Write(context.Background(), func(tx *db.Tx) error { return tx.Exec(sql, args...) }))
}

// stage is where an operation stands.
func (n *node) stage(id string) string {
	n.t.Helper()
	return one[string](n.t, n.d, "SELECT stage FROM operations WHERE operation_id = $1", id)
}

// events counts the notifications about an operation.
func (n *node) events(id string) int64 {
	n.t.Helper()
	return one[int64](n.t, n.d, "SELECT count(*) FROM webhook_events WHERE resource_id = $1", id)
}

// raised lists alerts of a name by subject, with how often each was raised.
func (n *node) raised(name alert.Name) map[string]int64 {
	n.t.Helper()
	found := map[string]int64{}
	must(n.t, n.d.Read(context.Background(), func(r db.Reader) error {
		all, err := alert.List(r, alert.Filter{Name: name})
		for _, a := range all {
			found[a.Subject] += a.Times
		}
		return err
	}))
	return found
}

// filer is a running node on SQLite with the simulated authorities.
func filer(t testing.TB) (*node, *authorities) {
	t.Helper()
	a := newAuthorities(t)
	return newNode(t, dbtest.SQLite(t), a.setup()).start(), a
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
