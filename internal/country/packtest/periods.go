package packtest

import (
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
