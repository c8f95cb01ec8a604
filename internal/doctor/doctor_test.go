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

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/doctor"
	"tributary/internal/leaks"
	"tributary/internal/schema"
	"tributary/internal/secret"
	"tributary/internal/server"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// configured is a configuration on a database that has its schema, with a master key.
func configured(t *testing.T, url string) server.Config {
	t.Helper()
	key := filepath.Join(t.TempDir(), "master.key")
	if err := secret.CreateMasterFile(key); err != nil {
		t.Fatal(err)
	}
	return server.Config{API: true, Worker: true, Listen: "127.0.0.1:0", Database: url, MasterKey: "file:" + key,
		Data: t.TempDir()}
}

// sqlite is the address of a SQLite file that has its schema.
func sqlite(t *testing.T) string {
	t.Helper()
	url := dbtest.SQLiteURL(t)
	dbtest.Open(t, db.Config{URL: url})
	return url
}

func examineAll(t *testing.T, o doctor.Options) []doctor.Finding {
	t.Helper()
	o.Timeout = 2 * time.Minute
	all, err := doctor.Examine(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// examine returns the findings of one check whose subject is given.
func examine(t *testing.T, o doctor.Options, check, subject string) []doctor.Finding {
	t.Helper()
	return of(t, examineAll(t, o), check, subject)
}

// of picks the findings of one check whose subject is given.
func of(t *testing.T, all []doctor.Finding, check, subject string) (found []doctor.Finding) {
	t.Helper()
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
	t.Parallel()
	for engine, address := range map[string]func(*testing.T) string{"sqlite": sqlite,
		"postgres": func(t *testing.T) string {
			return dbtest.MigratedURL(t)
		}} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			url := address(t)
			cfg := configured(t, url)
			all := examineAll(t, doctor.Options{Config: cfg})
			for _, f := range of(t, all, "schema", engine) {
				if f.Verdict != doctor.OK {
					t.Errorf("%+v", f)
				}
			}
			// How fast this machine commits is not judged here: TestDoctorsLimits has the verdicts.
			for _, f := range of(t, all, "writes", engine) {
				if !strings.HasPrefix(f.Found, "a commit takes ") {
					t.Errorf("%+v", f)
				}
			}
			leavesNothing(t, url)
			if engine == "postgres" {
				judgeRooms(t, all, doctor.OK) // the first one lasts for a month
				return
			}
			for _, f := range of(t, all, "durability", engine) {
				if f.Verdict != doctor.OK {
					t.Errorf("%+v", f)
				}
			}
			for _, f := range all {
				if f.Check == "partitions" {
					t.Errorf("a SQLite file: %+v", f)
				}
			}
		})
	}
}

// leavesNothing checks that no probe is left in a database.
func leavesNothing(t *testing.T, url string) {
	t.Helper()
	var probes int
	d := guest(t, url)
	err := d.Read(t.Context(), func(r db.Reader) error { return r.Row("SELECT count(*) FROM service_keys").Scan(&probes) })
	if err != nil || probes != 0 {
		t.Errorf("the examination left %d rows behind: %v", probes, err)
	}
}

// guest opens a database beside whoever else does.
func guest(t *testing.T, url string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), db.Config{URL: url, NoWorkers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// The server of the tests does not sync, which no server should do that keeps
// something; its database acknowledges early; and our clock is wrong by more than
// authorities take.
func TestServerThatLosesWritesOrHasAnotherTimeIsFound(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedURL(t)
	if err := guest(t, url).Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$")
	}); err != nil {
		t.Fatal(err)
	}
	ahead := func() time.Time { return time.Now().Add(2 * time.Minute) }
	all := examineAll(t, doctor.Options{Config: configured(t, url), Now: ahead})
	for _, c := range []struct {
		check, subject string
		verdict        doctor.Verdict
		fix            string
	}{
		{"durability", "fsync", doctor.Fail, "fsync = on"},
		{"durability", "synchronous_commit", doctor.Warn, "synchronous_commit = on"},
		{"clock", "database", doctor.Fail, "time synchronisation"},
	} {
		for _, f := range of(t, all, c.check, c.subject) {
			if f.Verdict != c.verdict || !strings.Contains(f.Fix, c.fix) {
				t.Errorf("%+v", f)
			}
		}
	}
}

// judgeRooms checks the verdict on every table that has partitions.
func judgeRooms(t *testing.T, all []doctor.Finding, want doctor.Verdict) {
	t.Helper()
	for _, table := range []string{"exchanges", "exchange_operations", "webhook_events", "webhook_tries"} {
		for _, f := range of(t, all, "partitions", table) {
			if f.Verdict != want || (f.Fix == "") != (want == doctor.OK) {
				t.Errorf("%+v", f)
			}
		}
	}
}

// Partitions that nobody makes are told of before the last is full.
func TestPartitionsThatAreNotMadeAheadAreFound(t *testing.T) {
	t.Parallel()
	d := guest(t, dbtest.MigratedURL(t))
	in := func(days int, want doctor.Verdict) {
		t.Helper()
		t.Logf("in %d days", days)
		judgeRooms(t, doctor.Partitions(t.Context(), d, time.Now().AddDate(0, 0, days)), want)
	}
	in(0, doctor.OK)
	in(26, doctor.Warn)
	in(60, doctor.Warn)
	if _, err := schema.MakePartitions(t.Context(), d, time.Now().AddDate(0, 0, 26)); err != nil {
		t.Fatal(err)
	}
	in(26, doctor.OK)
	in(29, doctor.Warn)
}

func TestFailedCountsWhatIsBrokenOnly(t *testing.T) {
	t.Parallel()
	all := []doctor.Finding{{Verdict: doctor.OK}, {Verdict: doctor.Warn}, {Verdict: doctor.Fail}, {Verdict: doctor.Fail}}
	if n := doctor.Failed(all); n != 2 {
		t.Errorf("%d", n)
	}
	var text strings.Builder
	if err := doctor.Print(&text, []doctor.Finding{{"c", "s\x1b[2J", doctor.Warn, "found\nmore", "fix"}}); err != nil ||
		strings.Contains(text.String(), "\x1b") || !strings.Contains(text.String(), "→ fix") {
		t.Errorf("%q %v", text.String(), err)
	}
}

func TestDoctorsLimits(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	const hidden = "hunter2-canary"
	for _, arguments := range [][]string{
		{"doctor", "--admin-token", hidden}, {"doctor", "--admin-token=" + hidden},
		{"doctor", "--oidc-client-secret", hidden}, {"doctor", "--api-key=" + hidden},
		{"doctor", "--database", "postgres://tributary:" + hidden + "@db/tributary"},
		{"doctor", "--database=postgres://tributary@a,b/tributary?password=" + hidden},
		{"doctor", "--database", "postgres://tributary:" + hidden + "@a:5432,b:5432/tributary"},
		{"doctor", "--webhook-proxy", "http://u:" + hidden + "@proxy:3128"},
	} {
		flag, _, _ := strings.Cut(arguments[1], "=")
		for _, f := range of(t, doctor.Secrets(arguments, nil), "secrets", flag) {
			if f.Verdict != doctor.Warn || !strings.Contains(f.Fix, "file") || strings.Contains(f.Found+f.Fix+f.Subject,
				hidden) {
				t.Errorf("%v: %+v", arguments, f)
			}
		}
	}
	for _, arguments := range [][]string{nil, {"doctor", "--admin-token-file", "x"},
		{"doctor", "--database", "postgres://tributary@db/tributary"}, {"doctor", "--database", "sqlite:/x@y.db"}} {
		for _, f := range of(t, doctor.Secrets(arguments, nil), "secrets", "") {
			if f.Verdict != doctor.OK {
				t.Errorf("%v: %+v", arguments, f)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "token")
	files := map[string]string{"--admin-token-file": file}
	for mode, want := range map[os.FileMode]doctor.Verdict{0o600: doctor.OK, 0o640: doctor.Warn, 0o604: doctor.Warn} {
		if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
		for _, f := range of(t, doctor.Secrets(nil, files), "secrets", "--admin-token-file") {
			if f.Verdict != want {
				t.Errorf("mode %04o: %+v", mode, f)
			}
		}
	}
	// And in a whole examination.
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	all := examineAll(t, doctor.Options{Config: configured(t, sqlite(t)),
		Arguments: []string{"doctor", "--admin-token", hidden}, Files: files})
	for _, subject := range []string{"--admin-token", "--admin-token-file"} {
		for _, f := range of(t, all, "secrets", subject) {
			if f.Verdict != doctor.Warn || strings.Contains(f.Found+f.Fix, hidden) {
				t.Errorf("%+v", f)
			}
		}
	}
}

func TestAnIdentityProviderThatIsAwayIsAWarning(t *testing.T) {
	t.Parallel()
	cfg := configured(t, sqlite(t))
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
	t.Parallel()
	cfg := configured(t, sqlite(t))
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
