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
)

// Replica makes a standby of a running server by streaming replication and
// waits until it follows.
func (s *Server) Replica(dir string) (*Server, error) {
	r, err := newServer(dir, s.sync)
	if err != nil {
		return nil, err
	}
	r.set = append([]string{"hot_standby=on"}, s.set...)
	copied := r.command0("pg_basebackup", "-D", filepath.Join(r.data, "db"), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", "tributary", "-R", "-X", "stream", "-c", "fast", "--no-sync")
	if out, err := copied.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pg_basebackup: %w\n%s", err, out)
	}
	if err := r.Start(); err != nil {
		return nil, err
	}
	return r, s.until("SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'")
}

// Promote makes a standby the primary, on a new timeline.
func (s *Server) Promote() error {
	conn, err := pgx.Connect(context.Background(), s.url("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.Background()) }() // a test's own connection
	var promoted bool
	if err := conn.QueryRow(context.Background(), "SELECT pg_promote(true, 30)").Scan(&promoted); err != nil || !promoted {
		return errors.Join(err, errors.New("the standby was not promoted"))
	}
	return nil
}

// until waits for a question to be answered with yes.
func (s *Server) until(question string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // a test's own connection
	for yes := false; !yes; time.Sleep(10 * time.Millisecond) {
		if err := conn.QueryRow(ctx, question).Scan(&yes); err != nil {
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
