package main

import (
	"context"
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
	"tributary/internal/db/dbtest"
	"tributary/internal/secret"
)

// diagnose runs the doctor and returns its findings.
func diagnose(t *testing.T, args ...string) (code int, findings []finding) {
	t.Helper()
	code, out, errs := call(t, append(append([]string{"doctor"}, args...), "--json", "--timeout", "5s", "--log-level", "error")...)
	var report struct{ Findings []finding }
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	worst := 0
	for _, f := range report.Findings {
		if f.Verdict == broken {
			worst = exitFailed
		}
		if f.Verdict != allRight && f.Fix == "" && !strings.Contains(f.Found, "more") {
			t.Errorf("no fix for %+v", f)
		}
	}
	if code != worst {
		t.Errorf("exit code %d with %+v", code, report.Findings)
	}
	return code, report.Findings
}

// verdictOf is the worst verdict of a check's lines in which all texts occur, or "".
func verdictOf(findings []finding, check string, texts ...string) severity {
	worst := severity("")
	for _, f := range findings {
		whole := f.Subject + " " + f.Found + " " + f.Fix
		if f.Check != check || slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(whole, text) }) {
			continue
		}
		if worst == "" || f.Verdict == broken || f.Verdict == doubtful && worst == allRight {
			worst = f.Verdict
		}
	}
	return worst
}

func expect(t *testing.T, findings []finding, want severity, check string, texts ...string) {
	t.Helper()
	if got := verdictOf(findings, check, texts...); got != want {
		t.Errorf("%s %v is %q, want %q in\n%+v", check, texts, got, want, findings)
	}
}

func TestDoctorFindsARunningDeploymentWell(t *testing.T) {
	dir := t.TempDir()
	args := demoArgs(t, dir)
	start(t, args...).waitReady()
	code, findings := diagnose(t, "--data", dir, "--simulators", "http://"+flagOf(args, "--simulators"))
	if code != 0 {
		t.Errorf("exit code %d: %+v", code, findings)
	}
	for _, check := range []string{"schema", "master key", "signing keys", "suppliers", "alerts", "operations", "documents", "authority"} {
		expect(t, findings, allRight, check)
	}
	expect(t, findings, allRight, "clock", "authority simulators")
	expect(t, findings, doubtful, "webhooks", "no webhook address")
	code, out, _ := call(t, "doctor", "--data", dir, "--simulators", "http://"+flagOf(args, "--simulators"), "--log-level", "error")
	if code != 0 || !strings.Contains(out, "ok    schema") || !strings.Contains(out, "→ tributary client configure") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestDoctorNamesWhatIsBrokenBesideTheDatabase breaks one thing after the other
// in a deployment that is otherwise in order.
func TestDoctorNamesWhatIsBrokenBesideTheDatabase(t *testing.T) {
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
	first.kill()
	age(t, "sqlite:"+filepath.Join(dir, "tributary.db"))

	expired := certificate(t, "api.example.com", time.Now().Add(-time.Hour))
	soon := certificate(t, "api.example.com", time.Now().Add(10*24*time.Hour))
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
	}))
	defer late.Close()
	other, public := masterFile(t, 0o400), masterFile(t, 0o644)
	noFolder := write(t, filepath.Join(t.TempDir(), "file"), "not a folder")

	_, findings := diagnose(t, "--data", dir)
	expect(t, findings, broken, "webhooks", "refused")                                  // loopback and plain http
	expect(t, findings, doubtful, "alerts", "webhook_breaker_open", "planted")          // raised by age
	expect(t, findings, broken, "operations", "nobody takes them", "--role worker")     // the program is dead
	expect(t, findings, broken, "operations", "have not ended", "72h")                  // and it is old
	expect(t, findings, doubtful, "authority", "XX.test", "--simulators")               // enabled, no address
	expect(t, findings, doubtful, "authority", "no address is configured", "documents") // none at all
	expect(t, findings, allRight, "schema")

	for name, c := range map[string]struct {
		args  []string
		check string
		texts []string
		want  severity
	}{
		"other master key":      {[]string{"--master-key", "file:" + other}, "signing keys", []string{"--master-key"}, broken},
		"other key, suppliers":  {[]string{"--master-key", "file:" + other}, "tax credentials", []string{"--master-key"}, broken},
		"no master key":         {[]string{"--master-key", "file:/nowhere/master.key"}, "master key", []string{"no such file"}, broken},
		"public master key":     {[]string{"--master-key", "file:" + public}, "master key", []string{"0644", "chmod 0400"}, broken},
		"documents in a file":   {[]string{"--documents", "file://" + noFolder}, "documents", nil, broken},
		"documents missing":     {[]string{"--documents", "file:///nowhere/documents"}, "documents", []string{"no such file"}, doubtful},
		"documents elsewhere":   {[]string{"--documents", "gopher://x"}, "documents", []string{"gopher"}, broken},
		"no authority":          {[]string{"--authority", "XX.test=http://127.0.0.1:1"}, "authority", []string{"XX.test", "refused"}, broken},
		"untrusted authority":   {[]string{"--authority", "XX.test=" + hook.URL}, "authority", []string{"XX.test", "certificate"}, broken},
		"unknown authority":     {[]string{"--authority", "QQ.test=https://x.example"}, "configuration", []string{"QQ"}, broken},
		"authority's clock":     {[]string{"--authority", "XX.test=" + late.URL}, "clock", []string{"authority XX.test", "time synchronisation"}, broken},
		"expired certificate":   {append(expired, "--public-url", "https://api.example.com"), "own certificate", []string{"ended on"}, broken},
		"certificate ends soon": {append(soon, "--public-url", "https://api.example.com"), "own certificate", []string{"ends in 9 days"}, doubtful},
		"other host":            {append(soon, "--public-url", "https://other.example.com"), "own certificate", []string{"other.example.com"}, broken},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := diagnose(t, append([]string{"--data", dir}, c.args...)...)
			expect(t, findings, c.want, c.check, c.texts...)
		})
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
	d, err := db.Open(t.Context(), db.Config{URL: url, Guest: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close() //nolint:errcheck // a test's
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
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: end.Add(-24 * time.Hour), NotAfter: end},
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
	empty := t.TempDir()
	_, findings := diagnose(t, "--database", "sqlite:"+filepath.Join(empty, "none.db"))
	expect(t, findings, broken, "database", "does not exist", "tributary migrate")
	if left, _ := os.ReadDir(empty); len(left) > 0 {
		t.Errorf("the doctor made %v", left)
	}
	_, findings = diagnose(t, "--database", "sqlite:/nowhere/none.db")
	expect(t, findings, broken, "data", "/nowhere")
	_, findings = diagnose(t, "--database", "postgres://nobody@127.0.0.1:1/none?sslmode=disable")
	expect(t, findings, broken, "database", "start the database")
	old := write(t, filepath.Join(t.TempDir(), "old.db"), "")
	_, findings = diagnose(t, "--database", "sqlite:"+old)
	expect(t, findings, broken, "schema", "tributary migrate")
	if code, _, errs := call(t, "doctor"); code != exitUsage || !strings.Contains(errs, "--database") {
		t.Errorf("without a database: exit code %d\n%s", code, errs)
	}

	dbtest.EachURL(t, func(t *testing.T, url string) {
		flags := book(t, url)
		_, findings := diagnose(t, flags[:4]...)
		expect(t, findings, allRight, "writes")
		expect(t, findings, allRight, "operations")
		expect(t, findings, allRight, "alerts")
		expect(t, findings, doubtful, "clients", "no client yet")
		if !strings.HasPrefix(url, "postgres") {
			return
		}
		expect(t, findings, allRight, "clock", "database")
		separator := "?"
		if strings.Contains(url, "?") {
			separator = "&"
		}
		_, findings = diagnose(t, "--database", url+separator+"default_transaction_read_only=on", "--master-key", flags[3])
		expect(t, findings, broken, "writes", "read-only")

		d, err := db.Open(t.Context(), db.Config{URL: url, Guest: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close() //nolint:errcheck // a test's
		patient := &doctor{db: d, now: func() time.Time { return time.Now().Add(2 * time.Minute) }}
		patient.checkDatabaseClock(context.Background())
		expect(t, patient.findings, broken, "clock", "database", "time synchronisation")
	})
}

func TestDoctorsLimits(t *testing.T) {
	now := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	d := &doctor{now: func() time.Time { return now }}
	worst := func(say func()) severity {
		d.findings = nil
		if say(); len(d.findings) == 0 {
			return allRight
		}
		return d.findings[0].Verdict
	}
	for _, c := range []struct {
		got, want severity
		what      string
	}{
		{worst(func() { d.sayDisk("/", freeDoubtful) }), allRight, "disk at the first limit"},
		{worst(func() { d.sayDisk("/", freeDoubtful-1) }), doubtful, "disk past it"},
		{worst(func() { d.sayDisk("/", freeBroken) }), doubtful, "disk at the second limit"},
		{worst(func() { d.sayDisk("/", freeBroken-1) }), broken, "disk past it"},
		{worst(func() { d.sayClock("x", skewDoubtful) }), allRight, "clock at the first limit"},
		{worst(func() { d.sayClock("x", -skewDoubtful-1) }), doubtful, "clock past it"},
		{worst(func() { d.sayClock("x", -skewBroken) }), doubtful, "clock at the second limit"},
		{worst(func() { d.sayClock("x", skewBroken+1) }), broken, "clock past it"},
		{worst(func() { d.sayEnd("c", "s", now.Add(endDoubtful+1), "f") }), allRight, "certificate before the first limit"},
		{worst(func() { d.sayEnd("c", "s", now.Add(endDoubtful), "f") }), doubtful, "certificate at it"},
		{worst(func() { d.sayEnd("c", "s", now.Add(endBroken+1), "f") }), doubtful, "certificate before the second limit"},
		{worst(func() { d.sayEnd("c", "s", now.Add(endBroken), "f") }), broken, "certificate at it"},
		{worst(func() { d.sayEnd("c", "s", now, "f") }), broken, "certificate at its end"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.what, c.got, c.want)
		}
	}
}
