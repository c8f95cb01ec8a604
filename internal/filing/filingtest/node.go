// Package filingtest is one process of the service without HTTP: the slices that
// a transaction needs on one database, with simulated authorities beside it, for
// the tests of filing, ledger and recovery.
package filingtest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/alert"
	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/country/xx"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/document"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/filing"
	"tributary/internal/guard"
	"tributary/internal/ledger"
	"tributary/internal/lifecycle"
	"tributary/internal/onboarding"
	"tributary/internal/quota"
	"tributary/internal/recovery"
	"tributary/internal/result"
	"tributary/internal/secret"
	"tributary/internal/transaction"
	"tributary/internal/webhook"
)

// Patience is how long a test waits for what must come; it is never waited out when all is well.
const Patience = 10 * time.Minute

// Client is whose transactions these are, unless a test says otherwise.
const Client = "c_one"

// Authorities are simulated ones behind a real HTTP server: XX by number, and
// One for each other class.
type Authorities struct {
	T     testing.TB
	Sims  *authority.Simulators
	URL   string
	Packs []country.Pack
}

// Codes of the reference authority's variants.
const (
	ByNumber  = "XX"
	ByHash    = "XH"
	ByKey     = "XY"
	ByChain   = "XC"
	ByNothing = "XN"

	Stopping  = "XT" // a chain that stops at a refused link
	AnyOrder  = "XO" // a chain whose links arrive in any order
	Sequenced = "XS" // every document has a number that was never used before
	Numbered  = "XI" // corrections are numbered
)

// Variants are the reference authority once per class, and once per habit.
func Variants() []country.Pack {
	return []country.Pack{
		world.Reference(transaction.ReferenceCode, country.ByNumber), world.Reference(ByHash, country.ByHash), world.Reference(ByKey, country.ByKey),
		world.Reference(ByChain, country.ByChain), world.Reference(ByNothing, country.ByNothing),
		world.ReferenceWith(Stopping, country.ByChain, xx.Habits{Refusal: country.StopsChain}), world.ReferenceWith(AnyOrder, country.ByChain, xx.Habits{AnyOrder: true}),
		world.ReferenceWith(Sequenced, country.ByNumber, xx.Habits{Sequence: true}), world.ReferenceWith(Numbered, country.ByNumber, xx.Habits{Numbered: true}),
	}
}

// NewAuthorities starts the simulated authorities, those of further packs among them.
func NewAuthorities(t testing.TB, further ...country.Pack) *Authorities {
	t.Helper()
	packs := append(Variants(), further...)
	sims, err := country.NewSimulators(t.TempDir(), packs...)
	Must(t, err)
	server := httptest.NewServer(sims)
	t.Cleanup(func() {
		server.Close()
		Must(t, sims.Close())
	})
	return &Authorities{T: t, Sims: sims, URL: server.URL, Packs: packs}
}

// Script tells one of them what to answer next.
func (a *Authorities) Script(code string, steps ...authority.Step) {
	a.T.Helper()
	desk, _ := a.Sims.Desk(code)
	Must(a.T, desk.SetScript(steps))
}

// Registered lists the numbers an authority holds, in order of registration.
func (a *Authorities) Registered(code string) (numbers []string) {
	a.T.Helper()
	desk, _ := a.Sims.Desk(code)
	all, err := desk.Registrations()
	Must(a.T, err)
	for _, r := range all {
		numbers = append(numbers, r.Number)
	}
	return numbers
}

// Registrations lists what an authority holds.
func (a *Authorities) Registrations(code string) []authority.Registration {
	a.T.Helper()
	desk, _ := a.Sims.Desk(code)
	all, err := desk.Registrations()
	Must(a.T, err)
	return all
}

// Node is one process: the slices a transaction needs, on one database.
type Node struct {
	*filing.Service
	*ledger.Ledger
	*recovery.Recovery
	T         testing.TB
	DB        *db.DB
	Atlas     *country.Atlas
	Companies *onboarding.Companies
	Hooks     *webhook.Hooks
	Alerts    *alert.Alerts
	Log       *dbtest.Journal

	mu      sync.Mutex
	at      map[string]func(lane string) // what to do at a point
	changed chan struct{}
	halt    func()
}

// Setup says what a node stands on.
type Setup struct {
	Packs      []country.Pack
	Simulators string // their URL
	RetryBase  time.Duration
	Slots      int
	Render     func(ctx context.Context, issued filing.Issued) (document.Rendering, error)
	Documents  string // URL of the store; default in memory
	Target     func(ctx context.Context, clientID, event string) (webhook.Target, bool, error)
	Master     string // file of the master key; needed where companies have credentials
}

// Setup is a node beside these authorities.
func (a *Authorities) Setup() Setup { return Setup{Packs: a.Packs, Simulators: a.URL} }

// NewNode puts a node together; Start lets it work.
func NewNode(t testing.TB, d *db.DB, s Setup) *Node {
	t.Helper()
	n := &Node{T: t, DB: d, Log: &dbtest.Journal{}, at: map[string]func(string){}, changed: make(chan struct{}, 1), halt: func() {}}
	log := slog.New(slog.NewTextHandler(n.Log, nil))
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: s.Packs, Simulators: s.Simulators})
	Must(t, err)
	n.Atlas = atlas
	atlas.Keep(quota.New(d).Of, lifecycle.Names(d))
	n.Alerts, err = alert.New(d, log, prometheus.NewRegistry())
	Must(t, err)
	n.Hooks = newHooks(t, n, s)
	if s.Documents == "" {
		s.Documents = "mem://"
	}
	store, err := files.OpenStore(t.Context(), files.Config{
		DB: d, URL: s.Documents, BaseURL: "https://api.example.test", SigningKey: secret.New([]byte(strings.Repeat("k", 32))), Log: log, Alerts: n.Alerts,
		Record: func(r db.Reader, a files.Attachment) ([]byte, error) { return n.Stored(r, a) },
	})
	Must(t, err)
	n.Companies = onboarding.New(onboarding.Config{
		DB: d, Atlas: atlas, BaseURL: "https://api.example.test", Alerts: n.Alerts, Log: log, Sealer: sealers(t, s.Master),
		CredentialsChanged: func(tx *db.Tx, clientID, companyID string) error {
			return errors.Join(filing.CredentialsChanged(tx, clientID, companyID), recovery.CredentialsChanged(tx, clientID, companyID))
		},
	})
	if s.RetryBase == 0 {
		s.RetryBase = 20 * time.Millisecond
	}
	tally := ledger.NewTally(d, log)
	n.Service = filing.New(filing.Config{
		DB: d, Atlas: atlas, Companies: n.Companies, Documents: store, Hooks: n.Hooks, Alerts: n.Alerts, Log: log,
		RetryBase: s.RetryBase, Slots: s.Slots, Render: s.Render, Count: tally.OnCommit,
	})
	n.Recovery = recovery.New(recovery.Config{DB: d, Atlas: atlas, Companies: n.Companies, Filing: n.Service, Alerts: n.Alerts, Log: log})
	n.Ledger = ledger.New(ledger.Config{
		DB: d, Atlas: atlas, Companies: n.Companies, Documents: store, Hooks: n.Hooks, Filing: n.Service, Tally: tally, Log: log,
	})
	n.SuspectLater(0)
	n.Observe(n.observe)
	t.Cleanup(func() {
		n.Stop()
		n.Service.Close()
		n.Ledger.Close()
		Must(t, store.Close())
		atlas.Close()
		if t.Failed() && testing.Verbose() {
			t.Log(n.Log)
		}
	})
	return n
}

func newHooks(t testing.TB, n *Node, s Setup) *webhook.Hooks {
	t.Helper()
	demo, err := guard.New(guard.Config{Demo: true})
	Must(t, err)
	sender, err := webhook.NewSender(webhook.SenderConfig{Guard: demo})
	Must(t, err)
	if s.Target == nil {
		s.Target = func(context.Context, string, string) (webhook.Target, bool, error) {
			return webhook.Target{}, false, nil
		}
	}
	hooks, err := webhook.New(webhook.Config{
		DB: n.DB, Alerts: n.Alerts, BaseURL: "https://api.example.test", Sender: sender, Target: s.Target,
		Keys: func(context.Context, string) (webhook.Keys, error) {
			return webhook.Keys{Current: webhook.Key{ID: "k1", Text: secret.New([]byte("trb_test_k1_" + strings.Repeat("s", 43)))}}, nil
		},
	})
	Must(t, err)
	t.Cleanup(sender.Close)
	return hooks
}

func sealers(t testing.TB, path string) func(context.Context, string) (*secret.Sealer, error) {
	t.Helper()
	if path == "" {
		return nil
	}
	master, err := secret.OpenMaster("file:" + path)
	Must(t, err)
	var mu sync.Mutex
	made := map[string]*secret.Sealer{}
	return func(_ context.Context, clientID string) (*secret.Sealer, error) {
		mu.Lock()
		defer mu.Unlock()
		if s := made[clientID]; s != nil {
			return s, nil
		}
		whose := secret.Context{Client: clientID, Purpose: "tax_credentials"}
		kept := path + "." + clientID // for a node that is started again, or on a restored database
		wrapped, err := os.ReadFile(kept)
		if err != nil {
			if wrapped, err = master.NewKey(whose); err == nil {
				err = os.WriteFile(kept, wrapped, 0o600)
			}
		}
		if err != nil {
			return nil, err
		}
		s, err := master.Open(wrapped, whose)
		made[clientID] = s
		return s, err
	}
}

// NewMaster makes a master key and returns its file.
func NewMaster(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master")
	Must(t, secret.CreateMasterFile(path))
	return path
}

func (n *Node) observe(point, lane string) {
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

// When does something at a point of the journey.
func (n *Node) When(point string, act func(lane string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at[point] = act
}

// Start runs the workers until stop, or the end of the test.
func (n *Node) Start() *Node {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = n.Service.Run(ctx) }) // it has none
	running.Go(func() { _ = n.Ledger.Run(ctx) })  // nor has this one
	n.halt = func() {
		cancel()
		running.Wait()
		n.halt = func() {}
	}
	return n
}

// Stop ends the workers.
func (n *Node) Stop() { n.halt() }

// Beside makes two nodes wake each other's waits: either may bring about what is
// waited for. Before Start.
func (n *Node) Beside(other *Node) { n.changed = other.changed }

// LookEvery sets how often idle lanes and the index are looked at. Before Start.
func (n *Node) LookEvery(d time.Duration) {
	n.Service.LookEvery(d)
	n.Ledger.LookEvery(d)
	n.Recovery.LookEvery(d)
}

// Until waits for a condition that a visit of a lane brings about.
func (n *Node) Until(what string, holds func() bool) {
	n.T.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	for !holds() {
		select {
		case <-n.changed:
		case <-deadline.C:
			n.T.Fatalf("waited in vain until %s\n%s", what, n.Log)
		}
	}
}

// Caller is a client's test side, with every use case.
func Caller(scope string) filing.Caller {
	return filing.Caller{Scope: scope, UseCase: func(string) (country.UseCase, bool) { return country.Both, true }}
}

// Supplier onboards a company, or finds it.
func (n *Node) Supplier(code, name string, change ...func(*onboarding.NewCompany)) string {
	n.T.Helper()
	return n.SupplierOf(Client, code, name, change...)
}

// SupplierOf does it for another client.
func (n *Node) SupplierOf(scope, code, name string, change ...func(*onboarding.NewCompany)) string {
	n.T.Helper()
	company := onboarding.NewCompany{
		ExternalID: name, CountryCode: code, LanguageCode: "en", LegalName: "Company " + name, CompanyNumber: "n-" + name,
		Address:   transaction.Address{CountryCode: "XX", City: "Exampleton", PostalCode: "12345", AddressLine1: "1 Sample Street"},
		TaxNumber: code + "-" + name, TaxRegime: transaction.VAT,
	}
	for _, fn := range change {
		fn(&company)
	}
	id, err := n.Companies.Ensure(context.Background(), scope, company)
	Must(n.T, err)
	return id
}

// TaxNumber changes the number of a supplier in the making.
func TaxNumber(number string) func(*onboarding.NewCompany) {
	return func(c *onboarding.NewCompany) { c.TaxNumber = number }
}

// Paper is a body in the making.
type Paper map[string]any

// Invoice is a whole document over 22710: net 18168, tax 4542.
func Invoice(code, supplier, id string) Paper {
	return Paper{
		"country_code": code, "currency_code": "EUR", "language_code": "EN", "transaction_date": "2026-03-01T12:30:00Z",
		"transaction_id": id, "transaction_number": "N-" + id, "supplier": map[string]any{"id": supplier},
		"items": []any{Item(3, 7570)},
	}
}

// Item is a line of so many pieces at a price.
func Item(quantity, price int64) map[string]any {
	return map[string]any{"number": 1, "name": "Widget", "quantity": quantity, "unit_price": price,
		"tax_breakdowns": []any{map[string]any{"rate": 25, "regime": "VAT"}}}
}

// Correction is the short body of a credit or cancellation.
func Correction(code, original, id string) Paper {
	return Paper{"country_code": code, "transaction_date": "2026-03-02T12:30:00Z", "transaction_id": id, "transaction_number": "N-" + id,
		"reference_transaction_id": original, "note": "returned"}
}

// With sets a member.
func (p Paper) With(path string, value any) Paper {
	p[path] = value
	return p
}

// Adjusts makes it an adjustment of another transaction.
func (p Paper) Adjusts(original string, price int64) Paper {
	return p.With("reference_transaction_id", original).With("items", []any{Item(1, price)})
}

// Body is the JSON of it.
func (p Paper) Body(t testing.TB) []byte {
	t.Helper()
	text, err := json.Marshal(p)
	Must(t, err)
	return text
}

// Hand hands a body over and returns its operation.
func (n *Node) Hand(kind transaction.Kind, p Paper) string {
	n.T.Helper()
	return n.HandAs(Client, kind, p)
}

// HandAs does it for another client.
func (n *Node) HandAs(scope string, kind transaction.Kind, p Paper) string {
	n.T.Helper()
	id, err := n.Submit(context.Background(), Caller(scope), kind, p.Body(n.T))
	Must(n.T, err)
	return id
}

// File hands an invoice over.
func (n *Node) File(p Paper) string { n.T.Helper(); return n.Hand(transaction.Invoice, p) }

// Show reads an operation as it is.
func (n *Node) Show(id string) *result.Result {
	n.T.Helper()
	r, err := n.Result(context.Background(), Client, id)
	Must(n.T, err)
	return r
}

// Settled waits for an operation's end.
func (n *Node) Settled(id string) *result.Result {
	n.T.Helper()
	var r *result.Result
	n.Until("operation "+id+" is settled", func() bool {
		r = n.Show(id)
		return r.Status != filing.Processing
	})
	return r
}

// Succeeds waits for a success and compares the codes that come with it, in order.
func (n *Node) Succeeds(id string, codes ...fault.Code) *result.Result {
	n.T.Helper()
	return n.Ends(id, filing.Success, codes...)
}

// Fails waits for a failure.
func (n *Node) Fails(id string, codes ...fault.Code) *result.Result {
	n.T.Helper()
	return n.Ends(id, filing.Failure, codes...)
}

// Ends waits for an end.
func (n *Node) Ends(id string, status filing.Status, codes ...fault.Code) *result.Result {
	n.T.Helper()
	r := n.Settled(id)
	if r.Status != status || !slices.Equal(CodesOf(r), codes) {
		n.T.Fatalf("operation %s of %s ended %s with %v, want %s with %v\n%+v", id, r.TransactionID, r.Status, CodesOf(r), status, codes, r.Errors)
	}
	return r
}

// CodesOf lists the codes of a result.
func CodesOf(r *result.Result) (codes []fault.Code) {
	for _, f := range r.Errors {
		codes = append(codes, f.Code)
	}
	return codes
}

// One reads one value of the database.
func One[T any](t testing.TB, d *db.DB, sql string, args ...any) (v T) {
	t.Helper()
	Must(t, d.Read(context.Background(), func(r db.Reader) error { return r.Row(sql, args...).Scan(&v) }))
	return v
}

// ExecSQL changes the database behind the program's back.
func ExecSQL(t testing.TB, d *db.DB, sql string, args ...any) {
	t.Helper()
	Must(t, d.Write(context.Background(), func(tx *db.Tx) error { return tx.Exec(sql, args...) }))
}

// Stage is where an operation stands.
func (n *Node) Stage(id string) string {
	n.T.Helper()
	return One[string](n.T, n.DB, "SELECT stage FROM operations WHERE operation_id = $1", id)
}

// Events counts the notifications about an operation.
func (n *Node) Events(id string) int64 {
	n.T.Helper()
	return One[int64](n.T, n.DB, "SELECT count(*) FROM webhook_events WHERE resource_id = $1", id)
}

// Raised lists alerts of a name by subject, with how often each was raised.
func (n *Node) Raised(name alert.Name) map[string]int64 {
	n.T.Helper()
	found := map[string]int64{}
	Must(n.T, n.DB.Read(context.Background(), func(r db.Reader) error {
		all, err := alert.List(r, alert.Filter{Name: name})
		for _, a := range all {
			found[a.Subject] += a.Times
		}
		return err
	}))
	return found
}

// Filer is a running node on SQLite with the simulated authorities.
func Filer(t testing.TB) (*Node, *Authorities) {
	t.Helper()
	a := NewAuthorities(t)
	return NewNode(t, dbtest.SQLite(t), a.Setup()).Start(), a
}

// Must ends the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func Same[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
