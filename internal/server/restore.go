package server

import "context"

// buildRestore closes the intake where a backup was restored: because this
// start says so, or because an earlier one did and the restoration has not
// ended. It runs before anything is served or worked.
func (s *Server) buildRestore(ctx context.Context) error {
	if s.cfg.Restored {
		s.cfg.Log.Warn("--restored: querying the authorities for what the backup lacks; start without the flag from now on")
		return s.recovery.Begin(ctx, s.cfg.RestoredSince)
	}
	_, err := s.service.Intake.Learn(ctx)
	return err
}

// runRestore asks the authorities, or waits for the nodes that do.
func (s *Server) runRestore(ctx context.Context) error {
	return s.recovery.Run(ctx, s.cfg.Worker)
}

// Opened is closed when transactions are accepted: together with Ready, or
// later where a backup was restored. Reading works from Ready on.
func (s *Server) Opened() <-chan struct{} { return s.service.Intake.Opened() }
