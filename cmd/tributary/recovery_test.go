package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestRestoredSinceIsADayAndBelongsToRestored(t *testing.T) {
	t.Parallel()
	database := "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	for name, args := range map[string][]string{
		"no day":     {"serve", "--database", database, "--restored", "--restored-since", "yesterday"},
		"no restore": {"serve", "--database", database, "--restored-since", "2026-01-31"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, _, errs := call(t, args...); code != exitUsage || !strings.Contains(errs, "--restored-since") {
				t.Errorf("exit code %d\n%s", code, errs)
			}
		})
	}
}

// The line "ready" comes when transactions are accepted, not when reading works.
func TestARestoredDemoBecomesReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, demoArgs(t, dir)...)
	first.waitReady()
	first.stop()
	again := start(t, demoArgs(t, dir, "--restored")...)
	url := again.waitReady()
	var company struct{ ID string }
	get(t, url+"/onboarding/v2/companies/demo-XX?external-id=true", &company)
	file := write(t, filepath.Join(t.TempDir(), "one.json"), sale(company.ID, "restored-1", "R-1"))
	if code, out, errs := call(t, "submit", file, "--url", url, "--api-key", testKey, "--wait"); code != 0 {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// An operation that waits for a person is listed, decided about once, and goes on;
// the audit log says who decided what, and the series which numbers it left out.
func TestAHeldOperationIsDecidedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, demoArgs(t, dir)...)
	first.waitReady()
	first.stop()
	args := demoArgs(t, dir, "--restored")
	url, sims := start(t, args...).waitReady(), "http://"+flagOf(args, "--simulators")
	var company struct{ ID string }
	get(t, url+"/onboarding/v2/companies/demo-XX?external-id=true", &company)
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := call(t, args...)
		if code != want {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, out, errs)
		}
		return out + errs
	}
	client := []string{"--url", url, "--api-key", testKey}
	run(0, append([]string{"series", "create", company.ID, "F{N:3}"}, client...)...)
	script(t, sims, "xx", `{"outcome":"duplicate","of":"other","times":6}`)
	file := write(t, filepath.Join(t.TempDir(), "one.json"),
		strings.Replace(sale(company.ID, "held-1", "X"), `"transaction_number":"X",`, "", 1))
	run(0, append([]string{"submit", file}, client...)...)
	list := func() (shown struct {
		Held []struct {
			ID string `json:"operation_id"`
		} `json:"held_operations"`
	}) {
		if err := json.Unmarshal([]byte(run(0, "recovery", "list", "--data", dir, "--json")), &shown); err != nil {
			t.Fatal(err)
		}
		return shown
	}
	eventually(t, "the operation is held", func() bool { return len(list().Held) == 1 })
	held := list().Held[0].ID
	decide := func(want int, more ...string) string {
		t.Helper()
		return run(want, append([]string{"recovery", "decide", company.ID, held, "--data", dir, "--simulators", sims}, more...)...)
	}
	for _, wrong := range [][]string{nil, {"--adopt", "--file"}, {"--adopt"}} {
		decide(exitUsage, wrong...)
	}
	if out := decide(0, "--file"); !strings.Contains(out, held+" goes on") {
		t.Errorf("it says %s", out)
	}
	if out := decide(exitFailed, "--file"); !strings.Contains(out, "does not wait for a decision") {
		t.Errorf("a second time: %s", out)
	}
	eventually(t, "it succeeds", func() bool {
		var result struct{ Status string }
		get(t, url+"/v1/transactions/"+held, &result)
		return result.Status == "SUCCESS"
	})
	if left := list().Held; len(left) != 0 {
		t.Errorf("still held: %v", left)
	}
	if log := run(0, "operator", "audit", "--data", dir, "--json"); !strings.Contains(log, "restored.decided") {
		t.Errorf("the audit log: %s", log)
	}
	if out := run(0, append([]string{"series", "list"}, client...)...); strings.Count(out, "number_used") != 6 {
		t.Errorf("the series: %s", out)
	}
}
