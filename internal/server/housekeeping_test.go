package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tributary/internal/account"
	"tributary/internal/db"
)

// Replies of receivers are diagnostics: they go after 90 days, not before, and
// the events themselves stay.
func TestRepliesOfReceiversAreForgottenAfterTheirDays(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	kept := map[string]bool{}
	for _, days := range []int{account.DiagnosticDaysMax - 1, account.DiagnosticDaysMax + 1, account.DiagnosticDaysMax + 400} {
		operation := c.submit(t, "/v1/transactions", p.sale(t, fmt.Sprintf("forgotten-%d", days), nil))
		c.outcome(t, operation)
		eventually(t, "the try on record", func() bool { return p.firstTry(t, operation) })
		// The event's id carries its time: an old event has an old id.
		id := fmt.Sprintf("%012x%s", time.Now().AddDate(0, 0, -days).UnixMilli(), strings.Repeat("0", 25)+fmt.Sprintf("%03d", days))
		err := p.DB().Write(t.Context(), func(tx *db.Tx) error {
			return tx.Exec("UPDATE webhook_events SET webhook_id = $1 WHERE resource_id = $2", id, operation)
		})
		if err != nil {
			t.Fatal(err)
		}
		kept[operation] = days < account.DiagnosticDaysMax
	}
	if err := p.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	for operation, want := range kept {
		if got := p.firstTry(t, operation); got != want {
			t.Errorf("the reply about %s is there: %v, want %v", operation, got, want)
		}
	}
}

// firstTry reports whether the record of an event's first try is there; the event itself must be.
func (p *program) firstTry(t *testing.T, operation string) (there bool) {
	t.Helper()
	err := p.DB().Read(t.Context(), func(r db.Reader) error {
		return r.Row("SELECT first_try IS NOT NULL FROM webhook_events WHERE resource_id = $1", operation).Scan(&there)
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}
