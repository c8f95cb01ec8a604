package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"gopkg.in/yaml.v3"

	"tributary/internal/alert"
	"tributary/internal/needs"
)

// scraped are the metrics of a running program that has done a little of
// everything, by name.
func scraped(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	args := demoArgs(t, t.TempDir(), "--webhook-url", "http://"+freeAddress(t)+"/", "--webhook-retry-base", "1h")
	url := start(t, args...).waitReady()
	var company struct{ ID string }
	get(t, url+"/onboarding/v2/companies/demo-XX?external-id=true", &company)
	file := write(t, filepath.Join(t.TempDir(), "one.json"), sale(company.ID, "metric-1", "M-1"))
	if code, out, errs := call(t, "submit", file, "--url", url, "--api-key", testKey, "--wait"); code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	script(t, "http://"+flagOf(args, "--simulators"), "xx", `{"outcome":"unavailable","times":1000000,"on":"any"}`)
	file = write(t, filepath.Join(t.TempDir(), "two.json"), sale(company.ID, "metric-2", "M-2")) // waits for a reason
	if code, out, errs := call(t, "submit", file, "--url", url, "--api-key", testKey); code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	for {
		answer, err := http.Get("http://" + flagOf(args, "--admin") + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "tributary_webhook_tries_total{") ||
			!strings.Contains(string(text), `reason="authority_error"} 1`) {
			time.Sleep(20 * time.Millisecond) // the first try is under way
			continue
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		return families
	}
}

// known reports whether a metric is exported, with the labels an expression asks of it.
func known(families map[string]*dto.MetricFamily, name string) *dto.MetricFamily {
	if f := families[name]; f != nil {
		return f
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if base, ok := strings.CutSuffix(name,
			suffix); ok && families[base] != nil && families[base].GetType() == dto.MetricType_HISTOGRAM {
			return families[base]
		}
	}
	return nil
}

var metricUse = regexp.MustCompile(`\b((?:tributary|process|go)_[a-z_]+)(?:\{([^}]*)\})?`)

// checkExpression looks up every metric of an expression and its labels.
func checkExpression(t *testing.T, families map[string]*dto.MetricFamily, where, expr string) (used []string) {
	t.Helper()
	if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, "{") != strings.Count(expr, "}") ||
		strings.Count(expr, "[") != strings.Count(expr, "]") {
		t.Errorf("%s: brackets do not match in %s", where, expr)
	}
	for _, m := range metricUse.FindAllStringSubmatch(expr, -1) {
		family := known(families, m[1])
		if family == nil {
			t.Errorf("%s: the program has no metric %s", where, m[1])
			continue
		}
		used = append(used, family.GetName())
		for _, l := range regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"([^"]*)"`).FindAllStringSubmatch(m[2], -1) {
			if l[1] == "job" {
				continue // Prometheus adds it
			}
			found := false
			for _, metric := range family.Metric {
				for _, pair := range metric.Label {
					found = found || pair.GetName() == l[1]
				}
			}
			if !found {
				t.Errorf("%s: %s has no label %s", where, m[1], l[1])
			}
			if m[1] == "tributary_http_request_seconds_bucket" && l[1] == "route" {
				found = false
				for _, metric := range family.Metric {
					for _, pair := range metric.Label {
						found = found || pair.GetValue() == l[2]
					}
				}
				if !found {
					t.Errorf("%s: there is no route %q", where, l[2])
				}
			}
		}
	}
	if len(used) == 0 && !strings.Contains(expr, "up{") { // which Prometheus makes itself
		t.Errorf("%s: %s names no metric", where, expr)
	}
	return used
}

func TestRulesAndDashboardNameMetricsThatExistAndAllAreDocumented(t *testing.T) {
	t.Parallel()
	families, inUse := scraped(t), map[string]bool{}
	checkRules(t, families, inUse)
	checkDashboard(t, families, inUse)
	guide, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range families {
		if !strings.HasPrefix(name, "tributary_") {
			continue
		}
		if !strings.Contains(string(guide), "| `"+name) {
			t.Errorf("docs/operations.md does not explain %s", name)
		}
		if !inUse[name] {
			t.Errorf("%s is in no rule and on no panel", name)
		}
	}
	for _, m := range regexp.MustCompile("\\| `(tributary_[a-z_]+)").FindAllStringSubmatch(string(guide), -1) {
		if families[m[1]] == nil {
			t.Errorf("docs/operations.md explains %s, which the program does not have", m[1])
		}
	}
}

// When which rule fires says Prometheus' own program: an alert that is open before anybody looks, and one that stays
// open.
func TestRulesFireAndResolveByPromtool(t *testing.T) {
	promtool := needs.Unpacked(t, "prometheus", "usr/bin/promtool")
	cmd := exec.Command(promtool, "test", "rules", "tributary.test.yaml")
	cmd.Dir = filepath.Join("..", "..", "packaging", "prometheus")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func checkRules(t *testing.T, families map[string]*dto.MetricFamily, inUse map[string]bool) {
	t.Helper()
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For string
				Labels           map[string]string
				Annotations      map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "prometheus/tributary.rules.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if names[r.Alert] || r.Annotations["summary"] == "" || r.Annotations["action"] == "" ||
				r.Labels["severity"] != "page" && r.Labels["severity"] != "ticket" {
				t.Errorf("rule %+v", r)
			}
			names[r.Alert] = true
			for _, name := range checkExpression(t, families, r.Alert, r.Expr) {
				inUse[name] = true
			}
			for _, m := range regexp.MustCompile(`name!?="([a-z_0-9]+)"`).FindAllStringSubmatch(r.Expr, -1) {
				if !isAlert(m[1]) {
					t.Errorf("%s: there is no alert %s", r.Alert, m[1])
				}
			}
		}
	}
	if len(names) < 10 {
		t.Errorf("only %d rules were read", len(names))
	}
	for fires := range firing(t) {
		delete(names, fires)
	}
	for name := range names {
		t.Errorf("tributary.test.yaml never has %s fire", name)
	}
}

// firing are the rules that promtool is asked to see fire.
func firing(t *testing.T) map[string]bool {
	t.Helper()
	var file struct {
		Tests []struct {
			Cases []struct {
				Name  string `yaml:"alertname"`
				Fires []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "prometheus/tributary.test.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			if len(c.Fires) > 0 {
				names[c.Name] = true
			}
		}
	}
	return names
}

func checkDashboard(t *testing.T, families map[string]*dto.MetricFamily, inUse map[string]bool) {
	t.Helper()
	var board struct {
		UID, Title    string
		SchemaVersion int
		Panels        []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, "grafana/tributary.json")), &board); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %+v", p)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			for _, name := range checkExpression(t, families, p.Title, target.Expr) {
				inUse[name] = true
			}
		}
	}
}

func isAlert(name string) bool {
	for _, m := range alert.Meanings() {
		if string(m.Name) == name {
			return true
		}
	}
	return false
}
