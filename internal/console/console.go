// Package console is the operator's face of the service: pages that say what
// happens, why something is stuck, and let a person do something about it.
//
// It owns the pages, their looks and their plots, the routes with the role each
// one needs, and everything a browser has to be told to be safe. It does not
// own any rule about what the pages show or set in motion: it reads and calls
// the slices. It speaks to operators only; clients have the API.
//
// The law of the table of routes: whatever can be reached stands in it with the
// role it needs; what changes something is a POST that carries the session's
// token, and is in the audit log with who, what, before and after. Pages are
// complete without scripts; text from transactions, authorities and receivers
// is only ever inserted by html/template, which escapes it.
//
// Failure policy: where an action is one write of its slice, its record joins
// that commit. Other actions are recorded after they were done, or refused, with
// the outcome; one whose record cannot be stored answers an error although it
// was done, because an operator who sees an error looks again.
//
// One click on many rows: the preview is a GET with the rows in its address, so
// that it can be gone back to and changes nothing; what acts is a POST, takes at
// most 200 rows, leaves alone what has changed since, and is one entry of the audit
// log. A document is shown beside its timeline only when somebody asks for it: it
// holds names and addresses, and reading one is an entry of the log. Entries for
// every look at a page would hide the readings that matter.
//
// Behind HTTPS cookies are named __Host-…, which binds them to the host instead of
// to the console's path. Pages that update themselves do not keep a session alive:
// whoever only watches is signed out after the idle time.
package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/document"
	"tributary/internal/endpoint"
	"tributary/internal/files"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/lookup"
	"tributary/internal/onboarding"
	"tributary/internal/operator"
	"tributary/internal/recovery"
	"tributary/internal/webhook"
)

// Root is where the console is to be mounted: it answers Root and everything below.
const Root = "/console"

// Config is what the console stands on. All parts are needed but those that say
// otherwise.
type Config struct {
	DB           *db.DB
	Operators    *operator.Operators
	Accounts     *account.Accounts
	Endpoints    *endpoint.Endpoints
	Atlas        *country.Atlas
	Transactions *filing.Service
	Ledger       *ledger.Ledger
	Recovery     *recovery.Recovery
	Companies    *onboarding.Companies
	Lookups      *lookup.Lookups
	Documents    *files.Store
	Hooks        *webhook.Hooks
	Renderer     *document.Renderer
	OIDC         *operator.OIDC // nil: operators sign in with passwords alone

	Simulators string // base address of the simulated authorities; "" where there are none
	Version    string
	Secure     bool // browsers reach the console by HTTPS: the cookie never travels without it
	TrustProxy bool // the address of a request is the last of X-Forwarded-For

	LiveEvery time.Duration         // how often an open page looks for news; default 2 s
	LiveMax   int                   // open pages that follow, of all operators; default 256
	LiveEach  int                   // and of one operator; default 16
	Log       *slog.Logger          // nil: discarded
	Metrics   prometheus.Registerer // nil: none
	Now       func() time.Time      // default time.Now
}

// Console is the handler.
type Console struct {
	cfg    *Config
	log    *slog.Logger
	mux    *http.ServeMux
	assets assets
	took   *prometheus.HistogramVec
	now    func() time.Time

	cookies *cookies
	front   *front
	dir     *directory

	entry      *entry
	sales      *salesPages
	clients    *clientPages
	settings   *settingPages
	deliveries *deliveryPages

	streams  *streams
	stop     context.CancelFunc
	stopping context.Context
	calls    *http.Client // to the simulators' control plane
	open     sync.WaitGroup
}

const (
	liveEvery    = 2 * time.Second
	liveMax      = 256
	liveEach     = 16
	formBytesMax = 64 << 10
	logoFormMax  = account.LogoBytesMax + formBytesMax
)

// New builds the handler.
func New(cfg Config) (*Console, error) {
	c := &Console{cfg: &cfg, log: cfg.Log, mux: http.NewServeMux(), now: cfg.Now}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	c.cookies = &cookies{c.cfg}
	c.front = &front{cfg: c.cfg, log: c.log, cross: http.NewCrossOriginProtection(), cookies: c.cookies,
		refusals: rate.NewLimiter(refusalsPerSecond, refusalsBurst)}
	c.dir = &directory{c.cfg, c.now}
	c.entry = &entry{c.cfg, c.log, c.front, c.cookies}
	c.sales = &salesPages{c.cfg, c.log, c.now, c.dir}
	c.clients = &clientPages{c.cfg, c.now, c.front, c.dir}
	c.settings = &settingPages{c.cfg, c.now, c.front, c.dir}
	c.deliveries = &deliveryPages{c.cfg, c.now, c.dir}
	if c.cfg.LiveEvery <= 0 {
		c.cfg.LiveEvery = liveEvery
	}
	if c.cfg.LiveMax <= 0 {
		c.cfg.LiveMax = liveMax
	}
	if c.cfg.LiveEach <= 0 {
		c.cfg.LiveEach = liveEach
	}
	c.streams = &streams{all: c.cfg.LiveMax, each: c.cfg.LiveEach, by: map[string]int{}}
	c.stopping, c.stop = context.WithCancel(context.Background())
	c.calls = &http.Client{Timeout: 5 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	c.took = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "tributary_console_request_seconds", Help: "Time to answer a request of the console.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .2, .5, 1, 2.5, 10},
	}, []string{"route", "status"})
	if cfg.Metrics != nil {
		if err := cfg.Metrics.Register(c.took); err != nil {
			return nil, err
		}
	}
	var errAssets, errPages error
	c.assets, errAssets = readAssets()
	c.front.pages, errPages = c.parsePages()
	if err := errors.Join(errAssets, errPages); err != nil {
		return nil, err
	}
	c.mount()
	return c, nil
}

// ServeHTTP answers a request below Root.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.cookies.guardHeaders(w.Header())
	c.mux.ServeHTTP(w, r)
}

// Close ends the open streams of updates and waits for them. Requests that
// arrive later are still answered.
func (c *Console) Close() {
	c.stop()
	c.open.Wait()
	c.calls.CloseIdleConnections()
}
