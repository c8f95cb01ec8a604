package es_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tributary/internal/country"
	"tributary/internal/country/es"
	"tributary/internal/needs"
)

// The commands of docs/countries/es.md make credentials that the double takes.
func TestDocumentedCommandsMakeWorkingCredentials(t *testing.T) {
	needs.Tool(t, "openssl", "openssl")
	dir := t.TempDir()
	for _, args := range [][]string{
		{"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "365", "-keyout", "key.pem", "-out", "cert.pem", "-subj",
			"/CN=Comercial Ejemplo SL/serialNumber=" + nif},
		{"pkcs12", "-export", "-inkey", "key.pem", "-in", "cert.pem", "-passout", "pass:secret", "-out", "company.p12"},
	} {
		cmd := exec.Command("openssl", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("openssl %v: %v\n%s", args, err, out)
		}
	}
	file, err := os.ReadFile(filepath.Join(dir, "company.p12"))
	if err != nil {
		t.Fatal(err)
	}
	o := open(t, es.Pack())
	f := o.prepare(byName(t, "business"), country.Link{})
	receipts, err := o.channel.Send(t.Context(), []country.Filing{f},
		country.Credentials{PKCS12: file, Password: "secret"})
	if err != nil || receipts[0].Outcome != country.Accepted {
		t.Errorf("%s %v", asJSON(receipts), err)
	}
}
