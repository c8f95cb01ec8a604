package server

import (
	"context"
	"errors"
	"time"
)

const housekeepEvery = 24 * time.Hour

// housekeep does once a day what nobody waits for: it reads the logs from their
// beginning. Every node does it.
func (s *Server) housekeep(ctx context.Context) error {
	for {
		if err := s.checkLogs(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Error("read the logs", "error", err)
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
