package webhook_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/needs"
	"tributary/internal/webhook"
)

const recipes = "../../docs/webhooks"

// tools are what a recipe is run with.
func tools(t *testing.T, pkg string, names ...string) {
	t.Helper()
	for _, name := range names {
		needs.Tool(t, name, pkg)
	}
}

// eraseTypes turns the recipe into JavaScript for a Node that cannot do it itself.
// It knows exactly the kinds of annotation the recipe has; anything else is a
// syntax error in Node and fails the test.
func eraseTypes(source []byte) []byte {
	for _, r := range []struct{ from, to string }{
		{`(?s)export interface \w+ \{.*?\n\}\n`, ``},
		{`\): Notification \{`, `) {`},
		{` as Notification;`, `;`},
		{`\b(\w+): (?:Buffer|string\[\]|string|number)\b(?:\[\])?`, `$1`},
	} {
		source = regexp.MustCompile(r.from).ReplaceAll(source, []byte(r.to))
	}
	return source
}

func TestRecipesForReceivers(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "programs of other languages")
	for name, prepare := range map[string]func(*testing.T) []string{
		"Go": func(t *testing.T) []string {
			binary := filepath.Join(t.TempDir(), "verify")
			run(t, "go", "build", "-o", binary, recipes+"/go/main.go")
			return []string{binary}
		},
		"Python": func(t *testing.T) []string {
			needs.Tool(t, "python3", "python3")
			return []string{"python3", recipes + "/verify.py"}
		},
		"TypeScript": func(t *testing.T) []string {
			needs.Tool(t, "node", "nodejs")
			if exec.Command("node", "-e", "if (!process.features.typescript) process.exit(1)").Run() == nil {
				return []string{"node", recipes + "/verify.ts"}
			}
			script := filepath.Join(t.TempDir(), "verify.mjs")
			source := eraseTypes(must(os.ReadFile(recipes + "/verify.ts"))(t))
			if err := os.WriteFile(script, source, 0o600); err != nil {
				t.Fatal(err)
			}
			return []string{"node", script}
		},
		"Java": func(t *testing.T) []string {
			tools(t, "default-jdk-headless", "java", "javac")
			classes := t.TempDir()
			run(t, "javac", "-J-Xshare:auto", "-J-XX:TieredStopAtLevel=1", "-proc:none", "-d", classes, recipes+"/Verify.java")
			return []string{"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", classes, "Verify"}
		},
		"shell": func(t *testing.T) []string {
			needs.Tool(t, "openssl", "openssl")
			return []string{"sh", recipes + "/verify.sh"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkRecipe(t, prepare(t))
		})
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// recipeCase is what a recipe is asked, and whether it must accept it.
type recipeCase struct {
	name       string
	body       []byte
	signatures []string
	key        string
	want       bool
}

func checkRecipe(t *testing.T, command []string) {
	keys := webhook.Keys{Current: key("k1"), Next: key("k2")}
	fresh := must(webhook.Pack(notification(time.Now()), keys))(t)
	stale := must(webhook.Pack(notification(time.Now().Add(-10*time.Minute)), keys))(t)
	future := must(webhook.Pack(notification(time.Now().Add(10*time.Minute)), keys))(t)
	both := []string{fresh.Signature, fresh.SignatureNext}
	cases := []recipeCase{
		{"newer key", fresh.Body, both, "k2", true},
		{"a newline more", append(bytes.Clone(fresh.Body), '\n'), both, "k1", false},
		{"ten minutes old", stale.Body, []string{stale.Signature}, "k1", false},
	}
	if needs.IsLong() { // each is a start of a virtual machine or an interpreter
		cases = append(cases, []recipeCase{
			{"older key", fresh.Body, both[:1], "k1", true},
			{"unknown key", fresh.Body, both, "k3", false},
			{"half a signature", fresh.Body, []string{fresh.Signature[:32]}, "k1", false},
			{"ten minutes ahead", future.Body, []string{future.Signature}, "k1", false},
		}...)
	}
	var wg sync.WaitGroup
	limit := make(chan struct{}, 2)
	for _, c := range cases {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			cmd := exec.Command(command[0], append(command[1:len(command):len(command)], c.signatures...)...)
			cmd.Env = append(os.Environ(), "API_KEY="+keyText(c.key).RevealText())
			cmd.Stdin = bytes.NewReader(c.body)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.ExitCode() == 1 {
				err = nil
			}
			accepted := strings.TrimSpace(string(out)) == "ok "+notification(time.Now()).WebhookID
			if err != nil || accepted != c.want || (exit == nil) != c.want {
				t.Errorf("%s: accepted %v: %v\n%s", c.name, accepted, err, out)
			}
		})
	}
	wg.Wait()
}

func TestEveryErrorClassIsDocumented(t *testing.T) {
	t.Parallel()
	page := string(must(os.ReadFile(recipes + "/README.md"))(t))
	for _, c := range []webhook.Class{
		webhook.ClassURLRefused, webhook.ClassAddressRefused, webhook.ClassDNS, webhook.ClassConnect,
		webhook.ClassConnectTimeout, webhook.ClassProxy,
		webhook.ClassTLS, webhook.ClassTimeout, webhook.ClassClosed, webhook.ClassMalformed, webhook.ClassStatus,
		webhook.ClassNoLocation,
		webhook.ClassRedirectInsecure, webhook.ClassRedirectRefused, webhook.ClassRedirectDepth, webhook.ClassInterrupted,
	} {
		if !strings.Contains(page, "`"+string(c)+"`") {
			t.Errorf("%s is not explained", c)
		}
	}
}
