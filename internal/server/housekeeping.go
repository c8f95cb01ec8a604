package server

import (
	"context"
	"time"
)

const (
	housekeepEvery = 24 * time.Hour
	housekeepAgain = time.Hour // after trouble
)

// housekeep does once a day what nobody waits for: it reads the logs from their
// beginning. Every node does it.
func (s *Server) housekeep(ctx context.Context) error {
	for {
		again := housekeepEvery
		if err := s.checkLogs(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Error("read the logs", "error", err)
			again = housekeepAgain
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
}
