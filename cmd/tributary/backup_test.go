package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

// TestAnOnlineBackupHoldsEverythingAcknowledgedBeforeIt takes a backup while
// clients submit, stops the service, restores and looks everything up again.
// The authority is not restored: the world goes on.
func TestAnOnlineBackupHoldsEverythingAcknowledgedBeforeIt(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir, restored := t.TempDir(), t.TempDir()
		args := demoArgs(t, dir)
		lost := backupUnderLoad(t, args, func() {
			copied := filepath.Join(restored, "tributary.db")
			_ = os.Remove(copied) // of a try beside which nothing was accepted
			if code, out, errs := call(t, "backup", copied, "--data", dir); code != 0 ||
				!strings.Contains(out, "passed the integrity check") {
				t.Fatalf("exit code %d\n%s%s", code, out, errs)
			}
			if code, _, errs := call(t, "backup", copied, "--data", dir); code != exitUsage ||
				!strings.Contains(errs, "exists") {
				t.Errorf("a second one to the same file: exit code %d\n%s", code, errs)
			}
			copyFolder(t, filepath.Join(dir, "documents"), filepath.Join(restored, "documents"))
		})
		copyFile(t, filepath.Join(dir, "master.key"), filepath.Join(restored, "master.key"))
		copyFolder(t, filepath.Join(dir, "simulators"), filepath.Join(restored, "simulators"))
		lookUp(t, demoArgs(t, restored), lost)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		needs.Tool(t, "pg_dump", "postgresql-client")
		needs.Tool(t, "pg_restore", "postgresql-client")
		from := dbtest.MigratedURL(t)
		dir := t.TempDir()
		dump := filepath.Join(t.TempDir(), "tributary.dump")
		lost := backupUnderLoad(t, demoArgs(t, dir, "--database", from), func() {
			tool(t, "pg_dump", "--format=custom", "--file="+dump, from)
		})
		into := emptyDatabase(t, from)
		tool(t, "pg_restore", "--no-owner", "--exit-on-error", "--dbname="+into, dump)
		lookUp(t, demoArgs(t, dir, "--database", into), lost)
	})
	if code, _, errs := call(t, "backup", filepath.Join(t.TempDir(), "x"), "--database",
		"postgres://x/y"); code != exitUsage || !strings.Contains(errs, "pg_dump") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

// backupUnderLoad runs the program with clients on it, takes the backup in the
// middle, while more is accepted, and stops the program. It returns what was acknowledged before.
func backupUnderLoad(t *testing.T, args []string, backup func()) (before map[string]string) {
	t.Helper()
	program := start(t, args...)
	base := program.waitReady()
	var company struct{ ID string }
	get(t, base+"/onboarding/v2/companies/demo-XX?external-id=true", &company)
	caller := &stage{t: t, client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 4}}}
	defer caller.client.CloseIdleConnections()
	var mu sync.Mutex
	accepted := map[string]string{}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	enough := make(chan struct{})
	var clients sync.WaitGroup
	var next atomic.Int64
	for range 4 {
		clients.Go(func() {
			for ctx.Err() == nil {
				id := fmt.Sprintf("backup-%05d", next.Add(1))
				status, answer, err := caller.post(base, "/v1/transactions", []byte(sale(company.ID, id, id)))
				var said struct {
					OperationID string `json:"operation_id"`
				}
				if err != nil || status != http.StatusAccepted || json.Unmarshal(answer, &said) != nil {
					continue
				}
				mu.Lock()
				accepted[id] = said.OperationID
				if len(accepted) == 60 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	known := func() map[string]string {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(accepted)
	}
	for tries := 1; ; tries++ { // a backup beside which nothing was accepted proves nothing
		before = known()
		backup()
		if len(known()) > len(before) {
			break
		}
		if tries == 50 {
			t.Error("nothing was accepted while backups ran")
			break
		}
	}
	stop()
	clients.Wait()
	program.stop()
	return before
}

// lookUp starts the program on what was restored: every operation is known,
// ends in SUCCESS, and the authority holds each sale once.
func lookUp(t *testing.T, args []string, operations map[string]string) {
	t.Helper()
	base := start(t, args...).waitReady()
	deadline := time.Now().Add(patience)
	for id, op := range operations {
		for {
			var r struct {
				Status string
				ID     string `json:"transaction_id"`
			}
			if status := get(t, base+"/v1/transactions/"+op, &r); status != http.StatusOK || r.ID != id ||
				r.Status == "FAILURE" {
				t.Fatalf("%s, operation %s: %d %+v", id, op, status, r)
			}
			if r.Status == "SUCCESS" {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s has not ended", id)
			}
			time.Sleep(20 * time.Millisecond) // the program has no signal to give
		}
	}
	held := registered(t, "http://"+flagOf(args, "--simulators"))
	for id := range operations {
		if held[id] != 1 {
			t.Errorf("%s is registered %d times", id, held[id])
		}
	}
}

func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func emptyDatabase(t *testing.T, beside string) string {
	t.Helper()
	u, err := url.Parse(beside)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/") + "_restored"
	do := func(text string) {
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, beside)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(ctx) }() // one command
		if _, err := conn.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	do("CREATE DATABASE " + name)
	u.Path = "/" + name
	return u.String()
}

// copyFolder copies what is there; drafts of files that vanish meanwhile are
// not documents yet.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(text))
}
