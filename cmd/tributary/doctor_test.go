package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/doctor"
	"tributary/internal/secret"
)

// diagnose runs the doctor and returns its findings.
func diagnose(t *testing.T, args ...string) (code int, findings []doctor.Finding) {
	t.Helper()
	code, out, errs := call(t, append(append([]string{"doctor"}, args...), "--json", "--timeout", "60s", "--log-level",
		"error")...)
	var report struct{ Findings []doctor.Finding }
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	worst := 0
	for _, f := range report.Findings {
		if f.Verdict == doctor.Fail {
			worst = exitFailed
		}
		if f.Verdict != doctor.OK && f.Fix == "" && !strings.Contains(f.Found, "more") {
			t.Errorf("no fix for %+v", f)
		}
	}
	if code != worst {
		t.Errorf("exit code %d with %+v", code, report.Findings)
	}
	return code, report.Findings
}

// verdictOf is the worst verdict of a check's lines in which all texts occur, or "".
func verdictOf(findings []doctor.Finding, check string, texts ...string) doctor.Verdict {
	worst := doctor.Verdict("")
	for _, f := range findings {
		whole := f.Subject + " " + f.Found + " " + f.Fix
		if f.Check != check || slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(whole, text) }) {
			continue
		}
		if worst == "" || f.Verdict == doctor.Fail || f.Verdict == doctor.Warn && worst == doctor.OK {
			worst = f.Verdict
		}
	}
	return worst
}

func expect(t *testing.T, findings []doctor.Finding, want doctor.Verdict, check string, texts ...string) {
	t.Helper()
	if got := verdictOf(findings, check, texts...); got != want {
		t.Errorf("%s %v is %q, want %q in\n%+v", check, texts, got, want, findings)
	}
}

func TestDoctorFindsARunningDeploymentWell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := demoArgs(t, dir)
	start(t, args...).waitReady()
	code, findings := diagnose(t, "--data", dir, "--simulators", "http://"+flagOf(args, "--simulators"))
	if code != 0 {
		t.Errorf("exit code %d: %+v", code, findings)
	}
	for _, check := range []string{"schema", "master key", "signing keys", "suppliers", "alerts", "operations",
		"documents", "authority"} {
		expect(t, findings, doctor.OK, check)
	}
	expect(t, findings, doctor.OK, "clock", "authority simulators")
	expect(t, findings, doctor.Warn, "webhooks", "no webhook URL")
	code, out, _ := call(t, "doctor", "--data", dir, "--simulators", "http://"+flagOf(args, "--simulators"),
		"--log-level", "error")
	if code != 0 || !strings.Contains(out, "ok    schema") || !strings.Contains(out, "→ tributary client configure") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestDoctorNamesWhatIsBrokenBesideTheDatabase breaks one thing after the other
// in a deployment that is otherwise in order.
func TestDoctorNamesWhatIsBrokenBesideTheDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hook := httptest.NewTLSServer(http.NotFoundHandler())
	defer hook.Close()
	first := start(t, demoArgs(t, dir, "--webhook-url", strings.Replace(hook.URL, "https", "http", 1))...)
	url := first.waitReady()
	var company struct{ ID string }
	get(t, url+"/onboarding/v2/companies/demo-XX?external-id=true", &company)
	file := write(t, filepath.Join(t.TempDir(), "slow.json"), sale(company.ID, "stuck-1", "S-1-OUTAGE"))
	if code, out, errs := call(t, "submit", file, "--url", url, "--api-key", testKey); code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	first.stop()
	age(t, "sqlite:"+filepath.Join(dir, "tributary.db"))

	expired := certificate(t, "api.example.com", time.Now().Add(-time.Hour))
	soon := certificate(t, "api.example.com", time.Now().Add(10*24*time.Hour))
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
	}))
	defer late.Close()
	other, public := masterFile(t, 0o400), masterFile(t, 0o644)
	noFolder := write(t, filepath.Join(t.TempDir(), "file"), "not a folder")

	// The demo's own data is no broken production: it is examined as the demo does.
	_, findings := diagnose(t, "--data", dir)
	expect(t, findings, doctor.OK, "data", "tributary demo")
	expect(t, findings, doctor.OK, "webhooks", "reachable")
	expect(t, findings, doctor.Warn, "authority", "the demo is not running")
	if err := os.Remove(filepath.Join(dir, "demo.json")); err != nil {
		t.Fatal(err)
	}

	_, findings = diagnose(t, "--data", dir)
	expect(t, findings, doctor.Fail, "webhooks", "refused")                                // loopback and plain http
	expect(t, findings, doctor.Warn, "alerts", "webhook_breaker_open", "planted")          // raised by age
	expect(t, findings, doctor.Fail, "operations", "not picked up", "--role worker")       // the program is dead
	expect(t, findings, doctor.Fail, "operations", "in progress", "72h")                   // and it is old
	expect(t, findings, doctor.Warn, "authority", "XX.test", "--simulators")               // enabled, no address
	expect(t, findings, doctor.Warn, "authority", "no address is configured", "documents") // none at all
	expect(t, findings, doctor.OK, "schema")

	type wrong struct {
		want  doctor.Verdict
		check string
		texts []string
	}
	// What is broken at the same time is named at the same time.
	for _, c := range []struct {
		args  []string
		wrong []wrong
	}{
		{slices.Concat(expired, []string{"--master-key", "file:" + other, "--documents", "file://" + noFolder, "--authority",
			"XX.test=http://127.0.0.1:1", "--public-url", "https://api.example.com"}), []wrong{
			{doctor.Fail, "signing keys", []string{"--master-key"}},
			{doctor.Fail, "tax credentials", []string{"--master-key"}},
			{doctor.Fail, "documents", nil},
			{doctor.Fail, "authority", []string{"XX.test", "refused"}},
			{doctor.Fail, "own certificate", []string{"expired on"}},
		}},
		{slices.Concat(soon, []string{"--master-key", "file:/nowhere/master.key", "--documents", "file:///nowhere/documents",
			"--authority", "XX.test=" + hook.URL, "--public-url", "https://api.example.com"}), []wrong{
			{doctor.Fail, "master key", []string{"no such file"}},
			{doctor.Warn, "documents", []string{"no such file"}},
			{doctor.Fail, "authority", []string{"XX.test", "certificate"}},
			{doctor.Warn, "own certificate", []string{"expires in 9 days"}},
		}},
		{slices.Concat(soon, []string{"--master-key", "file:" + public, "--documents", "gopher://x", "--authority",
			"XX.test=" + late.URL, "--public-url", "https://other.example.com"}), []wrong{
			{doctor.Fail, "master key", []string{"0644", "chmod 0400"}},
			{doctor.Fail, "documents", []string{"gopher"}},
			{doctor.Fail, "clock", []string{"authority XX.test", "time synchronisation"}},
			{doctor.Fail, "own certificate", []string{"other.example.com"}},
		}},
		{[]string{"--authority", "QQ.test=https://x.example"}, []wrong{{doctor.Fail, "configuration", []string{"QQ"}}}},
	} {
		_, findings := diagnose(t, append([]string{"--data", dir}, c.args...)...)
		for _, w := range c.wrong {
			expect(t, findings, w.want, w.check, w.texts...)
		}
	}
	if _, err := os.Stat("/nowhere"); err == nil {
		t.Error("the doctor made a folder")
	}
}

// masterFile makes another master key with a mode of its own.
func masterFile(t *testing.T, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.key")
	if err := errors.Join(secret.CreateMasterFile(path), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// age makes everything open look as if it had been left alone for days.
func age(t *testing.T, url string) {
	t.Helper()
	d, err := db.Open(t.Context(), db.Config{URL: url, NoWorkers: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }() // a test's
	alerts, err := alert.New(d, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	err = d.Write(t.Context(), func(tx *db.Tx) error {
		if err := tx.Exec("UPDATE operations SET due_at = $1, accepted_at = $2 WHERE transaction_id = 'stuck-1'",
			db.Micros(tx.Now().Add(-10*time.Minute)), db.Micros(tx.Now().Add(-72*time.Hour))); err != nil {
			return err
		}
		if err := alerts.RaiseIn(tx, alert.WebhookBreakerOpen, "acme", "planted"); err != nil {
			return err
		}
		return tx.Exec("UPDATE lanes SET due_at = NULL, lease_until = NULL")
	})
	if err != nil {
		t.Fatal(err)
	}
}

// certificate makes a key pair and returns the flags that name it.
func certificate(t *testing.T, host string, end time.Time) []string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader,
		&x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: end.Add(-24 * time.Hour),
			NotAfter: end},
		&x509.Certificate{SerialNumber: big.NewInt(1)}, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})))
	return []string{"--tls-cert", filepath.Join(dir, "cert.pem"), "--tls-key", filepath.Join(dir, "key.pem")}
}

func TestDoctorNamesWhatIsWrongWithTheDatabase(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	_, findings := diagnose(t, "--database", "sqlite:"+filepath.Join(empty, "none.db"))
	expect(t, findings, doctor.Fail, "database", "does not exist", "tributary migrate")
	if left, _ := os.ReadDir(empty); len(left) > 0 {
		t.Errorf("the doctor made %v", left)
	}
	_, findings = diagnose(t, "--database", "sqlite:/nowhere/none.db")
	expect(t, findings, doctor.Fail, "data", "/nowhere")
	_, findings = diagnose(t, "--database", "postgres://nobody@127.0.0.1:1/none?sslmode=disable")
	expect(t, findings, doctor.Fail, "database", "start the database")
	old := write(t, filepath.Join(t.TempDir(), "old.db"), "")
	_, findings = diagnose(t, "--database", "sqlite:"+old)
	expect(t, findings, doctor.Fail, "schema", "tributary migrate")
	if code, _, errs := call(t, "doctor"); code != exitUsage || !strings.Contains(errs, "--database") {
		t.Errorf("without a database: exit code %d\n%s", code, errs)
	}

	eachMigrated(t, func(t *testing.T, url string) {
		flags := book(t, url)
		_, findings := diagnose(t, flags[:4]...)
		if !slices.ContainsFunc(findings, func(f doctor.Finding) bool {
			return f.Check == "writes" && strings.Contains(f.Found, "a commit takes")
		}) {
			t.Errorf("nothing was written: %+v", findings) // how fast is the machine's affair
		}
		expect(t, findings, doctor.OK, "operations")
		expect(t, findings, doctor.OK, "alerts")
		expect(t, findings, doctor.Warn, "clients", "no clients yet")
		if !strings.HasPrefix(url, "postgres") {
			return
		}
		expect(t, findings, doctor.OK, "clock", "database")
		separator := "?"
		if strings.Contains(url, "?") {
			separator = "&"
		}
		_, findings = diagnose(t, "--database", url+separator+"default_transaction_read_only=on", "--master-key", flags[3])
		expect(t, findings, doctor.Fail, "writes", "read-only")
	})
}

// A supplier that signs in with a KSeF token is named long before tokens end; one
// with a certificate is not.
func TestDoctorNamesSuppliersWhoseTokensEnd(t *testing.T) {
	t.Parallel()
	demo := commonDemo(t)
	url := demo.url
	req, err := http.NewRequest(http.MethodPost, url+"/onboarding/v2/companies", strings.NewReader(`{"meta":{"country_code":"PL","language_code":"PL","external_id":"with-a-token"},
		"legal_name":"Sklep Sp. z o.o.","address":{"country_code":"PL","city":"Warszawa","postal_code":"00-001","address_line_1":"ul. Prosta 1"},
		"tax_information":{"tax_number":"PL7010002062"},"tax_credentials":{"password":"20251006-EC-0123456789-ABCDEF0123-4A|nip-7010002062|ab"}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil || answer.StatusCode != http.StatusAccepted {
		t.Fatalf("%v %v", answer, err)
	}
	_ = answer.Body.Close() // only the status counts
	var list struct {
		Data []struct {
			Meta struct {
				ExternalID string `json:"external_id"`
			}
		}
	}
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		get(t, url+"/onboarding/v2/companies?limit=1", &list)
		if len(list.Data) == 1 && list.Data[0].Meta.ExternalID == "with-a-token" {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the company was not onboarded")
		}
	}
	_, findings := diagnose(t, "--data", demo.dir, "--simulators", demo.sims)
	want := doctor.Warn
	if time.Now().After(time.Date(2026, 12, 30, 23, 0, 0, 0, time.UTC)) {
		want = doctor.Fail
	}
	expect(t, findings, want, "supplier login", "with-a-token")
	named := 0
	for _, f := range findings {
		if f.Check == "supplier login" {
			named++
		}
	}
	if named != 1 {
		t.Errorf("%d suppliers are named", named)
	}
}
