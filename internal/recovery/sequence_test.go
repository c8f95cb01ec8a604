package recovery_test

import (
	"testing"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/filing/filingtest"
)

// After a restored backup a sequence goes on behind every number that can have
// been drawn since, also where the backup does not know the sequence at all.
func TestARestoredSequenceSkipsAndNeverRepeats(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]int{"drawn before the backup": 3, "never drawn before the backup": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBackup(t, func(t *testing.T, d *db.DB, backup func() *db.DB) {
				a := newAuthorities(t)
				n := newNode(t, d, a.Setup()).Start()
				supplier, other := n.Supplier(filingtest.Sequenced, "s1"), n.Supplier(filingtest.ByNumber, "s2")
				n.Succeeds(n.File(invoice(filingtest.ByNumber, other, "t0")))
				for i := range known {
					n.Succeeds(n.File(invoice(filingtest.Sequenced, supplier, "before-"+string(rune('a'+i)))))
				}
				copied := backup()
				for i := range 5 {
					n.Succeeds(n.File(invoice(filingtest.Sequenced, supplier, "lost-"+string(rune('a'+i)))))
				}
				drawn := filingtest.One[int64](t, d, "SELECT next FROM sequences WHERE country = $1 AND live = $2",
					filingtest.Sequenced, false)
				n.Stop()

				back := newNode(t, copied, a.Setup())
				must(t, back.Begin(t.Context(), country.Day{}))
				next := filingtest.One[int64](t, copied, "SELECT next FROM sequences WHERE country = $1 AND live = $2",
					filingtest.Sequenced, false)
				if next < drawn {
					t.Fatalf("%d is next, and %d was drawn before", next, drawn-1)
				}
				stop := complete(back)
				defer stop()
				back.Start()
				back.Succeeds(back.File(invoice(filingtest.Sequenced, supplier, "new")))
				if held := len(a.Registered(filingtest.Sequenced)); held != known+6 {
					t.Errorf("the authority holds %d", held)
				}
			})
		})
	}
}
