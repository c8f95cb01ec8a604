package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Replica makes a standby of a running server by streaming replication and
// waits until it follows.
func (s *Server) Replica(dir string) (*Server, error) {
	r, err := newServer(dir, s.sync)
	if err != nil {
		return nil, err
	}
	r.set = append([]string{"hot_standby=on"}, s.set...)
	copied := r.command0("pg_basebackup", "-D", filepath.Join(r.data, "db"), "-h", "127.0.0.1", "-p",
		strconv.Itoa(s.port), "-U", "tributary", "-R", "-X", "stream", "-c", "fast", "--no-sync")
	if out, err := copied.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pg_basebackup: %w\n%s", err, out)
	}
	if err := r.Start(); err != nil {
		return nil, err
	}
	return r, s.until("SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'")
}

// Promote makes a standby the primary, on a new timeline, and waits for it. To
// ask and to wait are two things: whoever waits inside pg_promote may be thrown
// out by the replay that the promotion finishes.
func (s *Server) Promote() error {
	if err := s.until("SELECT pg_promote(false)"); err != nil {
		return err
	}
	return s.until("SELECT NOT pg_is_in_recovery()")
}

// until waits for a question to be answered with yes.
func (s *Server) until(question string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // a test's own connection
	for yes := false; !yes; time.Sleep(10 * time.Millisecond) {
		err := conn.QueryRow(ctx, question).Scan(&yes)
		if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == "40001" {
			continue // a standby's replay comes first
		}
		if err != nil {
			return fmt.Errorf("%s: %w", question, err)
		}
	}
	return nil
}

// Put writes a file into the server's folder, readable by it alone, and returns its path.
func (s *Server) Put(name string, content []byte) (string, error) {
	path := filepath.Join(s.data, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", err
	}
	return path, s.own(path)
}

// Configure restarts the server with other settings, each as name=value.
func (s *Server) Configure(set ...string) error {
	if err := s.Kill(); err != nil {
		return err
	}
	s.set = set
	return s.Start()
}
