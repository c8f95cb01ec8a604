package server

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tributary/internal/console"
	"tributary/internal/fault"
	"tributary/internal/schema"
)

// adminHandler serves what only the operator may see. The console has its own
// sign-in. The rest needs the admin token where one is configured; without one
// it is open to this machine alone. Neither is served to a page that reaches us
// by a name that is not ours.
func (s *Server) adminHandler() http.Handler {
	s.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newBacklog(s.db, s.atlas), s.writes.metric())
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{}))
	// No cmdline: arguments may hold secrets.
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("GET /debug/pprof/profile", unhurried(pprof.Profile))
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", unhurried(pprof.Trace))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) })
	front := http.NewServeMux()
	front.Handle(console.Root+"/", s.console)
	front.Handle("GET "+console.Root, http.RedirectHandler(console.Root+"/", http.StatusSeeOther))
	front.Handle("GET /{$}", http.RedirectHandler(console.Root+"/", http.StatusSeeOther))
	front.Handle("/", s.tokenGuard(mux))
	return s.hostGuard(front)
}

// unhurried lets a handler take longer than the listener's limit on reading a
// request, which would otherwise end it. The handlers move the limit on writing.
func unhurried(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h(w, r)
	}
}

// hostGuard refuses a Host that is not ours. A page of another site whose name
// is made to resolve to this machine would otherwise speak to us as its own
// origin. Ours are the host of --admin-url, the names of loopback, and the very
// address that was called. On a network, whoever brings the token is no page:
// monitoring may call us by any name.
func (s *Server) hostGuard(next http.Handler) http.Handler {
	own := ""
	if u, err := url.Parse(s.cfg.AdminURL); err == nil {
		own = u.Hostname()
	}
	network := !onLoopback(s.admin.Addr())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ownHost(r, own) && !(network && s.hasToken(r)) {
			http.Error(w, fmt.Sprintf("%q is not a host name of this listener: set --admin-url", r.Host),
				http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func ownHost(r *http.Request, own string) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if own != "" && strings.EqualFold(host, own) || strings.EqualFold(host, "localhost") {
		return true
	}
	at, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	called, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return at.IsLoopback() || called != nil && called.AddrPort().Addr().Unmap() == at.Unmap()
}

// tokenGuard asks for the admin token: always where one is configured, and
// where others than this machine can call. What comes through a proxy is not
// from this machine.
func (s *Server) tokenGuard(next http.Handler) http.Handler {
	open := onLoopback(s.admin.Addr()) && s.cfg.AdminToken.IsZero()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local := open && r.Header.Get("X-Forwarded-For") == "" && r.Header.Get("Forwarded") == ""
		if !local && !s.hasToken(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "an admin token is required: set --admin-token-file", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) hasToken(r *http.Request) bool {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return !s.cfg.AdminToken.IsZero() && subtle.ConstantTimeCompare([]byte(token), s.cfg.AdminToken.Reveal()) == 1
}

func onLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// readiness answers whether requests can be served: the database answers, and shows its rows.
func (s *Server) readiness(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if s.leaving.Load() {
		return &fault.Error{Kind: fault.Unavailable, Message: "this node is stopping", RetryAfter: time.Second}
	}
	if err := schema.Shows(ctx, s.db); err != nil {
		return (&fault.Error{Kind: fault.Unavailable, Message: "the database does not respond",
			RetryAfter: time.Second}).Because(err)
	}
	return nil
}
