package server

import (
	"context"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/filing"
	"tributary/internal/webhook"
)

// What the benchmark needs beyond the public API.

// Engine is the database's engine.
func (s *Server) Engine() string { return s.db.Engine() }

// Notify stores events as a settling commit would.
func (s *Server) Notify(ctx context.Context, events ...webhook.Event) error {
	return s.db.Write(ctx, func(tx *db.Tx) error { return s.hooks.Notify(tx, events...) })
}

// WaitSettled returns when no operation is on its way.
func (s *Server) WaitSettled(ctx context.Context) error {
	for {
		n, err := s.ledger.Unsettled(ctx)
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// LoadSettled fills the demo's store with settled transactions.
func (s *Server) LoadSettled(ctx context.Context, n int, body func(i int) []byte) error {
	profile, err := s.accounts.Profile(ctx, demoClient)
	if err != nil {
		return err
	}
	return s.service.LoadSettled(ctx, filing.Caller{Scope: demoClient, Live: country.Live(profile.Live), UseCase: profile.Config.UseCase}, n, body)
}
