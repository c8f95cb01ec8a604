package period_test

import (
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/fr/ereport"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/leaks"
	"tributary/internal/needs"
	"tributary/internal/period"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// However many sales a report has, they are read one after another: what is in memory
// is what they come to.
func TestSalesOfAReportAreReadOneAfterAnother(t *testing.T) {
	t.Parallel()
	sales := int64(3000)
	if needs.IsLong() {
		sales = 70_000
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		one := ereport.Contribution{Groups: []ereport.Group{{Day: "20261103", Currency: "EUR", Category: ereport.Goods, Count: 1, Net: 10000,
			Rates: []ereport.Rate{{Percent: "20", Base: 10000, Tax: 2000}}}}}
		data, err := one.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return fill(tx, sales, data) }); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		var p *country.Period
		if err := d.Read(t.Context(), func(r db.Reader) error {
			got, totals, err := period.Assemble(r, &country.Periods{Sum: ereport.Sum, Replaces: true}, "doc", "M202611-EUR-1")
			if p = got; err == nil && totals.Gross != sales*12000 {
				t.Errorf("they come to %d", totals.Gross)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		t.Logf("%d sales in %s, %d KiB more in memory", sales, time.Since(began), (int64(after.HeapInuse)-int64(before.HeapInuse))>>10)
		var sum ereport.Contribution
		if err := json.Unmarshal(p.Sum, &sum); err != nil || len(sum.Groups) != 1 || sum.Groups[0].Count != sales || sum.Groups[0].Net != sales*10000 {
			t.Errorf("%+v %v", sum, err)
		}
		if p.Count != sales || len(p.Sales) != 0 || p.Cadence != country.Monthly || p.Replaces != "" {
			t.Errorf("%d sales, %d in memory, %s, in the place of %q", p.Count, len(p.Sales), p.Cadence, p.Replaces)
		}
	})
}

// fill makes a period with so many sales and its document.
func fill(tx *db.Tx, sales int64, data []byte) error {
	if err := tx.Insert("periods",
		"period_id,place,client_id,supplier_id,country,live,currency,cadence,report,first_day,last_day,series,zone,ends_at,deadline_at,replaces",
		[]any{"p", "c|s", "c", "s", "FR", false, "EUR", string(country.Monthly), "", "2026-11-01", "2026-11-30", 1, "Europe/Paris", 1, 1, true}); err != nil {
		return err
	}
	if err := tx.Insert("period_documents", "operation_id,period_id,transaction_id,number,state,revision,sales,gross,made_at",
		[]any{"doc", "p", "period:doc", "M202611-EUR-1", "open", sales, sales, sales * 12000, 1}); err != nil {
		return err
	}
	return tx.Exec(`INSERT INTO period_entries (operation_id, period_id, transaction_id, number, data, lines, gross, net, tax, document_id)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		SELECT 'o' || i, 'p', 't' || i, 'n' || i, $2, 1, 12000, 10000, 2000, 'doc' FROM n`, sales, data)
}
