package db_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"tributary/internal/db"
)

// children are the parts this test binary can play as another process. Each
// tells what it does line by line, and waits for lines where it must.
func children() map[string]func(args []string) {
	return map[string]func([]string){
		"open": playOpen,
		"open as nobody": func(args []string) {
			if os.Geteuid() == 0 { // root may write everywhere
				const nobody = 65534
				check(errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)))
			}
			playOpen(args)
		},
		"holder":     playHolder,
		"writer":     playWriter,
		"full disk":  playFullDisk,
		"lost fsync": playLostFsync,
	}
}

// child is another process running this test binary.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(t *testing.T, part string, args ...string) *child {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), childVariable+"="+part)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	c := &child{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT) // it may be gone
		_ = cmd.Process.Kill()                  // it may be gone
		_ = cmd.Wait()                          // as above
	})
	return c
}

// hear reads the child's next line; empty when it has ended.
func (c *child) hear() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil && err != io.EOF {
		c.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (c *child) want(line string) {
	c.t.Helper()
	if got := c.hear(); got != line {
		c.t.Fatalf("the other process says %q, want %q", got, line)
	}
}

// say lets a waiting child go on.
func (c *child) say(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.in, line+"\n")
	must(c.t, err)
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	must(c.t, c.cmd.Process.Signal(s))
}

// rest reads what the child still says, waits for its end and returns the exit code.
func (c *child) rest() (said []string, code int) {
	c.t.Helper()
	for line := c.hear(); line != ""; line = c.hear() {
		said = append(said, line)
	}
	_ = c.cmd.Wait() // the code says it all
	return said, c.cmd.ProcessState.ExitCode()
}

// The child's side.

func tell(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func listen() string {
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		os.Exit(3) // the test is gone
	}
	return strings.TrimSpace(line)
}

func check(err error) {
	if err != nil {
		tell("error: %v", err)
		os.Exit(1)
	}
}

// playOpen opens a database and stays.
func playOpen(args []string) {
	d, err := db.Open(context.Background(), db.Config{URL: args[0]})
	check(err)
	tell("open")
	listen()
	check(d.Close())
}

// playHolder claims a row and, when told to, writes it.
func playHolder(args []string) {
	ctx := context.Background()
	d, err := db.Open(ctx, db.Config{URL: args[0]})
	check(err)
	q := &db.Queue[struct{}]{Table: "work", ID: "id", Key: "fair"}
	leases, _, err := q.Due(ctx, d, db.Claim{Max: 1})
	check(err)
	tell("holds %s %d", leases[0].ID, leases[0].Token)
	listen()
	err = d.Write(ctx, func(tx *db.Tx) error {
		if err := leases[0].Guard(tx); err != nil {
			return err
		}
		return tx.ExecOne("UPDATE work SET payload = 'written by a stalled holder' WHERE id = $1", leases[0].ID)
	})
	tell("stale: %t", errors.Is(err, db.ErrStale))
	check(d.Close())
}

// playWriter writes as much as it can until it is killed, and tells each
// acknowledged id. The lines of one process leave in whole.
func playWriter(args []string) {
	d, err := db.Open(context.Background(), db.Config{URL: args[0]})
	check(err)
	check(d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Exec("CREATE TABLE IF NOT EXISTS acked (id TEXT PRIMARY KEY, body TEXT NOT NULL)")
	}))
	tell("ready")
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				id := fmt.Sprintf("%s-%d", args[1], next.Add(1))
				check(d.Write(context.Background(), func(tx *db.Tx) error {
					return tx.Insert("acked", "id,body", []any{id, strings.Repeat("x", 500)})
				}))
				tell("%s", id)
			}
		})
	}
	wg.Wait()
}
