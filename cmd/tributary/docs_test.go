package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheDocumentationIsWrittenToAFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "docs")
	code, out, errs := call(t, "docs", "--out", dir, "--url", "https://tax.example/")
	if code != 0 || !strings.Contains(out, filepath.Join(dir, "index.html")) {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	for name, wanted := range map[string]string{
		"index.html": "guide.html", "site.css": "--paper", "site.js": "tributaryIndex",
		"index.js": "authority_not_configured", "changelog.html": "v0.9.0", "countries.html": "VERI*FACTU",
		"country-es.html": "Spain", "operations.html": "Alert", "errors.html": "field_required",
		"postV1Transactions.html": "https://tax.example/v1/transactions", "search.html": "index.js",
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), wanted) {
			t.Errorf("%s lacks %q: %v", name, wanted, err)
		}
	}
	if code, _, errs := call(t, "docs"); code != exitUsage || !strings.Contains(errs, "--out") {
		t.Errorf("without a folder: exit code %d: %s", code, errs)
	}
	if code, _, errs := call(t, "docs", "--out", filepath.Join(dir, "index.html")); code != exitUsage ||
		!strings.Contains(errs, "index.html") {
		t.Errorf("with a file for a folder: exit code %d: %s", code, errs)
	}
}
