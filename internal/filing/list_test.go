package filing_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/filing"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

func TestListFiltersAndPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.setup()).start()
		one, two := n.supplier(byNumber, "s1"), n.supplier(byHash, "s2")
		day := func(d int) string { return fmt.Sprintf("2026-03-%02dT00:00:00Z", d) }
		for i := 1; i <= 5; i++ {
			n.succeeds(n.file(invoice(byNumber, one, fmt.Sprint("t", i)).with("transaction_date", day(i))))
		}
		n.succeeds(n.file(invoice(byHash, two, "h1").with("transaction_date", day(9))))
		n.fails(n.file(invoice(byNumber, one, "r1").with("transaction_number", "n-REJECT").with("transaction_date", day(10))), fault.AuthorityRejected)

		at := func(d int) time.Time { return time.Date(2026, 3, d, 0, 0, 0, 0, time.UTC) }
		for name, c := range map[string]struct {
			filter filing.Filter
			want   string
		}{
			"all, newest first": {filing.Filter{}, "[r1 h1 t5 t4 t3 t2 t1]"},
			"status":            {filing.Filter{Status: filing.Failure}, "[r1]"},
			"country":           {filing.Filter{Country: byHash}, "[h1]"},
			"supplier":          {filing.Filter{SupplierID: two}, "[h1]"},
			"number":            {filing.Filter{Number: "N-t3"}, "[t3]"},
			"from":              {filing.Filter{From: at(5)}, "[r1 h1 t5]"},
			"to":                {filing.Filter{To: at(2)}, "[t2 t1]"},
			"between":           {filing.Filter{From: at(2), To: at(4), Status: filing.Success}, "[t4 t3 t2]"},
			"nothing":           {filing.Filter{Number: "none"}, "[]"},
		} {
			c.filter.Limit = 20
			same(t, name, fmt.Sprint(idsOf(listed(t, n, c.filter))), c.want)
		}
		var pages []string
		for f := (filing.Filter{Limit: 3}); ; {
			page, next, err := n.List(context.Background(), client, f)
			must(t, err)
			pages = append(pages, fmt.Sprint(idsOf(page)))
			if f.After = next; next == "" {
				break
			}
		}
		same(t, "pages", fmt.Sprint(pages), "[[r1 h1 t5] [t4 t3 t2] [t1]]")
		exact, next, err := n.List(context.Background(), client, filing.Filter{Limit: 7})
		must(t, err)
		same(t, "a page that holds all has no next", fmt.Sprintf("%d %q", len(exact), next), `7 ""`)
	})
}

func listed(t *testing.T, n *node, f filing.Filter) []*filing.Result {
	t.Helper()
	list, _, err := n.List(context.Background(), client, f)
	must(t, err)
	return list
}

func idsOf(list []*filing.Result) []string {
	ids := []string{}
	for _, r := range list {
		ids = append(ids, r.TransactionID)
	}
	return ids
}

// A result in every state has the body's own facts; what is not known yet is null or empty.
func TestAResultInEveryState(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	s := a.setup()
	s.render = func(_ context.Context, issued filing.Issued) ([]byte, bool, error) {
		if issued.Transaction.Note == "unprintable" {
			return nil, false, errors.New("no paper")
		}
		return []byte("%PDF " + issued.UniqueNumber + issued.AuthorityID1), issued.Transaction.LanguageCode != "EN", nil
	}
	n := newNode(t, dbtest.SQLite(t), s)
	supplier := n.supplier(byNumber, "s1")
	id := n.file(invoice(byNumber, supplier, "t1"))
	r := n.result(id)
	same(t, "before", fmt.Sprintln(r.Status, r.UniqueNumber, r.AuthorityID1, r.ReportedAt, len(r.Attachments), *r.TotalAmount, *r.Supplier.ExternalID, r.BusinessModel, r.Type),
		"PROCESSING <nil> <nil> <nil> 0 22710 s1 B2C SIMPLIFIED\n")
	n.start()
	r = n.succeeds(id)
	if r.UniqueNumber == nil || r.AuthorityID1 == nil || r.ReportedAt == nil || r.GeneratedAt == nil || r.QRCode == nil {
		t.Errorf("after: %+v", r)
	}
	kinds := ""
	for _, at := range r.Attachments {
		kinds += at.Kind + "/" + at.Type + " "
	}
	same(t, "attachments", kinds, "VISUAL/PDF REPORT/JSON RECEIPT/JSON ")
	same(t, "line", fmt.Sprintln(r.Items[0].NetPrice, r.Items[0].Taxes[0].Amount, r.Items[0].Taxes[0].Type), "18168 4542 STANDARD\n")

	// A document that cannot be made does not undo the registration.
	n.succeeds(n.file(invoice(byNumber, supplier, "t2").with("note", "unprintable")), fault.InternalError)
	n.succeeds(n.file(invoice(byNumber, supplier, "t3").with("language_code", "ZU")), fault.LanguageFallback)
	same(t, "alerts", len(n.raised("document_failed")), 1)
	n.succeeds(n.file(invoice(byNumber, supplier, "t4").with("colour", "red")), fault.FieldUnknown)
	same(t, "registrations", len(a.registered(byNumber)), 4)
}

func TestReportingMakesNoDocumentForPeople(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	s := a.setup()
	s.render = func(context.Context, filing.Issued) ([]byte, bool, error) {
		t.Error("a document was made")
		return nil, false, nil
	}
	n := newNode(t, dbtest.SQLite(t), s).start()
	who := caller(client)
	who.UseCase = func(string) (country.UseCase, bool) { return country.Reporting, true }
	id, err := n.Submit(t.Context(), who, transaction.Invoice, invoice(byNumber, n.supplier(byNumber, "s1"), "t1").body(t))
	must(t, err)
	same(t, "attachments", len(n.succeeds(id).Attachments), 2)
}

// A country of documents only: nothing is filed, everything else holds.
func TestDocumentsOnly(t *testing.T) {
	t.Parallel()
	p := newOffice(country.ByNumber).pack()
	p.Connect, p.Facts.Authority, p.Facts.UseCases, p.Facts.Obliged = nil, nil, []country.UseCase{country.Invoicing}, false
	var made atomic.Int64
	n := newNode(t, dbtest.SQLite(t), setup{packs: []country.Pack{p}, render: func(_ context.Context, issued filing.Issued) ([]byte, bool, error) {
		made.Add(1)
		return []byte(issued.UniqueNumber), false, nil
	}}).start()
	supplier := n.supplier(officeCode, "s1")
	id := n.file(invoice(officeCode, supplier, "t1"))
	r := n.succeeds(id)
	same(t, "filed", fmt.Sprint(r.ReportedAt == nil, r.AuthorityID1 == nil, len(r.Attachments)), "true true 1")
	same(t, "resubmit", n.file(invoice(officeCode, supplier, "t1")), id)
	n.succeeds(n.submit(transaction.Cancellation, correction(officeCode, "t1", "x1")))
	n.fails(n.submit(transaction.Cancellation, correction(officeCode, "t1", "x2")), fault.ReferenceAlreadyCorrected)
	n.fails(n.file(invoice(officeCode, "nobody", "t2")), fault.SupplierUnknown)
	same(t, "documents made", made.Load(), 2)
	same(t, "filings", one[int64](t, n.d, "SELECT count(*) FROM filings"), 0)
}
