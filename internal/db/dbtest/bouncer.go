package dbtest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tributary/internal/freeport"
	"tributary/internal/needs"
)

// Bouncer starts a PgBouncer with a pool mode and otherwise the settings it
// comes with, in front of the database that an address names, and returns the
// address through it.
func Bouncer(t testing.TB, mode, address string) string {
	t.Helper()
	program, err := findBouncer()
	if err != nil {
		needs.Missing(t, "%v", err)
	}
	to, err1 := url.Parse(address)
	port, err2 := freeport.New()
	cred, err3 := ordinaryUser()
	dir, err4 := os.MkdirTemp(os.TempDir(), fmt.Sprintf("tributary-pg-%d-", os.Getpid()))
	if err := errors.Join(err, err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	ini := fmt.Sprintf("[databases]\n%s = host=%s port=%s user=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\npool_mode = %s\nlogfile = %s/log\n",
		strings.TrimPrefix(to.Path, "/"), to.Hostname(), to.Port(), to.User.Username(), port, mode, dir)
	if err := os.WriteFile(filepath.Join(dir, "pgbouncer.ini"), []byte(ini), 0o644); err != nil {
		t.Fatal(err)
	}
	if cred != nil {
		if err := os.Chown(dir, int(cred.Uid), int(cred.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-q", filepath.Join(dir, "pgbouncer.ini"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // a test's own
		_ = cmd.Wait()         // killed on purpose
		_ = os.RemoveAll(dir)  // a test's own folder
	})
	through := *to
	through.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	// another program has no signal to give
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", through.Host)
		if err == nil {
			c.Close()
			return through.String()
		}
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("PgBouncer did not come up: %v\n%s", err, said)
		}
	}
}

// findBouncer looks where ordinary users do not.
func findBouncer() (string, error) {
	if program, err := exec.LookPath("pgbouncer"); err == nil {
		return program, nil
	}
	const sbin = "/usr/sbin/pgbouncer"
	if _, err := os.Stat(sbin); err != nil {
		return "", errors.New("PgBouncer is not installed (Debian package pgbouncer)")
	}
	return sbin, nil
}
