package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/db"
)

const (
	housekeepEvery = 24 * time.Hour
	catchUpDays    = 30 // days that one round forgets one by one; what is older goes at once
)

// housekeep does once a day what nobody waits for: it reads the logs from
// their beginning, and forgets diagnostics whose time is over. Every node does
// it; what another has done already costs a look.
func (s *Server) housekeep(ctx context.Context) error {
	for {
		for what, do := range map[string]func(context.Context) error{"read the logs": s.checkLogs, "forget diagnostics": s.forget} {
			if err := do(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Log.Error(what, "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(housekeepEvery):
		}
	}
}

// checkLogs raises an alert when somebody changed a log: the operators' or a client's.
func (s *Server) checkLogs(ctx context.Context) error {
	_, operators := s.operators.CheckAudit(ctx)
	_, clients := s.accounts.VerifyAudits(ctx)
	return errors.Join(operators, clients)
}

// forget removes what is not part of the legal record and may hold personal
// data: replies of receivers, and alerts that somebody has dealt with.
func (s *Server) forget(ctx context.Context) error {
	var clients []account.Client
	err := s.db.Read(ctx, func(r db.Reader) (err error) {
		clients, err = s.accounts.List(r)
		return err
	})
	if err != nil {
		return fmt.Errorf("list clients: %w", err)
	}
	for _, c := range clients {
		days := c.Config.Retention.DiagnosticDays
		if days == 0 {
			days = account.DiagnosticDaysMax
		}
		if err := s.forgetTries(ctx, c.ID, s.db.Now().AddDate(0, 0, -days)); err != nil {
			return err
		}
	}
	return s.db.Write(ctx, func(tx *db.Tx) error {
		return alert.Forget(tx, tx.Now().AddDate(0, 0, -account.DiagnosticDaysMax))
	})
}

// forgetTries goes back from an instant day by day, so that no write is long.
func (s *Server) forgetTries(ctx context.Context, clientID string, until time.Time) error {
	for day := range catchUpDays + 1 {
		to := until.AddDate(0, 0, -day)
		from := to.AddDate(0, 0, -1)
		if day == catchUpDays {
			from = time.Time{}
		}
		err := s.db.Write(ctx, func(tx *db.Tx) error { return s.hooks.Forget(tx, clientID, from, to) })
		if err != nil {
			return err
		}
	}
	return nil
}
