package ro_test

import (
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/fault"
	"tributary/internal/incoming"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

func saying(status, note, index string) transaction.Answer {
	return transaction.Answer{Status: status, Note: note, To: transaction.Answered{Source: "RO.test", AuthorityID: index, Format: incoming.UBL,
		Number: "F-1", Day: "2026-03-02"}}
}

// A company answers in words what ANAF brought it, and nothing else.
func TestOnlyWhatANAFBroughtIsAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*transaction.Answer)
		want   fault.Code
	}{
		"accepted":            {func(*transaction.Answer) {}, ""},
		"refused, and why":    {func(a *transaction.Answer) { a.Status, a.Note = transaction.Rejected, "nu e a noastra" }, ""},
		"refused in vain":     {func(a *transaction.Answer) { a.Status, a.Note = transaction.Rejected, " " }, fault.FieldRequired},
		"disputed in vain":    {func(a *transaction.Answer) { a.Status = transaction.Disputed }, fault.FieldRequired},
		"a code":              {func(a *transaction.Answer) { a.Reason = "QTY" }, fault.ValidationMatchInvalid},
		"uploaded":            {func(a *transaction.Answer) { a.To.Source = "upload" }, fault.UnsupportedOperation},
		"without an index":    {func(a *transaction.Answer) { a.To.AuthorityID = "" }, fault.UnsupportedOperation},
		"of somebody else":    {func(a *transaction.Answer) { a.To.Source = "BE.test" }, fault.UnsupportedOperation},
		"an index of letters": {func(a *transaction.Answer) { a.To.AuthorityID = "x1" }, fault.UnsupportedOperation},
	} {
		a := saying(transaction.Accepted, "", "5000001")
		c.change(&a)
		var got fault.Code
		if found := pack().Answerable(supplier(), a); len(found) > 0 {
			got = found[0].Code
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// An answer is a message that ANAF takes, shows in its archive, and finds again after a lost answer; one about an
// invoice that is not ours, or that ANAF does not have, is refused.
func TestAnAnswerIsAMessageToTheIssuer(t *testing.T) {
	t.Parallel()
	front, at := beside(t)
	ch := open(t, at)
	d := now(invoice("ANS-1"))
	d.Transaction.Date = time.Now()
	sale := packtest.Prepared(t, ch, d)
	sold := decided(t, ch, sale)
	if sold.Outcome != country.Accepted {
		t.Fatalf("%+v", sold)
	}
	buyer := supplier()
	buyer.TaxNumber = business().TaxNumber
	prepared := func(of country.Supplier, a transaction.Answer) country.Filing {
		t.Helper()
		return packtest.Prepared(t, ch, country.Draft{OperationID: "answer", Supplier: of, Now: time.Now(),
			Transaction: transaction.Transaction{Kind: transaction.Response, Answer: &a}})
	}
	f := prepared(buyer, saying(transaction.Rejected, "nu\nexistă <marfa>", sold.AuthorityID1))
	doc, err := xmltree.Read(f.Report)
	if err != nil || doc.Root.Attr("index_incarcare") != sold.AuthorityID1 || doc.Root.Attr("message") != "Factura a fost refuzata: nu există <marfa>" {
		t.Fatalf("%s %v", f.Report, err)
	}
	if r, err := ch.Find(t.Context(), f, credentials()); err != nil || r.Outcome != country.Absent {
		t.Fatalf("before it is sent: %+v %v", r, err)
	}
	r := decided(t, ch, f)
	if r.Outcome != country.Accepted || r.AuthorityID1 == sold.AuthorityID1 || r.Format != "ZIP" || r.SHA256 != f.SHA256 {
		t.Fatalf("%+v", r)
	}
	if up := front.uploaded(); !strings.HasPrefix(up, "upload ") || !strings.Contains(up, "standard=RASP") || !strings.Contains(up, "cif=14399840") {
		t.Errorf("%s", up)
	}
	if found, err := ch.Find(t.Context(), f, credentials()); err != nil || found.Outcome != country.Accepted || found.AuthorityID1 != r.AuthorityID1 {
		t.Errorf("after it was sent: %+v %v", found, err)
	}
	for name, wrong := range map[string]country.Filing{
		"of another buyer":    prepared(supplier(), saying(transaction.Accepted, "", sold.AuthorityID1)),
		"an index of nobody":  prepared(buyer, saying(transaction.Accepted, "", "999")),
		"an answer's own one": prepared(buyer, saying(transaction.Accepted, "", r.AuthorityID1)),
	} {
		if r := decided(t, ch, wrong); r.Outcome != country.Rejected {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if again, err := ch.Find(t.Context(), sale, credentials()); err != nil || again.AuthorityID1 != sold.AuthorityID1 {
		t.Errorf("the sale is found as %+v %v", again, err)
	}
}

// decided sends a filing and asks until it is decided.
func decided(t *testing.T, ch country.Channel, f country.Filing) country.Receipt {
	t.Helper()
	r, err := send(t, ch, f)
	for range 5 {
		if err != nil || r.Outcome != country.Pending {
			break
		}
		r, err = ch.Poll(t.Context(), f, r, credentials())
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}
