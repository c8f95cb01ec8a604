package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"tributary/internal/db/dbtest"
)

// packaged is one node, or the migration, of a packaging: what it is called with.
type packaged struct {
	args []string
	env  map[string]string
}

// started is a packaging on this machine: its addresses, folders and secrets are moved, its
// settings stay.
type started struct {
	*checkout
	moved   *strings.Replacer
	migrate packaged
	api     packaged
	worker  packaged
}

// command is a call of the program with nothing but what the packaging says.
func (s *started) call(p packaged) (script string, env []string) {
	words := []string{"tributary"}
	for _, arg := range p.args {
		words = append(words, "'"+s.moved.Replace(arg)+"'")
	}
	for name, value := range p.env {
		env = append(env, name+"="+s.moved.Replace(value))
	}
	return strings.Join(words, " "), env
}

// runs lets a node run until the test ends, with its own listeners.
func (s *started) runs(p packaged, listen, admin string) *process {
	p.env = maps.Clone(p.env)
	p.env["TRIBUTARY_LISTEN"], p.env["TRIBUTARY_ADMIN"] = listen, admin
	script, env := s.call(p)
	return s.background(script, env...)
}

// walk migrates, starts an API and a worker node and stops the first.
func (s *started) walk(t *testing.T) {
	script, env := s.call(s.migrate)
	cmd := s.command(script)
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	listen, admin, workers := freeAddress(t), freeAddress(t), freeAddress(t)
	api := s.runs(s.api, listen, admin)
	worker := s.runs(s.worker, freeAddress(t), workers)
	answers := func(url, token string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0
		}
		_ = answer.Body.Close() // its status is all that counts
		return answer.StatusCode
	}
	lives := func(p *process) {
		if p.gone() {
			t.Fatalf("it has ended:\n%s", p.stderr())
		}
	}
	eventually(t, "the API is ready", func() bool {
		lives(api)
		return answers("http://"+listen+"/readyz", "") == http.StatusOK
	})
	eventually(t, "the worker's metrics need the token and are shown with it", func() bool {
		lives(worker)
		url := "http://" + workers + "/metrics"
		return answers(url, "") == http.StatusUnauthorized && answers(url, s.secret(t, "admin-token")) == http.StatusOK
	})
	began := time.Now()
	if err := api.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API says that it leaves", func() bool {
		return answers("http://"+listen+"/readyz", "") == http.StatusServiceUnavailable
	})
	if status := answers("http://"+listen+"/healthz", ""); status != http.StatusOK && time.Since(began) < 5*time.Second {
		t.Errorf("while it drains /healthz is %d", status)
	}
	if !api.endsWithin(patience) {
		t.Error("it does not end")
	}
}

// secret is what a file of the packaging's secrets holds.
func (s *started) secret(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "packaging", "secrets", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// packagedHere makes secrets as compose.yaml prints it, and a database beside them.
func packagedHere(t *testing.T) (*started, *dbtest.Server) {
	t.Helper()
	s := &started{checkout: newCheckout(t)}
	if err := os.MkdirAll(filepath.Join(s.dir, "packaging"), 0o700); err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^#   (.*)$`).FindAllStringSubmatch(readFile(t, "compose.yaml"), -1)
	if len(lines) != 6 {
		t.Fatalf("compose.yaml prints %q", lines)
	}
	for _, line := range lines[:3] {
		s.shell(t, line[1])
	}
	s.shell(t, "cp packaging/secrets/owner-password packaging/secrets/database-password; mkdir -m 0700 data documents")
	s.shell(t, regexp.MustCompile(`chmod .*secrets/\*`).FindString(lines[3][1])) // for the user of this test, not of a container
	server := anotherServer(t)
	alter(t, server.URL(), "CREATE DATABASE tributary OWNER tributary")
	return s, server
}

func TestComposeStartsAsPrinted(t *testing.T) {
	t.Parallel()
	s, server := packagedHere(t)
	s.moved = strings.NewReplacer("db:5432", at(server), "/run/secrets", filepath.Join(s.dir, "packaging", "secrets"), "/data",
		filepath.Join(s.dir, "data"), "${TRIBUTARY_PUBLIC_URL:?set it in .env}", "https://api.example.com")
	var file composeFile
	if err := yaml.Unmarshal([]byte(readFile(t, "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	of := func(name string) packaged {
		return packaged{file.Services[name].Command, file.Services[name].Environment}
	}
	s.migrate, s.api, s.worker = of("migrate"), of("api"), of("worker")
	s.walk(t)
}

// The database shows a certificate, and the nodes believe the authority that is mounted.
func TestKubernetesStartsAsPrinted(t *testing.T) {
	t.Parallel()
	s, server := packagedHere(t)
	secrets := filepath.Join(s.dir, "packaging", "secrets")
	signs(t, server, filepath.Join(s.dir, "ca.pem"))
	s.moved = strings.NewReplacer("postgres.tributary.svc:5432", at(server), "/etc/tributary/database", s.dir, "/etc/tributary/secrets", secrets,
		"s3://tributary-documents?region=eu-central-1", "file://"+filepath.Join(s.dir, "documents"),
		"s3://tributary-audit-heads?region=eu-central-1", "file://"+filepath.Join(s.dir, "data"))
	configs := map[string]map[string]string{}
	all := manifests(t)
	for _, m := range all {
		if m.Kind == "ConfigMap" {
			configs[m.Metadata.Name] = m.Data
		}
	}
	for _, m := range all {
		for _, box := range m.Spec.Template.Spec.Containers {
			p := packaged{box.Args, map[string]string{}}
			for _, from := range box.EnvFrom {
				maps.Copy(p.env, configs[from.ConfigMapRef.Name])
			}
			for _, e := range box.Env {
				p.env[e.Name] = e.Value
			}
			*map[string]*packaged{"tributary-migrate": &s.migrate, "tributary-api": &s.api, "tributary-worker": &s.worker}[m.Metadata.Name] = p
		}
	}
	s.walk(t)
	if plain := query(t, server.URL(), "SELECT count(*)::text FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.usename = 'tributary_serve' AND NOT s.ssl"); plain != "0" {
		t.Errorf("%s connections of nodes are not encrypted", plain)
	}
}

// at is a server's host and port.
func at(server *dbtest.Server) string {
	return regexp.MustCompile(`@([^/]+)/`).FindStringSubmatch(server.URL())[1]
}

// signs gives a server a certificate, and the authority that signed it to a file.
func signs(t *testing.T, server *dbtest.Server, authority string) {
	t.Helper()
	web := httptest.NewTLSServer(nil)
	web.Close()
	made := web.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate[0]})
	keyFile, err1 := server.Put("server.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	certFile, err2 := server.Put("server.crt", cert)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	write(t, authority, string(cert))
	if err := server.Configure("ssl=on", "ssl_key_file="+keyFile, "ssl_cert_file="+certFile); err != nil {
		t.Fatal(fmt.Errorf("the server does not start with a certificate: %w", err))
	}
}
