package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tributary/internal/freeport"
)

// A test chooses how it runs the program. What a command, a flag or a page does is
// asked in this process: [call] runs a command to its end and [start] serves until
// the test ends, both through run, as main does. Two of them on one database behave
// as two processes do: they share no memory, and the locks between them belong to
// open files. A process of its own ([spawn], [stage]) is for tests about one: that
// kill it, send it signals, measure it, or give it variables beside other tests.
// Who only reads and adds things of his own takes [commonDemo], which runs once.

// childEnv makes the test binary behave as the program itself, so that tests
// can start, kill and restart real processes without building another binary.
// Processes that those start in turn (bench --nodes) behave so, too.
const childEnv = "TRIBUTARY_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	collectSeldom()
	state, err := os.MkdirTemp("", "tributary-state-")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("STATE_DIRECTORY", state) // for nodes without --data; never fails on Linux
	code := m.Run()
	endCommonDemo()
	for _, folder := range []string{built, state} {
		_ = os.RemoveAll(folder) // temporary
	}
	os.Exit(code)
}

// collectSeldom takes the garbage collector out of the program's hands: what it sets
// suits one program in a process, and here a dozen run at the same time.
func collectSeldom() {
	const variable = "GOGC"
	if os.Getenv(variable) != "" {
		return
	}
	_ = os.Setenv(variable, "300") // never fails on Linux
	roomForGarbage()               // once in a process: it leaves the setting alone
	_ = os.Unsetenv(variable)      // children decide for themselves
	debug.SetGCPercent(300)
}

// patience is how long a test waits for what must come. It is never used up where
// all is well, however slow the machine.
const patience = 10 * time.Minute

// process is the program running for a test, in a process of its own or in this one.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd          // nil in this process
	end   context.CancelFunc // what a signal is to a process of its own
	mu    sync.Mutex
	out   bytes.Buffer
	errs  bytes.Buffer
	ready chan string   // the URL of the line "ready URL"
	ended chan struct{} // closed when it is over
	how   error         // it ended so; read after ended
}

// start runs the program in this process until the test ends.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := within(args...)
	p.t = t
	t.Cleanup(func() {
		p.end()
		if !p.endsWithin(patience) {
			t.Errorf("the program does not end\n%s", p.stderr())
		}
	})
	return p
}

// within runs the program in this process until its end is called.
func within(args ...string) *process {
	ctx, end := context.WithCancel(context.Background())
	p := &process{end: end, ready: make(chan string, 1), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		if code := run(ctx, args, streams{printed{p}, lockedWriter{&p.mu, &p.errs}, strings.NewReader("")}); code != 0 {
			p.how = fmt.Errorf("exit code %d", code)
		}
	}()
	return p
}

// printed is the standard output of a program: it watches for the line "ready URL".
type printed struct{ p *process }

func (w printed) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	for line := range strings.Lines(string(b)) { // each is written at once
		if url, ok := strings.CutPrefix(strings.TrimSpace(line), "ready "); ok {
			w.p.ready <- url
		}
	}
	return w.p.out.Write(b)
}

// spawn runs the program in a process of its own; it is killed when the test ends.
func spawn(t *testing.T, args ...string) *process {
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
	p.end = func() { _ = p.cmd.Process.Signal(syscall.SIGTERM) } // it may have ended
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
		p.kill()
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
	url, err := p.served()
	if err != nil {
		p.t.Fatal(err)
	}
	return url
}

func (p *process) served() (string, error) {
	select {
	case url := <-p.ready:
		return url, nil
	case <-p.ended:
		return "", fmt.Errorf("the program ended before it was ready: %v\n%s%s", p.how, p.output(), p.stderr())
	case <-time.After(patience):
		return "", fmt.Errorf("the program was not ready within %s\n%s%s", patience, p.output(), p.stderr())
	}
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

// kill ends a process of its own as a power cut would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// halt stops a process of its own until it is told to go on, and waits until each of
// its threads stands: what it writes is whole then, as after a kill.
func (p *process) halt() {
	_ = p.cmd.Process.Signal(syscall.SIGSTOP) // it may have ended
	for !p.endsWithin(time.Millisecond) {
		states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
		if err != nil || !slices.ContainsFunc(states, func(path string) bool {
			text, err := os.ReadFile(path)
			_, state, _ := strings.Cut(string(text), ") ")
			return err == nil && !strings.HasPrefix(state, "T")
		}) {
			return
		}
	}
}

// stop ends the program as an operator does, and waits for it.
func (p *process) stop() {
	p.t.Helper()
	p.end()
	if !p.endsWithin(patience) || p.how != nil {
		p.t.Fatalf("it was told to stop and ended %v\n%s", p.how, p.stderr())
	}
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

// call runs a short command in this process and returns its exit code and output.
func call(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	return tell(t, "", args...)
}

// tell is call with something on standard input.
func tell(t *testing.T, input string, args ...string) (code int, out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	code = run(ctx, args, streams{&stdout, lockedWriter{new(sync.Mutex), &stderr}, strings.NewReader(input)})
	if ctx.Err() != nil {
		t.Errorf("%v has not ended within %s", args, patience)
	}
	return code, stdout.String(), stderr.String()
}

// freeAddress is a loopback address for a program to listen on.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeLoopback()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func freeLoopback() (string, error) {
	port, err := freeport.New()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}

const testKey = "trb_test_clitest_0123456789012345678901234567890123456789012"

// demoArgs start a demo on free ports, where there is none yet on a database that
// has its schema.
func demoArgs(t *testing.T, dir string, more ...string) []string {
	t.Helper()
	args, err := demoOn(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "tributary.db")
	if _, err := os.Stat(path); err != nil && !slices.Contains(more, "--database") {
		copyFile(t, strings.TrimPrefix(migrated(t), "sqlite:"), path)
	}
	return append(args, more...)
}

// demoOn starts a demo with nothing.
func demoOn(dir string) ([]string, error) {
	listen, err1 := freeLoopback()
	admin, err2 := freeLoopback()
	simulators, err3 := freeLoopback()
	return []string{"demo", "--data", dir, "--listen", listen, "--admin", admin, "--simulators", simulators,
		"--callbacks", "127.0.0.1:0", "--authority-retry-base", "50ms",
		"--api-key", testKey, "--log-level", "warn"}, errors.Join(err1, err2, err3)
}

// shared is a demo for tests that only read, or add things of their own.
type shared struct {
	*process
	dir, url, sims string
	supplier       string // the company demo-XX
}

// commonDemo is the demo that tests share.
func commonDemo(t *testing.T) *shared {
	t.Helper()
	demo, err := commonOnce()
	if err != nil {
		t.Fatal(err)
	}
	return demo
}

var common atomic.Pointer[shared]

var commonOnce = sync.OnceValues(func() (*shared, error) {
	dir, err := os.MkdirTemp("", "tributary-common-")
	if err != nil {
		return nil, err
	}
	args, err := demoOn(dir)
	if err != nil {
		return nil, err
	}
	demo := &shared{process: within(args...), dir: dir, sims: "http://" + flagOf(args, "--simulators")}
	common.Store(demo)
	if demo.url, err = demo.served(); err != nil {
		return nil, err
	}
	status, answer, err := (&stage{client: http.DefaultClient}).fetch(demo.url,
		"/onboarding/v2/companies/demo-XX?external-id=true")
	var company struct{ ID string }
	if err == nil {
		err = json.Unmarshal(answer, &company)
	}
	if demo.supplier = company.ID; err != nil || company.ID == "" {
		return nil, fmt.Errorf("the demo's supplier: %d %s %w", status, answer, err)
	}
	return demo, nil
})

// endCommonDemo is for TestMain.
func endCommonDemo() {
	if demo := common.Load(); demo != nil {
		demo.end()
		<-demo.ended
		_ = os.RemoveAll(demo.dir) // temporary
	}
}

// script tells a simulated authority how to behave.
func script(t *testing.T, sims, code, steps string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPut, sims+"/_control/"+code+"/script", strings.NewReader(`{"steps":[`+steps+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("script: %s", answer.Status)
	}
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
