package onboarding_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/country/generic"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/leaks"
	"tributary/internal/lease"
	"tributary/internal/onboarding"
	"tributary/internal/secret"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		workUntilKilled()
		return
	}
	leaks.Main(m)
}

const (
	base   = "https://api.example.test"
	client = "c_ab12"
)

// office is an authority that enrols suppliers over HTTP.
type office struct {
	*httptest.Server
	calls  atomic.Int64
	answer atomic.Pointer[func(call int64, supplier string) int] // nil: 200
}

// answers makes the office answer in another way from now on.
func (o *office) answers(fn func(call int64, supplier string) int) { o.answer.Store(&fn) }

func newOffice(t testing.TB) *office {
	o := &office{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		supplier, _ := io.ReadAll(r.Body)
		call := o.calls.Add(1)
		if answer := o.answer.Load(); answer != nil {
			w.WriteHeader((*answer)(call, string(supplier)))
		}
	}))
	t.Cleanup(o.Close)
	return o
}

// enrolAt is the Enrol of a pack whose authority is an office.
func enrolAt(ctx context.Context, in country.Enrolment) country.Enrolled {
	unavailable := country.Enrolled{Faults: []fault.Fault{{Code: fault.AuthorityUnavailable, Type: fault.TaxAuthority,
		Message: "the authority does not answer"}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, in.At.BaseURL+"/enrol", strings.NewReader(in.Supplier.ID))
	if err != nil {
		return unavailable
	}
	resp, err := in.At.HTTP.Do(req)
	if err != nil {
		return unavailable
	}
	resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return country.Enrolled{}
	case http.StatusUnprocessableEntity:
		return country.Enrolled{Faults: []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority,
			Message: "the authority does not know the company"}}}
	}
	return unavailable
}

// filing is a pack with an authority.
func filing(code string, change func(*country.Pack)) country.Pack {
	p := country.Pack{
		Code: code, Name: "Country " + code, Version: "test-1", Sources: []string{"https://example.test/law"},
		Facts: country.Facts{
			Currency: "EUR", Languages: []string{"ES", "EN"}, TimeZone: "UTC", UseCases: []country.UseCase{country.Both},
			Authority: &country.Authority{Name: "Office"},
			Settings: []country.Setting{
				{Key: "software", Type: "string", Default: "tributary", Pattern: `^[a-z]+$`},
				{Key: "level", Type: "integer", Default: 3},
				{Key: "loud", Type: "boolean", Default: false},
				{Key: "extra", Type: "object"},
				{Key: "office", Type: "string", Default: "north", Values: []string{"north", "south"}},
			},
		},
		Connect: func(country.Endpoint) (country.Channel, error) { return nil, country.ErrNoAddress },
		Enrol:   enrolAt,
	}
	if change != nil {
		change(&p)
	}
	return p
}

// genericPacks are read once: every world has them.
var genericPacks = sync.OnceValues(generic.Packs)

func testPacks(t testing.TB) []country.Pack {
	own := []country.Pack{
		filing("ES", func(p *country.Pack) { p.Facts.StrictNumbers = true }),
		filing("MX", func(p *country.Pack) {
			p.Facts.Credentials = []string{"certificate_base64", "certificate_password", "username", "password"}
			p.Facts.CertificateKey = "RSA"
			p.Facts.Settings = append(p.Facts.Settings, country.Setting{Key: "fiscal_regime", Type: "string", Required: true})
		}),
		filing("XX", nil),
		filing("PL", func(p *country.Pack) { p.Enrol = panicking }),
		filing("IT", func(p *country.Pack) {
			p.CheckCompany = func(s country.Supplier, _ country.Credentials) []fault.Fault {
				if s.CompanyNumber == "" {
					return []fault.Fault{fault.At("company_number", fault.FieldRequired, "must not be empty"),
						fault.Warn("", fault.TaxNumberDoubtful, "a warning")}
				}
				return nil
			}
		}),
	}
	own = append(own, filing("HU", func(p *country.Pack) {
		p.Facts.Secrets = []country.SecretRule{
			{Name: "sign_key", Description: "signs every call", Required: true},
			{Name: "exchange_key", Description: "opens tokens"},
			{Name: "station_key", Description: "given by the authority at enrolment"},
		}
		p.Enrol = func(_ context.Context, in country.Enrolment) country.Enrolled {
			return country.Enrolled{Keep: map[string]string{"station_key": "of " + in.Credentials.Named["sign_key"]},
				Settings: country.Settings{"level": int64(7)}}
		}
	}))
	others, err := genericPacks()
	if err != nil {
		t.Fatal(err)
	}
	taken := map[string]bool{}
	for _, p := range own {
		taken[p.Code] = true
	}
	for _, p := range others {
		if !taken[p.Code] {
			own = append(own, p)
		}
	}
	return own
}

// panicking is a broken pack that takes the credentials with it.
func panicking(_ context.Context, in country.Enrolment) country.Enrolled {
	panic(fmt.Sprintf("%v %s", in.Credentials, in.Credentials.Secret))
}

// world is a running program's onboarding.
type world struct {
	*onboarding.Companies
	t       testing.TB
	d       *db.DB
	office  *office
	log     *dbtest.Journal
	metrics *prometheus.Registry
	now     atomic.Pointer[time.Time]
	changed atomic.Int64
	ended   chan string
}

// sealers gives every client a data key of its own.
func sealers(t testing.TB) func(context.Context, string) (*secret.Sealer, error) {
	path := filepath.Join(t.TempDir(), "master")
	if err := secret.CreateMasterFile(path); err != nil {
		t.Fatal(err)
	}
	return sealersOf(t, path)
}

func sealersOf(t testing.TB, path string) func(context.Context, string) (*secret.Sealer, error) {
	master, err := secret.OpenMaster("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
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

func newWorld(t testing.TB, d *db.DB, change ...func(*onboarding.Config)) *world {
	t.Helper()
	w := &world{t: t, d: d, office: newOffice(t), log: &dbtest.Journal{}, metrics: prometheus.NewRegistry(),
		ended: make(chan string, 1<<16)}
	w.setNow(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	addresses := map[string]country.Addresses{}
	packs := testPacks(t)
	for _, p := range packs {
		if p.Connect != nil {
			addresses[p.Code] = country.Addresses{Test: w.office.URL}
		}
	}
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: packs, Addresses: addresses})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(atlas.Close)
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	alerts, err := alert.New(d, log, w.metrics)
	if err != nil {
		t.Fatal(err)
	}
	cfg := onboarding.Config{
		DB: d, Atlas: atlas, BaseURL: base + "/", Sealer: sealers(t), Alerts: alerts, Log: log,
		Now: func() time.Time { return *w.now.Load() },
		CredentialsChanged: func(tx *db.Tx, clientID, companyID string) error {
			tx.OnCommit(func() { w.changed.Add(1) })
			return nil
		},
	}
	for _, fn := range change {
		fn(&cfg)
	}
	w.Companies = onboarding.New(cfg)
	w.OnEnd(func(id string) { w.ended <- id })
	return w
}

func (w *world) setNow(at time.Time) { w.now.Store(&at) }

// start works jobs until the test ends.
func (w *world) start() {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) }) // it has no error
	running.Go(func() {
		if err := lease.RunTasks(ctx, w.d, w.Tasks()...); err != nil && ctx.Err() == nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

// settle works a job until it ends, without the queue.
func (w *world) settle(jobID string) onboarding.Envelope {
	w.t.Helper()
	for range 20 {
		if _, err := w.WorkNow(w.t.Context(), jobID); err != nil {
			w.t.Fatal(err)
		}
		e, err := w.Job(w.t.Context(), client, jobID)
		if err != nil {
			w.t.Fatal(err)
		}
		if e.Status == onboarding.Success || e.Status == onboarding.Failed {
			return e
		}
	}
	w.t.Fatal("the job never ends")
	return onboarding.Envelope{}
}

// create queues a company and returns the job.
func (w *world) create(body map[string]any) string {
	w.t.Helper()
	e, err := w.Create(w.t.Context(), client, false, encode(body))
	if err != nil {
		w.t.Fatal(err)
	}
	return e.Data.JobID
}

// onboard makes a company and returns its id.
func (w *world) onboard(body map[string]any) string {
	w.t.Helper()
	e := w.settle(w.create(body))
	if e.Status != onboarding.Success {
		w.t.Fatalf("onboarding failed: %+v", e.Errors)
	}
	return e.Data.ID
}

// patch changes a company and returns how the job ended.
func (w *world) patch(id string, body map[string]any) onboarding.Envelope {
	w.t.Helper()
	e, err := w.Patch(w.t.Context(), client, id, encode(body))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.settle(e.Data.JobID)
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// company is a body that is accepted, changed by the pairs of path and value.
func company(pairs ...any) map[string]any {
	body := map[string]any{
		"meta":           map[string]any{"country_code": "es", "language_code": "es", "external_id": "shop-1"},
		"legal_name":     "Tienda Uno SL",
		"company_number": "M-1",
		"address": map[string]any{"country_code": "ES", "city": "Madrid", "postal_code": "28001",
			"address_line_1": "Calle Mayor 1"},
		"tax_information": map[string]any{"tax_number": "B98602642", "regime": "VAT"},
	}
	for i := 0; i < len(pairs); i += 2 {
		set(body, pairs[i].(string), pairs[i+1])
	}
	return body
}

// absent as a value takes the member away.
type absent struct{}

func set(body map[string]any, path string, value any) {
	first, rest, nested := strings.Cut(path, ".")
	if nested {
		inner, _ := body[first].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
			body[first] = inner
		}
		set(inner, rest, value)
		return
	}
	if _, gone := value.(absent); gone {
		delete(body, first)
		return
	}
	body[first] = value
}

// faultsOf lists code and field of each fault of an error.
func faultsOf(err error) []string {
	e, ok := err.(*fault.Error)
	if !ok {
		return []string{fmt.Sprint(err)}
	}
	return list(e.Faults)
}

func list(faults []fault.Fault) []string {
	all := []string{}
	for _, f := range faults {
		all = append(all, string(f.Code)+" "+f.Field)
	}
	return all
}
