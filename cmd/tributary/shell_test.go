package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestHelpExplainsCommands(t *testing.T) {
	for words, wanted := range map[string]string{"help": "Run everything locally", "help serve": "--authority",
		"help client create": "--country", "help completion": "bash, zsh or fish",
		"help recovery": "held after a restore", "help restored": "held after a restore"} {
		if code, out, errs := call(t, strings.Fields(words)...); code != 0 || !strings.Contains(out, wanted) {
			t.Errorf("%s: exit code %d, no %q in\n%s%s", words, code, wanted, out, errs)
		}
	}
	if code, _, _ := call(t, "help", "dance"); code == 0 {
		t.Error("a command that is none is explained")
	}
}

// The script of bash is run by bash; the others are made from the same list.
// Every command says what to do about what the service found wrong, and where the
// help is of one that was called wrongly.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"message":"invalid query","errors":[
			{"code":"field_not_valid","type":"validation","field":"status","message":"status must be one of SUCCESS, FAILURE"}]}`)
	}))
	defer srv.Close()
	flags := []string{"--url", srv.URL, "--api-key", testKey}
	for _, args := range [][]string{{"list", "--status", "X"}, {"companies"}, {"events"}, {"get", "sale-1"}, {"series", "list"}} {
		code, out, errs := call(t, append(args, flags...)...)
		if code == 0 || !strings.Contains(errs, "  status must be one of SUCCESS, FAILURE\nfield_not_valid: Correct the value.\n") {
			t.Errorf("%v: %d %s%s", args, code, out, errs)
		}
	}
	for command, help := range map[string]string{"nonsense": "tributary", "list --nonsense": "tributary list",
		"client create --nonsense": "tributary client create"} {
		code, _, errs := call(t, strings.Fields(command)...)
		if code != exitUsage || !strings.Contains(errs, "\n  See "+help+" --help.\n") {
			t.Errorf("%s: %d %s", command, code, errs)
		}
	}
}

func TestShellsCompleteCommandsAndFlags(t *testing.T) {
	_, script, _ := call(t, "completion", "bash")
	at := filepath.Join(t.TempDir(), "completion")
	if err := os.WriteFile(at, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	for typed, wanted := range map[string]string{"cli": "client", "client cre": "create",
		"client --config x create --live-n": "", "serve --auth": "--authority-retry-base --authority-slots --authority",
		"docs --o": "--out", "nonsense --lo": "--log-format --log-level"} {
		words := append([]string{"tributary"}, strings.Fields(typed)...)
		run := exec.Command("bash", "-c",
			`source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tributary; echo "${COMPREPLY[*]}"`, "bash", at)
		run.Args = append(run.Args, words...)
		out, err := run.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != wanted {
			t.Errorf("%q completes to %q, want %q: %v", typed, got, wanted, err)
		}
	}
	if _, zsh, _ := call(t, "completion", "zsh"); !strings.HasPrefix(zsh, "#compdef tributary") ||
		!strings.Contains(zsh, "bashcompinit") {
		t.Error("zsh gets no script")
	}
	if _, fish, _ := call(t, "completion", "fish"); !strings.Contains(fish,
		`complete -c tributary -f -n '__tributary_at \'client\'' -a create`) {
		t.Error("fish gets no script")
	}
	if code, _, errs := call(t, "completion", "ksh"); code != exitUsage || !strings.Contains(errs, "bash") {
		t.Errorf("another shell: exit code %d: %s", code, errs)
	}
}

func TestTheManualHasEveryCommand(t *testing.T) {
	_, page, _ := call(t, "man")
	all, err := places()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if len(p.node.Children) == 0 && !strings.Contains(page,
			"\n.SS tributary "+strings.ReplaceAll(p.path, "-", `\-`)+"\n") {
			t.Errorf("the manual lacks %s", p.path)
		}
	}
	if !strings.HasPrefix(page, ".TH TRIBUTARY 1") || !strings.Contains(page, `\-\-authority\-slots`) {
		t.Errorf("this is no manual page: %.80q", page)
	}
}
