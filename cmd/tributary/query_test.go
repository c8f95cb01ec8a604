package main

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestAClientLooksFromTheCommandLine walks a client's first hour without curl:
// transactions are triggered, listed, narrowed and opened, with their companies
// and events.
func TestAClientLooksFromTheCommandLine(t *testing.T) {
	t.Parallel()
	args := demoArgs(t, t.TempDir(), "--webhook-url", "http://"+freeAddress(t))
	p := start(t, args...)
	at := []string{"--url", p.waitReady(), "--api-key", testKey}
	do := func(args ...string) string { t.Helper(); return must(t, append(args, at...)...) }
	trigger := func(args ...string) string {
		return do(append([]string{"trigger", "--wait", patience.String()}, args...)...)
	}

	filed := trigger()
	for _, want := range []string{"SUCCESS", "invoice in XX", "242.00 EUR", "visual", "/invoicing/v1/invoices/"} {
		if !strings.Contains(filed, want) {
			t.Errorf("the triggered sale lacks %q:\n%s", want, filed)
		}
	}
	// Every supplier that the demo names can sell.
	for _, code := range regexp.MustCompile(`(?m)^    ([A-Z]{2})  [0-9a-f]{32}$`).FindAllStringSubmatch(p.output(), -1) {
		if out := trigger("--in", code[1], "--json"); !strings.Contains(out, `"status": "SUCCESS"`) {
			t.Errorf("%s: %s", code[1], out)
		}
	}
	before := strings.Count(do("list", "--limit", "100"), "\n")
	if out := trigger("reject"); !strings.Contains(out, "FAILURE") || !strings.Contains(out, "authority_rejected: ") {
		t.Errorf("reject:\n%s", out)
	} else if !strings.Contains(out, "refused means: The reference authority was told to refuse") ||
		!strings.Contains(out, "What to do: ") {
		t.Errorf("the authority's code is not explained:\n%s", out)
	}
	if out := trigger("--in", "ES", "--supplier", "demo-ES"); !strings.Contains(out, "invoice in ES") {
		t.Errorf("in Spain:\n%s", out)
	}
	authority := &stage{t: t, sims: "http://" + flagOf(args, "--simulators"), client: http.DefaultClient}
	// slow, whatever the machine is
	authority.script("xx", `{"steps":[{"outcome":"unavailable","times":1000000,"on":"any"}]}`)
	if out := do("trigger", "slow", "--wait", "100ms"); !strings.Contains(out, "PROCESSING") {
		t.Errorf("not waited for:\n%s", out)
	}
	authority.script("xx", `{"steps":[]}`)
	if code, _, errs := call(t, append([]string{"trigger", "--supplier", "nobody"}, at...)...); code != exitUsage ||
		!strings.Contains(errs, "no matching active company in XX") {
		t.Errorf("%d %s", code, errs)
	}
	id := regexp.MustCompile(`(?m)^transaction +(\S+)`).FindStringSubmatch(filed)[1]
	operation := regexp.MustCompile(`(?m)^operation +(\S+)`).FindStringSubmatch(filed)[1]
	number := regexp.MustCompile(`(?m)^number +(\S+)`).FindStringSubmatch(filed)[1]
	if do("get", operation) == "" || !strings.Contains(do("get", id), operation) {
		t.Error("a transaction is not found by both of its names")
	}
	var result struct{ Status string }
	if err := json.Unmarshal([]byte(do("get", operation, "--json")), &result); err != nil || result.Status != "SUCCESS" {
		t.Errorf("%v %+v", err, result)
	}
	if code, _, errs := call(t, append([]string{"get", "nothing-of-that-name"}, at...)...); code == 0 ||
		!strings.Contains(errs, "404") {
		t.Errorf("%d %s", code, errs)
	}

	all := do("list", "--limit", "100")
	if strings.Count(all, "\n") != before+3 {
		t.Errorf("%d lines and three transactions more:\n%s", before, all)
	}
	supplier := regexp.MustCompile(`(?m)^([0-9a-f]{32}) +demo-GB `).FindStringSubmatch(do("companies"))
	if supplier == nil {
		t.Fatal("the British supplier is not among the companies")
	}
	for _, filter := range [][]string{{"--status", "failure"}, {"--in", "IE"}, {"--supplier", supplier[1]},
		{"--number", number}, {"--limit", "1"}} {
		if out := do(append([]string{"list"}, filter...)...); strings.Count(out, "\n") != 2 {
			t.Errorf("%v:\n%s", filter, out)
		}
	}
	for _, filter := range [][]string{{"--from", "2096-01-01T00:00:00Z"}, {"--to", "2006-01-01T00:00:00Z"}} {
		if out := do(append([]string{"list"}, filter...)...); strings.Count(out, "\n") != 1 {
			t.Errorf("%v:\n%s", filter, out)
		}
	}
	if out := do("events"); strings.Count(out, "transactions.transaction_completed") < 3 {
		t.Errorf("events:\n%s", out)
	}
	if out := do("events", "--state", "delivered"); strings.Count(out, "\n") != 1 {
		t.Errorf("nobody listens, and yet:\n%s", out)
	}
}

func TestAPlainBuildSaysTheVersionOfTheChangelog(t *testing.T) {
	changelog, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	_, newest, _ := strings.Cut(string(changelog), "\n## ")
	newest, _, _ = strings.Cut(newest, ",")
	if out := must(t, "version"); strings.TrimSpace(out) != newest {
		t.Errorf("version said %q, the changelog begins with %q", out, newest)
	}
}
