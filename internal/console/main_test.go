package console_test

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/authority"
	"tributary/internal/console"
	"tributary/internal/country"
	"tributary/internal/country/generic"
	"tributary/internal/country/world"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/document"
	"tributary/internal/document/typeset"
	"tributary/internal/endpoint"
	"tributary/internal/files"
	"tributary/internal/filing"
	"tributary/internal/guard"
	"tributary/internal/inbox"
	"tributary/internal/leaks"
	"tributary/internal/ledger"
	"tributary/internal/lookup"
	"tributary/internal/onboarding"
	"tributary/internal/operator"
	"tributary/internal/recovery"
	"tributary/internal/secret"
	"tributary/internal/transaction"
	"tributary/internal/webhook"
)

func TestMain(m *testing.M) {
	leaks.AtEnd(func() error {
		if shared.stop != nil {
			shared.stop()
		}
		return nil
	})
	leaks.Main(m)
}

const (
	clientID = "acme"
	patience = 10 * time.Minute
	liveMax  = 8
	liveEach = 5
	password = "a river runs through it 1976"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// house is everything the console stands on, running, with one client, one
// supplier, a receiver of webhooks and three operators.
type house struct {
	t         testing.TB
	db        *db.DB
	url       string
	console   *console.Console
	operators *operator.Operators
	endpoints *endpoint.Endpoints
	letters   *inbox.Inbox
	master    *secret.Master
	accounts  *account.Accounts
	service   *filing.Service
	ledger    *ledger.Ledger
	companies *onboarding.Companies
	lookups   *lookup.Lookups
	hooks     *webhook.Hooks
	alerts    *alert.Alerts
	sims      *authority.Simulators
	atlas     *country.Atlas
	supplier  string
	refuse    atomic.Bool // the receiver answers 500
	got       atomic.Int64
	log       *dbtest.Journal
}

// What is dear to make and never changes is made once.
var (
	renderer  = sync.OnceValues(func() (*document.Renderer, error) { return document.NewRenderer(typeset.WithSystem()) })
	countries = sync.OnceValues(func() ([]country.Pack, error) {
		reference := world.Reference(transaction.ReferenceCode, country.ByNumber)
		reference.Receive = &country.Receive{} // as if it brought documents
		packs := []country.Pack{reference}
		all, err := generic.Packs()
		for _, p := range all {
			if p.Code == "IE" {
				p.Facts.LoginUntil = "2035-12-30" // as if its authority took logins until then
				packs = append(packs, p)
			}
		}
		return packs, err
	})
)

func build(t testing.TB, d *db.DB) *house {
	t.Helper()
	return buildWith(t, d, func(*operator.Config) {})
}

// buildWith is build with operators of another configuration. The address of
// the console is known before: it has the name that passkeys need.
func buildWith(t testing.TB, d *db.DB, change func(*operator.Config)) *house {
	t.Helper()
	h := &house{t: t, db: d, log: &dbtest.Journal{}}
	log := slog.New(slog.NewTextHandler(h.log, nil))
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h.got.Add(1)
		if h.refuse.Load() {
			http.Error(w, "<script>alert('receiver')</script> not today", http.StatusInternalServerError)
		}
	}))
	t.Cleanup(receiver.Close)
	packs, err := countries()
	must(t, err)
	h.sims, err = country.NewSimulators(t.TempDir(), packs...)
	must(t, err)
	sims := httptest.NewServer(h.sims)
	t.Cleanup(func() { sims.Close(); must(t, h.sims.Close()) })
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: packs, Simulators: sims.URL})
	must(t, err)
	h.atlas = atlas
	t.Cleanup(atlas.Close)
	h.alerts, err = alert.New(d, log, prometheus.NewRegistry())
	must(t, err)
	demo, err := guard.New(guard.Config{Demo: true})
	must(t, err)
	h.openAccounts(demo, receiver.URL)
	h.openHooks(demo, log)
	store, err := files.OpenStore(t.Context(), files.Config{
		DB: d, URL: "mem://", BaseURL: "https://api.example.test", SigningKey: secret.New([]byte(strings.Repeat("k", 32))),
		Log:    log,
		Record: func(r db.Reader, a files.Attachment) ([]byte, error) { return h.service.Stored(r, a) },
	})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	h.openParties(atlas)
	renderer, err := renderer()
	must(t, err)
	h.service = filing.New(filing.Config{
		// what is stuck stays stuck
		DB: d, Atlas: atlas, Companies: h.companies, Documents: store, Hooks: h.hooks, Alerts: h.alerts, Log: log,
		RetryBase: time.Hour,

		Render: func(ctx context.Context, in filing.Issued) (document.Rendering, error) {
			return renderer.Render(ctx, document.Visual{Transaction: *in.Transaction, Totals: in.Totals, Supplier: *in.Supplier,
				Language: "EN", IssuedAt: in.At, UniqueNumber: in.UniqueNumber})
		},
	})
	t.Cleanup(h.service.Close)
	h.ledger = ledger.New(ledger.Config{DB: d, Atlas: atlas, Companies: h.companies, Documents: store, Hooks: h.hooks,
		Filing: h.service, Log: log})
	t.Cleanup(h.ledger.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	h.url = "http://localhost:" + strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	operators := operator.Config{DB: d, Cost: operator.Cost{MemoryKiB: 64, Passes: 1, Lanes: 1},
		Second: operator.Second{AdminURL: h.url, Sealer: func(ctx context.Context) (*secret.Sealer, error) {
			return account.ServiceKeys{DB: d, Master: h.master}.Sealer(ctx, account.OperatorFactors)
		}}}
	change(&operators)
	h.operators = operator.New(operators)
	for _, role := range []operator.Role{operator.Viewer, operator.Acting, operator.Admin} {
		_, _, err := h.operators.Create(t.Context(), audit.Actor{Name: "test"},
			operator.NewOperator{Name: string(role), Role: role, Password: secret.New([]byte(password))})
		must(t, err)
	}
	h.endpoints = endpoint.New(endpoint.Config{DB: d, Atlas: atlas, Master: h.master, Operators: h.operators, Log: log})
	h.letters, err = inbox.New(inbox.Config{DB: d, Atlas: atlas, Endpoints: h.endpoints, Log: log,
		HandleMessage: h.service.HandleMessage})
	must(t, err)
	h.console, err = console.New(console.Config{
		DB: d, Operators: h.operators, Accounts: h.accounts, Endpoints: h.endpoints, Atlas: atlas, Transactions: h.service,
		Ledger: h.ledger, Recovery: recovery.New(recovery.Config{DB: d, Atlas: atlas, Companies: h.companies, Filing: h.service,
			Alerts: h.alerts, Log: log}), Companies: h.companies, Lookups: h.lookups, Documents: store, Hooks: h.hooks,
		Renderer: renderer, Simulators: sims.URL, Version: "test", LiveEvery: 25 * time.Millisecond, LiveMax: liveMax,
		LiveEach: liveEach, Log: log,
	})
	must(t, err)
	server := httptest.NewUnstartedServer(h.console)
	must(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	t.Cleanup(func() { h.console.Close(); server.Close() })
	t.Cleanup(func() {
		if t.Failed() && testing.Verbose() {
			t.Log(h.log)
		}
	})
	return h
}

func (h *house) openAccounts(demo *guard.Guard, receiver string) {
	path := filepath.Join(h.t.TempDir(), "master")
	must(h.t, secret.CreateMasterFile(path))
	master, err := secret.OpenMaster("file:" + path)
	must(h.t, err)
	h.master = master
	h.accounts, err = account.Open(h.t.Context(),
		account.Options{DB: h.db, Master: master, Alerts: h.alerts,
			CheckURL: func(address string, allow []netip.Prefix) (string, error) {
				return demo.With(allow).CheckURL(address)
			}, Events: webhook.EventTypes()})
	must(h.t, err)
	_, _, err = h.accounts.CreateClient(h.t.Context(), audit.Actor{Name: "test"},
		account.NewClient{ID: clientID, Config: account.Config{
			DisplayName: "Acme & <Sons>", Countries: map[string]country.UseCase{account.AllCountries: country.Both},
			Webhooks: account.Webhooks{All: receiver},
		}})
	must(h.t, err)
}

func (h *house) openHooks(demo *guard.Guard, log *slog.Logger) {
	sender, err := webhook.NewSender(webhook.SenderConfig{Guard: demo})
	must(h.t, err)
	h.t.Cleanup(sender.Close)
	h.hooks, err = webhook.New(webhook.Config{
		DB: h.db, Alerts: h.alerts, Log: log, BaseURL: "https://api.example.test", Sender: sender,
		Ladder: webhook.Ladder{Base: time.Minute},
		Target: func(ctx context.Context, clientID, event string) (webhook.Target, bool, error) {
			p, err := h.accounts.Profile(ctx, clientID)
			if err != nil {
				return webhook.Target{}, false, err
			}
			at, ok := p.Config.WebhookURL(event)
			return webhook.Target{URL: at}, ok, nil
		},
		Keys: func(ctx context.Context, clientID string) (webhook.Keys, error) {
			older, newer, err := h.accounts.SigningKeys(ctx, clientID)
			return webhook.Keys{Current: webhook.Key{ID: older.Kid, Text: older.Text},
				Next: webhook.Key{ID: newer.Kid, Text: newer.Text}}, err
		},
		Changed: h.accounts.Changed,
	})
	must(h.t, err)
}

func (h *house) openParties(atlas *country.Atlas) {
	h.companies = onboarding.New(onboarding.Config{
		DB: h.db, Atlas: atlas, BaseURL: "https://api.example.test", Alerts: h.alerts,
		CredentialsChanged: filing.CredentialsChanged,
		Sealer: func(ctx context.Context, clientID string) (*secret.Sealer, error) {
			return h.accounts.Sealer(ctx, clientID, account.PurposeTaxCredentials)
		},
	})
	h.lookups = lookup.New(lookup.Config{DB: h.db, Hooks: h.hooks, Validator: lookup.NewValidator(nil, true),
		BaseURL: "https://api.example.test"})
	var err error
	h.supplier, err = h.companies.Ensure(h.t.Context(), clientID, onboarding.NewCompany{
		ExternalID: "shop-1", CountryCode: "XX", LanguageCode: "en", LegalName: "Reference Trading Ltd",
		TaxNumber: "XX123456789", TaxRegime: transaction.VAT,
		Address: transaction.Address{CountryCode: "XX", City: "Exampleton", PostalCode: "12345",
			AddressLine1: "1 Sample Street"},
	})
	must(h.t, err)
}

// run lets everything work until the test ends.
func (h *house) run() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, fn := range []func(context.Context) error{h.service.Run, h.ledger.Run, h.hooks.Run, h.accounts.Run,
		h.letters.Run, h.companies.Run, h.lookups.Run} {
		wg.Go(func() {
			if err := fn(ctx); err != nil && ctx.Err() == nil {
				h.t.Error(err)
			}
		})
	}
	h.t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

// script tells the reference authority what to do.
func (h *house) script(steps ...authority.Step) {
	h.t.Helper()
	desk, _ := h.sims.Desk("XX")
	must(h.t, desk.SetScript(steps))
}

// submit sends an invoice with a number and answers its operation.
func (h *house) submit(number string) string {
	h.t.Helper()
	body := fmt.Sprintf(`{"country_code":"XX","currency_code":"EUR","transaction_date":"2026-04-02T10:00:00Z","transaction_number":%q,"transaction_id":%q,"supplier":{"id":%q},
		"note":"<script>alert('note')</script>","customer":{"legal_name":"Jane <b>Doe</b>","type":"INDIVIDUAL"},
		"items":[{"number":1,"name":"Tea <img src=x>","quantity":3,"unit_price":7570,"tax_breakdowns":[{"rate":25,"regime":"VAT"}]}]}`, number, "order-"+number, h.supplier)
	id, err := h.service.Submit(h.t.Context(),
		filing.Caller{Scope: clientID, UseCase: func(string) (country.UseCase, bool) {
			return country.Both, true
		}}, transaction.Invoice, []byte(body))
	must(h.t, err)
	return id
}

// await waits until a page has all of some texts, by the updates that the page
// itself would follow, and answers the page.
func (b *browser) await(path string, texts ...string) string {
	b.t.Helper()
	var page string
	for late := time.Now().Add(patience); time.Now().Before(late); {
		page = b.get(path)
		missing := slices.IndexFunc(texts, func(text string) bool { return !strings.Contains(page, text) })
		if missing < 0 {
			return page
		}
		b.follow(page, texts[missing])
	}
	b.t.Fatalf("%s never had %q:\n%s", path, texts, gist(page))
	return ""
}

var liveAt = regexp.MustCompile(`data-live="/console([^"]+)"`)

// follow reads the updates of a page until one has a text.
func (b *browser) follow(page, text string) {
	b.t.Helper()
	found := liveAt.FindStringSubmatch(page)
	if found == nil {
		b.t.Fatalf("the page does not follow anything:\n%s", gist(page))
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.h.url+console.Root+html.UnescapeString(found[1]), nil)
	must(b.t, err)
	resp, err := b.http.Do(req)
	must(b.t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	b.t.Fatalf("the page was never told %q: %v", text, lines.Err())
}

// browser is a client with cookies that does not follow redirects by itself.
type browser struct {
	t    testing.TB
	h    *house
	http *http.Client
}

func (h *house) browser() *browser {
	jar, err := cookiejar.New(nil)
	must(h.t, err)
	transport := &http.Transport{}
	h.t.Cleanup(transport.CloseIdleConnections)
	return &browser{t: h.t, h: h, http: &http.Client{Jar: jar, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}}
}

// as is a browser that is signed in with a role.
func (h *house) as(role operator.Role) *browser {
	h.t.Helper()
	b := h.browser()
	resp := b.do(http.MethodPost, "/sign-in", url.Values{"name": {string(role)}, "password": {password}})
	if resp.StatusCode != http.StatusSeeOther {
		h.t.Fatalf("sign in as %s: %d %s", role, resp.StatusCode, gist(read(h.t, resp)))
	}
	return b
}

// gist is the part of a page that a failed test should show.
func gist(page string) string {
	if _, rest, ok := strings.Cut(page, `<main`); ok {
		page, _, _ = strings.Cut(rest, `</main>`)
	}
	return page
}

func read(t testing.TB, resp *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	return string(text)
}

// do sends a request to a path below the console's root.
func (b *browser) do(method, path string, form url.Values) *http.Response {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.h.url+console.Root+path, body)
	must(b.t, err)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := b.http.Do(req)
	must(b.t, err)
	b.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// get answers a page.
func (b *browser) get(path string) string {
	b.t.Helper()
	resp := b.do(http.MethodGet, path, nil)
	text := read(b.t, resp)
	if resp.StatusCode != http.StatusOK {
		b.t.Fatalf("GET %s: %d\n%s", path, resp.StatusCode, gist(text))
	}
	return text
}

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// token is what the forms of this session carry.
func (b *browser) token() string {
	b.t.Helper()
	found := csrfField.FindStringSubmatch(b.get("/account"))
	if found == nil {
		b.t.Fatal("the page has no form with a token")
	}
	return found[1]
}

// post sends a form with the session's token.
func (b *browser) post(path string, form url.Values) *http.Response {
	b.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	form.Set("csrf", b.token())
	return b.do(http.MethodPost, path, form)
}

// audited answers the entries of the log about an action.
func (h *house) audited(action string) (list []operator.Entry) {
	h.t.Helper()
	must(h.t, h.db.Read(h.t.Context(), func(r db.Reader) (err error) {
		list, _, err = h.operators.Audit(r, operator.AuditFilter{Action: action})
		return err
	}))
	return list
}

// noticed checks that a form was taken and follows it to where it leads.
func (b *browser) noticed(resp *http.Response, notice string) string {
	b.t.Helper()
	to := resp.Header.Get("Location")
	if resp.StatusCode != http.StatusSeeOther || !strings.Contains(to, "notice="+notice) {
		b.t.Fatalf("%d to %q, want the notice %s\n%s", resp.StatusCode, to, notice, gist(read(b.t, resp)))
	}
	return b.get(strings.TrimPrefix(to, "/console"))
}

// upTo is what stands in a page behind a text, up to the next quotation mark.
func upTo(t testing.TB, page, behind string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, behind)
	value, _, ended := strings.Cut(rest, `"`)
	if !found || !ended {
		t.Fatalf("the page has no %s:\n%s", behind, gist(page))
	}
	return value
}
