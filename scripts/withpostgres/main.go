// Command withpostgres runs a command beside a private PostgreSQL server, whose
// address it finds in TRIBUTARY_TEST_POSTGRES:
//
//	go run ./scripts/withpostgres go test ./...
//
// One server for all packages of a run: making a cluster takes longer than most
// tests. Its files and the tests' are kept in memory where there is room, because
// databases come and go with every test. Without PostgreSQL's programs the
// command runs as it is, and the tests say what they leave out.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"tributary/internal/db/dbtest"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: withpostgres COMMAND [ARGUMENT…]")
		os.Exit(2)
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpostgres:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(command []string) (code int, err error) {
	// Ctrl-C reaches the command as well; the server goes after it.
	signal.Ignore(os.Interrupt)
	if err := keepInMemory(); err != nil {
		return 1, err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdin, os.Stdout, os.Stderr, os.Environ()
	server, err := dbtest.StartTestServer()
	switch {
	case errors.Is(err, dbtest.ErrNoBinaries):
		fmt.Fprintln(os.Stderr, "withpostgres:", err)
	case err != nil:
		return 1, err
	default:
		defer func() { err = errors.Join(err, server.Stop()) }()
		cmd.Env = append(cmd.Env, dbtest.AddressVariable+"="+server.Address())
	}
	if err := cmd.Run(); err != nil {
		ended := (*exec.ExitError)(nil)
		if errors.As(err, &ended) {
			return max(1, ended.ExitCode()), nil // it has said why
		}
		return 1, err
	}
	return 0, nil
}

// keepInMemory says where temporary files are made, unless the caller does.
func keepInMemory() error {
	const memory, room = "/dev/shm", 4 << 30
	var about syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(memory, &about) != nil || about.Bavail*uint64(about.Bsize) < room {
		return nil
	}
	return os.Setenv("TMPDIR", memory)
}
