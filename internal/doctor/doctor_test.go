package doctor_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/doctor"
	"tributary/internal/secret"
	"tributary/internal/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// migrated is a configuration on a fresh database with its schema and a master key.
func migrated(t *testing.T, url string) server.Config {
	t.Helper()
	d, err := db.Open(t.Context(), db.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "master.key")
	if err := secret.CreateMasterFile(key); err != nil {
		t.Fatal(err)
	}
	return server.Config{API: true, Worker: true, Listen: "127.0.0.1:0", Database: url, MasterKey: "file:" + key, Data: t.TempDir()}
}

func examineAll(t *testing.T, o doctor.Options) []doctor.Finding {
	t.Helper()
	o.Timeout = 10 * time.Second
	all, err := doctor.Examine(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// examine returns the findings of one check whose subject is given.
func examine(t *testing.T, o doctor.Options, check, subject string) (found []doctor.Finding) {
	t.Helper()
	all := examineAll(t, o)
	for _, f := range all {
		if f.Check == check && f.Subject == subject {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		t.Errorf("%s %s is not among %+v", check, subject, all)
	}
	return found
}

func TestExaminationChangesNothingAndNamesTheVerdicts(t *testing.T) {
	dbtest.EachURL(t, func(t *testing.T, url string) {
		cfg := migrated(t, url)
		engine := "sqlite"
		if strings.HasPrefix(url, "postgres") {
			engine = "postgres"
		}
		for _, f := range examine(t, doctor.Options{Config: cfg}, "schema", engine) {
			if f.Verdict != doctor.OK {
				t.Errorf("%+v", f)
			}
		}
		for tries := 10; ; tries-- { // a machine may be slow for a while; it is not for ever
			f := examine(t, doctor.Options{Config: cfg}, "writes", engine)[0]
			if f.Verdict == doctor.OK {
				break
			}
			if tries == 0 {
				t.Fatalf("%+v", f)
			}
		}
		var probes int
		d, err := db.Open(t.Context(), db.Config{URL: url, Guest: true})
		if err != nil {
			t.Fatal(err)
		}
		err = d.Read(t.Context(), func(r db.Reader) error { return r.Row("SELECT count(*) FROM service_keys").Scan(&probes) })
		if err != nil || probes != 0 {
			t.Errorf("the examination left %d rows behind: %v", probes, err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if engine != "postgres" {
			return
		}
		// Our clock is wrong by more than authorities take.
		ahead := func() time.Time { return time.Now().Add(2 * time.Minute) }
		for _, f := range examine(t, doctor.Options{Config: cfg, Now: ahead}, "clock", "database") {
			if f.Verdict != doctor.Fail || !strings.Contains(f.Fix, "time synchronisation") {
				t.Errorf("%+v", f)
			}
		}
	})
}

// The server of the tests does not sync, which no server should do that keeps something.
func TestServerThatDoesNotSyncIsFound(t *testing.T) {
	for _, f := range examine(t, doctor.Options{Config: migrated(t, dbtest.PostgresURL(t))}, "durability", "fsync") {
		if f.Verdict != doctor.Fail || !strings.Contains(f.Fix, "fsync = on") {
			t.Errorf("%+v", f)
		}
	}
	for _, f := range examine(t, doctor.Options{Config: migrated(t, dbtest.SQLiteURL(t))}, "durability", "sqlite") {
		if f.Verdict != doctor.OK {
			t.Errorf("%+v", f)
		}
	}
	s, err := dbtest.StartServer(os.TempDir(), "synchronous_commit=off")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop() }() // a test's own server
	for _, f := range examine(t, doctor.Options{Config: migrated(t, s.URL())}, "durability", "synchronous_commit") {
		if f.Verdict != doctor.Warn || !strings.Contains(f.Fix, "synchronous_commit = on") {
			t.Errorf("%+v", f)
		}
	}
}

// Partitions that nobody makes are told of before the last is full.
func TestPartitionsThatAreNotMadeAheadAreFound(t *testing.T) {
	url := dbtest.PostgresURL(t)
	cfg := migrated(t, url)
	verdict := func(days int, want doctor.Verdict) {
		t.Helper()
		now := func() time.Time { return time.Now().AddDate(0, 0, days) }
		for _, table := range []string{"exchanges", "exchange_operations", "webhook_events", "webhook_tries"} {
			for _, f := range examine(t, doctor.Options{Config: cfg, Now: now}, "partitions", table) {
				if f.Verdict != want || (f.Fix == "") != (want == doctor.OK) {
					t.Errorf("in %d days: %+v", days, f)
				}
			}
		}
	}
	verdict(0, doctor.OK) // the first one lasts for a month
	verdict(26, doctor.Warn)
	verdict(60, doctor.Warn)
	d, err := db.Open(t.Context(), db.Config{URL: url, Guest: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }() // tested elsewhere
	if _, err := d.MakePartitions(t.Context(), time.Now().AddDate(0, 0, 26)); err != nil {
		t.Fatal(err)
	}
	verdict(26, doctor.OK)
	verdict(29, doctor.Warn)
	for _, f := range examineAll(t, doctor.Options{Config: migrated(t, dbtest.SQLiteURL(t))}) {
		if f.Check == "partitions" {
			t.Errorf("a SQLite file: %+v", f)
		}
	}
}

func TestFailedCountsWhatIsBrokenOnly(t *testing.T) {
	all := []doctor.Finding{{Verdict: doctor.OK}, {Verdict: doctor.Warn}, {Verdict: doctor.Fail}, {Verdict: doctor.Fail}}
	if n := doctor.Failed(all); n != 2 {
		t.Errorf("%d", n)
	}
	var text strings.Builder
	if err := doctor.Print(&text, []doctor.Finding{{"c", "s\x1b[2J", doctor.Warn, "found\nmore", "fix"}}); err != nil || strings.Contains(text.String(), "\x1b") || !strings.Contains(text.String(), "→ fix") {
		t.Errorf("%q %v", text.String(), err)
	}
}

func TestDoctorsLimits(t *testing.T) {
	now := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	at := func() time.Time { return now }
	for _, c := range []struct {
		got, want doctor.Verdict
		what      string
	}{
		{doctor.OfCommits(doctor.CommitSlow, 1, doctor.CommitSlow), doctor.OK, "commits at the first limit"},
		{doctor.OfCommits(doctor.CommitSlow+1, 1, doctor.CommitSlow+1), doctor.Warn, "commits past it"},
		{doctor.OfCommits(doctor.CommitBroken, 1, doctor.CommitBroken), doctor.Warn, "commits at the second limit"},
		{doctor.OfCommits(doctor.CommitBroken+1, 1, doctor.CommitBroken+1), doctor.Fail, "commits past it"},
		{doctor.OfCommits(2*doctor.CommitBroken, 1, 1), doctor.OK, "one commit that met a stall"},
		{doctor.OfDisk(doctor.FreeDoubtful), doctor.OK, "disk at the first limit"},
		{doctor.OfDisk(doctor.FreeDoubtful - 1), doctor.Warn, "disk past it"},
		{doctor.OfDisk(doctor.FreeBroken), doctor.Warn, "disk at the second limit"},
		{doctor.OfDisk(doctor.FreeBroken - 1), doctor.Fail, "disk past it"},
		{doctor.OfClock(doctor.SkewDoubtful), doctor.OK, "clock at the first limit"},
		{doctor.OfClock(-doctor.SkewDoubtful - 1), doctor.Warn, "clock past it"},
		{doctor.OfClock(-doctor.SkewBroken), doctor.Warn, "clock at the second limit"},
		{doctor.OfClock(doctor.SkewBroken + 1), doctor.Fail, "clock past it"},
		{doctor.OfEnd(at, now.Add(doctor.EndDoubtful+1)), doctor.OK, "certificate before the first limit"},
		{doctor.OfEnd(at, now.Add(doctor.EndDoubtful)), doctor.Warn, "certificate at it"},
		{doctor.OfEnd(at, now.Add(doctor.EndBroken+1)), doctor.Warn, "certificate before the second limit"},
		{doctor.OfEnd(at, now.Add(doctor.EndBroken)), doctor.Fail, "certificate at it"},
		{doctor.OfEnd(at, now), doctor.Fail, "certificate at its end"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.what, c.got, c.want)
		}
	}
}

func TestSecretsAmongTheArgumentsAreNamedAndNotRepeated(t *testing.T) {
	cfg := migrated(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db"))
	const hidden = "hunter2-canary"
	for _, arguments := range [][]string{
		{"doctor", "--admin-token", hidden}, {"doctor", "--admin-token=" + hidden}, {"doctor", "--oidc-client-secret", hidden}, {"doctor", "--api-key=" + hidden},
		{"doctor", "--database", "postgres://tributary:" + hidden + "@db/tributary"}, {"doctor", "--database=postgres://tributary@a,b/tributary?password=" + hidden},
		{"doctor", "--database", "postgres://tributary:" + hidden + "@a:5432,b:5432/tributary"}, {"doctor", "--webhook-proxy", "http://u:" + hidden + "@proxy:3128"},
	} {
		flag, _, _ := strings.Cut(arguments[1], "=")
		for _, f := range examine(t, doctor.Options{Config: cfg, Arguments: arguments}, "secrets", flag) {
			if f.Verdict != doctor.Warn || !strings.Contains(f.Fix, "file") || strings.Contains(f.Found+f.Fix+f.Subject, hidden) {
				t.Errorf("%v: %+v", arguments, f)
			}
		}
	}
	for _, arguments := range [][]string{nil, {"doctor", "--admin-token-file", "x"}, {"doctor", "--database", "postgres://tributary@db/tributary"}, {"doctor", "--database", "sqlite:/x@y.db"}} {
		for _, f := range examine(t, doctor.Options{Config: cfg, Arguments: arguments}, "secrets", "") {
			if f.Verdict != doctor.OK {
				t.Errorf("%v: %+v", arguments, f)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "token")
	for mode, want := range map[os.FileMode]doctor.Verdict{0o600: doctor.OK, 0o640: doctor.Warn, 0o604: doctor.Warn} {
		if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
		for _, f := range examine(t, doctor.Options{Config: cfg, Files: map[string]string{"--admin-token-file": file}}, "secrets", "--admin-token-file") {
			if f.Verdict != want {
				t.Errorf("mode %04o: %+v", mode, f)
			}
		}
	}
}

func TestAnIdentityProviderThatIsAwayIsAWarning(t *testing.T) {
	cfg := migrated(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db"))
	cfg.Admin = "127.0.0.1:0"
	var provider *httptest.Server
	provider = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"x","token_endpoint":"x","jwks_uri":"x"}`, provider.URL)
	}))
	cfg.OIDC = server.OIDC{Issuer: provider.URL, ClientID: "tributary"}
	for _, want := range []doctor.Verdict{doctor.OK, doctor.Warn} {
		for _, f := range examine(t, doctor.Options{Config: cfg}, "identity provider", provider.URL) {
			if f.Verdict != want || want == doctor.Warn && f.Fix == "" {
				t.Errorf("%+v, want %s", f, want)
			}
		}
		provider.Close()
	}
}

func TestScriptsWithoutAFontAreNamed(t *testing.T) {
	cfg := migrated(t, "sqlite:"+filepath.Join(t.TempDir(), "tributary.db"))
	for _, f := range examine(t, doctor.Options{Config: cfg}, "fonts", "") {
		if f.Verdict == doctor.Fail {
			t.Errorf("%+v", f)
		}
	}
	cfg.Fonts = []string{t.TempDir()}
	if err := os.Chmod(cfg.Fonts[0], 0); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		for _, f := range examine(t, doctor.Options{Config: cfg}, "fonts", "") {
			if f.Verdict != doctor.Fail {
				t.Errorf("a folder that cannot be read: %+v", f)
			}
		}
	}
}
