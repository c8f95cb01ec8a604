package filing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/alert"
	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/needs"
	"tributary/internal/onboarding"
	"tributary/internal/result"
	"tributary/internal/transaction"
)

// gathers makes a supplier's sales to consumers gathered.
func gathers(cadence country.Cadence) func(*onboarding.NewCompany) {
	return func(c *onboarding.NewCompany) { c.Settings = country.Settings{"period": string(cadence)} }
}

// named gives a sale a customer with a tax number: it is filed by itself.
func named(p paper) paper {
	return p.With("customer", map[string]any{"legal_name": "Buyer", "type": "BUSINESS",
		"tax_information": map[string]any{"tax_number": "XX-9"}, "address": map[string]any{"country_code": "XX"}})
}

// closeAll ends the open periods, as their time would: what is due since long ago
// is looked for only now and then.
func closeAll(t *testing.T, d *db.DB) {
	t.Helper()
	must(t, d.Write(t.Context(), func(tx *db.Tx) error {
		tx.Wake("periods")
		return tx.Exec("UPDATE periods SET due_at = $1, retry_at = NULL WHERE due_at IS NOT NULL AND lease_until IS NULL",
			db.Micros(tx.Now()))
	}))
}

// booked is what the authority holds: number, kind and gross, in order.
func booked(a *authorities, code string) (list []string) {
	for _, r := range a.Registrations(code) {
		var note struct {
			Kind  transaction.Kind `json:"kind"`
			Gross int64            `json:"gross"`
		}
		must(a.T, json.Unmarshal([]byte(r.Note), &note))
		list = append(list, fmt.Sprintf("%s %s %d", r.Number, note.Kind, note.Gross))
	}
	return list
}

// holds waits until the authority holds exactly these.
func holds(n *node, a *authorities, want ...string) {
	n.T.Helper()
	var got []string
	n.Until(strings.Join(want, ", "), func() bool {
		got = booked(a, byNumber)
		return len(got) >= len(want)
	})
	// Documents of one period may go at once: in which order they arrive is the machine's.
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		n.T.Fatalf("the authority holds %q, want %q", got, want)
	}
}

// saidOf are the codes of a life cycle.
func saidOf(r *result.Result) (codes []string) {
	for _, e := range r.Lifecycle {
		codes = append(codes, e.Code)
	}
	return codes
}

func TestSalesAreGatheredAndFiledInOneDocument(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup()).Start()
		s := n.Supplier(byNumber, "s1", gathers(country.Daily))
		first := n.Succeeds(n.File(invoice(byNumber, s, "t1")), fault.WaitsForPeriod)
		second := n.Succeeds(n.File(invoice(byNumber, s, "t2")), fault.WaitsForPeriod)
		other := n.Succeeds(n.File(named(invoice(byNumber, s, "t3"))))
		if first.AuthorityID1 != nil || first.AuthorityID2 != nil || first.ReportedAt != nil || other.AuthorityID1 == nil {
			t.Errorf("ids before the period has ended: %+v, of the sale that is filed by itself: %v", first.Row,
				other.AuthorityID1)
		}
		holds(n, a, "N-t3 INVOICE 22710")

		closeAll(t, d)
		holds(n, a, "N-t3 INVOICE 22710", "D20260301-EUR-1 PERIOD 45420")
		n.Until("the sales are told", func() bool { return len(n.Show(second.OperationID).Lifecycle) == 1 })
		got := n.Show(first.OperationID)
		if got.AuthorityID1 == nil || *got.AuthorityID1 != a.Registrations(byNumber)[1].AuthorityID {
			t.Errorf("the id of the period's document is not filled in: %v", got.AuthorityID1)
		}
		same(t, "life cycle", fmt.Sprint(saidOf(got)), "[PERIOD_FILED]")
		got.AuthorityID1, got.AuthorityID2, got.Lifecycle = nil, nil, []result.LifecycleEntry{}
		same(t, "everything else of the result", plain(t, got), plain(t, first))

		list, _, err := n.List(context.Background(), client, ledger.Filter{Limit: 10})
		must(t, err)
		same(t, "listed", len(list), 3)
		own := one[string](t, d, "SELECT operation_id FROM period_documents")
		same(t, "events of the document itself", n.Events(own), 0)
		shown := n.Show(own)
		if shown.Kind != transaction.Period || *shown.TotalAmount != 45420 || shown.Status != filing.Success {
			t.Errorf("the document itself: %+v", shown.Row)
		}
		// The ids are filled in once: the database refuses another.
		err = d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Exec("UPDATE period_entries SET authority_id_1 = 'other'")
		})
		if err == nil {
			t.Error("an id that was filled in could be changed")
		}
	})
}

func plain(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return string(text)
}

func TestCorrectionsBeforeAPeriodEndsChangeWhatItsDocumentSays(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup()).Start()
		s := n.Supplier(byNumber, "s1", gathers(country.Daily))
		for _, id := range []string{"t1", "t2", "t3", "t4"} {
			n.Succeeds(n.File(invoice(byNumber, s, id)), fault.WaitsForPeriod)
		}
		n.Succeeds(n.Hand(transaction.Adjustment, invoice(byNumber, s, "a1").Adjusts("t1", -2710)), fault.WaitsForPeriod)
		n.Succeeds(n.Hand(transaction.Credit, correction(byNumber, "t2", "c1")), fault.WaitsForPeriod)
		n.Succeeds(n.Hand(transaction.Cancellation, correction(byNumber, "t3", "x1")), fault.WaitsForPeriod)
		n.Fails(n.Hand(transaction.Credit, correction(byNumber, "t2", "c2")), fault.ReferenceAlreadyCorrected)
		n.Fails(n.Hand(transaction.Adjustment, invoice(byNumber, s, "a2").Adjusts("t1", -30000)), fault.ReferenceExceeded)
		nominative := n.Succeeds(n.Hand(transaction.Adjustment,
			named(invoice(byNumber, s, "f1").With("reference_transaction_id", "t4"))))
		if nominative.AuthorityID1 == nil {
			t.Error("an invoice that names the customer is filed at once")
		}
		closeAll(t, d)
		holds(n, a, "N-f1 ADJUSTMENT 22710", "D20260301-EUR-1 PERIOD 20000")
		same(t, "sales of the period", one[int64](t, d, "SELECT sales FROM periods"), 1)
		same(t, "sum of the period", one[int64](t, d, "SELECT gross FROM periods"), 20000)
	})
}

func TestCorrectionsAfterAPeriodsDocument(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup()).Start()
		s := n.Supplier(byNumber, "s1", gathers(country.Monthly))
		ids := map[string]string{}
		for _, id := range []string{"t1", "t2", "t3", "t4"} {
			ids[id] = n.File(invoice(byNumber, s, id))
			n.Succeeds(ids[id], fault.WaitsForPeriod)
		}
		closeAll(t, d)
		holds(n, a, "M202603-EUR-1 PERIOD 90840")
		n.Until("told", func() bool { return len(n.Show(ids["t4"]).Lifecycle) == 1 })
		filled := *n.Show(ids["t4"]).AuthorityID1

		// A refund refers to the document that has the sale.
		credit := n.Succeeds(n.Hand(transaction.Credit, correction(byNumber, "t1", "c1")))
		if credit.AuthorityID1 == nil {
			t.Error("the credit of a sale that was filed with its period is filed")
		}
		// An invoice that names the customer takes its sale out, and so does a cancellation:
		// the document is withdrawn and made anew.
		n.Succeeds(n.Hand(transaction.Adjustment, named(invoice(byNumber, s, "f1").With("reference_transaction_id", "t2"))))
		n.Until("it is made anew", func() bool { return len(booked(a, byNumber)) == 5 })
		held := booked(a, byNumber)
		same(t, "filed by itself", held[2], "N-f1 ADJUSTMENT 22710")
		if !strings.Contains(held[3], " CANCELLATION 0") || held[4] != "M202603-EUR-2 PERIOD 68130" {
			t.Errorf("withdrawn and made anew: %q", held)
		}
		n.Until("told again", func() bool { return len(n.Show(ids["t4"]).Lifecycle) == 2 })
		same(t, "the id of the sale that stays", *n.Show(ids["t4"]).AuthorityID1, filled)
		same(t, "of the one that left", fmt.Sprint(saidOf(n.Show(ids["t2"]))), "[PERIOD_FILED PERIOD_LEFT]")
		n.Fails(n.Hand(transaction.Credit, correction(byNumber, "t2", "c2")), fault.ReferenceAlreadyCorrected)

		n.Succeeds(n.Hand(transaction.Cancellation, correction(byNumber, "t3", "x1")), fault.WaitsForPeriod)
		n.Until("it is made anew again", func() bool { return len(booked(a, byNumber)) == 7 })
		same(t, "the last document", booked(a, byNumber)[6], "M202603-EUR-3 PERIOD 45420")
	})
}

// A document that is refused is made anew; its sales and the operator are told.
func TestARefusedDocumentOfAPeriodIsMadeAnew(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	d := sqlite(t)
	n := newNode(t, d, a.Setup()).Start()
	s := n.Supplier(byNumber, "s1", gathers(country.Daily))
	sale := n.File(invoice(byNumber, s, "t1"))
	n.Succeeds(sale, fault.WaitsForPeriod)
	a.Script(byNumber, authority.Step{Outcome: authority.Reject, Times: 1})
	closeAll(t, d)
	n.Until("the refusal is told", func() bool { return len(n.Show(sale).Lifecycle) == 1 })
	same(t, "life cycle", fmt.Sprint(saidOf(n.Show(sale)), n.Show(sale).Lifecycle[0].Severity), "[PERIOD_REFUSED]PROBLEM")
	same(t, "alerts", n.Raised(alert.PeriodRefused)[one[string](t, d, "SELECT period_id FROM periods")], 1)
	if r := n.Show(sale); r.Status != filing.Success || r.AuthorityID1 != nil {
		t.Errorf("a SUCCESS changed: %+v", r.Row)
	}
	if wait := one[int64](t, d, "SELECT due_at FROM periods") - db.Micros(d.Now()); wait <
		int64(50*time.Minute/time.Microsecond) || wait > int64(time.Hour/time.Microsecond) {
		t.Errorf("it is tried again in %s", time.Duration(wait)*time.Microsecond)
	}
	// What comes between two documents changes the next one.
	n.Succeeds(n.Hand(transaction.Adjustment, invoice(byNumber, s, "a1").Adjusts("t1", -2710)), fault.WaitsForPeriod)
	closeAll(t, d)
	holds(n, a, "D20260301-EUR-2 PERIOD 20000")
	n.Until("accepted", func() bool { return n.Show(sale).AuthorityID1 != nil })
	// The acceptance has the authority's own time, which may be that of the same second.
	same(t, "life cycle", fmt.Sprint(slices.Sorted(slices.Values(saidOf(n.Show(sale))))), "[PERIOD_FILED PERIOD_REFUSED]")
}

// What does not fit into one document goes into another; at the limit it does not.
func TestADocumentOfAPeriodTakesSoManySales(t *testing.T) {
	t.Parallel()
	for sales, want := range map[int][]string{3: {"D20260301-EUR-1 PERIOD 68130"},
		4: {"D20260301-EUR-1 PERIOD 68130", "D20260301-EUR-2 PERIOD 22710"}} {
		for limit, pack := range map[string]func(*country.Periods){"lines": func(p *country.Periods) {
			p.LinesMax = 3
		}, "bytes": func(p *country.Periods) { p.BytesMax = 3 * 62 }} {
			t.Run(fmt.Sprint(sales, " sales, by ", limit), func(t *testing.T) {
				t.Parallel()
				a := newAuthorities(t)
				packs := slices.Clone(a.Packs)
				few := *packs[0].Periods
				pack(&few)
				packs[0].Periods = &few
				setup := a.Setup()
				setup.Packs = packs
				d := sqlite(t)
				n := newNode(t, d, setup).Start()
				s := n.Supplier(byNumber, "s1", gathers(country.Daily))
				for i := range sales {
					n.Succeeds(n.File(invoice(byNumber, s, fmt.Sprint("t", i))), fault.WaitsForPeriod)
				}
				same(t, "bytes of a sale", one[int64](t, d, "SELECT max(length(data)) FROM period_entries"), 62)
				closeAll(t, d)
				holds(n, a, want...)
			})
		}
	}
}

// While the document is on its way a correction waits for it, and is filed after it.
func TestACorrectionWaitsForItsPeriodsDocument(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	d := sqlite(t)
	n := newNode(t, d, a.Setup()).Start()
	s := n.Supplier(byNumber, "s1", gathers(country.Daily))
	n.Succeeds(n.File(invoice(byNumber, s, "t1")), fault.WaitsForPeriod)
	a.Script(byNumber, authority.Step{Outcome: authority.Suspend, Times: 1})
	closeAll(t, d)
	n.Until("pending", func() bool {
		return one[int64](t, d, "SELECT count(*) FROM operations WHERE kind = 'PERIOD' AND stage = 'pending'") == 1
	})
	credit := n.Hand(transaction.Credit, correction(byNumber, "t1", "c1"))
	n.Until("it waits or has ended", func() bool { return n.Stage(credit) != string(filing.Received) })
	n.Succeeds(credit)
	same(t, "held", fmt.Sprint(booked(a, byNumber)), "[D20260301-EUR-1 PERIOD 22710 N-c1 CREDIT 22710]")
}

// Killed in the middle, each sale is in one document, and that is filed once.
func TestAPeriodKilledInTheMiddleIsFiledOnce(t *testing.T) {
	needs.NotRaced(t, "another process")
	t.Parallel()
	for _, point := range []string{"gathered", "prepared", "sent", "answered", "settled"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			a := newAuthorities(t)
			s := a.Setup()
			s.Documents = "file://" + t.TempDir()
			url := dbtest.SQLiteURL(t)
			var supplier, sale string
			t.Run("furnish", func(t *testing.T) { // whose end closes the database
				d := dbtest.Open(t, db.Config{URL: url})
				n := newNode(t, d, s).Start()
				supplier = n.Supplier(byNumber, "s1", gathers(country.Daily))
				for i := range 3 {
					sale = n.File(invoice(byNumber, supplier, fmt.Sprint("t", i)))
					n.Succeeds(sale, fault.WaitsForPeriod)
				}
				n.Stop()
				closeAll(t, d)
			})
			killAt(t, errand{Database: url, Simulators: a.URL, Documents: s.Documents, Point: point,
				Body: named(invoice(byNumber, "nobody", "t9")).Body(t)})

			d := dbtest.Open(t, db.Config{URL: url})
			n := newNode(t, d, s).Start()
			n.Until("the sales are told", func() bool { return len(n.Show(sale).Lifecycle) == 1 })
			same(t, "held", fmt.Sprint(booked(a, byNumber)), "[D20260301-EUR-1 PERIOD 68130]")
			same(t, "documents", one[int64](t, d, "SELECT count(*) FROM period_documents"), 1)
			same(t, "events of a sale", n.Events(sale),
				one[int64](t, d, "SELECT 1 + count(*) FROM webhook_events WHERE resource_id = $1 AND event_type = 'transactions.transaction_updated'", sale))
		})
	}
}

// A period closes at midnight where the supplier is, not where the server is.
func TestAPeriodClosesAtMidnightOfItsSupplier(t *testing.T) {
	t.Parallel()
	where, err := time.LoadLocation("America/Tijuana")
	must(t, err)
	o := newOffice(country.ByNumber)
	var filed []string
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		filed = append(filed, f.Number+" "+time.Now().In(where).Format("2006-01-02 15:04"))
		return o.Take(f), nil
	}
	s := o.Setup()
	s.Packs[0].Facts.TimeZone = where.String()
	s.Packs[0].Periods = &country.Periods{Gather: func(in country.Draft) (*country.Gathered, error) {
		if in.Transaction.Kind != transaction.Invoice {
			return nil, nil
		}
		return &country.Gathered{Span: country.SpanOf(country.Daily, in.Transaction.Date.In(in.Location)), Lines: 1,
			Data: []byte("{}"), Gross: in.Totals.Gross}, nil
	}}
	virtual(t, s, func(t *testing.T, n *node) {
		supplier := n.Supplier(officeCode, "s1")
		evening := time.Date(2000, 1, 1, 23, 30, 0, 0, where)
		time.Sleep(time.Until(evening))
		n.Start()
		n.File(invoice(officeCode, supplier, "t1").With("transaction_date", evening.Format(time.RFC3339)))
		time.Sleep(20 * time.Minute)
		same(t, "calls before midnight", o.Calls(), 0)
		time.Sleep(20 * time.Minute)
		// It came after its day was closed: with the end of this one.
		n.File(invoice(officeCode, supplier, "t2").With("transaction_date", evening.Format(time.RFC3339)))
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		n.Stop()
		same(t, "filed", fmt.Sprint(filed), "[D20000101-EUR-1 2000-01-02 00:00 D20000101-EUR-2 2000-01-03 00:00]")
	})
}

// A sale whose process is killed between its entry and its end is enlisted once:
// the entry has decided, whatever the company's settings say by then.
func TestASaleKilledAfterItWasEnlistedIsInItsPeriodOnce(t *testing.T) {
	needs.NotRaced(t, "another process")
	t.Parallel()
	a := newAuthorities(t)
	s := a.Setup()
	s.Documents = "file://" + t.TempDir()
	url := dbtest.SQLiteURL(t)
	var supplier string
	t.Run("furnish", func(t *testing.T) { // whose end closes the database
		supplier = newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Supplier(byNumber, "s1", gathers(country.Daily))
	})
	sale := killAt(t, errand{Database: url, Simulators: a.URL, Documents: s.Documents, Point: "prepared",
		Body: invoice(byNumber, supplier, "t1").Body(t)})

	d := dbtest.Open(t, db.Config{URL: url})
	n := newNode(t, d, s)
	same(t, "stage after the kill", n.Stage(sale), string(filing.Received))
	same(t, "entries after the kill", one[int64](t, d, "SELECT count(*) FROM period_entries"), 1)
	execSQL(t, d, `UPDATE companies SET profile = replace(CAST(profile AS TEXT), '"period":"daily"', '"period":"none"')`)
	same(t, "companies that gather no more",
		one[int64](t, d, `SELECT count(*) FROM companies WHERE profile LIKE '%"period":"none"%'`), 1)
	n.Start()
	n.Succeeds(sale, fault.WaitsForPeriod)
	closeAll(t, d)
	holds(n, a, "D20260301-EUR-1 PERIOD 22710")
	same(t, "sales", one[int64](t, d, "SELECT sales FROM periods"), 1)
}
