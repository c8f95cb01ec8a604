package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnInstallationIsMadeByItsFlags(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "place")
	out := must(t, "init", dir, "--operator", "ann", "--client", "shop", "--live", "--country", "ES=BOTH;DE=INVOICING",
		"--public-url", "https://api.example.com", "--simulators", "127.0.0.1:7777")
	if !strings.Contains(out, "ann, password ") || !strings.Contains(out, filepath.Join(dir, "client.key")) {
		t.Errorf("it said\n%s", out)
	}
	config := filepath.Join(dir, "tributary.json")
	text := readText(t, config)
	for _, want := range []string{`"public-url": "https://api.example.com"`, `"simulators": "http://127.0.0.1:7777"`,
		`"sqlite:` + dir} {
		if !strings.Contains(text, want) {
			t.Errorf("the configuration lacks %s:\n%s", want, text)
		}
	}
	if key := readText(t, filepath.Join(dir, "client.key")); !strings.HasPrefix(key, "trb_live_") {
		t.Error("the key is not of a live client")
	}
	shown := must(t, "client", "show", "shop", "--config", config)
	if !strings.Contains(shown, `"ES": "BOTH"`) || !strings.Contains(shown, `"DE": "INVOICING"`) ||
		!strings.Contains(shown, "(live)") {
		t.Errorf("the client is\n%s", shown)
	}
	if list := must(t, "operator", "list", "--config", config); !strings.Contains(list, "ann") ||
		!strings.Contains(list, "admin") {
		t.Errorf("operators:\n%s", list)
	}
}

// TestAnInterruptedInstallationGoesOn: without its configuration file, which is
// written last, an installation is not made; what exists of it is kept.
func TestAnInterruptedInstallationGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, "init", dir)
	master, key := readText(t, filepath.Join(dir, "master.key")), readText(t, filepath.Join(dir, "client.key"))
	if err := os.Remove(filepath.Join(dir, "tributary.json")); err != nil {
		t.Fatal(err)
	}
	if out := must(t, "init", dir); !strings.Contains(out, "(exists;") {
		t.Errorf("the second call said\n%s", out)
	}
	if readText(t, filepath.Join(dir, "master.key")) != master || readText(t, filepath.Join(dir, "client.key")) != key {
		t.Error("keys were made anew")
	}
	must(t, "client", "show", "first", "--config", filepath.Join(dir, "tributary.json"))
}

func TestAFolderOfOthersIsNoPlaceForAnInstallation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "thesis.txt"), "x")
	for folder, says := range map[string]string{dir: "is not empty: it has thesis.txt", file: "not a directory"} {
		if code, _, errs := call(t, "init", folder); code != 2 || !strings.Contains(errs, says) {
			t.Errorf("%s: %d %s", folder, code, errs)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "master.key")); err == nil {
		t.Error("a key was made all the same")
	}
}

// must calls the program and answers what it printed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := call(t, args...)
	if code != 0 {
		t.Fatalf("%v: %d %s", args, code, errs)
	}
	return out
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
