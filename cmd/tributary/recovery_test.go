package main

import (
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
