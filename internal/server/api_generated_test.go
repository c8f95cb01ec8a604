package server_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/needs"
)

// description is the running program's own, as a file.
func description(t *testing.T, p *program) string {
	t.Helper()
	answer := p.as("").do(t, http.MethodGet, "/openapi.json", nil)
	file := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(file, answer.body, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func ran(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestAClientGeneratedByOapiCodegenFiles: the client is made from the description, compiled and used.
func TestAClientGeneratedByOapiCodegenFiles(t *testing.T) {
	if !needs.Conformance() {
		t.Skip("oapi-codegen judges this in make conformance")
	}
	p := busy(t)
	module := t.TempDir()
	if err := os.CopyFS(module, os.DirFS("testdata/goclient")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(module, "api"), 0o700); err != nil {
		t.Fatal(err)
	}
	ran(t, module, "go", "tool", "oapi-codegen", "-config", "cfg.yaml", description(t, p))
	ran(t, module, "go", "build", "-o", "client", ".")
	sale, err := json.Marshal(example(t, "invoice", object{"transaction_id": "generated-1", "transaction_number": "GEN-1",
		"supplier": object{"id": p.Demo().Suppliers["XX"]}}))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(module, "sale.json")
	if err := os.WriteFile(file, sale, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := ran(t, module, filepath.Join(module, "client"), p.URL(), demoKey, file); out != "SUCCESS generated-1\n" {
		t.Errorf("the generated client says %q", out)
	}
}

func TestSpectralFindsNoErrorInTheDescription(t *testing.T) {
	folder := needs.Npm(t, "api-judges")
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("extends: ['spectral:oas']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ran(t, folder, filepath.Join(folder, "node_modules", ".bin", "spectral"), "lint", "--fail-severity=error", "-r",
		rules, description(t, quiet(t)))
}

// TestNewmanRunsThePostmanCollection from beginning to end, every id taken from an answer before.
func TestNewmanRunsThePostmanCollection(t *testing.T) {
	folder := needs.Npm(t, "api-judges")
	p := busy(t)
	collection, err := filepath.Abs("../../docs/postman/tributary.postman_collection.json")
	if err != nil {
		t.Fatal(err)
	}
	out := ran(t, folder, filepath.Join(folder, "node_modules", ".bin", "newman"), "run", collection,
		"--ignore-redirects", "--color", "off",
		"--env-var", "base_url="+p.URL(), "--env-var", "api_key="+demoKey)
	t.Log(out)
}
