package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tributary/internal/bench"
	"tributary/internal/needs"
)

// TestAPairIsRefusedWhereItCannotBe: what is wrong with a call is said before
// anything is measured, with the exit code that scripts go by.
func TestAPairIsRefusedWhereItCannotBe(t *testing.T) {
	t.Setenv(childEnv, "1") // this program is the test binary: it must answer --version
	dir := t.TempDir()
	failing := write(t, filepath.Join(dir, "failing"), "#!/bin/sh\necho 'no such library' >&2\nexit 127\n")
	if err := os.Chmod(failing, 0o700); err != nil {
		t.Fatal(err)
	}
	plain := write(t, filepath.Join(dir, "plain"), "text")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--pair", failing, "--rounds", "2"}, exitUsage, "--rounds: must be at least 3"},
		{[]string{"--pair", failing, "--rounds", "101"}, exitUsage, "--rounds: must be at most 100"},
		{[]string{"--rounds", "4"}, exitUsage, "--rounds requires --pair"},
		{[]string{"--pair="}, exitUsage, "--pair requires a file"},
		{[]string{"--pair", dir}, exitUsage, "not a file"},
		{[]string{"--pair", filepath.Join(dir, "none")}, exitUsage, "no such file"},
		{[]string{"--pair", failing, "--nodes", "2"}, exitUsage, "--pair and --nodes"},
		{[]string{"--pair", failing, "--compare", plain}, exitUsage, "--pair and --compare"},
		{[]string{"--pair", failing, "--plot", filepath.Join(dir, "figures.svg")}, exitUsage, "--pair and --plot"},
		{[]string{"--pair", failing, "--database", "mysql://server"}, exitUsage, "must be sqlite:PATH or postgres://"},
		{[]string{"--pair", plain}, exitFailed, plain + ": permission denied"},
		{[]string{"--pair", failing}, exitFailed,
			"before round 1, other: " + failing + ": exit status 127; it said last:\n  no such library"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"bench", "--json"}, c.args...), streams{&out, &errs, strings.NewReader("")})
		if code != c.code || !strings.Contains(errs.String(), c.says) || out.Len() > 0 ||
			strings.Contains(errs.String(), "measuring") {
			t.Errorf("bench %q: %d, want %d with %q\n%s%s", c.args, code, c.code, c.says, errs.String(), out.String())
		}
	}
}

// TestTheProgramIsComparedWithItself: two copies of one file differ by nothing
// but the machine, and report the same figures.
func TestTheProgramIsComparedWithItself(t *testing.T) {
	needs.Long(t, "six runs of the benchmark")
	binary := fastBinary(t)
	cmd := child(binary, "bench", "--pair", binary, "--quick", "--json")
	var told strings.Builder
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, told.String())
	}
	var found bench.Comparison
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if found.Rounds != bench.RoundsMin || found.This != found.Other || found.This.Version == "" ||
		len(found.Engines) != 1 || found.Engines[0].Engine != "sqlite" {
		t.Fatalf("reported %s", out)
	}
	e := found.Engines[0]
	if len(e.Figures) < 15 || len(e.OnlyThis)+len(e.OnlyOther)+len(e.Incomplete) > 0 {
		t.Errorf("%d figures are in both, and not in both are %q, %q, %q", len(e.Figures), e.OnlyThis, e.OnlyOther,
			e.Incomplete)
	}
	for _, f := range e.Figures {
		if len(f.This) != found.Rounds || len(f.Other) != found.Rounds {
			t.Errorf("%s: %+v", f.Name, f)
		}
		if slices.Min(f.This) == 0 || slices.Min(f.Other) == 0 {
			continue // what is refused, and what a short burst leaves no time for
		}
		if len(f.Ratios) != found.Rounds || f.RatioLow <= 0 || f.Ratio < f.RatioLow || f.RatioHigh < f.Ratio {
			t.Errorf("%s: %+v", f.Name, f)
		}
	}
	if !strings.Contains(told.String(), "round 3 of 3, sqlite, other: measuring documents …") ||
		!strings.Contains(told.String(), "PostgreSQL was not measured") {
		t.Errorf("told\n%s", told.String())
	}
	t.Log(told.String())
}
