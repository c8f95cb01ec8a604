package filing_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// paris is where the supplier of a reporter is.
func paris(t *testing.T) *time.Location {
	t.Helper()
	where, err := time.LoadLocation("Europe/Paris")
	must(t, err)
	return where
}

// reporter is an authority to which ten days are reported, each report in the place
// of the one before. It writes down what arrives: when, which number, in whose
// place, how many sales and their sum.
type reporter struct {
	*office
	mu    sync.Mutex
	came  []string
	wrote map[string]string
}

func newReporter(t *testing.T) (*reporter, setup) {
	where := paris(t)
	rep := &reporter{office: newOffice(country.ByNumber), wrote: map[string]string{}}
	rep.OnPrepare = func(o *office, in country.Draft) (country.Filing, error) {
		if in.Period != nil {
			rep.mu.Lock()
			rep.wrote[in.Period.Number] = strings.TrimSpace(fmt.Sprintf("%s>%s %s %s", in.Period.Replaces, in.Period.Number, in.Period.Sum, in.Period.Refused))
			rep.mu.Unlock()
		}
		f, err := o.Draft(in)
		f.DedupeKey = f.Number
		return f, err
	}
	rep.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		rep.arrived(f)
		return o.Take(f), nil
	}
	s := rep.Setup()
	s.Packs[0].Facts.TimeZone = where.String()
	for i := range s.Packs[0].Facts.Corrections {
		s.Packs[0].Facts.Corrections[i].Days = 0
	}
	s.Packs[0].Callbacks = &country.Callbacks{}
	s.Packs[0].Periods = &country.Periods{Gather: gatherReported, Sum: sumReported, Replaces: true}
	return rep, s
}

// arrived writes down what is sent.
func (rep *reporter) arrived(f country.Filing) {
	rep.mu.Lock()
	defer rep.mu.Unlock()
	where, _ := time.LoadLocation("Europe/Paris") // it was loaded before
	rep.came = append(rep.came, time.Now().In(where).Format("02 15:04 ")+rep.wrote[f.Number])
}

func (rep *reporter) list() []string {
	rep.mu.Lock()
	defer rep.mu.Unlock()
	return slices.Clone(rep.came)
}

func gatherReported(in country.Draft) (*country.Gathered, error) {
	t := &in.Transaction
	of := func(gross int64) *country.Gathered {
		return &country.Gathered{Lines: 1, Data: []byte(strconv.FormatInt(gross, 10)), Gross: gross, Net: gross}
	}
	if t.Kind == transaction.Invoice {
		g := of(in.Totals.Gross)
		g.Span = country.SpanOf(country.TenDay, t.Date.In(in.Location))
		g.Span.Due = g.Span.Next.AddDate(0, 0, 10)
		return g, nil
	}
	if in.Original == nil || in.Original.Gathered == nil {
		return nil, nil
	}
	if t.Kind != transaction.Adjustment {
		return &country.Gathered{Leaves: true}, nil
	}
	was, err := strconv.ParseInt(string(in.Original.Gathered.Data), 10, 64)
	return of(was + in.Totals.Gross), err
}

func sumReported(sales iter.Seq2[country.PeriodSale, error]) ([]byte, error) {
	n, sum, left := 0, int64(0), ""
	for s, err := range sales {
		if err != nil {
			return nil, err
		}
		gross, err := strconv.ParseInt(string(s.Data), 10, 64)
		if err != nil {
			return nil, err
		}
		if s.Left {
			left = " left"
		}
		n, sum = n+1, sum+gross
	}
	return fmt.Appendf(nil, "%d:%d%s", n, sum, left), nil
}

// at waits until a moment of January 2000 in Paris.
func at(t *testing.T, day, hour, minute int) {
	t.Helper()
	time.Sleep(time.Until(time.Date(2000, 1, day, hour, minute, 0, 0, paris(t))))
	synctest.Wait()
}

// sold is a sale of a day in January 2000.
func sold(t *testing.T, n *node, supplier, id string, day int) string {
	t.Helper()
	return n.File(invoice(officeCode, supplier, id).With("transaction_date",
		time.Date(2000, 1, day, 23, 30, 0, 0, paris(t)).Format(time.RFC3339)))
}

// What comes late, changes or leaves makes a report with everything, at the end of
// the day and on the law's last day at once; nothing makes none.
func TestAReportTakesThePlaceOfTheOneBefore(t *testing.T) {
	t.Parallel()
	rep, s := newReporter(t)
	virtual(t, s, func(t *testing.T, n *node) {
		supplier := n.Supplier(officeCode, "s1")
		n.Start()
		at(t, 10, 23, 40)
		for day := range 3 {
			n.Succeeds(sold(t, n, supplier, fmt.Sprint("t", day), []int{1, 9, 10}[day]), fault.WaitsForPeriod)
		}
		n.Succeeds(sold(t, n, supplier, "next", 11), fault.WaitsForPeriod)
		at(t, 12, 9, 0)
		same(t, "state", stateOf(t, n, "2000-01-01"), "filed 2000-01-20 3")
		n.Succeeds(sold(t, n, supplier, "late", 4), fault.WaitsForPeriod)
		n.Succeeds(n.Hand(transaction.Credit, correction(officeCode, "t0", "c0")), fault.WaitsForPeriod)
		same(t, "state with what came late", stateOf(t, n, "2000-01-01"), "filing 2000-01-20 3")
		at(t, 14, 9, 0)
		n.Succeeds(n.Hand(transaction.Adjustment, invoice(officeCode, supplier, "a1").Adjusts("t1", -2710)), fault.WaitsForPeriod)
		at(t, 20, 10, 0)
		n.Succeeds(sold(t, n, supplier, "last day", 5), fault.WaitsForPeriod)
		at(t, 22, 10, 0)
		n.Succeeds(n.Hand(transaction.Cancellation, correction(officeCode, "next", "x1")), fault.WaitsForPeriod)
		at(t, 25, 0, 0)
		n.Stop()
		same(t, "reported", strings.Join(rep.list(), "\n"), strings.Join([]string{
			"11 00:00 >T20000101-EUR-1 3:68130",
			"13 00:00 T20000101-EUR-1>T20000101-EUR-2 3:68130",
			"15 00:00 T20000101-EUR-2>T20000101-EUR-3 3:65420",
			"20 10:00 T20000101-EUR-3>T20000101-EUR-4 4:88130",
			"21 00:00 >T20000111-EUR-1 1:22710",
			"23 00:00 T20000111-EUR-1>T20000111-EUR-2 1:22710 left"}, "\n"))
		same(t, "state at the end", stateOf(t, n, "2000-01-11"), "filed 2000-01-30 0")
		same(t, "accepted contents", one[int64](t, n.DB,
			"SELECT count(*) FROM period_documents WHERE state = 'accepted' AND number LIKE 'T20000101%'"), 1)
	})
}

// stateOf is how a period of the reporter stands.
func stateOf(t *testing.T, n *node, first string) (text string) {
	t.Helper()
	must(t, n.DB.Read(context.Background(), func(r db.Reader) error {
		list, _, err := ledger.Periods(r, ledger.PeriodFilter{Limit: 10})
		for _, p := range list {
			if p.FirstDay == first {
				text = fmt.Sprint(p.State, " ", p.DueDay, " ", p.Sales)
			}
		}
		return err
	}))
	return text
}

// A report that is refused is made again as a whole; its sales keep SUCCESS, and
// are told. What the authority refuses behind a platform that had accepted it is
// made anew in the place of what stood before.
func TestARefusedReportIsMadeAgainAsAWhole(t *testing.T) {
	t.Parallel()
	rep, s := newReporter(t)
	refuse := true
	rep.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		rep.arrived(f)
		if refuse {
			refuse = false
			return country.Receipt{Outcome: country.Rejected, Faults: []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: "no"}}}, nil
		}
		return o.Take(f), nil
	}
	virtual(t, s, func(t *testing.T, n *node) {
		n.TellAtOnce(2) // so that most are told by whoever holds the period
		supplier := n.Supplier(officeCode, "s1")
		n.Start()
		at(t, 10, 12, 0)
		var ids []string
		for i := range 5 {
			ids = append(ids, sold(t, n, supplier, fmt.Sprint("t", i), i+1))
			n.Succeeds(ids[i], fault.WaitsForPeriod)
		}
		at(t, 11, 0, 30)
		for _, id := range ids {
			same(t, "refused", fmt.Sprint(saidOf(n.Show(id)), n.Show(id).Status, n.Show(id).AuthorityID1 == nil), "[PERIOD_REFUSED]SUCCESStrue")
		}
		at(t, 11, 2, 0)
		for _, id := range ids {
			same(t, "accepted", fmt.Sprint(saidOf(n.Show(id)), *n.Show(id).AuthorityID1), "[PERIOD_REFUSED PERIOD_FILED]A-1")
		}
		sold(t, n, supplier, "late", 3)
		at(t, 12, 8, 0)
		news := country.Receipt{News: []country.News{{Key: "301", Code: "301", Name: "Rejetée", Source: country.FromPlatform, Severity: country.Problem, Refuses: true, Message: "REJ_PER"}}}
		told(t, n, "m1", "T20000101-EUR-3", news)
		told(t, n, "m1 again", "T20000101-EUR-3", news)
		at(t, 12, 8, 30)
		same(t, "state", stateOf(t, n, "2000-01-01"), "refused 2000-01-20 6")
		at(t, 12, 12, 0)
		n.Stop()
		same(t, "reported", strings.Join(rep.list(), "\n"), strings.Join([]string{
			"11 00:00 >T20000101-EUR-1 5:113550",
			"11 01:00 >T20000101-EUR-2 5:113550",
			"12 00:00 T20000101-EUR-2>T20000101-EUR-3 6:136260",
			"12 09:00 T20000101-EUR-2>T20000101-EUR-4 6:136260 301 REJ_PER"}, "\n"))
		same(t, "alerts", n.Raised(alert.PeriodRefused)[one[string](t, n.DB, "SELECT period_id FROM periods")], 2)
		late := n.Show(one[string](t, n.DB, "SELECT operation_id FROM operations WHERE transaction_id = 'late'"))
		same(t, "the late sale", fmt.Sprint(saidOf(late), late.Status, *late.AuthorityID1), "[PERIOD_FILED 301 PERIOD_FILED]SUCCESSA-2")
		same(t, "news that are still to be told", one[int64](t, n.DB, "SELECT count(*) FROM period_news"), 0)
		same(t, "of a sale that was in before", fmt.Sprint(saidOf(n.Show(ids[0]))), "[PERIOD_REFUSED PERIOD_FILED]")
	})
}

// What is said of a report before we know that the platform took it is not lost: its
// sales are told behind the acceptance, and a refusal has it made anew.
func TestWhatIsSaidOfAReportBeforeItsAcceptanceCounts(t *testing.T) {
	t.Parallel()
	rep, s := newReporter(t)
	var decided atomic.Bool
	send := rep.OnSend
	rep.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		if decided.Load() {
			return send(o, f)
		}
		rep.arrived(f)
		return country.Receipt{Outcome: country.Pending, Handle: f.Number}, nil
	}
	rep.OnPoll = func(o *office, f country.Filing, _ country.Receipt) (country.Receipt, error) {
		if decided.Load() {
			return o.Take(f), nil
		}
		return country.Receipt{Outcome: country.Pending, Handle: f.Number}, nil
	}
	virtual(t, s, func(t *testing.T, n *node) {
		n.TellAtOnce(2)
		supplier := n.Supplier(officeCode, "s1")
		n.Start()
		at(t, 10, 12, 0)
		var ids []string
		for i := range 3 {
			ids = append(ids, sold(t, n, supplier, fmt.Sprint("t", i), i+1))
		}
		at(t, 11, 2, 0)
		told(t, n, "m1", "T20000101-EUR-1", country.Receipt{News: []country.News{{Key: "301", Code: "301", Name: "Rejetée",
			Source: country.FromAuthority, Severity: country.Problem, Refuses: true, Message: "REJ_PER"}}})
		same(t, "told before the acceptance", len(n.Show(ids[0]).Lifecycle), 0)
		decided.Store(true)
		at(t, 12, 12, 0)
		n.Stop()
		for _, id := range ids {
			same(t, "said", fmt.Sprint(saidOf(n.Show(id)), n.Show(id).Status), "[301 PERIOD_FILED PERIOD_FILED]SUCCESS")
		}
		same(t, "alerts", n.Raised(alert.PeriodRefused)[one[string](t, n.DB, "SELECT period_id FROM periods")], 1)
		same(t, "news that are still to be told", one[int64](t, n.DB, "SELECT count(*) FROM period_news"), 0)
		same(t, "documents", one[string](t, n.DB, "SELECT min(state) || ' ' || max(state) FROM period_documents"), "accepted failed")
	})
}

// replaceReports has the documents of a period take each other's place.
func replaceReports(packs []country.Pack) {
	rules := *packs[0].Periods
	rules.Replaces = true
	packs[0].Periods = &rules
}

// Killed while a report is replaced: the authority gets it once, with everything, and
// one is accepted.
func TestAReplacingReportKilledInTheMiddleIsFiledOnce(t *testing.T) {
	needs.NotRaced(t, "another process")
	t.Parallel()
	for _, point := range []string{"gathered", "prepared", "sent", "answered", "settled"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			a := newAuthorities(t)
			s := a.Setup()
			s.Packs = slices.Clone(s.Packs)
			replaceReports(s.Packs)
			s.Documents = "file://" + t.TempDir()
			url := dbtest.SQLiteURL(t)
			var late string
			t.Run("furnish", func(t *testing.T) { // whose end closes the database
				d := dbtest.Open(t, db.Config{URL: url})
				n := newNode(t, d, s).Start()
				supplier := n.Supplier(byNumber, "s1", gathers(country.Daily))
				for i := range 2 {
					n.Succeeds(n.File(invoice(byNumber, supplier, fmt.Sprint("t", i))), fault.WaitsForPeriod)
				}
				closeAll(t, d)
				holds(n, a, "D20260301-EUR-1 PERIOD 45420")
				n.Until("it is accepted", func() bool {
					return one[int64](t, d, "SELECT count(*) FROM period_documents WHERE state = 'accepted'") == 1
				})
				late = n.File(invoice(byNumber, supplier, "late"))
				n.Succeeds(late, fault.WaitsForPeriod)
				n.Stop()
				closeAll(t, d)
			})
			killAt(t, errand{Database: url, Simulators: a.URL, Documents: s.Documents, Point: point, Replaces: true,
				Body: named(invoice(byNumber, "nobody", "t9")).Body(t)})

			d := dbtest.Open(t, db.Config{URL: url})
			n := newNode(t, d, s).Start()
			n.Until("the late sale is told", func() bool { return len(n.Show(late).Lifecycle) == 1 })
			same(t, "held", fmt.Sprint(booked(a, byNumber)), "[D20260301-EUR-1 PERIOD 45420 D20260301-EUR-2 PERIOD 68130]")
			same(t, "states", one[string](t, d, "SELECT max(state) || min(state) FROM period_documents"), "replacedaccepted")
			same(t, "documents", one[int64](t, d, "SELECT count(*) FROM period_documents"), 2)
		})
	}
}

// While a report is on its way a correction waits for it, and a late sale is in the next.
func TestWhatComesWhileAReportIsOnItsWay(t *testing.T) {
	t.Parallel()
	rep, s := newReporter(t)
	decided := false
	rep.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		rep.arrived(f)
		return country.Receipt{Outcome: country.Pending, Handle: f.Number}, nil
	}
	rep.OnPoll = func(o *office, f country.Filing, last country.Receipt) (country.Receipt, error) {
		if !decided {
			return country.Receipt{Outcome: country.Pending, Handle: last.Handle}, nil
		}
		return o.Take(f), nil
	}
	virtual(t, s, func(t *testing.T, n *node) {
		supplier := n.Supplier(officeCode, "s1")
		n.Start()
		at(t, 10, 12, 0)
		n.Succeeds(sold(t, n, supplier, "t1", 1), fault.WaitsForPeriod)
		n.Succeeds(sold(t, n, supplier, "t2", 2), fault.WaitsForPeriod)
		at(t, 11, 6, 0)
		credit := n.Hand(transaction.Credit, correction(officeCode, "t1", "c1"))
		n.Succeeds(sold(t, n, supplier, "late", 3), fault.WaitsForPeriod)
		at(t, 11, 7, 0)
		same(t, "the correction", n.Stage(credit), string(filing.Blocked))
		decided = true
		at(t, 13, 0, 0)
		n.Succeeds(credit, fault.WaitsForPeriod)
		n.Stop()
		same(t, "reported", strings.Join(rep.list(), "\n"), strings.Join([]string{
			"11 00:00 >T20000101-EUR-1 2:45420", "12 00:00 T20000101-EUR-1>T20000101-EUR-2 2:45420"}, "\n"))
	})
}
