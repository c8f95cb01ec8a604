package operator_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/leaks"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

func TestMain(m *testing.M) {
	leaks.Main(m)
}

// cheap keeps tests from spending their time on hashes.
func cheap() operator.Cost { return operator.Cost{MemoryKiB: 64, Passes: 1, Lanes: 1} }

func admin() audit.Actor { return audit.Actor{Name: "command line", IP: "192.0.2.1"} }

// book is the operators of one process, with its log.
type book struct {
	*operator.Operators
	t   testing.TB
	d   *db.DB
	log *dbtest.Journal

	enrolment string // the code that the last one was made with
}

func open(t testing.TB, d *db.DB, change ...func(*operator.Config)) *book {
	t.Helper()
	b := &book{t: t, d: d, log: &dbtest.Journal{}}
	c := operator.Config{DB: d, Log: slog.New(slog.NewTextHandler(b.log, nil)), Cost: cheap()}
	for _, fn := range change {
		fn(&c)
	}
	b.Operators = operator.New(c)
	return b
}

// hire makes an operator and returns the password.
func (b *book) hire(name string, role operator.Role) secret.Secret {
	b.t.Helper()
	_, password, err := b.Create(context.Background(), admin(), operator.NewOperator{Name: name, Role: role})
	must(b.t, err)
	return password
}

func attempt(name string, password secret.Secret) operator.Attempt {
	return operator.Attempt{Name: name, Password: password, IP: "192.0.2.9", Agent: "browser"}
}

// enter signs in and returns the token.
func (b *book) enter(name string, password secret.Secret) (string, operator.Session) {
	b.t.Helper()
	token, s, err := b.SignIn(context.Background(), attempt(name, password))
	must(b.t, err)
	return token.RevealText(), s
}

// inside reports whether a token speaks for somebody.
func (b *book) inside(token string) bool {
	b.t.Helper()
	_, err := b.Session(context.Background(), token)
	if err != nil && fault.KindOf(err) != fault.Unauthenticated {
		b.t.Fatal(err)
	}
	return err == nil
}

// log of actions, oldest first.
func (b *book) actions() (list []string) {
	b.t.Helper()
	must(b.t, b.d.Read(context.Background(), func(r db.Reader) error {
		entries, _, err := b.Audit(r, operator.AuditFilter{Limit: 500})
		for i := len(entries) - 1; i >= 0; i-- {
			list = append(list, entries[i].Action+" "+entries[i].Subject)
		}
		return err
	}))
	return list
}

func (b *book) verdict() (v audit.Verdict) {
	b.t.Helper()
	must(b.t, b.d.Read(context.Background(), func(r db.Reader) (err error) {
		v, err = b.VerifyAudit(r)
		return err
	}))
	return v
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kind(t testing.TB, what string, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != want {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
}

func execSQL(t testing.TB, d *db.DB, sql string, args ...any) error {
	t.Helper()
	return d.Write(context.Background(), func(tx *db.Tx) error { return tx.Exec(sql, args...) })
}

func long(n int) secret.Secret {
	return secret.FromText(strings.Repeat("violet anchor thimble ", 50)[:n])
}
