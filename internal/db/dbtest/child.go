package dbtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// childVariable names the part a test binary plays when a test starts it again
// as another process.
const childVariable = "TRIBUTARY_DB_TEST_CHILD"

// PlayChild plays a part if this process was started for one; false: it runs the tests.
// A part tells what it does line by line, and waits for lines where it must.
func PlayChild(parts map[string]func(args []string)) bool {
	part := os.Getenv(childVariable)
	if part == "" {
		return false
	}
	play, known := parts[part]
	if !known {
		fmt.Fprintln(os.Stderr, "no such part:", part)
		os.Exit(2)
	}
	play(os.Args[1:])
	return true
}

// Child is another process running this test binary.
type Child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// StartChild starts the test binary again as another process that plays a part.
func StartChild(t *testing.T, part string, args ...string) *Child {
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
	c := &Child{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT) // it may be gone
		_ = cmd.Process.Kill()                  // it may be gone
		_ = cmd.Wait()                          // as above
	})
	return c
}

// Pid of the process.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Hear reads the child's next line; empty when it has ended.
func (c *Child) Hear() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil && err != io.EOF {
		c.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

// Want fails the test unless the next line is this one.
func (c *Child) Want(line string) {
	c.t.Helper()
	if got := c.Hear(); got != line {
		c.t.Fatalf("the other process says %q, want %q", got, line)
	}
}

// Say lets a waiting child go on.
func (c *Child) Say(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.in, line+"\n")
	must(c.t, err)
}

// Signal sends a signal.
func (c *Child) Signal(s syscall.Signal) {
	c.t.Helper()
	must(c.t, c.cmd.Process.Signal(s))
}

// Rest reads what the child still says, waits for its end and returns the exit code.
func (c *Child) Rest() (said []string, code int) {
	c.t.Helper()
	for line := c.Hear(); line != ""; line = c.Hear() {
		said = append(said, line)
	}
	_ = c.cmd.Wait() // the code says it all
	return said, c.cmd.ProcessState.ExitCode()
}

// The child's side.

// Tell says a line to the test.
func Tell(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// Await waits for a line of the test.
func Await() string {
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		os.Exit(3) // the test is gone
	}
	return strings.TrimSpace(line)
}

// Check ends the process with an error.
func Check(err error) {
	if err != nil {
		Tell("error: %v", err)
		os.Exit(1)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
