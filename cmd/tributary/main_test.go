package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"tributary/internal/freeport"
)

// childEnv makes the test binary behave as the program itself, so that tests
// can start, kill and restart real processes without building another binary.
// Processes that those start in turn (bench --nodes) behave so, too.
const childEnv = "TRIBUTARY_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	state, err := os.MkdirTemp("", "tributary-state-")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("STATE_DIRECTORY", state) // for nodes without --data; never fails on Linux
	code := m.Run()
	for _, folder := range []string{built, state} {
		_ = os.RemoveAll(folder) // temporary
	}
	os.Exit(code)
}

// process is the program running for a test.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	mu    sync.Mutex
	out   bytes.Buffer
	errs  bytes.Buffer
	ready chan string   // the URL of the line "ready URL"
	ended chan struct{} // closed when it is over
	how   error         // it ended so; read after ended
}

// start runs the program; it is killed when the test ends.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return begin(t, child(fastBinary(t), args...))
}

// child is a command that runs the program from a binary: the test binary or
// what fastBinary answers.
func child(binary string, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// begin starts a command that behaves as the program does.
func begin(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, ready: make(chan string, 1), ended: make(chan struct{})}
	p.cmd.Stderr = lockedWriter{&p.mu, &p.errs}
	pipe, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			p.mu.Lock()
			p.out.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			if url, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
				p.ready <- url
			}
		}
		p.how = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		p.endsWithin(time.Minute)
		if _, race, found := strings.Cut(p.stderr(), "WARNING: DATA RACE"); found {
			t.Errorf("two goroutines of the program raced:%s", race)
		}
	})
	return p
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// waitReady returns the URL the program serves.
func (p *process) waitReady() string {
	p.t.Helper()
	select {
	case url := <-p.ready:
		return url
	case <-p.ended:
		p.t.Fatalf("the program ended before it was ready: %v\n%s%s", p.how, p.output(), p.stderr())
	case <-time.After(60 * time.Second):
		p.t.Fatalf("the program was not ready within a minute\n%s%s", p.output(), p.stderr())
	}
	return ""
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *process) stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.errs.String()
}

// kill ends the program as a power cut would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// gone reports whether the program has ended.
func (p *process) gone() bool { return p.endsWithin(0) }

// endsWithin waits for the program's end.
func (p *process) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
	}
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// call runs a short command as people do and returns its exit code and output.
func call(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := child(fastBinary(t), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGTERM) }) // it may have ended
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		var ended *exec.ExitError
		if !errors.As(err, &ended) {
			t.Fatalf("%v: %v", args, err)
		}
		code = ended.ExitCode()
	}
	return code, stdout.String(), stderr.String()
}

// freeAddress is a loopback address for a program to listen on.
func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := freeport.New()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

const testKey = "trb_test_clitest_0123456789012345678901234567890123456789012"

// demoArgs start a demo on free ports.
func demoArgs(t *testing.T, dir string, more ...string) []string {
	return append([]string{"demo", "--data", dir, "--listen", freeAddress(t), "--admin", freeAddress(t), "--simulators", freeAddress(t), "--callbacks", "127.0.0.1:0",
		"--api-key", testKey, "--log-level", "warn"}, more...)
}

// get reads a JSON answer of the API.
func get(t *testing.T, url string, into any) int {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}
