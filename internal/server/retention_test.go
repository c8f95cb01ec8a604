package server_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/operator"
	"tributary/internal/retention"
	"tributary/internal/schema"
	"tributary/internal/server"
)

// aged is a program whose rounds of retention are made at another time.
type aged struct {
	*program
	t     *testing.T
	ahead atomic.Int64
}

func startAged(t *testing.T, url string) *aged {
	t.Helper()
	a := &aged{t: t}
	p, err := startAt(true, url, func() time.Time { return time.Now().Add(time.Duration(a.ahead.Load())) })
	if err != nil {
		t.Fatal(err)
	}
	a.program = p
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	// The round of the start is over before the clock is moved: it would take what a test looks for.
	eventually(t, "the first round", func() bool { return p.count(t, "SELECT count(*) FROM retention_rounds") > 0 })
	return a
}

// leap sets the clock of retention, and that of the database.
func (a *aged) leap(when time.Time) {
	a.ahead.Store(int64(time.Until(when)))
	dbtest.Ahead(a.t, a.DB(), int(time.Until(when)/(24*time.Hour)))
}

// at sets the clock of retention as if it had come there day by day: a round
// was made longer ago than a leap is doubted.
func (a *aged) at(when time.Time) {
	a.leap(when)
	err := a.DB().Write(context.Background(), func(tx *db.Tx) error {
		return tx.Exec("INSERT INTO retention_rounds (started_at, ended_at, report) VALUES ($1, $1, '{}') ON CONFLICT DO NOTHING", db.Micros(when.AddDate(0, 0, -8)))
	})
	if err != nil {
		panic(err)
	}
}

// TestAClockThatLeapsDestroysNothing: years that are over by a wrong clock are
// not over. A week later it is believed.
func TestAClockThatLeapsDestroysNothing(t *testing.T) {
	t.Parallel()
	p := startAged(t, dbtest.SQLiteURL(t))
	c := p.as(demoKey)
	operation := c.submit(t, "/v1/transactions", p.sale(t, "leapt-1", nil))
	c.outcome(t, operation)
	eventually(t, "the call on record", func() bool { return p.count(t, "SELECT count(*) FROM exchanges") > 0 })
	p.round(t)
	far := time.Date(time.Now().UTC().Year()+20, time.June, 1, 0, 0, 0, 0, time.UTC)
	for day := range 7 {
		p.leap(far.AddDate(0, 0, day))
		if report := p.round(t); !report.Waits || report.Removed != (retention.Counts{}) {
			t.Errorf("day %d: %+v", day, report)
		}
	}
	if p.count(t, "SELECT count(*) FROM exchanges") == 0 {
		t.Error("the calls are gone by a clock that nobody believes")
	}
	c.want(t, http.StatusOK, "GET", "/v1/transactions/"+operation, nil)
	if n := p.count(t, "SELECT count(*) FROM alerts WHERE name = 'retention_failed' AND subject = 'clock'"); n != 1 {
		t.Errorf("%d alerts", n)
	}
	p.leap(far.AddDate(0, 0, 8))
	if report := p.round(t); report.Waits || report.Removed.Operations != 1 {
		t.Errorf("a week later: %+v", report)
	}
	c.want(t, http.StatusGone, "GET", "/v1/transactions/"+operation, nil)
}

// A copy of the database, beside the store of its original, forgets nothing either, until somebody says that it is the
// real one.
func TestACopyForgetsNothing(t *testing.T) {
	t.Parallel()
	p := startAged(t, dbtest.SQLiteURL(t))
	c := p.as(demoKey)
	operation := c.submit(t, "/v1/transactions", p.sale(t, "copied-1", nil))
	c.outcome(t, operation)
	p.newYear(12)
	must(t, p.DB().Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec("UPDATE document_store SET state = 'contested'")
	}))
	if report := p.round(t); !report.Waits || report.Removed != (retention.Counts{}) {
		t.Errorf("contested: %+v", report)
	}
	if _, err := maintenance(p.program).JudgeDocuments(t.Context(), audit.Actor{Name: "test"},
		server.DocumentsVerdict{Claim: true}); err == nil {
		t.Error("claimed without a reason")
	}
	_, err := maintenance(p.program).JudgeDocuments(t.Context(), audit.Actor{Name: "test"},
		server.DocumentsVerdict{Claim: true, Reason: "the original is gone"})
	must(t, err)
	if report := p.round(t); report.Removed.Operations != 1 {
		t.Errorf("claimed: %+v", report)
	}
}

func (a *aged) days(n int) { a.at(time.Now().AddDate(0, 0, n)) }

// newYear sets it to the beginning of a year from now.
func (a *aged) newYear(years int) {
	a.at(time.Date(time.Now().UTC().Year()+years, time.January, 1, 0, 1, 0, 0, time.UTC))
}

func (a *aged) round(t *testing.T) retention.Report {
	t.Helper()
	report, err := a.Retention().Round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (p *program) count(t *testing.T, query string, args ...any) (n int64) {
	t.Helper()
	if err := p.DB().Read(t.Context(), func(r db.Reader) error { return r.Row(query, args...).Scan(&n) }); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func (p *program) configure(t *testing.T, change func(*account.Config)) {
	t.Helper()
	_, err := p.Accounts().Configure(t.Context(), audit.Actor{Name: "test"}, "demo", func(c *account.Config) error {
		change(c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRecordsAreDestroyedAfterTheirYears: the bytes go, what keeps promises
// stays. The job of a program that starts does it.
func TestRecordsAreDestroyedAfterTheirYears(t *testing.T) {
	t.Parallel()
	eachRole(t, func(t *testing.T, url string) {
		p := startAged(t, url)
		c := p.as(demoKey)
		const name = "Canary Trading of Nowhere"
		body := p.sale(t, "retired-1", object{"customer": object{"legal_name": name, "type": "INDIVIDUAL",
			"address": object{"country_code": "XX"}}})
		operation := c.submit(t, "/v1/transactions", body)
		c.outcome(t, operation)
		refused := c.submit(t, "/v1/transactions", p.sale(t, "retired-2", object{"transaction_number": "R-2-REJECT"}))
		c.outcome(t, refused)
		eventually(t, "the index knows it", func() bool {
			return p.count(t, "SELECT count(*) FROM operation_terms WHERE operation_id = $1", operation) > 0 &&
				p.count(t, "SELECT count(*) FROM attachments WHERE operation_id = $1", operation) == 3
		})
		// Terms of the outcome come a little later than those of the body.
		eventually(t, "the index knows the outcome", func() bool {
			return p.count(t, "SELECT count(*) FROM search_cursors WHERE name = 'settled' AND position <> ''") > 0
		})
		if err := p.DB().Write(t.Context(), func(tx *db.Tx) error { // what the authority said of it by itself
			return tx.Insert("inbox_messages",
				"message_id,endpoint,country,live,name,handle,receipt,raw,received_at,operation_id,taken_at",
				[]any{"m-1", "XX.test", "XX", false, "notice-1", "h", `{"Receipt":{"Number":"` + name + `"}}`, []byte(name), 1,
					operation, 2})
		}); err != nil {
			t.Fatal(err)
		}
		history := string(c.want(t, http.StatusOK, "GET", "/v1/transactions/history/retired-1", nil).body)

		p.newYear(10) // ten full years are not over before the end of the tenth
		if report := p.round(t); report.Removed.Operations != 0 {
			t.Errorf("a year early: %+v", report)
		}
		c.want(t, http.StatusOK, "GET", "/v1/transactions/"+operation, nil)
		p.newYear(11)
		if err := p.restart(); err != nil {
			t.Fatal(err)
		}
		c = p.as(demoKey)
		if err := p.DB().Write(t.Context(), func(tx *db.Tx) error { // the day is over by the database's own clock, too
			tx.Wake("periodic_tasks")
			return tx.Exec("UPDATE periodic_tasks SET due_at = 1 WHERE name = 'retention_round' AND lease_until IS NULL")
		}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the job has made its round", func() bool {
			return p.count(t, "SELECT count(*) FROM retention_rounds WHERE started_at > $1",
				db.Micros(time.Now().Add(time.Duration(p.ahead.Load())-time.Hour))) > 0
		})
		if report := p.round(t); report.Removed.Operations != 0 {
			t.Errorf("again: %+v", report)
		}
		for _, id := range []string{operation, refused} {
			if got := c.want(t, http.StatusGone, "GET", "/v1/transactions/"+id, nil); got.code(t) != "expired" {
				t.Errorf("%s: %s", id, got.body)
			}
		}
		if again := c.submit(t, "/v1/transactions", body); again != operation {
			t.Errorf("the same submit is answered with %s, want %s", again, operation)
		}
		if now := string(c.want(t, http.StatusOK, "GET", "/v1/transactions/history/retired-1", nil).body); now != history {
			t.Errorf("the history was %s, now %s", history, now)
		}
		if list := string(c.want(t, http.StatusOK, "GET", "/v1/transactions?limit=100", nil).body); strings.Contains(list,
			operation) {
			t.Errorf("it is listed:\n%s", list)
		}
		p.nothingLeft(t, operation, name)
		correction := c.submit(t, "/v1/transactions/credit",
			object{"country_code": "XX", "transaction_date": "2026-03-31T10:00:00Z", "transaction_id": "retired-1-credit",
				"reference_transaction_id": "retired-1", "note": "x"})
		if result := c.outcome(t, correction); result["status"] != "FAILURE" ||
			!strings.Contains(fmt.Sprint(result["errors"]), "reference_unknown") {
			t.Errorf("a credit of it: %v", result)
		}
	})
}

// nothingLeft looks into the tables: what may stay has no byte of the document.
func (p *program) nothingLeft(t *testing.T, operation, canary string) {
	t.Helper()
	for _, table := range []string{"bodies", "attachments", "operation_terms", "exchange_operations"} {
		if n := p.count(t, "SELECT count(*) FROM "+table+" WHERE operation_id = $1", operation); n != 0 {
			t.Errorf("%s has %d rows of it", table, n)
		}
	}
	if n := p.count(t, "SELECT count(*) FROM inbox_messages WHERE operation_id = $1 AND length(raw) = 0 AND receipt = '{}' AND name <> ''", operation); n != 1 {
		t.Error("of the authority's message there is more left than its name, or less")
	}
	if n := p.count(t, "SELECT count(*) FROM filings WHERE operation_id = $1 AND length(report) = 0 AND receipt IS NULL AND document IS NULL AND length(sha256) = 64", operation); n != 1 {
		t.Error("of the filing there is more left than its hash, or less")
	}
	if n := p.count(t, "SELECT count(*) FROM operations WHERE operation_id = $1 AND status = 'SUCCESS' AND result IS NULL AND number <> ''", operation); n != 1 {
		t.Error("the operation is gone, or its result is not")
	}
	for _, column := range []string{"operations WHERE result", "filings WHERE filing"} {
		if n := p.count(t, "SELECT count(*) FROM "+column+" LIKE $1", "%"+canary+"%"); n != 0 {
			t.Errorf("%s still has it", column)
		}
	}
	err := p.DB().Read(t.Context(), func(r db.Reader) error {
		list, _, err := p.Operators().Audit(r, operator.AuditFilter{Action: "records.retired", Limit: 10})
		if err == nil && (len(list) != 1 || !strings.Contains(list[0].After, "operations")) {
			t.Errorf("the audit log says %+v", list)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// Whoever was retired does not change in anything else either.
	err = p.DB().Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec("UPDATE operations SET number = 'forged' WHERE operation_id = $1", operation)
	})
	if err == nil {
		t.Error("a retired success can be changed")
	}
}

func TestAHoldAndLongerYearsKeepRecords(t *testing.T) {
	t.Parallel()
	p := startAged(t, "")
	c := p.as(demoKey)
	operation := c.submit(t, "/v1/transactions", p.sale(t, "kept-1", nil))
	supplier := c.outcome(t, operation)["supplier"].(object)["id"].(string)
	eventually(t, "the notification is closed", func() bool {
		return p.count(t, "SELECT count(*) FROM webhook_events WHERE resource_id = $1 AND closed_at IS NOT NULL",
			operation) == 1
	})
	p.newYear(12)
	there := func(why string) {
		t.Helper()
		if report := p.round(t); report.Removed.Operations != 0 {
			t.Fatalf("%s: the record is gone: %+v", why, report)
		}
		c.want(t, http.StatusOK, "GET", "/v1/transactions/"+operation, nil)
		if n := p.count(t, "SELECT count(*) FROM exchanges"); n == 0 {
			t.Fatalf("%s: the calls are gone", why)
		}
	}
	hold := func(hold bool) {
		t.Helper()
		clientID, err := maintenance(p.program).HoldCompany(t.Context(), audit.Actor{Name: "test"}, supplier, hold)
		if err != nil || clientID != "demo" {
			t.Fatalf("the company is of %s: %v", clientID, err)
		}
	}
	p.configure(t, func(c *account.Config) { c.LegalHold = true })
	there("a client on hold")
	if n := p.count(t, "SELECT count(*) FROM webhook_events WHERE resource_id = $1", operation); n != 1 {
		t.Error("a client on hold: the event is gone")
	}
	if report := p.round(t); len(report.Held) != 1 || report.Held[0] != "demo" {
		t.Errorf("the report does not name the client that is held: %+v", report)
	}
	hold(true)
	p.configure(t, func(c *account.Config) { c.LegalHold = false })
	there("a company on hold")
	p.configure(t, func(c *account.Config) { c.Retention.Years = 30 })
	hold(false)
	if report := p.round(t); report.Removed.Operations != 0 {
		t.Fatalf("a client that wants thirty years: %+v", report)
	}
	p.configure(t, func(c *account.Config) { c.Retention.Years = 1 }) // fewer than the law's are as good as none
	p.newYear(5)
	p.round(t)
	c.want(t, http.StatusOK, "GET", "/v1/transactions/"+operation, nil)
	p.newYear(12)
	p.round(t)
	c.want(t, http.StatusGone, "GET", "/v1/transactions/"+operation, nil)
}

// TestWholeDaysOfCallsAreDropped: a node whose role changes no schema drops what
// stands in a partition that is over, makes those of the days to come, and
// leaves alone what is held.
func TestWholeDaysOfCallsAreDropped(t *testing.T) {
	t.Parallel()
	served, _ := dbtest.ServedURL(t)
	p := startAged(t, served)
	c := p.as(demoKey)
	operation := c.submit(t, "/v1/transactions", p.sale(t, "day-1", nil))
	c.outcome(t, operation)
	eventually(t, "the call on record", func() bool {
		return p.count(t, "SELECT count(*) FROM exchange_operations WHERE operation_id = $1", operation) > 0
	})
	left := func() [3]int64 {
		return [3]int64{p.count(t, "SELECT count(*) FROM exchanges"), p.count(t, "SELECT count(*) FROM exchange_operations"),
			p.count(t, "SELECT count(*) FROM pg_class WHERE relname IN ('exchanges_before', 'exchange_operations_before')")}
	}
	all := left()
	p.leap(time.Now().AddDate(0, 0, 125))
	if report := p.round(t); !report.Waits || left() != all {
		t.Errorf("by a clock that leapt: %v of %v: %+v", left(), all, report)
	}
	p.configure(t, func(c *account.Config) { c.LegalHold = true })
	p.days(125) // the first partition takes what is stored within a month, for ninety days
	if p.round(t); left() != all {
		t.Errorf("a client on hold: %v of %v", left(), all)
	}
	if n := p.count(t, "SELECT count(*) FROM pg_class WHERE relname = $1",
		"exchanges_"+time.Now().UTC().AddDate(0, 0, 125+schema.PartitionsAhead).Format("20060102")); n != 1 {
		t.Error("the partition of a day to come is not made")
	}
	p.configure(t, func(c *account.Config) { c.LegalHold = false })
	if report := p.round(t); left() != [3]int64{} || int64(report.Removed.Calls) != all[0] ||
		int64(report.Removed.Links) != all[1] {
		t.Errorf("%v of %v are left: %+v", left(), all, report)
	}
}

// TestDiagnosticsGoAfterTheirDays: calls and tries after the client's days,
// events ninety days after they were closed, at the day and one before it.
func TestDiagnosticsGoAfterTheirDays(t *testing.T) {
	t.Parallel()
	eachRole(t, func(t *testing.T, url string) {
		p := startAged(t, url)
		c := p.as(demoKey)
		p.configure(t, func(c *account.Config) { c.Retention.DiagnosticDays = 30 })
		operation := c.submit(t, "/v1/transactions", p.sale(t, "diagnosed-1", nil))
		c.outcome(t, operation)
		eventually(t, "the try on record", func() bool {
			return p.count(t, "SELECT count(*) FROM webhook_events WHERE resource_id = $1 AND first_try IS NOT NULL AND closed_at IS NOT NULL", operation) == 1
		})
		eventually(t, "the call on record", func() bool {
			return p.count(t, "SELECT count(*) FROM exchange_operations WHERE operation_id = $1", operation) > 0
		})
		var webhookID string
		if err := p.DB().Read(t.Context(), func(r db.Reader) error {
			return r.Row("SELECT webhook_id FROM webhook_events WHERE resource_id = $1", operation).Scan(&webhookID)
		}); err != nil {
			t.Fatal(err)
		}
		left := func() [4]int64 {
			return [4]int64{
				p.count(t, "SELECT count(*) FROM webhook_events WHERE webhook_id = $1 AND first_try IS NOT NULL", webhookID),
				p.count(t, "SELECT count(*) FROM webhook_events WHERE webhook_id = $1", webhookID),
				p.count(t, "SELECT count(*) FROM exchanges"),
				p.count(t, "SELECT count(*) FROM exchange_operations WHERE operation_id = $1", operation),
			}
		}
		all := left()
		p.days(29)
		if p.round(t); left() != all {
			t.Errorf("a day early: %v of %v", left(), all)
		}
		p.days(31)
		if report := p.round(t); left() != [4]int64{0, 1, 0, 0} || report.Removed.Tries == 0 || report.Removed.Calls == 0 ||
			report.Removed.Links == 0 {
			t.Errorf("after thirty days: %v, %+v", left(), report)
		}
		p.days(89)
		if p.round(t); left()[1] != 1 {
			t.Error("the event is gone a day early")
		}
		p.days(91)
		if report := p.round(t); left()[1] != 0 || report.Removed.Events == 0 {
			t.Errorf("the event is there after ninety days: %+v", report)
		}
		c.want(t, http.StatusNotFound, "POST", "/v1/webhooks/events/"+webhookID+"/redeliver", nil)
		c.want(t, http.StatusOK, "GET", "/v1/transactions/"+operation, nil)
	})
}

// TestOneClientsTroubleLeavesNoneUndone: a row that cannot be read stops its
// client alone, and an operator hears of it.
func TestOneClientsTroubleLeavesNoneUndone(t *testing.T) {
	t.Parallel()
	p := startAged(t, "")
	c := p.as(demoKey)
	operation := c.submit(t, "/v1/transactions", p.sale(t, "troubled-1", nil))
	c.outcome(t, operation)
	eventually(t, "the try on record", func() bool {
		return p.count(t, "SELECT count(*) FROM webhook_events WHERE resource_id = $1 AND first_try IS NOT NULL",
			operation) == 1
	})
	// The client that comes first in every list has a try that nobody can read.
	err := p.DB().Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec(`INSERT INTO webhook_events (webhook_id, client_id, event_type, resource_id, resource_path, lane, status, first_try, created_at, closed_at)
			SELECT '0000' || substr(webhook_id, 5), 'aaa', event_type, 'x', resource_path, 'aaa', 'delivered', 'not JSON', created_at, closed_at FROM webhook_events WHERE resource_id = $1`, operation)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.newClient("aaa", account.Rate{}); err != nil {
		t.Fatal(err)
	}
	p.days(100)
	report, err := p.Retention().Round(t.Context())
	if err == nil || len(report.Failed) != 1 || report.Failed[0] != "aaa" {
		t.Errorf("the round says %+v: %v", report, err)
	}
	if report.Removed.Tries == 0 || p.count(t, "SELECT count(*) FROM webhook_events WHERE resource_id = $1", operation) !=
		0 {
		t.Errorf("the other client's is still there: %+v", report)
	}
	if n := p.count(t, "SELECT count(*) FROM alerts WHERE name = 'retention_failed' AND subject = 'aaa'"); n != 1 {
		t.Error("nobody is told")
	}
	err = p.DB().Read(t.Context(), func(r db.Reader) error {
		last, err := retention.Last(r, 9) // the program's own rounds are among them
		if err == nil && !slices.ContainsFunc(last, func(k retention.Report) bool {
			return k.Removed == report.Removed && len(k.Failed) == 1
		}) {
			t.Errorf("kept is %+v, want %+v", last, report)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestARetiredSuccessChangesInNothing walks all columns: whoever adds one to the
// table must add it to the guard that lets a result go.
func TestARetiredSuccessChangesInNothing(t *testing.T) {
	t.Parallel()
	p := startAged(t, "")
	c := p.as(demoKey)
	operation := c.submit(t, "/v1/transactions", p.sale(t, "guarded-1", nil))
	c.outcome(t, operation)
	p.newYear(11)
	p.round(t)
	c.want(t, http.StatusGone, "GET", "/v1/transactions/"+operation, nil)
	var columns []string
	err := p.DB().Read(t.Context(), func(r db.Reader) (err error) {
		columns, err = db.Collect(r, func(scan func(...any) error) (name string, err error) {
			return name, scan(&name)
		}, "SELECT name FROM pragma_table_info('operations')")
		return err
	})
	if err != nil || len(columns) < 26 {
		t.Fatalf("columns %v: %v", columns, err)
	}
	for _, column := range columns {
		err := p.DB().Write(t.Context(), func(tx *db.Tx) error {
			return tx.Exec("UPDATE operations SET "+column+" = '7' WHERE operation_id = $1", operation)
		})
		if err == nil {
			t.Errorf("%s of a retired success can be changed", column)
		}
	}
}

// maintenance is what a person at the command line works with.
func maintenance(p *program) server.Maintenance {
	return server.Maintenance{DB: p.DB(), Accounts: p.Logs().Accounts}
}
