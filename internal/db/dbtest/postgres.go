package dbtest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"tributary/internal/freeport"

	"github.com/jackc/pgx/v5"
)

// Server is a private PostgreSQL of one test binary, or the one that a run shares.
type Server struct {
	bin  string
	data string
	port int
	cred *syscall.Credential // nil: as ourselves
	sync string              // fsync on or off
	set  []string            // more settings, as name=value
	cmd  *exec.Cmd

	migrated  sync.Once // the database that others are copied from
	served    sync.Once // the same with its roles
	versioned sync.Once
	strategy  string // of copies, see copying

	mu   sync.Mutex
	idle []*pgx.Conn // see command
}

// ErrNoBinaries: there is no PostgreSQL on this machine.
var ErrNoBinaries = errors.New("PostgreSQL server binaries are not installed (Debian package postgresql)")

// fsyncWanted: benchmarks pay for the disk. The shared server of tests does
// not: no test cuts the power, and what a killed process wrote survives in the
// page cache.
func fsyncWanted() string {
	if f := flag.Lookup("test.bench"); f != nil && f.Value.String() != "" {
		return "on"
	}
	return "off"
}

// StartServer makes a cluster in a new folder below dir and starts it on a free
// port, with more settings given as name=value.
func StartServer(dir string, set ...string) (*Server, error) {
	s, err := newServer(dir, "on")
	if err != nil {
		return nil, err
	}
	s.set = set
	if err := s.copyCluster(); err != nil {
		return nil, err
	}
	return s, s.Start()
}

// StartTestServer starts the server that a run of the tests shares.
func StartTestServer() (*Server, error) { return startServer(os.TempDir(), fsyncWanted()) }

// newServer finds the programs and makes the folder of a server.
func newServer(dir, sync string) (*Server, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, sync: sync}
	if s.cred, err = ordinaryUser(); err != nil {
		return nil, err
	}
	sweep(dir)
	if s.data, err = os.MkdirTemp(dir, fmt.Sprintf("tributary-pg-%d-", os.Getpid())); err != nil {
		return nil, err
	}
	if err := s.own(s.data); err != nil {
		return nil, err
	}
	s.port, err = freeport.New()
	return s, err
}

// own gives a file to the user that the server runs as.
func (s *Server) own(path string) error {
	if s.cred == nil {
		return nil
	}
	return os.Chown(path, int(s.cred.Uid), int(s.cred.Gid))
}

func startServer(dir, sync string) (*Server, error) {
	s, err := newServer(dir, sync)
	if err != nil {
		return nil, err
	}
	if err := s.initdb(); err != nil {
		return nil, err
	}
	return s, s.Start()
}

func (s *Server) initdb() error {
	made := s.command0("initdb", "-D", filepath.Join(s.data, "db"), "-U", "tributary", "-A", "trust", "-E", "UTF8",
		"--locale=C", "--no-sync")
	if out, err := made.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// emptyCluster is what others are copied from: initdb takes longer than most
// tests. Its folder is swept when the test binary is gone.
var emptyCluster = sync.OnceValues(func() (*Server, error) {
	s, err := newServer(os.TempDir(), "on")
	if err != nil {
		return nil, err
	}
	return s, s.initdb()
})

// copyCluster makes the server's cluster as a copy of the empty one.
func (s *Server) copyCluster() error {
	empty, err := emptyCluster()
	if err != nil {
		return err
	}
	copied := exec.Command("cp", "-R", filepath.Join(empty.data, "db"), filepath.Join(s.data, "db"))
	copied.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	if out, err := copied.CombinedOutput(); err != nil {
		return fmt.Errorf("copy a cluster: %w\n%s", err, out)
	}
	return nil
}

// Start runs the server; after Kill it runs on the same data and port again.
func (s *Server) Start() error {
	log, err := os.OpenFile(filepath.Join(s.data, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the server's log: %w", err)
	}
	defer func() { _ = log.Close() }() // the server has its own handle
	deadline := time.Now().Add(2 * time.Minute)
	for s.cmd = nil; ; {
		// After Kill its children take a moment to notice, and a new server
		// refuses to start beside them.
		if s.cmd == nil || s.ended() {
			if err := s.spawn(log); err != nil {
				return fmt.Errorf("start postgres: %w", err)
			}
		}
		err := s.ping()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("postgres did not come up: %w\n%s", err, said)
		}
		time.Sleep(20 * time.Millisecond) // waiting for another program, which has no signal to give
	}
}

func (s *Server) spawn(log *os.File) error {
	args := []string{"-D", filepath.Join(s.data, "db"), "-p", strconv.Itoa(s.port), "-k", s.data, "-h", "127.0.0.1",
		"-c", "max_connections=600", "-c", "shared_buffers=128MB", "-c", "max_wal_size=1GB", "-c", "fsync=" + s.sync, "-c",
		"synchronous_commit=on",
		// in the server's folder, which goes with it: a killed server leaves the other kinds behind
		"-c", "dynamic_shared_memory_type=mmap"}
	for _, setting := range s.set {
		args = append(args, "-c", setting)
	}
	s.cmd = s.command0("postgres", args...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	return s.cmd.Start()
}

// ended: the server process is gone. Nobody waits for it in a goroutine: it
// would outlive the tests and look like a leak.
func (s *Server) ended() bool {
	pid, err := syscall.Wait4(s.cmd.Process.Pid, nil, syscall.WNOHANG, nil)
	return pid == s.cmd.Process.Pid || errors.Is(err, syscall.ECHILD)
}

func (s *Server) ping() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// Kill ends the server as a crash would: SIGKILL to the postmaster and to its
// children, which have process groups of their own.
func (s *Server) Kill() error {
	children := childrenOf(s.cmd.Process.Pid)
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait() // killed on purpose
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
	}
	return err
}

// Freeze stops the server's processes without ending them, as a machine that
// hangs would; Thaw lets them go on as if nothing had happened.
func (s *Server) Freeze() error { return s.signal(syscall.SIGSTOP) }

// Thaw is the end of Freeze.
func (s *Server) Thaw() error { return s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) error {
	err := s.cmd.Process.Signal(sig)
	for _, pid := range childrenOf(s.cmd.Process.Pid) {
		_ = syscall.Kill(pid, sig) // it may have ended by itself
	}
	return err
}

// Port is where the server listens on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// childrenOf lists the processes that a process has started, from /proc/PID/stat.
func childrenOf(parent int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path) // it may be gone
		// The name stands in parentheses and may hold anything: the fields after it count.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() error {
	return errors.Join(s.Kill(), os.RemoveAll(s.data))
}

// Address is where the server is, without a database.
func (s *Server) Address() string { return strings.TrimSuffix(s.url(""), "/?sslmode=disable") }

// URL is the address of the server's default database.
func (s *Server) URL() string { return s.url("postgres") }

// url goes through the Unix socket: it is what a production node on the same machine would use.
func (s *Server) url(name string) string {
	return fmt.Sprintf("postgres://tributary@127.0.0.1:%d/%s?sslmode=disable", s.port, name)
}

func (s *Server) command0(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.bin, name), args...)
	c.Dir = s.data
	c.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	return c
}

func findBinaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", ErrNoBinaries
	}
	sort.Strings(found)
	return filepath.Dir(found[len(found)-1]), nil
}

// ordinaryUser is whom the server runs as when we are root: PostgreSQL refuses root.
func ordinaryUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("running as root and neither user postgres nor nobody exists")
}

// sweep removes folders of servers whose test binary is gone.
func sweep(dir string) {
	old, _ := filepath.Glob(filepath.Join(dir, "tributary-pg-*"))
	for _, path := range old {
		var owner int
		_, err := fmt.Sscanf(filepath.Base(path), "tributary-pg-%d-", &owner)
		if err == nil && errors.Is(syscall.Kill(owner, 0), syscall.ESRCH) {
			_ = os.RemoveAll(path) // left-overs
		}
	}
}
