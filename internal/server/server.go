// Package server puts the parts together: a Config in, a running program out.
// The command line and every end-to-end test use it.
//
// It owns composition, listeners and the order of start and stop. It does not
// own any behaviour of the parts. Law of [Server.Run]: when it returns, nothing
// of the program is running and nothing accepted is lost.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/api"
	"tributary/internal/audit"
	"tributary/internal/console"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/document"
	"tributary/internal/endpoint"
	"tributary/internal/files"
	"tributary/internal/filing"
	"tributary/internal/inbox"
	"tributary/internal/lease"
	"tributary/internal/ledger"
	"tributary/internal/lookup"
	"tributary/internal/onboarding"
	"tributary/internal/operator"
	"tributary/internal/received"
	"tributary/internal/recovery"
	"tributary/internal/retention"
	"tributary/internal/schema"
	"tributary/internal/secret"
	"tributary/internal/turnstile"
	"tributary/internal/webhook"
)

// Time limits of start and stop.
const (
	openTimeout     = 10 * time.Second // to reach the database
	drainHTTP       = 3 * time.Second  // for requests under way
	drainMost       = 30 * time.Second // of a node that says that it is not ready
	headerTimeout   = 5 * time.Second
	exchangeTimeout = 15 * time.Second
	adminTimeout    = time.Minute // for a page; streams and profiles take the time they need
	idleTimeout     = time.Minute
	headerBytesMax  = 32 << 10
)

// Server is a program, opened but not yet running.
type Server struct {
	cfg       Config
	exit      func(code int) // of the process
	leaving   atomic.Bool    // /readyz says no
	left      chan struct{}  // nil but in tests
	db        *db.DB
	metrics   *prometheus.Registry
	alerts    *alert.Alerts
	packs     []country.Pack
	atlas     *country.Atlas
	masterKey *secret.Master
	auditKey  *audit.Key
	writes    writeProbe
	heads     *headsOutside
	accounts  *account.Accounts
	endpoints *endpoint.Endpoints
	hooks     *webhook.Hooks
	sender    *webhook.Sender
	docs      *files.Store
	company   *onboarding.Companies
	lookups   *lookup.Lookups
	received  *received.Documents
	vies      *lookup.VIES
	service   *filing.Service
	inbox     *inbox.Inbox
	ledger    *ledger.Ledger
	retention *retention.Retention
	recovery  *recovery.Recovery
	renderer  *document.Renderer
	api       *api.API
	operators *operator.Operators
	oidc      *operator.OIDC // nil: passwords alone
	console   *console.Console

	public, admin, sims, callbacks net.Listener
	simulators                     *simulators
	demo                           *Demo
	ready                          chan struct{}
}

// Open builds the program and takes its ports. Nothing is served before Run.
func Open(ctx context.Context, cfg Config) (s *Server, err error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s = &Server{cfg: cfg, exit: os.Exit, metrics: prometheus.NewRegistry(), ready: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.listen(); err != nil {
		return s, err
	}
	if err := s.openDatabase(ctx); err != nil {
		return s, err
	}
	if err := s.build(ctx); err != nil {
		return s, err
	}
	if s.simulators != nil {
		s.simulators.serve(s.sims) // before anybody enrols with them
	}
	if cfg.Demo {
		if s.demo, err = s.seed(ctx); err != nil {
			return s, fmt.Errorf("seed the demo: %w", err)
		}
	}
	return s, nil
}

// listen takes the ports, so that URL is known and a taken port is found early.
func (s *Server) listen() (err error) {
	take := func(key, address string) (net.Listener, error) {
		if address == "" {
			return nil, nil
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, fmt.Errorf("--%s %s: %w", key, address, err)
		}
		return l, nil
	}
	if s.cfg.API {
		if s.public, err = take("listen", s.cfg.Listen); err != nil {
			return err
		}
	}
	if s.admin, err = take("admin", s.cfg.Admin); err != nil {
		return err
	}
	if s.callbacks, err = take("callbacks", s.cfg.Callbacks); err != nil {
		return err
	}
	if s.cfg.Demo {
		if s.sims, err = take("simulators", s.cfg.Simulators); err != nil {
			return err
		}
		if s.sims != nil {
			s.cfg.SimulatorsURL = "http://" + s.sims.Addr().String()
		}
	}
	if s.cfg.AdminURL == "" {
		s.cfg.AdminURL = urlOf(s.admin)
		if s.cfg.Demo && s.admin != nil && onLoopback(s.admin.Addr()) {
			// Passkeys have a domain, and an address of numbers is none.
			s.cfg.AdminURL = fmt.Sprintf("http://localhost:%d", s.admin.Addr().(*net.TCPAddr).Port)
		}
	}
	if s.cfg.PublicURL == "" && s.public != nil {
		scheme := "http://"
		if s.cfg.TLSCert != "" {
			scheme = "https://"
		}
		s.cfg.PublicURL = scheme + s.public.Addr().String()
	}
	return nil
}

func (s *Server) openDatabase(ctx context.Context) error {
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	var err error
	if s.db, err = db.Open(opening, db.Config{URL: s.cfg.Database, Password: s.cfg.Password, Log: s.cfg.Log,
		NoGroups: s.cfg.NoGroups, Fatal: s.databaseFailed}); err != nil {
		return err
	}
	if s.cfg.Migrate || s.cfg.Demo {
		_, err = schema.Migrate(ctx, s.db) // takes the time it needs: see its own deadline
	} else {
		err = schema.Check(opening, s.db)
	}
	if err != nil {
		return err
	}
	return s.db.CheckCluster(ctx, s.cfg.Restored)
}

// URL is the base address of the public API.
func (s *Server) URL() string { return s.cfg.PublicURL }

// AdminURL is the address of the admin listener, or "".
func (s *Server) AdminURL() string { return urlOf(s.admin) }

// ConsoleURL is where browsers reach the console, or "".
func (s *Server) ConsoleURL() string {
	if s.admin == nil {
		return ""
	}
	return s.cfg.AdminURL + console.Root + "/"
}

// SimulatorsURL is the address of the simulated authorities, or "".
func (s *Server) SimulatorsURL() string { return urlOf(s.sims) }

func urlOf(l net.Listener) string {
	if l == nil {
		return ""
	}
	return "http://" + l.Addr().String()
}

// Demo tells what the demo made, or nil.
func (s *Server) Demo() *Demo { return s.demo }

// Ready is closed when requests are served.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Run serves until ctx ends, then stops in order: no new requests, then the
// workers, then storage.
func (s *Server) Run(ctx context.Context) error {
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	failed := make(chan error, 8)
	var wg sync.WaitGroup
	background := func(what string, fn func(context.Context) error) {
		wg.Go(func() {
			if err := fn(work); err != nil && work.Err() == nil {
				failed <- fmt.Errorf("%s: %w", what, err)
			}
		})
	}
	background("accounts", s.accounts.Run)
	background("authorities", s.endpoints.Run)
	background("restoration", s.runRestore)
	background("housekeeping", s.housekeep)
	background("identity provider", s.reachProvider)
	background("keys", s.followKeys)
	background("key service", s.keepToken)
	if s.cfg.Worker {
		background("transactions", s.service.Run)
		background("inbox", s.inbox.Run)
		background("index", s.ledger.Run)
		background("webhooks", s.hooks.Run)
		background("onboardings", s.company.Run)
		background("lookups", s.lookups.Run)
		background("received documents", s.received.Run)
		background("periodic tasks", s.runTasks)
	}
	servers, err := s.serve(failed)
	if err == nil {
		close(s.ready)
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	s.cfg.Log.Info("stopping")
	if err == nil {
		s.leave()
	}
	if s.console != nil {
		s.console.Close() // open pages would hold the listener
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainHTTP)
	for _, h := range servers[:min(1, len(servers))] {
		err = errors.Join(err, ignoreDeadline(h.Shutdown(drain)))
	}
	cancel()
	stopWork()
	wg.Wait()
	for _, h := range servers {
		err = errors.Join(err, h.Close())
	}
	return err
}

// leave serves on for a while as a node that is not ready: whoever sends requests here has heard it before the listener
// closes.
func (s *Server) leave() {
	s.leaving.Store(true)
	if s.cfg.Drain > 0 && s.public != nil {
		select {
		case <-time.After(s.cfg.Drain):
		case <-s.left: // a test has seen enough
		}
	}
}

func (s *Server) runTasks(ctx context.Context) error {
	return lease.RunTasks(ctx, s.db, slices.Concat(s.endpoints.Tasks(), s.company.Tasks(), s.docs.Tasks(),
		s.retention.Tasks())...)
}

func ignoreDeadline(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // slow clients are cut off
	}
	return err
}

// budgeted gives the reads of requests a time limit and connections of their
// own: whatever callers ask for, commits and workers go on.
func budgeted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(db.WithReadBudget(r.Context(), db.ReadBudget)))
	})
}

// inTime has whoever waits for a slot or a commit hear so before the connection is closed.
func inTime(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(turnstile.AnswerBy(r.Context(), time.Now().Add(exchangeTimeout-time.Second))))
	})
}

// serve starts the listeners; the public one is first in the answer.
func (s *Server) serve(failed chan<- error) (servers []*http.Server, err error) {
	start := func(l net.Listener, h http.Handler, write time.Duration) {
		srv := newHTTPServer(budgeted(h), write)
		servers = append(servers, srv)
		go func() {
			if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		}()
	}
	if s.public != nil {
		l := s.public
		if s.cfg.TLSCert != "" {
			cert, err := tls.LoadX509KeyPair(s.cfg.TLSCert, s.cfg.TLSKey)
			if err != nil {
				return nil, fmt.Errorf("--tls-cert: %w", err)
			}
			l = tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert},
				NextProtos: []string{"http/1.1"}})
		}
		start(l, inTime(s.api), exchangeTimeout)
	}
	if s.admin != nil {
		start(s.admin, s.adminHandler(), adminTimeout)
	}
	if s.callbacks != nil {
		start(s.serveCallbacks(), inTime(s.inbox), exchangeTimeout)
	}
	return servers, nil
}

// newHTTPServer bounds what a caller may take: to send a head and a body, to
// read the answer, and to rest.
func newHTTPServer(h http.Handler, write time.Duration) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: headerBytesMax,
		ReadTimeout: exchangeTimeout, WriteTimeout: write, IdleTimeout: idleTimeout}
}

// Close releases what Open took. It is safe after a failed Open and after Run.
func (s *Server) Close() error {
	var err error
	if s.console != nil {
		s.console.Close()
	}
	if s.oidc != nil {
		s.oidc.Close()
	}
	if s.service != nil {
		s.service.Close()
		s.ledger.Close()
	}
	if s.docs != nil {
		err = errors.Join(err, s.docs.Close())
	}
	err = errors.Join(err, s.heads.close())
	if s.sender != nil {
		s.sender.Close()
	}
	if s.vies != nil {
		s.vies.Close()
	}
	if s.atlas != nil {
		s.atlas.Close()
	}
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	if s.simulators != nil {
		err = errors.Join(err, s.simulators.Close())
	}
	for _, l := range []net.Listener{s.public, s.admin, s.sims, s.callbacks} {
		if l != nil {
			if e := l.Close(); e != nil && !errors.Is(e, net.ErrClosed) && !strings.Contains(e.Error(), "use of closed") {
				err = errors.Join(err, e)
			}
		}
	}
	return err
}
