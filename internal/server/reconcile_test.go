package server_test

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/db"
	"tributary/internal/recovery"
	"tributary/internal/server"
	"tributary/internal/transaction"
)

// reconciled asks the way the command line does, beside the running program.
func (p *program) reconciled(t *testing.T, simulators, supplier, day string) recovery.Reconciliation {
	t.Helper()
	guest, err := db.Open(t.Context(), db.Config{URL: "sqlite:" + filepath.Join(p.dir, "tributary.db"), NoWorkers: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = guest.Close() }() // read only
	at, err := recovery.Day(day)
	if err != nil {
		t.Fatal(err)
	}
	found, err := server.Maintenance{Config: server.Config{Log: slog.New(slog.DiscardHandler), SimulatorsURL: simulators},
		DB: guest, Accounts: p.Accounts(), SupplierID: supplier}.Reconcile(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestReconciliationFindsWhatOnlyOneSideHolds(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	supplier, _ := c.onboard(t, example(t, "company",
		object{"meta": object{"country_code": "XX", "external_id": "reconciled"},
			"tax_information": object{"tax_number": "RECONCILED-1"}}))
	const day = "2026-02-03"
	sale := func(id string, more object) object {
		changes := object{"supplier": object{"id": supplier}, "transaction_date": day + "T10:00:00Z"}
		for k, v := range more {
			changes[k] = v
		}
		return p.sale(t, id, changes)
	}
	const sales = 230 // more than one page of the authority's list
	for i := range sales {
		c.submit(t, "/v1/transactions", sale(fmt.Sprintf("rec-%d", i), nil))
	}
	for _, body := range []object{sale("rec-reject", object{"transaction_number": "REC-REJECT"}),
		sale("rec-other-day", object{"transaction_date": "2026-02-04T10:00:00Z"})} {
		c.outcome(t, c.submit(t, "/v1/transactions", body))
	}
	cancellation := object{"country_code": "XX", "transaction_id": "rec-cancel", "transaction_number": "REC-C",
		"transaction_date": "2026-02-05T10:00:00Z", "reference_transaction_id": "rec-7", "note": "cancelled"}
	c.outcome(t, c.submit(t, "/v1/transactions/cancellation", cancellation))

	var agreed recovery.Reconciliation
	eventually(t, "every sale settled", func() bool {
		agreed = p.reconciled(t, p.SimulatorsURL(), supplier, day)
		return agreed.Open == 0 && agreed.Ours == sales
	})
	if agreed.Theirs != sales || agreed.Agreed != sales || len(agreed.Differing) != 0 {
		t.Errorf("%+v", agreed)
	}
	later := p.reconciled(t, p.SimulatorsURL(), supplier, "2026-02-05") // the cancellation's own day
	if later.Theirs != 1 || len(later.Differing) != 0 {
		t.Errorf("the day of the cancellation: %+v", later)
	}

	// Another authority stands in: it holds one document of ours under another
	// id, one that nobody here knows, and nothing else.
	other := p.otherAuthority(t, []string{"N-rec-3", "FOREIGN-1"}, day)
	differs := p.reconciled(t, other, supplier, day)
	kinds := map[string]int{}
	for _, d := range differs.Differing {
		kinds[d.Kind]++
	}
	if kinds[recovery.OnlyHere] != sales-1 || kinds[recovery.OnlyThere] != 1 || kinds[recovery.OtherID] != 1 ||
		differs.Agreed != 0 {
		t.Errorf("%v, %d agreed", kinds, differs.Agreed)
	}
}

// otherAuthority is a simulator of XX with documents of RECONCILED-1.
func (p *program) otherAuthority(t *testing.T, numbers []string, day string) string {
	t.Helper()
	office, err := country.NewSimulators(t.TempDir(), world.Reference(transaction.ReferenceCode, country.ByNumber))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = office.Close() }) // a test's own
	desk, _ := office.Desk("XX")
	err = desk.Write(func(b *authority.Book) {
		for i, number := range numbers {
			b.Register(authority.Registration{Supplier: "RECONCILED-1", Number: number, SHA256: "00",
				AuthorityID: fmt.Sprintf("OTHER-%d", i),
				Note:        fmt.Sprintf(`{"day":%q,"kind":"INVOICE"}`, day)})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(office)
	t.Cleanup(srv.Close)
	return srv.URL
}

// SdI answers no questions: what it told by itself is compared. A success
// without a message, or under an id that no message named, is a difference.
func TestReconciliationOfAnAuthorityThatOnlyTells(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	a := realAuthorities(t)["IT"]
	var ids []string
	for _, number := range []string{"REC-IT-1", "REC-IT-2", "REC-IT-3"} {
		id := c.submit(t, "/v1/transactions", p.abroad(t, a, number))
		if got := c.outcome(t, id); got["status"] != "SUCCESS" {
			t.Fatalf("%s: %v", number, got["errors"])
		}
		ids = append(ids, id)
	}
	supplier := p.Demo().Suppliers["IT"]
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	day := time.Now().Add(-time.Minute).In(rome).Format(time.DateOnly)
	agreed := p.reconciled(t, p.SimulatorsURL(), supplier, day)
	if agreed.Ours < len(ids) || agreed.Agreed != agreed.Ours || len(agreed.Differing) != 0 {
		t.Fatalf("%+v", agreed)
	}
	d, err := db.Open(t.Context(), db.Config{URL: "sqlite:" + filepath.Join(p.dir, "tributary.db"), NoWorkers: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()                   // a test's own
	err = d.Write(t.Context(), func(tx *db.Tx) error { // as if a message were lost, and one of another file
		if err := tx.Exec("DELETE FROM inbox_messages WHERE operation_id = $1", ids[0]); err != nil {
			return err
		}
		return tx.Exec(`UPDATE inbox_messages SET receipt = replace(receipt, '"AuthorityID1":"', '"AuthorityID1":"9') WHERE operation_id = $1`, ids[1])
	})
	if err != nil {
		t.Fatal(err)
	}
	differs := p.reconciled(t, p.SimulatorsURL(), supplier, day)
	kinds := map[string]string{}
	for _, d := range differs.Differing {
		kinds[d.Number] = d.Kind
	}
	if len(kinds) != 2 || kinds["REC-IT-1"] != recovery.OnlyHere || kinds["REC-IT-2"] != recovery.OtherID {
		t.Errorf("%+v", differs.Differing)
	}
}
