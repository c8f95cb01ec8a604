package server

import (
	"context"
	"net/http"

	"tributary/internal/account"
	"tributary/internal/db"
)

// OpenTimeout is how long a database may take to answer at the start.
const OpenTimeout = openTimeout

// Accounts is the book of clients of a running program.
func (s *Server) Accounts() *account.Accounts { return s.accounts }

// Forget is a day's round of forgetting.
func (s *Server) Forget(ctx context.Context) error { return s.forget(ctx) }

// DB is the database of a running program.
func (s *Server) DB() *db.DB { return s.db }

// Handler is the public API without a listener.
func (s *Server) Handler() http.Handler { return s.api }

// Check completes a configuration, or says what is wrong with it.
func (c *Config) Check() error { return c.check() }
