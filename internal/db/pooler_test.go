package db_test

import (
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
)

// A pooler that lends sessions for a moment is found out before anything is written, and told.
func TestTransactionPoolingIsRefused(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	for _, mode := range []string{"transaction", "statement"} {
		for _, how := range []string{"", "&default_query_exec_mode=exec"} {
			url := dbtest.Bouncer(t, mode, dbtest.PostgresURL(t))
			d, err := db.Open(t.Context(), db.Config{URL: url + how})
			if err == nil {
				_ = d.Close() // it should not have been opened
				t.Errorf("a pooler in %s mode%s is taken", mode, how)
				continue
			}
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "pool_mode = session") {
				t.Errorf("a pooler in %s mode%s: %v, want the words what to do", mode, how, err)
			}
		}
	}
}
