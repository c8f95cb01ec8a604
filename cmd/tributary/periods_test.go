package main

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The command shows periods of a running installation, what is in them and when it is due.
func TestPeriodsAreListedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	o := &observatory{t: t, root: t, dir: t.TempDir()}
	s := o.demo("demo", nil, nil, nil)
	var company struct{ ID string }
	s.json(http.MethodGet, "/onboarding/v2/companies/demo-XX?external-id=true", "", &company)
	var patched struct {
		Data struct {
			JobID string `json:"job_id"`
		}
	}
	s.json(http.MethodPatch, "/onboarding/v2/companies/"+company.ID, `{"settings":{"period":"monthly"}}`, &patched)
	for late := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var job struct{ Status string }
		s.json(http.MethodGet, "/onboarding/v2/jobs/"+patched.Data.JobID, "", &job)
		if job.Status == "success" {
			break
		}
		if job.Status == "failed" || time.Now().After(late) {
			t.Fatalf("the job is %q", job.Status)
		}
	}
	file := write(t, filepath.Join(t.TempDir(), "one.json"), sale(company.ID, "gathered-1", "G-1"))
	if code, out, errs := call(t, "submit", file, "--url", s.url, "--api-key", s.key, "--wait"); code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	at := []string{"--data", filepath.Join(o.dir, "demo")}
	listed := o.must(append([]string{"periods", "--supplier", company.ID}, at...)...)
	if !strings.Contains(listed, "open") || !strings.Contains(listed, company.ID) ||
		!strings.Contains(listed, "DUE BY") || !regexp.MustCompile(`[0-9]\.[0-9]{2} EUR`).MatchString(listed) {
		t.Fatalf("%s", listed)
	}
	if none := o.must(append([]string{"periods", "--client", "nobody"}, at...)...); strings.Contains(none, company.ID) {
		t.Errorf("of another client:\n%s", none)
	}
	lines := strings.Split(strings.TrimSpace(listed), "\n")
	id, _, _ := strings.Cut(lines[len(lines)-1], " ")
	if one := o.must(append([]string{"periods", id}, at...)...); !strings.Contains(one, "gathered-1") ||
		!strings.Contains(one, "G-1") {
		t.Errorf("%s", one)
	}
	if all := o.must(append([]string{"periods", "--json"}, at...)...); !strings.Contains(all, `"state": "open"`) &&
		!strings.Contains(all, `"state":"open"`) {
		t.Errorf("%s", all)
	}
}
