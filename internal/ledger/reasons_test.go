package ledger_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/ledger"
)

// The operations guide lists every reason; TRIBUTARY_UPDATE=1 writes the table anew.
func TestOperationsGuideListsEveryReason(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "operations.md")
	text, err := os.ReadFile(path)
	must(t, err)
	var b strings.Builder
	b.WriteString("| Reason | What is the matter | What to do |\n|---|---|---|\n")
	for _, m := range ledger.Meanings() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.Code, m.Text, m.Do)
	}
	head, rest, ok := strings.Cut(string(text), "<!-- generated: reasons -->\n")
	_, tail, found := strings.Cut(rest, "<!-- end -->")
	if !ok || !found {
		t.Fatal("the guide has no table of reasons")
	}
	want := head + "<!-- generated: reasons -->\n" + b.String() + "<!-- end -->" + tail
	if want == string(text) {
		return
	}
	if os.Getenv("TRIBUTARY_UPDATE") == "" {
		t.Fatal("docs/operations.md does not list the reasons as they are; run with TRIBUTARY_UPDATE=1")
	}
	must(t, os.WriteFile(path, []byte(want), 0o644))
}

// The count of what waits and the page of one transaction give the same name.
func TestWaitsHaveTheReasonsOfTheirOperations(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n, id := rests(t, a, d)
		n.Until("the lane is given back", func() bool { return !life(n, id).Wait.InWork })
		lane := life(n, id).Lane
		count := func() (list []ledger.Waiting) {
			must(t, d.Read(t.Context(), func(r db.Reader) (err error) { list, err = ledger.Waits(r); return err }))
			return list
		}
		said := map[fault.Code]string{ // who, what, when
			fault.AuthorityNotConfigured: "nothing was sent: the settings of " + byNumber + ".test are incomplete",
			fault.AuthorityUnreachable:   "Reference authority does not respond. Retrying at ",
			fault.AuthorityError:         "The reference authority is unavailable. Retrying at ",
			fault.CredentialsInvalid:     "the authority rejected the supplier's credentials. Filing resumes when new ones are uploaded",
		}
		for _, m := range ledger.Meanings() {
			switch m.Code {
			case fault.AwaitingAcceptance, fault.OutcomeUnknown:
				execSQL(t, d, "UPDATE lanes SET reason = '', failures = 0 WHERE lane = $1", lane)
				execSQL(t, d, "UPDATE operations SET doubts = $1 WHERE operation_id = $2", string(m.Code), id)
			case fault.BehindAnother:
				execSQL(t, d, "UPDATE operations SET stage = 'blocked' WHERE operation_id = $1", id)
			case fault.AuthorityWait:
				execSQL(t, d, "UPDATE lanes SET reason = '', failures = 0, asked_until = $1 WHERE lane = $2",
					db.Micros(d.Now().Add(time.Hour)), lane)
				execSQL(t, d, "UPDATE operations SET stage = 'prepared', doubts = '' WHERE operation_id = $1", id)
			default:
				execSQL(t, d, "UPDATE operations SET stage = 'prepared' WHERE operation_id = $1", id)
				execSQL(t, d, "UPDATE lanes SET reason = $1, failures = 2 WHERE lane = $2", string(m.Code), lane)
			}
			got := count()
			if len(got) != 1 || got[0].Code != m.Code || got[0].Operations != 1 || got[0].At.Code != byNumber ||
				got[0].OldestAt.IsZero() {
				t.Errorf("%s is counted as %+v", m.Code, got)
			}
			if w := life(n, id).Wait; w.Why != ledger.Why(m.Code) || w.Why.Advice() != m.Do || w.Text == "" {
				t.Errorf("%s is shown as %+v", m.Code, w)
			} else if want, ok := said[m.Code]; ok && !strings.HasPrefix(w.Text, want) {
				t.Errorf("%s is told as %q, want %q", m.Code, w.Text, want)
			}
		}
		execSQL(t, d, "UPDATE operations SET stage = 'prepared', doubts = '' WHERE operation_id = $1", id)
		execSQL(t, d, "UPDATE lanes SET reason = '', failures = 0, asked_until = NULL WHERE lane = $1", lane)
		if got := count(); len(got) != 0 {
			t.Errorf("what has its turn to come is counted: %+v", got)
		}
		// A call that takes long is told of while it lasts.
		execSQL(t, d, "UPDATE lanes SET lease_until = $1 WHERE lane = $2", db.Micros(d.Now().Add(time.Hour)), lane)
		for ago, want := range map[time.Duration]int{time.Second: 0, time.Minute: 1} {
			execSQL(t, d, "UPDATE operations SET stage = 'sent', due_at = 1, sent_at = $1 WHERE operation_id = $2", db.Micros(d.Now().Add(-ago)), id)
			got, why := count(), life(n, id).Wait.Why
			if len(got) != want || want == 1 && got[0].Code != fault.AuthorityUnreachable || (why == ledger.WhyUnreachable) != (want == 1) {
				t.Errorf("a call of %s is counted as %+v and shown as %s", ago, got, why)
			}
		}
	})
}
