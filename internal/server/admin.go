package server

import (
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tributary/internal/console"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// adminHandler serves what only the operator may see. The console has its own
// sign-in. The rest is open on loopback; elsewhere every request of it needs
// the admin token.
func (s *Server) adminHandler() http.Handler {
	s.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newBacklog(s.db))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) }) //nolint:errcheck // the caller went away
	front := http.NewServeMux()
	front.Handle(console.Root+"/", s.console)
	front.Handle("GET "+console.Root, http.RedirectHandler(console.Root+"/", http.StatusSeeOther))
	front.Handle("GET /{$}", http.RedirectHandler(console.Root+"/", http.StatusSeeOther))
	front.Handle("/", s.tokenGuard(mux))
	return front
}

// tokenGuard asks for the admin token where others than this machine can call.
func (s *Server) tokenGuard(mux http.Handler) http.Handler {
	if onLoopback(s.admin.Addr()) {
		return mux
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if s.cfg.AdminToken.IsZero() || subtle.ConstantTimeCompare([]byte(token), s.cfg.AdminToken.Reveal()) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the admin token is needed: start with --admin-token", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func onLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// readiness answers whether requests can be served: the database answers.
func (s *Server) readiness(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := s.db.Read(ctx, func(r db.Reader) error {
		var one int
		return r.Row("SELECT 1").Scan(&one)
	})
	if err != nil {
		return (&fault.Error{Kind: fault.Unavailable, Message: "the database does not answer", RetryAfter: time.Second}).Because(err)
	}
	return nil
}
