package server

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/ledger"
	"tributary/internal/operator"
	"tributary/internal/received"
	"tributary/internal/retention"
)

// InTime is what stands before every handler of the public address.
var InTime = inTime

// OpenTimeout is how long a database may take to answer at the start.
const OpenTimeout = openTimeout

// ExchangeTimeout is the time of a request and its answer.
const ExchangeTimeout = exchangeTimeout

// Accounts is the book of clients of a running program.
func (s *Server) Accounts() *account.Accounts { return s.accounts }

// Retention makes the rounds of a running program.
func (s *Server) Retention() *retention.Retention { return s.retention }

// AtTime is a configuration whose rounds of retention are made at another time.
func (c Config) AtTime(now func() time.Time) Config {
	c.retentionNow = now
	return c
}

// Cheap is a configuration under which passwords cost little to hash.
func (c Config) Cheap() Config {
	c.passwordCost = operator.Cost{MemoryKiB: 64, Passes: 1, Lanes: 1}
	return c
}

// WrappedTables are the tables that are asked which master keys they need.
func WrappedTables() []string { return slices.Collect(maps.Keys(wrappedTables)) }

// DB is the database of a running program.
func (s *Server) DB() *db.DB { return s.db }

// Handler is the public API without a listener.
func (s *Server) Handler() http.Handler { return s.api }

// AdminServer is what the admin listener would be served by.
func (s *Server) AdminServer() *http.Server { return newHTTPServer(s.adminHandler(), adminTimeout) }

// Operators are those of a running program.
func (s *Server) Operators() *operator.Operators { return s.operators }

// Received are the documents that a running program takes.
func (s *Server) Received() *received.Documents { return s.received }

// Ledger is what a running program reads.
func (s *Server) Ledger() *ledger.Ledger { return s.ledger }

// Alerts are those of a running program.
func (s *Server) Alerts() *alert.Alerts { return s.alerts }

// Check completes a configuration, or says what is wrong with it.
func (c *Config) Check() error { return c.check() }

// CheckLogs is the daily look at the audit logs.
func (s *Server) CheckLogs(ctx context.Context) error { return s.checkLogs(ctx) }

// Logs verifies the audit logs of a running program.
func (s *Server) Logs() Logs { return s.logs() }

// WriteHeads writes heads outside, whenever the last ones were.
func (s *Server) WriteHeads(ctx context.Context) error {
	text, at, err := s.logs().Heads(ctx)
	if err != nil {
		return err
	}
	return s.heads.put(ctx, at, "test", text)
}

// LeavesUntil has a stopping node serve on until the channel is closed.
func (s *Server) LeavesUntil(left chan struct{}) { s.left = left }

// FailStorage has the program learn that a sync failed, of the database or of documents, and answers how it ends.
func (s *Server) FailStorage(err error, documents bool) (code int) {
	s.exit = func(c int) { code = c }
	if documents {
		s.documentsFailed(err)
	} else {
		s.databaseFailed(err)
	}
	return code
}

// Address is where the public API listens.
func (s *Server) Address() string { return s.public.Addr().String() }
