package main

import (
	"net/http"
	"strings"
	"testing"
)

func TestASeriesIsMadeAndListedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	o := &observatory{t: t, root: t}
	s := o.common("series")
	var page struct{ Data []struct{ ID string } }
	s.json(http.MethodGet, "/onboarding/v2/companies?limit=1", "", &page)
	at := []string{"--url", s.url, "--api-key", s.key}
	made := o.must(append([]string{"series", "create", page.Data[0].ID, "F{YYYY}-{N:5}", "--yearly", "--next", "17"},
		at...)...)
	if listed := o.must(append([]string{"series", "list"}, at...)...); !strings.Contains(made, "F{YYYY}-{N:5}") ||
		!strings.Contains(listed, "17") || !strings.Contains(listed, page.Data[0].ID) {
		t.Errorf("made\n%s\nlisted\n%s", made, listed)
	}
	if code, _, errs := call(t, append([]string{"series", "create", page.Data[0].ID, "no count", "--kind", "CREDIT"},
		at...)...); code != exitUsage || !strings.Contains(errs, "pattern") {
		t.Errorf("a pattern without a count: %d %s", code, errs)
	}
}
