package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/document"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/result"
	"tributary/internal/transaction"
	"tributary/internal/turnstile"
)

func TestListFiltersAndPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAuthorities(t)
		n := newNode(t, d, a.Setup()).Start()
		one, two := n.Supplier(byNumber, "s1"), n.Supplier(byHash, "s2")
		day := func(d int) string { return fmt.Sprintf("2026-03-%02dT00:00:00Z", d) }
		for i := 1; i <= 5; i++ {
			n.Succeeds(n.File(invoice(byNumber, one, fmt.Sprint("t", i)).With("transaction_date", day(i))))
		}
		n.Succeeds(n.File(invoice(byHash, two, "h1").With("transaction_date", day(9))))
		n.Fails(n.File(invoice(byNumber, one, "r1").With("transaction_number", "n-REJECT").With("transaction_date",
			day(10))), fault.AuthorityRejected)

		at := func(d int) time.Time { return time.Date(2026, 3, d, 0, 0, 0, 0, time.UTC) }
		for name, c := range map[string]struct {
			filter ledger.Filter
			want   string
		}{
			"all, newest first": {ledger.Filter{}, "[r1 h1 t5 t4 t3 t2 t1]"},
			"status":            {ledger.Filter{Status: filing.Failure}, "[r1]"},
			"country":           {ledger.Filter{Country: byHash}, "[h1]"},
			"supplier":          {ledger.Filter{SupplierID: two}, "[h1]"},
			"number":            {ledger.Filter{Number: "N-t3"}, "[t3]"},
			"from":              {ledger.Filter{From: at(5)}, "[r1 h1 t5]"},
			"to":                {ledger.Filter{To: at(2)}, "[t2 t1]"},
			"between":           {ledger.Filter{From: at(2), To: at(4), Status: filing.Success}, "[t4 t3 t2]"},
			"nothing":           {ledger.Filter{Number: "none"}, "[]"},
		} {
			c.filter.Limit = 20
			same(t, name, fmt.Sprint(idsOf(listed(t, n, c.filter))), c.want)
		}
		var pages []string
		for f := (ledger.Filter{Limit: 3}); ; {
			page, next, err := n.List(context.Background(), client, f)
			must(t, err)
			pages = append(pages, fmt.Sprint(idsOf(page)))
			if f.After = next; next == "" {
				break
			}
		}
		same(t, "pages", fmt.Sprint(pages), "[[r1 h1 t5] [t4 t3 t2] [t1]]")
		exact, next, err := n.List(context.Background(), client, ledger.Filter{Limit: 7})
		must(t, err)
		same(t, "a page that holds all has no next", fmt.Sprintf("%d %q", len(exact), next), `7 ""`)
	})
}

// TestAPageIsBoundedByBytes: of large documents a page holds fewer, nothing is
// left out on the way, and rows do not carry what makes documents large.
func TestAPageIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, newAuthorities(t).Setup()).Start()
		supplier := n.Supplier(byNumber, "s1")
		items := make([]any, 400)
		text := strings.Repeat("\U00020000", 200) // letters of four bytes make it large without making it long to read
		for i := range items {
			line := item(1, 100)
			line["number"], line["name"], line["description"] = i+1, text, text
			items[i] = line
		}
		for i := range 9 {
			n.Succeeds(n.File(invoice(byNumber, supplier, fmt.Sprint("t", i)).With("items", items)))
		}
		var pages []int
		var ids []string
		for f := (ledger.Filter{Limit: 100}); ; {
			page, next, err := n.List(context.Background(), client, f)
			must(t, err)
			pages, ids = append(pages, len(page)), append(ids, idsOf(page)...)
			text, err := json.Marshal(page)
			must(t, err)
			for _, member := range []string{"items", "payments", "attachments", "lifecycle"} {
				if bytes.Contains(text, []byte(`"`+member+`"`)) {
					t.Errorf("a row has %s", member)
				}
			}
			if len(text) > 64<<10 {
				t.Errorf("a page of %d rows has %d bytes", len(page), len(text))
			}
			if f.After = next; next == "" {
				break
			}
		}
		same(t, "all of them, in order", fmt.Sprint(ids), "[t8 t7 t6 t5 t4 t3 t2 t1 t0]")
		if len(pages) < 2 || pages[0] < 1 || pages[0] > 8 {
			t.Errorf("pages of %v rows", pages)
		}
	})
}

func listed(t *testing.T, n *node, f ledger.Filter) []*result.Row {
	t.Helper()
	list, _, err := n.List(context.Background(), client, f)
	must(t, err)
	return list
}

func idsOf(list []*result.Row) []string {
	ids := []string{}
	for _, r := range list {
		ids = append(ids, string(r.TransactionID))
	}
	return ids
}

// A result in every state has the body's own facts; what is not known yet is null or empty.
func TestAResultInEveryState(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	s := a.Setup()
	s.Render = func(_ context.Context, issued filing.Issued) (document.Rendering, error) {
		if issued.Transaction.Note == "unprintable" {
			return document.Rendering{}, errors.New("no paper")
		}
		made := document.Rendering{PDF: []byte("%PDF " + issued.UniqueNumber + issued.AuthorityID1),
			English: issued.Transaction.LanguageCode != "EN"}
		if issued.Transaction.Note == "unwritten" {
			made.Missing = []string{"Thai"}
		}
		return made, nil
	}
	n := newNode(t, dbtest.SQLite(t), s)
	supplier := n.Supplier(byNumber, "s1")
	id := n.File(invoice(byNumber, supplier, "t1"))
	r := n.Show(id)
	same(t, "before", fmt.Sprintln(r.Status, r.UniqueNumber, r.AuthorityID1, r.ReportedAt, len(r.Attachments),
		*r.TotalAmount, *r.Supplier.ExternalID, r.BusinessModel, r.Type),
		"PROCESSING <nil> <nil> <nil> 0 22710 s1 B2C SIMPLIFIED\n")
	n.Start()
	r = n.Succeeds(id)
	if r.UniqueNumber == nil || r.AuthorityID1 == nil || r.ReportedAt == nil || r.GeneratedAt == nil || r.QRCode == nil {
		t.Errorf("after: %+v", r)
	}
	kinds := ""
	for _, at := range r.Attachments {
		kinds += at.Kind + "/" + at.Type + " "
	}
	same(t, "attachments", kinds, "VISUAL/PDF REPORT/JSON RECEIPT/JSON ")
	same(t, "line", fmt.Sprintln(r.Items[0].NetPrice, r.Items[0].Taxes[0].Amount, r.Items[0].Taxes[0].Type),
		"18168 4542 STANDARD\n")

	// A document that cannot be made does not undo the registration.
	n.Succeeds(n.File(invoice(byNumber, supplier, "t2").With("note", "unprintable")), fault.InternalError)
	n.Succeeds(n.File(invoice(byNumber, supplier, "t3").With("language_code", "ZU")), fault.LanguageFallback)
	n.Succeeds(n.File(invoice(byNumber, supplier, "t5").With("note", "unwritten")), fault.ScriptUnavailable)
	same(t, "alerts", len(n.Raised("document_failed")), 1)
	n.Succeeds(n.File(invoice(byNumber, supplier, "t4").With("colour", "red")), fault.FieldUnknown)
	same(t, "registrations", len(a.Registered(byNumber)), 5)
}

func TestReportingMakesNoDocumentForPeople(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	s := a.Setup()
	s.Render = func(context.Context, filing.Issued) (document.Rendering, error) {
		t.Error("a document was made")
		return document.Rendering{}, nil
	}
	n := newNode(t, dbtest.SQLite(t), s).Start()
	who := caller(client)
	who.UseCase = func(string) (country.UseCase, bool) { return country.Reporting, true }
	id, err := n.Submit(t.Context(), who, transaction.Invoice, invoice(byNumber, n.Supplier(byNumber, "s1"), "t1").Body(t))
	must(t, err)
	same(t, "attachments", len(n.Succeeds(id).Attachments), 2)
}

// A country of documents only: nothing is filed, everything else holds.
func TestDocumentsOnly(t *testing.T) {
	t.Parallel()
	p := newOffice(country.ByNumber).Pack()
	p.Connect, p.Facts.Authority, p.Facts.UseCases = nil, nil, []country.UseCase{country.Invoicing}
	var made atomic.Int64
	n := newNode(t, dbtest.SQLite(t), setup{Packs: []country.Pack{p},
		Render: func(_ context.Context, issued filing.Issued) (document.Rendering, error) {
			made.Add(1)
			return document.Rendering{PDF: []byte(issued.UniqueNumber)}, nil
		}}).Start()
	supplier := n.Supplier(officeCode, "s1")
	id := n.File(invoice(officeCode, supplier, "t1"))
	r := n.Succeeds(id)
	same(t, "filed", fmt.Sprint(r.ReportedAt == nil, r.AuthorityID1 == nil, len(r.Attachments)), "true true 1")
	same(t, "resubmit", n.File(invoice(officeCode, supplier, "t1")), id)
	n.Succeeds(n.Hand(transaction.Cancellation, correction(officeCode, "t1", "x1")))
	n.Fails(n.Hand(transaction.Cancellation, correction(officeCode, "t1", "x2")), fault.ReferenceAlreadyCorrected)
	n.Fails(n.File(invoice(officeCode, "nobody", "t2")), fault.SupplierUnknown)
	same(t, "documents made", made.Load(), 2)
	same(t, "filings", one[int64](t, n.DB, "SELECT count(*) FROM filings"), 0)
}

// What is stored of a large document goes out as it stands: neither a list nor its own
// answer reads its lines, and both are what reading and writing them would make.
func TestStoredLinesAreNotRead(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, newAuthorities(t).Setup()).Start()
		supplier := n.Supplier(byNumber, "s1")
		n.Succeeds(n.File(invoice(byNumber, supplier, "good")))
		failed := n.File(invoice(byNumber, supplier, "bad").With("transaction_number", "n-REJECT"))
		n.Fails(failed, fault.AuthorityRejected)
		for _, row := range listed(t, n, ledger.Filter{Limit: 9}) {
			whole, err := n.Result(context.Background(), client, row.OperationID)
			must(t, err)
			same(t, string(row.TransactionID), unsigned.ReplaceAllString(answerOf(t, n, row.OperationID), ""),
				unsigned.ReplaceAllString(whole.Encode(), ""))
		}
		const marked = `"items":[{"no JSON":}],`
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.ExecOne(`UPDATE operations SET result = replace(result, '"items":[', '"items":[{"no JSON":}],"was":[') WHERE operation_id = $1`,
				failed)
		}))
		if got := answerOf(t, n, failed); !strings.Contains(got, marked) {
			t.Errorf("the lines are not as they are stored: %s", got)
		}
		same(t, "a list with it", fmt.Sprint(idsOf(listed(t, n, ledger.Filter{Limit: 9}))), "[bad good]")
	})
}

// unsigned are the addresses of documents, which are made for every answer.
var unsigned = regexp.MustCompile(`"resource_url":"[^"]*"`)

func answerOf(t *testing.T, n *node, id string) string {
	t.Helper()
	text, done, err := n.Ledger.Answer(context.Background(), client, id)
	must(t, err)
	defer done()
	return string(bytes.Join(text, nil))
}

// Large results are weighed before they are read: while others are read it waits that
// asks for one, and nobody who asks for a small one.
func TestLargeReadsWaitAndSmallOnesDoNot(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, newAuthorities(t).Setup()).Start()
		supplier := n.Supplier(byNumber, "s1")
		items := make([]any, 400)
		for i := range items {
			items[i] = item(1, 100)
			items[i].(map[string]any)["number"] = i + 1
			items[i].(map[string]any)["name"] = strings.Repeat("\U00020000", 200)
			items[i].(map[string]any)["description"] = strings.Repeat("\U00020000", 200)
		}
		large := n.File(invoice(byNumber, supplier, "large").With("items", items))
		small := n.File(invoice(byNumber, supplier, "small"))
		n.Succeeds(large)
		n.Succeeds(small)
		leave := n.Ledger.FillReads(t.Context(), "many")
		late := turnstile.AnswerBy(t.Context(), time.Now()) // who has no time to wait is told so
		for id, want := range map[string]fault.Kind{small: 0, large: fault.Unavailable} {
			_, done, err := n.Ledger.Answer(late, client, id)
			if err == nil {
				done()
			}
			if err == nil != (want == 0) || err != nil && fault.KindOf(err) != want {
				t.Errorf("%s beside a large read: %v", id, err)
			}
		}
		// The head of a large row is read alone on PostgreSQL, and not without the rest on SQLite.
		list, _, err := n.List(late, client, ledger.Filter{Limit: 9})
		if d.Engine() == "postgres" {
			must(t, err)
			same(t, "rows", fmt.Sprint(idsOf(list)), "[small large]")
		} else if fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a list of large rows beside a large read: %v", err)
		}
		leave()
		list, _, err = n.List(t.Context(), client, ledger.Filter{Limit: 9})
		must(t, err)
		same(t, "rows", fmt.Sprint(idsOf(list)), "[small large]")
		if got := answerOf(t, n, large); len(got) < 600_000 {
			t.Errorf("afterwards the large one has %d bytes", len(got))
		}
	})
}
