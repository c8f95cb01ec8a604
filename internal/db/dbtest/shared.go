package dbtest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"tributary/internal/leaks"
	"tributary/internal/needs"
)

// AddressVariable names the server that all packages of a run share, as
// postgres://USER@HOST:PORT. scripts/withpostgres starts it and sets it; without
// it a test binary starts one of its own.
const AddressVariable = "TRIBUTARY_TEST_POSTGRES"

var shared struct {
	once sync.Once
	s    *Server
	err  error
}

// server returns the server of the run, or of the test binary: that one starts
// with the first caller and ends with the process, because the kernel kills it
// when its parent is gone.
func server(t testing.TB) *Server {
	t.Helper()
	shared.once.Do(func() {
		leaks.AtEnd(func() error { return shared.s.hangUp() })
		if address := os.Getenv(AddressVariable); address != "" {
			shared.s, shared.err = sharedServer(address)
			return
		}
		shared.s, shared.err = startServer(os.TempDir(), fsyncWanted())
	})
	if errors.Is(shared.err, ErrNoBinaries) {
		needs.Missing(t, "PostgreSQL half skipped: %v", shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.s
}

// hangUp closes the connections that wait for the next command.
func (s *Server) hangUp() (err error) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.idle {
		err = errors.Join(err, conn.Close(context.Background()))
	}
	s.idle = nil
	return err
}

// sharedServer is a server that somebody else started.
func sharedServer(address string) (*Server, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", AddressVariable, err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return nil, fmt.Errorf("%s must be postgres://tributary@127.0.0.1:PORT: %w", AddressVariable, err)
	}
	bin, err := findBinaries()
	return &Server{bin: bin, port: port}, err
}

// alone runs fn while nobody else does on this server, in any process: roles and
// the database to copy belong to all of them.
func (s *Server) alone(t testing.TB, what string, fn func()) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		t.Fatalf("connect to the test server: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }() // gives the lock back
	key := fnv.New64a()
	key.Write([]byte(what)) // never fails
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(key.Sum64())); err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
	fn()
}
