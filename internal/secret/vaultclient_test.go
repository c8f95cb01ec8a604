package secret_test

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/secret"
)

// The environment of Vault's own clients is read, variable by variable: the
// double looks at what arrives.
func TestVaultIsAskedAsTheEnvironmentSays(t *testing.T) {
	v := startVault(t)
	ca, err := os.ReadFile(os.Getenv("VAULT_CACERT"))
	if err != nil {
		t.Fatal(err)
	}
	var seen *http.Request
	v.watch(func(_ http.ResponseWriter, r *http.Request) { seen = r })
	folder := t.TempDir()
	certificate, key := clientPair(t, v)
	if err := os.WriteFile(filepath.Join(folder, "one.pem"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  map[string]string
		fits func() bool
	}{
		"authorities in a folder":  {map[string]string{"VAULT_CACERT": "", "VAULT_CAPATH": folder}, nil},
		"authorities in the value": {map[string]string{"VAULT_CACERT": "", "VAULT_CACERT_BYTES": string(ca)}, nil},
		"no verification":          {map[string]string{"VAULT_CACERT": "", "VAULT_SKIP_VERIFY": "true"}, nil},
		"seconds":                  {map[string]string{"VAULT_CLIENT_TIMEOUT": "7"}, nil},
		"namespace": {map[string]string{"VAULT_NAMESPACE": "team/a"}, func() bool {
			return seen.Header.Get("X-Vault-Namespace") == "team/a"
		}},
		"headers": {map[string]string{"VAULT_HEADERS": `{"X-Gate":"open"}`}, func() bool {
			return seen.Header.Get("X-Gate") == "open" && seen.Header.Get("X-Vault-Request") == "true"
		}},
		"name of the server": {map[string]string{"VAULT_TLS_SERVER_NAME": "example.com"}, func() bool {
			return seen.TLS.ServerName == "example.com"
		}},
		"certificate of the client": {map[string]string{"VAULT_CLIENT_CERT": certificate, "VAULT_CLIENT_KEY": key},
			func() bool { return len(seen.TLS.PeerCertificates) == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.env {
				t.Setenv(variable, value)
			}
			openMaster(t, v.uri())
			if c.fits != nil && !c.fits() {
				t.Errorf("Vault saw %v", seen.Header)
			}
		})
	}
}

// What cannot be used is named, and its value is not repeated: it may be a
// token in the wrong place.
func TestABrokenVaultEnvironmentIsNamed(t *testing.T) {
	v := startVault(t)
	const slip = "hvs.in-the-wrong-place"
	for _, variable := range []string{"VAULT_CACERT", "VAULT_CACERT_BYTES", "VAULT_CAPATH", "VAULT_CLIENT_CERT",
		"VAULT_CLIENT_KEY",
		"VAULT_CLIENT_TIMEOUT", "VAULT_SKIP_VERIFY", "VAULT_HEADERS", "VAULT_PROXY_ADDR", "VAULT_HTTP_PROXY",
		"VAULT_SRV_LOOKUP"} {
		t.Run(variable, func(t *testing.T) {
			if variable != "VAULT_CACERT" && strings.HasPrefix(variable, "VAULT_CA") {
				t.Setenv("VAULT_CACERT", "")
			}
			t.Setenv(variable, slip)
			if _, err := secret.OpenMaster(v.uri()); err == nil || !strings.Contains(err.Error(), variable) ||
				strings.Contains(err.Error(), slip) {
				t.Error(err)
			}
		})
	}
	t.Run("headers of Vault's own", func(t *testing.T) {
		t.Setenv("VAULT_HEADERS", `{"x-vault-token":"`+slip+`"}`)
		if _, err := secret.OpenMaster(v.uri()); err == nil || strings.Contains(err.Error(), slip) {
			t.Error(err)
		}
	})
	if n := v.count(); n != 0 {
		t.Errorf("Vault was asked %d times", n)
	}
}

func TestVaultIsAskedThroughItsProxy(t *testing.T) {
	v := startVault(t)
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.Host
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	t.Setenv("VAULT_HTTP_PROXY", "http://127.0.0.1:1") // the other one wins
	t.Setenv("VAULT_PROXY_ADDR", proxy.URL)
	if _, err := secret.OpenMaster(v.uri()); err == nil {
		t.Error("a proxy that lets nobody through was passed by")
	}
	if want := "CONNECT " + strings.TrimPrefix(v.URL, "https://"); asked != want || v.count() != 0 {
		t.Errorf("the proxy was asked %q, want %q; Vault %d times", asked, want, v.count())
	}
}

func TestALongAnswerOfVaultIsNotRead(t *testing.T) {
	v := startVault(t)
	m := openMaster(t, v.uri())
	wrapped, _ := newKey(t, m, whose)
	for blanks, fits := range map[int]bool{1<<20 - 200: true, 1 << 20: false} {
		v.watch(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(strings.Repeat(" ", blanks))) })
		if _, err := m.Open(wrapped, whose); (err == nil) != fits {
			t.Errorf("%d blanks: %v", blanks, err)
		}
	}
}

// clientPair is the double's own pair, which it asks for.
func clientPair(t *testing.T, v *vault) (certificate, key string) {
	t.Helper()
	pair := v.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(t.TempDir(), "client.pem"), filepath.Join(t.TempDir(), "client.key")
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]},
		key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}
