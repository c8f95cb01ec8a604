package packtest

import (
	"fmt"
	"testing"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// periods asks a pack that gathers sales: gathering is pure, the document of a
// period is accepted once, whole and in part, and taken back when a sale leaves.
func (s suite) periods(t *testing.T) {
	sales := s.o.Abilities.Gathers
	if len(sales) < 2 {
		t.Fatal("a pack that gathers sales brings two that are gathered, see Abilities.Gathers")
	}
	rules := s.pack.Periods
	if rules.Replaces {
		s.replaced(t, sales)
		return
	}
	if rules.LinesMax < 1 || rules.BytesMax < 1 || rules.Within <= 0 || rules.Withdraw == "" {
		t.Errorf("a document of a period has bounds, a deadline and a reason to be withdrawn: %+v", rules)
	}
	w := s.wired(t)
	p := &country.Period{Number: "D20260301-1"}
	for i := range sales {
		sales[i].Credentials = s.o.Credentials
		before := snapshot(sales[i])
		g, err := rules.Gather(sales[i])
		again, wrong := rules.Gather(sales[i])
		switch {
		case err != nil || wrong != nil:
			t.Fatal(err, wrong)
		case g == nil || again == nil || string(g.Data) != string(again.Data):
			t.Fatalf("sale %d is not gathered, or not twice alike: %+v %+v", i, g, again)
		case before != snapshot(sales[i]):
			t.Errorf("gathering changed sale %d", i)
		case g.Lines < 1 || len(g.Data) == 0 || g.Leaves || g.Filed || !g.Span.First.Before(g.Span.Next) || g.Net+g.Tax != g.Gross:
			t.Errorf("sale %d: %+v", i, g)
		}
		p.Span = g.Span
		p.Sales = append(p.Sales, country.PeriodSale{TransactionID: sales[i].Transaction.ID,
			Number: sales[i].Transaction.Number, Data: g.Data, Gross: g.Gross, Net: g.Net, Tax: g.Tax})
	}
	whole := periodDraft(sales[0], p)
	first := s.prepare(t, w, whole)
	e := w.file(t, first)
	if e.verdict != accepted {
		t.Fatalf("the document of a period: %s %v", e.verdict, e.receipt.Faults)
	}
	if first.Number != p.Number || len(w.registrations(t)) != 1 {
		t.Errorf("number %s, %d registrations", first.Number, len(w.registrations(t)))
	}
	gone := sales[0]
	gone.OperationID, gone.UniqueNumber = gone.OperationID+"-w", gone.UniqueNumber+"W"
	gone.Transaction = transaction.Transaction{Kind: transaction.Cancellation, ID: "period:w",
		CountryCode: gone.Transaction.CountryCode, CurrencyCode: gone.Transaction.CurrencyCode,
		Date: gone.Now, ReferenceID: whole.Transaction.ID, Reason: rules.Withdraw}
	gone.Totals = transaction.Totals{}
	gone.Original = &country.Original{Transaction: whole.Transaction, UniqueNumber: whole.UniqueNumber,
		Report: first.Report, AuthorityID1: e.receipt.AuthorityID1, AuthorityID2: e.receipt.AuthorityID2}
	if g, err := rules.Gather(gone); g != nil || err != nil {
		t.Errorf("a withdrawal is filed by itself: %+v %v", g, err)
	}
	gone.Previous = first.Link
	second := s.prepare(t, w, gone)
	if e := w.file(t, second); e.verdict != accepted {
		t.Errorf("withdrawn: %s %v", e.verdict, e.receipt.Faults)
	}
	rest := *p
	rest.Number, rest.Sales = "D20260301-2", p.Sales[1:]
	third := periodDraft(sales[0], &rest)
	third.Previous = second.Link
	if e := w.file(t, s.prepare(t, w, third)); e.verdict != accepted {
		t.Errorf("made anew without a sale: %s %v", e.verdict, e.receipt.Faults)
	}
}

// replaced asks a pack whose reports take the place of the one before: gathering is
// pure, what sales contribute is added up, and a report with all sales is accepted
// behind one with the first alone.
func (s suite) replaced(t *testing.T, sales []country.Draft) {
	rules, w := s.pack.Periods, s.wired(t)
	var list []country.PeriodSale
	var span country.Span
	for i := range sales {
		sales[i].Credentials = s.o.Credentials
		before := snapshot(sales[i])
		g, err := rules.Gather(sales[i])
		again, wrong := rules.Gather(sales[i])
		switch {
		case err != nil || wrong != nil:
			t.Fatal(err, wrong)
		case g == nil || again == nil || string(g.Data) != string(again.Data) || before != snapshot(sales[i]):
			t.Fatalf("sale %d is not gathered, or not twice alike: %+v %+v", i, g, again)
		case len(g.Data) == 0 || g.Leaves || g.Filed || !g.Span.First.Before(g.Span.Next) || g.Net+g.Tax != g.Gross:
			t.Errorf("sale %d: %+v", i, g)
		case !g.Span.Due.IsZero() && !g.Span.Due.After(g.Span.Next):
			t.Errorf("sale %d is due before its period ends: %+v", i, g.Span)
		}
		span = g.Span
		list = append(list, country.PeriodSale{TransactionID: sales[i].Transaction.ID, Number: sales[i].Transaction.Number,
			Data: g.Data, Gross: g.Gross, Net: g.Net, Tax: g.Tax})
	}
	before := ""
	for n := range 2 {
		p := &country.Period{Span: span, Number: fmt.Sprintf("D20260301-%d", n+1), Replaces: before}
		some := list[:1+n*(len(list)-1)]
		sum, err := rules.Sum(func(yield func(country.PeriodSale, error) bool) {
			for _, sale := range some {
				if !yield(sale, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		p.Sum, p.Count = sum, int64(len(some))
		f := s.prepare(t, w, periodDraft(sales[0], p))
		if e := w.file(t, f); e.verdict != accepted || f.Number != p.Number || len(w.registrations(t)) != n+1 {
			t.Errorf("report %d: %s %v, %d registrations", n+1, e.verdict, e.receipt.Faults, len(w.registrations(t)))
		}
		before = p.Number
	}
}

// periodDraft is the document of a period as the service asks for it.
func periodDraft(like country.Draft, p *country.Period) country.Draft {
	d := like
	d.OperationID, d.UniqueNumber = d.OperationID+"-p"+p.Number, d.UniqueNumber+"P"+p.Number
	d.Transaction = transaction.Transaction{Kind: transaction.Period, ID: "period:" + p.Number, Number: p.Number,
		CountryCode:  like.Transaction.CountryCode,
		CurrencyCode: like.Transaction.CurrencyCode, Date: like.Now, SupplierID: like.Transaction.SupplierID}
	d.Totals, d.Period = transaction.Totals{}, p
	for _, sale := range p.Sales {
		d.Totals.Gross, d.Totals.Net, d.Totals.Tax = d.Totals.Gross+sale.Gross, d.Totals.Net+sale.Net, d.Totals.Tax+sale.Tax
	}
	return d
}
