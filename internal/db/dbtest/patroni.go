package dbtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"tributary/internal/freeport"

	"github.com/jackc/pgx/v5"
)

// Cluster is three PostgreSQL servers under Patroni, with an etcd of its own,
// as docs/operations.md has them but for the watchdog: a test fences.
type Cluster struct {
	t       testing.TB
	dir     string
	bin     string
	cred    *syscall.Credential
	etcd    *exec.Cmd
	members []*Member
}

// Member is one machine: Patroni and the server that it minds.
type Member struct {
	c          *Cluster
	Name       string
	port, rest int
	cmd        *exec.Cmd
}

// StartCluster starts a cluster and waits for its leader and two standbys. The
// programs are patroni on the path, and the etcd that ETCD names.
func StartCluster(t testing.TB, etcd string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	var err1, err2, err3 error
	c.bin, err1 = findBinaries()
	c.cred, err2 = ordinaryUser()
	c.dir, err3 = os.MkdirTemp(os.TempDir(), fmt.Sprintf("tributary-pg-%d-", os.Getpid()))
	c.must(errors.Join(err1, err2, err3))
	c.own(c.dir)
	t.Cleanup(c.stop)
	client, err1 := freeport.New()
	peer, err2 := freeport.New()
	c.must(errors.Join(err1, err2))
	at, with := fmt.Sprintf("http://127.0.0.1:%d", client), fmt.Sprintf("http://127.0.0.1:%d", peer)
	c.etcd = c.start("etcd", c.copied(etcd), "--data-dir", filepath.Join(c.dir, "etcd"), "--listen-client-urls", at,
		"--advertise-client-urls", at,
		"--listen-peer-urls", with, "--initial-advertise-peer-urls", with, "--initial-cluster", "default="+with,
		"--unsafe-no-fsync")
	for i := range 3 {
		m := &Member{c: c, Name: fmt.Sprintf("pg%d", i+1)}
		m.port, err1 = freeport.New()
		m.rest, err2 = freeport.New()
		c.must(errors.Join(err1, err2))
		path := filepath.Join(c.dir, m.Name+".yml")
		c.must(os.WriteFile(path, []byte(m.settings(client)), 0o644))
		c.members = append(c.members, m)
		m.Start()
	}
	c.until("a leader with a synchronous standby and a third member", func() bool {
		streaming, synchronous := 0, false
		for _, m := range c.state() {
			if m.State == "running" || m.State == "streaming" {
				streaming++
			}
			synchronous = synchronous || m.Role == "sync_standby"
		}
		return streaming == len(c.members) && synchronous
	})
	return c
}

func (m *Member) settings(etcd int) string {
	return fmt.Sprintf(`scope: tributary
name: %[1]s
restapi: {listen: "127.0.0.1:%[2]d", connect_address: "127.0.0.1:%[2]d"}
etcd3: {host: "127.0.0.1:%[3]d"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 5
    synchronous_mode: true
    synchronous_mode_strict: true
    maximum_lag_on_failover: 0
    postgresql:
      use_pg_rewind: true
      parameters: {synchronous_commit: "on", fsync: "on", full_page_writes: "on", max_connections: 200, wal_keep_size: 256MB, tcp_keepalives_idle: 10, tcp_user_timeout: 10000, wal_retrieve_retry_interval: 1s}
  initdb: [encoding: UTF8, locale: C, data-checksums]
  pg_hba: [local all all trust, host all all 127.0.0.1/32 trust, host replication all 127.0.0.1/32 trust]
postgresql:
  listen: "127.0.0.1:%[4]d"
  connect_address: "127.0.0.1:%[4]d"
  data_dir: "%[5]s"
  bin_dir: "%[6]s"
  pgpass: "%[5]s.pass"
  parameters: {unix_socket_directories: "%[7]s", shared_buffers: 64MB}
  authentication:
    superuser: {username: tributary, password: none}
    replication: {username: replicator, password: none}
    rewind: {username: rewinder, password: none}
watchdog: {mode: "off"}
`, m.Name, m.rest, etcd, m.port, filepath.Join(m.c.dir, m.Name), m.c.bin, m.c.dir)
}

// URL is the address of a database on whichever member leads.
func (c *Cluster) URL(name string) string {
	hosts := make([]string, len(c.members))
	for i, m := range c.members {
		hosts[i] = fmt.Sprintf("127.0.0.1:%d", m.port)
	}
	return "postgres://tributary@" + strings.Join(hosts, ",") + "/" + name + "?sslmode=disable&target_session_attrs=read-write"
}

// Leader is the member that leads by Patroni's word; nil: none does.
func (c *Cluster) Leader() *Member {
	for _, m := range c.members {
		if m.leads() {
			return m
		}
	}
	return nil
}

// leads asks the member itself: what others say of it may be old.
func (m *Member) leads() bool {
	client := http.Client{Timeout: 2 * time.Second}
	answer, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/primary", m.rest))
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// told is a member as Patroni tells of it.
type told struct {
	Name, Role, State string
	Timeline          int
}

func (c *Cluster) state() []told {
	client := http.Client{Timeout: 2 * time.Second}
	for _, m := range c.members {
		answer, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/cluster", m.rest))
		if err != nil {
			continue
		}
		var said struct{ Members []told }
		err = json.NewDecoder(answer.Body).Decode(&said)
		answer.Body.Close()
		if err == nil && len(said.Members) > 0 {
			return said.Members
		}
	}
	return nil
}

// Whole waits until one member leads and the others follow it, one of them synchronously. A member that runs on an old
// timeline is what is remembered of a leader that was killed.
func (c *Cluster) Whole() {
	c.t.Helper()
	c.until("every member runs again, one as synchronous standby", func() bool {
		running, synchronous, timelines := 0, false, map[int]bool{}
		for _, m := range c.state() {
			if m.State == "running" || m.State == "streaming" {
				running++
			}
			synchronous = synchronous || m.Role == "sync_standby"
			timelines[m.Timeline] = true
		}
		return running == len(c.members) && synchronous && len(timelines) == 1 && c.Leader() != nil
	})
}

// Switchover moves the lead to the synchronous standby, and answers when another member leads.
func (c *Cluster) Switchover() (at time.Time) {
	c.t.Helper()
	old := c.Leader()
	body := fmt.Sprintf(`{"leader":%q}`, old.Name)
	answer, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/switchover", old.rest), "application/json",
		strings.NewReader(body))
	c.must(err)
	text, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		c.t.Logf("switchover: %d %s", answer.StatusCode, text)
	}
	return c.Promoted(old)
}

// Promoted waits until another member leads than the one that did.
func (c *Cluster) Promoted(old *Member) (at time.Time) {
	c.t.Helper()
	c.until("another member leads", func() bool {
		for _, m := range c.members {
			if m != old && m.leads() {
				return true
			}
		}
		return false
	})
	return time.Now()
}

// Start begins a member, or lets it begin again.
func (m *Member) Start() {
	m.c.t.Helper()
	m.cmd = m.c.start(m.Name, "patroni", filepath.Join(m.c.dir, m.Name+".yml"))
}

// Kill ends a member as the loss of its machine would.
func (m *Member) Kill() {
	for _, pid := range m.processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
	}
	_ = m.cmd.Wait() // killed on purpose
}

// Freeze stops a member without ending it. Killed then, it was fenced.
func (m *Member) Freeze() {
	for _, pid := range m.processes() {
		_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have ended by itself
	}
}

// processes are Patroni, the server, which outlives it, and their children.
func (m *Member) processes() (pids []int) {
	roots := []int{m.cmd.Process.Pid}
	if text, err := os.ReadFile(filepath.Join(m.c.dir, m.Name, "postmaster.pid")); err == nil {
		line, _, _ := strings.Cut(string(text), "\n")
		if pid, err := strconv.Atoi(line); err == nil {
			roots = append(roots, pid)
		}
	}
	for _, pid := range roots {
		pids = append(append(pids, pid), childrenOf(pid)...)
	}
	return pids
}

// Create makes a database. A standby that lags does not know it yet and refuses who tries
// there first, so all of them have it afterwards.
func (c *Cluster) Create(name string) {
	c.t.Helper()
	conn, err := pgx.Connect(context.Background(), c.URL("postgres"))
	c.must(err)
	_, err = conn.Exec(context.Background(), "CREATE DATABASE "+name)
	c.must(errors.Join(err, conn.Close(context.Background())))
	c.until("every member has the database", func() bool {
		for _, m := range c.members {
			conn, err := pgx.Connect(context.Background(), fmt.Sprintf("postgres://tributary@127.0.0.1:%d/%s?sslmode=disable", m.port, name))
			if err != nil {
				return false
			}
			_ = conn.Close(context.Background()) // it connected
		}
		return true
	})
}

func (c *Cluster) start(log, program string, args ...string) *exec.Cmd {
	c.t.Helper()
	out, err := os.OpenFile(filepath.Join(c.dir, log+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	c.must(err)
	defer func() { _ = out.Close() }() // the program has its own handle
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, out, out
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC", "HOME="+c.dir)
	// Patroni takes its server along
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.cred, Setpgid: true, Pdeathsig: syscall.SIGTERM}
	c.must(cmd.Start())
	return cmd
}

// copied puts a program where the ordinary user can reach it.
func (c *Cluster) copied(program string) string {
	c.t.Helper()
	content, err := os.ReadFile(program)
	c.must(err)
	path := filepath.Join(c.dir, filepath.Base(program)+".program")
	c.must(os.WriteFile(path, content, 0o755))
	return path
}

// Dir is the folder with the logs of the cluster's programs. It is kept when the test fails.
func (c *Cluster) Dir() string { return c.dir }

func (c *Cluster) stop() {
	for _, m := range c.members {
		if m.cmd != nil {
			m.Kill()
		}
	}
	if c.etcd != nil {
		_ = c.etcd.Process.Kill() // a test's own
		_ = c.etcd.Wait()         // killed on purpose
	}
	if c.t.Failed() {
		c.t.Logf("the cluster's folder is kept: %s", c.dir)
		return
	}
	_ = os.RemoveAll(c.dir) // a test's own folder
}

func (c *Cluster) until(what string, holds func() bool) {
	c.t.Helper()
	// other programs have no signal to give
	for deadline := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("not within three minutes: %s; the members: %+v", what, c.state())
		}
	}
}

func (c *Cluster) own(path string) {
	if c.cred != nil {
		c.must(os.Chown(path, int(c.cred.Uid), int(c.cred.Gid)))
	}
}

func (c *Cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}
