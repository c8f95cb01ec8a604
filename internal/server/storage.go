package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tributary/internal/alert"
)

// A process that can no longer trust its disk ends at once, and with it everything
// that could tell anybody. So it leaves a note beside its data, and the next start,
// on a database that was found sound, raises the alert.
//
// Failure policy: the note is written as well as a disk in trouble lets it; the log
// line comes first. Where only documents are lost the database is told instead.
const (
	storageNote     = "storage-failed"
	storageNoteMax  = 1000
	storageTellTime = 2 * time.Second
)

// databaseFailed ends the process after a failed sync of the database.
func (s *Server) databaseFailed(err error) {
	s.noteFailure(err)
	s.exit(1)
}

// documentsFailed ends the process after a failed sync of documents.
func (s *Server) documentsFailed(err error) {
	ctx, cancel := context.WithTimeout(context.Background(), storageTellTime)
	defer cancel()
	if s.alerts.Raise(ctx, alert.StorageFailed, s.db.Node(), err.Error()) != nil {
		s.noteFailure(err)
	}
	s.exit(1)
}

func (s *Server) noteFailure(err error) {
	text := fmt.Sprintf("%s: %v", time.Now().UTC().Format(time.RFC3339), err)
	if err := os.WriteFile(filepath.Join(s.cfg.Data, storageNote), []byte(text), 0o600); err != nil {
		s.cfg.Log.Error("leave a note that storage failed", "error", err)
	}
}

// tellFailure raises what the process before this one could not.
func (s *Server) tellFailure(ctx context.Context) error {
	path := filepath.Join(s.cfg.Data, storageNote)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the note that storage failed: %w", err)
	}
	if err := s.alerts.Raise(ctx, alert.StorageFailed, s.db.Node(), string(text[:min(len(text), storageNoteMax)])); err != nil {
		return err
	}
	return os.Remove(path)
}
