package recovery_test

import (
	"fmt"
	"testing"

	"tributary/internal/adoption"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/onboarding"
	"tributary/internal/recovery"
)

func gathersDaily(c *onboarding.NewCompany) {
	c.Settings = country.Settings{"period": string(country.Daily)}
}

// closePeriods ends the open periods, as their time would.
func closePeriods(t *testing.T, d *db.DB) {
	t.Helper()
	must(t, d.Write(t.Context(), func(tx *db.Tx) error {
		tx.Wake("periods")
		return tx.Exec("UPDATE periods SET due_at = $1 WHERE due_at IS NOT NULL AND lease_until IS NULL", db.Micros(tx.Now()))
	}))
}

// told waits until a sale knows the document of its period, and answers its id.
func told(n *node, id string) string {
	n.T.Helper()
	n.Until("sale "+id+" is told of its period", func() bool {
		return n.Show(id).AuthorityID1 != nil && len(n.Show(id).Lifecycle) == 1
	})
	return *n.Show(id).AuthorityID1
}

// A period whose document the authority holds is not made again: the sales that
// the backup knows adopt it, and those that come again are told so. What is not in
// it goes into a document of its own.
func TestARestoredPeriodIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	eachBackup(t, func(t *testing.T, d *db.DB, backup func() *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup()).Start()
		supplier := n.Supplier(byNumber, "s1", gathersDaily)
		n.Succeeds(n.File(invoice(byNumber, supplier, "t1")), fault.WaitsForPeriod)
		restored := backup()
		lost := n.File(invoice(byNumber, supplier, "t2"))
		n.Succeeds(lost, fault.WaitsForPeriod)
		closePeriods(t, d)
		want := told(n, lost)
		n.Stop()

		m := restore(t, restored, a.Setup()).Start()
		closePeriods(t, restored) // it ended meanwhile; nothing is made before the authority was asked
		complete(m)
		first := one[string](t, restored, "SELECT operation_id FROM period_entries")
		same(t, "the sale that the backup knew", told(m, first), want)
		again := m.File(invoice(byNumber, supplier, "t2"))
		m.Succeeds(again, fault.WaitsForPeriod)
		same(t, "the sale that came again", told(m, again), want)
		same(t, "what the authority holds", fmt.Sprint(a.Registered(byNumber)), "[D20260301-EUR-1]")

		late := m.File(invoice(byNumber, supplier, "t3"))
		m.Succeeds(late, fault.WaitsForPeriod)
		closePeriods(t, restored)
		if told(m, late) == want {
			t.Error("a sale that is not in the document was told that it is")
		}
		same(t, "what the authority holds", fmt.Sprint(a.Registered(byNumber)), "[D20260301-EUR-1 D20260301-EUR-2]")
		same(t, "in the second", *m.Show(one[string](t, restored,
			"SELECT document_id FROM period_entries WHERE operation_id = $1", late)).TotalAmount, 22710)
	})
}

// listless is a way to an authority that has no list.
type listless struct{ country.Channel }

func withoutLists(s setup) setup {
	s.Packs = append([]country.Pack(nil), s.Packs...)
	for i := range s.Packs {
		connect := s.Packs[i].Connect
		s.Packs[i].Connect = func(e country.Endpoint) (country.Channel, error) {
			c, err := connect(e)
			return listless{c}, err
		}
	}
	return s
}

// Where the authority has no list, a period that had ended waits for a person,
// also when the supplier was released.
func TestARestoredPeriodWithoutAListIsHeld(t *testing.T) {
	t.Parallel()
	for _, said := range []adoption.Decision{adoption.Adopt, adoption.File} {
		t.Run(string(said), func(t *testing.T) {
			t.Parallel()
			a := newAuthorities(t)
			url := dbtest.SQLiteURL(t)
			n := newNode(t, dbtest.Open(t, db.Config{URL: url}), withoutLists(a.Setup())).Start()
			supplier := n.Supplier(byNumber, "s1", gathersDaily)
			sale := n.File(invoice(byNumber, supplier, "t1"))
			n.Succeeds(sale, fault.WaitsForPeriod)
			restored := copier(t, url)()
			number := "none"
			if said == adoption.Adopt { // it was told of the period
				closePeriods(t, n.DB)
				told(n, sale)
				number = a.Registered(byNumber)[0]
			}
			n.Stop()

			m := restore(t, restored, withoutLists(a.Setup())).Start()
			complete(m)
			same(t, "state", restoredState(m, supplier), "unlisted")
			must(t, m.Recovery.Release(t.Context(), client, supplier, nil))
			closePeriods(t, restored)
			waits := "SELECT coalesce(max(operation_id), '') FROM held_operations"
			m.Until("the period's document waits", func() bool { return one[string](t, restored, waits) != "" })
			id := one[string](t, restored, waits)
			same(t, "stage", m.Stage(id), string(filing.Quarantined))
			must(t, m.Decide(t.Context(), id, recovery.Word{Adopt: said == adoption.Adopt, Number: number, ID: "A-7"}, nil))
			registered := told(m, sale)
			same(t, "what the authority holds", len(a.Registered(byNumber)), 1)
			same(t, "the person's word", registered == "A-7", said == adoption.Adopt)
		})
	}
}
