package server

import (
	"net/http"

	"tributary/internal/account"
)

// Accounts is the book of clients of a running program.
func (s *Server) Accounts() *account.Accounts { return s.accounts }

// Handler is the public API without a listener.
func (s *Server) Handler() http.Handler { return s.api }
