package operator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/operator"
)

// one reads one value of the database.
func one[T any](t testing.TB, d *db.DB, sql string, args ...any) (v T) {
	t.Helper()
	must(t, d.Read(context.Background(), func(r db.Reader) error { return r.Row(sql, args...).Scan(&v) }))
	return v
}

func read(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(raw)
}

func retryAfter(err error) time.Duration {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

func (b *book) page(f operator.AuditFilter) (list []operator.Entry, next int64) {
	b.t.Helper()
	must(b.t, b.d.Read(context.Background(), func(r db.Reader) (err error) {
		list, next, err = b.Audit(r, f)
		return err
	}))
	return list, next
}

func TestTheLogSaysWhoDidWhatBeforeAndAfter(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := open(t, d)
		ana := audit.Actor{Name: "ana", IP: "192.0.2.7"}
		must(t, b.Record(t.Context(), ana, operator.Act{Action: "key.rotated", Subject: "k1", ClientID: "c1",
			Before: map[string]string{"state": "active"}, After: map[string]string{"state": "retiring"}}))
		must(t, b.Do(t.Context(), audit.Actor{Name: "bea"}, operator.Act{Action: "transaction.retried", Subject: "op1"},
			func(context.Context) (any, error) { return "due", nil }))
		refused := errors.New("it has ended")
		if err := b.Do(t.Context(), ana, operator.Act{Action: "transaction.retried", Subject: "op2"},
			func(context.Context) (any, error) { return nil, refused }); !errors.Is(err, refused) {
			t.Errorf("the action's error became %v", err)
		}
		list, next := b.page(operator.AuditFilter{})
		if len(list) != 3 || next != 0 {
			t.Fatalf("%+v", list)
		}
		if e := list[2]; e.Seq != 1 || e.Actor != ana || e.ClientID != "c1" || e.Before != `{"state":"active"}` ||
			e.After != `{"state":"retiring"}` || e.Outcome != "" || e.At.IsZero() {
			t.Errorf("%+v", e)
		}
		if e := list[1]; e.Actor.Name != "bea" || e.After != `"due"` {
			t.Errorf("%+v", e)
		}
		if e := list[0]; e.Outcome != "it has ended" {
			t.Errorf("%+v", e)
		}
		for what, f := range map[string]operator.AuditFilter{
			"actor": {Actor: "bea"}, "subject": {Subject: "op1"}, "client": {ClientID: "c1"}, "action": {Action: "key.rotated"},
			"all of it": {Actor: "ana", Action: "transaction.retried", Subject: "op2", From: d.Now().Add(-time.Hour),
				To: d.Now().Add(time.Hour)},
		} {
			if list, _ := b.page(f); len(list) != 1 {
				t.Errorf("by %s: %+v", what, list)
			}
		}
		if list, _ := b.page(operator.AuditFilter{To: d.Now().Add(-time.Hour)}); len(list) != 0 {
			t.Errorf("an hour ago: %+v", list)
		}
		first, next := b.page(operator.AuditFilter{Limit: 2})
		rest, end := b.page(operator.AuditFilter{Limit: 2, Before: next})
		if len(first) != 2 || len(rest) != 1 || end != 0 || rest[0].Seq != 1 {
			t.Errorf("pages: %d, %d, then %d", len(first), len(rest), end)
		}
		if v := b.verdict(); v.Broken != nil || v.Entries != 3 || v.Head != list[0].Hash() {
			t.Errorf("%+v", v)
		}
	})
}

func TestAnEntryExistsIfAndOnlyIfItsActionDoes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := open(t, d)
		stop := errors.New("stop")
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			if err := b.RecordIn(tx, admin(), operator.Act{Action: "a", Subject: "s"}); err != nil {
				return err
			}
			return stop
		})
		if !errors.Is(err, stop) || len(b.actions()) != 0 {
			t.Errorf("%v left %v", err, b.actions())
		}
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			return errors.Join(b.RecordIn(tx, admin(), operator.Act{Action: "a", Subject: "1"}),
				b.RecordIn(tx, admin(), operator.Act{Action: "a", Subject: "2"}))
		}))
		if v := b.verdict(); v.Broken != nil || v.Entries != 2 {
			t.Errorf("%+v", v)
		}
		kind(t, "an action of nobody", b.Record(t.Context(), audit.Actor{}, operator.Act{Action: "a"}), fault.Internal)
		kind(t, "a page past the limit", d.Read(t.Context(), func(r db.Reader) error {
			_, _, err := b.Audit(r, operator.AuditFilter{Limit: 501})
			return err
		}), fault.Invalid)
	})
}

func TestLongAndHostileTextsAreKeptInBounds(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := open(t, d)
		must(t, b.Record(t.Context(), audit.Actor{Name: "a\x00\xff" + strings.Repeat("é", 400)}, operator.Act{
			Action: "a", Subject: strings.Repeat("s", 1000), Before: strings.Repeat("b", 8<<10-2),
			After: strings.Repeat("a", 8<<10-1)}))
		list, _ := b.page(operator.AuditFilter{})
		e := list[0]
		if len(e.Actor.Name) > 200 || len(e.Subject) > 200 || len(e.Before) != 8<<10 ||
			!strings.HasPrefix(e.After, `{"bytes":8193,`) {
			t.Errorf("kept %d, %d, %d and %s", len(e.Actor.Name), len(e.Subject), len(e.Before), e.After)
		}
		if v := b.verdict(); v.Broken != nil {
			t.Errorf("%+v", v.Broken)
		}
	})
}

func TestTheLogIsAppendOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := open(t, d)
		must(t, b.Record(t.Context(), admin(), operator.Act{Action: "a", Subject: "1"}))
		statements := []string{"UPDATE operator_audit SET actor = 'x'", "DELETE FROM operator_audit"}
		if d.Engine() == "sqlite" {
			statements = append(statements, "INSERT OR REPLACE INTO operator_audit SELECT * FROM operator_audit")
		} else {
			statements = append(statements, "TRUNCATE operator_audit")
		}
		for _, statement := range statements {
			if err := execSQL(t, d, statement); err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
}

// Whoever gets past the triggers is still found out, wherever they strike.
func TestTamperingWithTheLogShows(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	b := open(t, d)
	for _, trigger := range []string{"no_update", "no_delete", "no_replace"} {
		must(t, execSQL(t, d, "DROP TRIGGER operator_audit_"+trigger))
	}
	const entries = 6
	rapid.Check(t, func(rt *rapid.T) {
		must(t, execSQL(t, d, "DELETE FROM operator_audit"))
		must(t, execSQL(t, d, "UPDATE operator_audit_head SET seq = 0, hash = zeroblob(32)"))
		for i := range entries {
			must(t, b.Record(context.Background(), admin(),
				operator.Act{Action: "a", Subject: string(rune('a' + i)), Before: i}))
		}
		if v := b.verdict(); v.Broken != nil {
			rt.Fatalf("a whole log is broken: %+v", v.Broken)
		}
		seq := rapid.IntRange(1, entries).Draw(rt, "seq")
		statement := rapid.SampledFrom([]string{
			"UPDATE operator_audit SET actor = 'somebody else' WHERE seq = $1",
			"UPDATE operator_audit SET at = at + 1 WHERE seq = $1",
			"UPDATE operator_audit SET before = '9' WHERE seq = $1", "UPDATE operator_audit SET outcome = 'no' WHERE seq = $1",
			"UPDATE operator_audit SET actor_ip = actor_ip || '1' WHERE seq = $1",
			"UPDATE operator_audit SET hash = zeroblob(32) WHERE seq = $1",
			"DELETE FROM operator_audit WHERE seq = $1", "DELETE FROM operator_audit WHERE seq >= $1",
			"UPDATE operator_audit SET seq = seq + 100 WHERE seq = $1",
			"UPDATE operator_audit_head SET seq = seq - 1 WHERE $1 > 0",
		}).Draw(rt, "statement")
		must(t, execSQL(t, d, statement, seq))
		if b.verdict().Broken == nil {
			rt.Fatalf("%s with %d does not show", statement, seq)
		}
	})
}

func TestABrokenLogRaisesAnAlert(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	alerts, err := alert.New(d, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	must(t, err)
	b := open(t, d, func(c *operator.Config) { c.Alerts = alerts })
	b.hire("ana", operator.Viewer)
	raised := func() int {
		return one[int](t, d, "SELECT count(*) FROM alerts WHERE name = 'audit_broken' AND subject = 'operators'")
	}
	if v, err := b.CheckAudit(t.Context()); err != nil || v.Broken != nil || raised() != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	must(t, execSQL(t, d, "UPDATE operator_audit_head SET seq = 7"))
	if v, err := b.CheckAudit(t.Context()); err != nil || v.Broken == nil || raised() != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestGuessingRaisesOneAlert(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	alerts, err := alert.New(d, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	must(t, err)
	b := open(t, d, func(c *operator.Config) {
		c.Alerts, c.Limit = alerts, operator.Limit{NameBurst: 1, NameEvery: time.Hour, AddressBurst: 1,
			AddressEvery: time.Hour}
	})
	for range 5 {
		_, _, _ = b.SignIn(t.Context(), attempt("ana", long(20))) // refused
	}
	if times := one[int](t, d,
		"SELECT times FROM alerts WHERE name = 'auth_failures_spike' AND subject = 'console'"); times != 1 {
		t.Errorf("raised %d times", times)
	}
}

// noGuards takes away what the database itself does for the log: its owner can.
func noGuards(t testing.TB, d *db.DB) {
	t.Helper()
	for _, name := range []string{"update", "delete"} {
		sql := "DROP TRIGGER operator_audit_no_" + name
		if d.Engine() == "postgres" {
			sql += " ON operator_audit"
		}
		must(t, execSQL(t, d, sql))
	}
}

func TestALogRewrittenByTheOwnerOfTheDatabaseDoesNotHold(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		key := account.ServiceKeys{DB: d, Master: newMaster(t)}.AuditKey()
		must(t, key.Load(t.Context()))
		b := open(t, d, func(c *operator.Config) { c.Audit = key })
		must(t, b.Record(t.Context(), audit.Actor{Name: "command line"},
			operator.Act{Action: "operator.created", Subject: "ana"}))
		for _, name := range []string{"bea", "cid", "dan"} {
			must(t, b.Record(t.Context(), admin(), operator.Act{Action: "key.revoked", Subject: name}))
		}
		if v := b.verdict(); v.Broken != nil || v.Entries != 4 || v.Unproven != nil {
			t.Fatalf("before: %+v", v)
		}
		noGuards(t, d)
		must(t, execSQL(t, d, "UPDATE operator_audit SET subject = 'nobody' WHERE seq = 1"))
		must(t, d.Write(t.Context(), operator.Rehash))
		if v := open(t, d).verdict(); v.Broken != nil {
			t.Fatalf("without the key it is whole: %+v", v.Broken)
		}
		if v := b.verdict(); v.Broken == nil || v.Broken.Seq != 1 ||
			!strings.Contains(v.Broken.Reason, "a different key") || fmt.Sprint(v.Unproven) != "[entries 1 to 4]" {
			t.Errorf("with the key: %+v", v)
		}
	})
}

// Proofs that are gone are missed, whatever an entry says of its time and its
// actor, and whenever the database says that the key was made.
func TestAnEntryWithoutItsProofIsNeverBelieved(t *testing.T) {
	t.Parallel()
	for what, forged := range map[string]string{
		"of the service":        "UPDATE operator_audit SET mac = NULL WHERE seq = 2",
		"with an old date":      "UPDATE operator_audit SET mac = NULL, at = 1 WHERE seq = 2",
		"without an address":    "UPDATE operator_audit SET mac = NULL, actor_ip = '', actor = 'command line' WHERE seq = 2",
		"before a moved moment": "UPDATE operator_audit SET mac = NULL WHERE seq = 2",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				key := account.ServiceKeys{DB: d, Master: newMaster(t)}
				kept := key.AuditKey()
				must(t, kept.Load(t.Context()))
				b := open(t, d, func(c *operator.Config) { c.Audit = kept })
				for _, name := range []string{"bea", "cid"} {
					must(t, b.Record(t.Context(), admin(), operator.Act{Action: "key.revoked", Subject: name}))
				}
				noGuards(t, d)
				must(t, execSQL(t, d, forged))
				must(t, d.Write(t.Context(), operator.Rehash))
				if what == "before a moved moment" {
					must(t, execSQL(t, d, "UPDATE service_keys SET created_at = 9000000000000000"))
				}
				fresh := key.AuditKey() // as the next process reads it
				must(t, fresh.Load(t.Context()))
				v := open(t, d, func(c *operator.Config) { c.Audit = fresh }).verdict()
				if v.Broken == nil || v.Broken.Seq != 2 || !strings.Contains(v.Broken.Reason, "with the audit key") ||
					fmt.Sprint(v.Unproven) != "[entry 2]" {
					t.Errorf("%+v", v)
				}
			})
		})
	}
}
