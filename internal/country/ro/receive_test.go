package ro_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
)

// Four documents to a company come in looks of at most three, each once on the way, and
// again where a mark goes back; what it sent itself and what others got does not come.
func TestWhatOthersSentIsListedAndGot(t *testing.T) {
	t.Parallel()
	_, at := beside(t)
	ch := open(t, at)
	for n := range 4 {
		d := now(invoice(fmt.Sprintf("IN-%d", n)))
		d.Transaction.Date = time.Now()
		f := packtest.Prepared(t, ch, d)
		r, err := send(t, ch, f)
		for range 3 { // its decision is asked for
			if err == nil {
				r, err = ch.Poll(t.Context(), f, r, credentials())
			}
		}
		if err != nil || r.Outcome != country.Accepted {
			t.Fatalf("%+v %v", r, err)
		}
	}
	buyer := supplier()
	buyer.TaxNumber = business().TaxNumber
	look := pack().Receive.Fetch.Look
	ask := func(of country.Supplier, cursor string, seen map[string]int) country.Fetched {
		t.Helper()
		got, err := look(t.Context(), country.Inquiry{Channel: ch, Supplier: of, Credentials: credentials(), Cursor: cursor, Limit: 3,
			From: time.Now().AddDate(-1, 0, 0),
			Stored: func(_ context.Context, ids []string) (map[string]bool, error) { // lists meet, and both tell of what came then
				here := map[string]bool{}
				for _, id := range ids {
					here[id] = seen[id] > 0
				}
				return here, nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	seen, cursor := map[string]int{}, ""
	for more := true; more; {
		got := ask(buyer, cursor, seen)
		if len(got.Documents) > 3 || got.Cursor == cursor {
			t.Fatalf("%d documents, from %q to %q", len(got.Documents), cursor, got.Cursor)
		}
		for _, d := range got.Documents {
			seen[d.AuthorityID]++
			if !strings.Contains(string(d.Bytes), "<cbc:ID>IN-") || d.Format != "XML" {
				t.Errorf("%s: %s", d.AuthorityID, d.Bytes[:100])
			}
		}
		cursor, more = got.Cursor, got.More
	}
	if len(seen) != 4 {
		t.Errorf("%v came", seen)
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%s came %d times", id, times)
		}
	}
	if again := ask(buyer, "", nil); len(again.Documents) == 0 && !again.More {
		t.Error("nothing comes again from the beginning")
	}
	if own := ask(supplier(), "", nil); len(own.Documents) != 0 {
		t.Errorf("the seller is brought %d documents", len(own.Documents))
	}
}
