package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/mutate"
	"tributary/internal/transaction"
)

// withCustomer names a buyer with a tax number.
func withCustomer(p paper, number string) paper {
	return p.With("customer", map[string]any{"legal_name": "Buyer", "type": "BUSINESS",
		"address": map[string]any{"country_code": "XX", "city": "Exampleton", "postal_code": "12345",
			"address_line_1": "1 Sample Street"},
		"tax_information": map[string]any{"tax_number": number, "regime": "VAT"}})
}

// found answers the operations of one page.
func found(n *node, q ledger.Query) []string {
	n.T.Helper()
	page, err := n.Search(context.Background(), q)
	must(n.T, err)
	var ids []string
	for _, s := range page.List {
		ids = append(ids, s.OperationID)
	}
	return ids
}

func index(n *node) {
	n.T.Helper()
	must(n.T, n.IndexNow(context.Background()))
}

func sameIDs(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: found %v, want %v", what, got, want)
	}
}

func minor(n int64) *int64 { return &n }

func TestOperationsAreFoundByWhateverIsKnownOfThem(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, a.Setup()).Start()
		supplier := n.Supplier(byNumber, "seller-"+d.Engine(), taxNumber("XX987654"+d.Engine()[:1]))
		first := n.File(withCustomer(invoice(byNumber, supplier, "ord-77/a").With("transaction_number",
			"INV 2026-0001."+d.Engine()), "XX-123.456.789"))
		other := n.SupplierOf("c_two", byNumber, "seller-two-"+d.Engine())
		second := n.HandAs("c_two", transaction.Invoice,
			invoice(byNumber, other, "other-1"+d.Engine()).With("items", []any{item(1, 500)}))
		result := n.Succeeds(first)
		n.Until("the second is settled", func() bool {
			r, err := n.Result(context.Background(), "c_two", second)
			return err == nil && r.Status == filing.Success
		})
		index(n)
		for _, text := range []string{
			first, strings.ToUpper(first), strings.ReplaceAll(first, "-", ""), *result.UniqueNumber,
			"ORD77A", "ord-77/a", "inv20260001" + d.Engine(), "INV 2026-0001." + d.Engine(), "XX123456789", "123 456 789",
			supplier, "seller-" + d.Engine(), "XX-987654" + d.Engine()[:1], *result.AuthorityID1,
			one[string](t, d, "SELECT webhook_id FROM webhook_events WHERE resource_id = $1", first),
		} {
			sameIDs(t, text, found(n, ledger.Query{Text: text}), first)
		}
		sameIDs(t, "amount", found(n, ledger.Query{Amount: minor(22710)}), first)
		sameIDs(t, "amount of the other client", found(n, ledger.Query{Amount: minor(500), ClientID: "c_two"}), second)
		sameIDs(t, "amount and another client", found(n, ledger.Query{Amount: minor(500), ClientID: client}))
		sameIDs(t, "text and amount that do not belong together", found(n, ledger.Query{Text: "ORD77A", Amount: minor(500)}))
		sameIDs(t, "everything", found(n, ledger.Query{}), second, first)
		sameIDs(t, "country", found(n, ledger.Query{Country: byNumber}), second, first)
		sameIDs(t, "another country", found(n, ledger.Query{Country: byChain}))
		sameIDs(t, "client", found(n, ledger.Query{ClientID: client}), first)
		sameIDs(t, "status", found(n, ledger.Query{Status: filing.Success, Stage: filing.Settled}), second, first)
		sameIDs(t, "failures", found(n, ledger.Query{Status: filing.Failure}))
		sameIDs(t, "open", found(n, ledger.Query{Status: filing.Processing}))
		sameIDs(t, "nothing of that text", found(n, ledger.Query{Text: "nobody"}))
		sameIDs(t, "before it all", found(n, ledger.Query{To: d.Now().Add(-time.Hour)}))
		sameIDs(t, "from before it all", found(n, ledger.Query{From: d.Now().Add(-time.Hour), To: d.Now().Add(time.Hour)}),
			second, first)
		sameIDs(t, "from the future", found(n, ledger.Query{From: d.Now().Add(time.Hour)}))
	})
}

// Filters besides the text: whose it is, by whatever is known of the supplier, the
// beginning of the number, the document's own day, and the code of an error; before
// anything is indexed as well, but for the number.
func TestSearchesAreNarrowedBySupplierNumberDayAndError(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, a.Setup()).Start()
		supplier, other := n.Supplier(byNumber, "one-"+d.Engine()), n.Supplier(byNumber, "two-"+d.Engine())
		sale := n.File(invoice(byNumber, supplier, "sale").With("transaction_number", "AB_1-"+d.Engine()))
		n.Succeeds(sale)
		credit := n.Hand(transaction.Credit, correction(byNumber, "sale", "credit"))
		n.Succeeds(credit)
		failed := n.Hand(transaction.Credit, correction(byNumber, "no-such-sale", "failed"))
		n.Fails(failed, fault.ReferenceUnknown)
		foreign := n.File(invoice(byNumber, other, "foreign").With("transaction_number", "ABX1-"+d.Engine()))
		n.Succeeds(foreign)
		// Before all of it is indexed; whose a correction is, the index learns when it is decided.
		if list := found(n, ledger.Query{Supplier: supplier}); !slices.Contains(list, sale) || slices.Contains(list, foreign) {
			t.Errorf("supplier, not indexed yet: found %v", list)
		}
		index(n)
		for _, text := range []string{supplier, " one-" + d.Engine()} {
			sameIDs(t, "supplier "+text, found(n, ledger.Query{Supplier: text}), credit, sale)
		}
		sameIDs(t, "an unknown supplier", found(n, ledger.Query{Supplier: "nobody"}))
		sameIDs(t, "supplier and kind", found(n, ledger.Query{Supplier: supplier, Kind: transaction.Credit}), credit)
		sameIDs(t, "number", found(n, ledger.Query{Number: "ab_1"}), sale) // _ is no joker
		sameIDs(t, "the end of a number", found(n, ledger.Query{Number: d.Engine()}))
		sameIDs(t, "number of another supplier", found(n, ledger.Query{Number: "ABX", Supplier: supplier}))
		sameIDs(t, "error", found(n, ledger.Query{Error: fault.ReferenceUnknown}), failed)
		sameIDs(t, "error of nobody", found(n, ledger.Query{Error: "reference%"}))
		page, err := n.Search(context.Background(), ledger.Query{Number: "AB_1"})
		must(t, err)
		day := page.List[0].DatedAt
		sameIDs(t, "day", found(n, ledger.Query{Number: "AB_1", DatedFrom: day, DatedTo: day.Add(time.Second)}), sale)
		sameIDs(t, "the day before", found(n, ledger.Query{DatedTo: day, Supplier: supplier}))
		_, err = n.Search(context.Background(), ledger.Query{Number: strings.Repeat("1", ledger.TextMax+1)})
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("a number of %d bytes: %v", ledger.TextMax+1, err)
		}
	})
}

func TestCorrectionsAreFoundByTheAmountTheyTakeBack(t *testing.T) {
	t.Parallel()
	n, _ := filer(t)
	supplier := n.Supplier(byNumber, "s")
	sale := n.File(invoice(byNumber, supplier, "sale"))
	n.Succeeds(sale)
	credit := n.Hand(transaction.Credit, correction(byNumber, "sale", "credit"))
	n.Succeeds(credit)
	index(n)
	sameIDs(t, "amount", found(n, ledger.Query{Amount: minor(22710)}), credit, sale)
	sameIDs(t, "kind", found(n, ledger.Query{Amount: minor(22710), Kind: transaction.Credit}), credit)
	sameIDs(t, "the supplier, which the credit does not name", found(n, ledger.Query{Text: supplier}), credit, sale)
}

func TestWhatIsNotSettledIsFoundByItsStatus(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, a.Setup()) // nobody works
		supplier := n.Supplier(byNumber, "s-"+d.Engine())
		queued := n.File(invoice(byNumber, supplier, "one"))
		waiting := n.File(invoice(byNumber, supplier, "one"))
		sameIDs(t, "open", found(n, ledger.Query{Status: filing.Processing}), waiting, queued)
		sameIDs(t, "waiting", found(n, ledger.Query{Status: filing.Processing, Stage: filing.Waiting}), waiting)
		page, err := n.Search(t.Context(), ledger.Query{Country: byNumber})
		must(t, err)
		if len(page.List) != 2 {
			t.Errorf("by country before anything is indexed: %v", page.List)
		}
		if !page.IndexedTo.Before(d.Now().Add(-time.Hour)) {
			t.Errorf("an index that has nothing says it came to %s", page.IndexedTo)
		}
		index(n)
		page, err = n.Search(t.Context(), ledger.Query{})
		must(t, err)
		if page.IndexedTo.Before(d.Now().Add(-time.Minute)) {
			t.Errorf("an index that has everything says it came to %s", page.IndexedTo)
		}
	})
}

// plant stores operations directly, as many as the test wants, with ids of its choice.
func plant(t testing.TB, d *db.DB, ids []string, change func(i int, row map[string]any)) {
	t.Helper()
	columns := []string{"operation_id", "client_id", "transaction_id", "attempt", "kind", "country", "live", "use_case",
		"supplier_id", "number", "dated_at", "accepted_at", "lane", "stage", "status", "due_at", "pack_version"}
	must(t, d.Write(context.Background(), func(tx *db.Tx) error {
		var operations, bodies [][]any
		for i, id := range ids {
			row := map[string]any{"operation_id": id, "client_id": client, "transaction_id": "t-" + id, "attempt": 1,
				"kind": "INVOICE", "country": "XX", "live": false,
				"use_case": "BOTH", "supplier_id": "s", "number": fmt.Sprintf("P-%d", i), "dated_at": 0, "accepted_at": 0,
				"lane": "l", "stage": "settled", "status": "SUCCESS", "due_at": nil, "pack_version": "1"}
			if change != nil {
				change(i, row)
			}
			values := make([]any, len(columns))
			for c, name := range columns {
				values[c] = row[name]
			}
			operations = append(operations, values)
			bodies = append(bodies, []any{id, []byte(`{"transaction_number":"` + row["number"].(string) + `"}`), nil})
		}
		if err := tx.Insert("operations", strings.Join(columns, ","), operations...); err != nil {
			return err
		}
		return tx.Insert("bodies", "operation_id,body,warnings", bodies...)
	}))
}

// idsAt makes n ids as a process would have made them at an instant.
func idsAt(at time.Time, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		id := uuid.Must(uuid.NewV7())
		for b := range 6 {
			id[b] = byte(at.UnixMilli() >> (40 - 8*b))
		}
		ids[i] = id.String()
	}
	slices.Sort(ids)
	return ids
}

// Ids are made before the commit, in whatever order, by processes whose clocks
// differ and which may stall in between. However they arrive, and wherever the
// indexer is interrupted, after the last sweep every one of them is found.
func TestIndexMissesNothingHoweverCommitsAreOrdered(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	d := dbtest.SQLite(t)
	n, again := newNode(t, d, a.Setup()), newNode(t, d, a.Setup())
	failed := func(_ int, row map[string]any) { row["status"] = "FAILURE" } // a success could not be removed again
	rapid.Check(t, func(rt *rapid.T) {
		for _, table := range []string{"operations", "bodies", "operation_terms"} {
			execSQL(t, d, "DELETE FROM "+table)
		}
		execSQL(t, d, "UPDATE search_cursors SET position = ''")
		now, ctx := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), context.Background()
		var all, late []string
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.IntRange(0, 4).Draw(rt, "step") {
			case 0: // commits at once
				ids := idsAt(now, rapid.IntRange(1, 5).Draw(rt, "n"))
				plant(t, d, ids, failed)
				all = append(all, ids...)
			case 1: // an id whose commit comes later
				late = append(late, idsAt(now.Add(time.Duration(rapid.IntRange(-40, 5).Draw(rt, "skew"))*time.Second), 1)...)
			case 2: // late commits arrive
				plant(t, d, late, failed)
				all, late = append(all, late...), nil
			case 3:
				now = now.Add(time.Duration(rapid.IntRange(1, 90).Draw(rt, "seconds")) * time.Second)
			case 4: // a round, complete or given up in the middle
				round, cancel := context.WithCancel(ctx)
				if rapid.Bool().Draw(rt, "killed") {
					cancel()
				}
				_ = n.IndexRound(round, now) // given up
				cancel()
			}
		}
		plant(t, d, late, failed)
		all = append(all, late...)
		// Another process takes over, a day later.
		must(t, again.IndexRound(ctx, now.Add(25*time.Hour)))
		if got := one[int](t, d, "SELECT count(*) FROM operation_terms WHERE term = '#XX'"); got != len(all) {
			rt.Fatalf("%d of %d operations are indexed", got, len(all))
		}
		for _, id := range all {
			sameIDs(t, id, found(again, ledger.Query{Text: "t-" + id}), id)
		}
	})
}

// A process that stalls for an hour between making an id and its commit is
// caught by the sweep after a day.
func TestIndexFindsWhatWasCommittedAnHourLate(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	n := newNode(t, d, newAuthorities(t).Setup())
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	late, next := idsAt(began, 1), idsAt(began.Add(time.Second), 2)
	plant(t, d, next, nil)
	must(t, n.IndexRound(t.Context(), began.Add(time.Hour)))
	plant(t, d, late, nil)
	must(t, n.IndexRound(t.Context(), began.Add(2*time.Hour)))
	sameIDs(t, "after two hours", found(n, ledger.Query{Text: "t-" + late[0]}))
	must(t, n.IndexRound(t.Context(), began.Add(25*time.Hour)))
	sameIDs(t, "after a day", found(n, ledger.Query{Text: "t-" + late[0]}), late[0])
}

func TestIndexCatchesUpWithMoreThanOneSet(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, newAuthorities(t).Setup())
		ids := idsAt(d.Now().Add(-time.Minute), 2*ledger.IndexSet+1)
		plant(t, d, ids, nil)
		must(t, n.IndexRound(t.Context(), d.Now()))
		for _, number := range []int{0, ledger.IndexSet - 1, ledger.IndexSet, 2 * ledger.IndexSet} {
			sameIDs(t, "number", found(n, ledger.Query{Text: fmt.Sprintf("P-%d", number)}), ids[number])
		}
		must(t, n.IndexRound(t.Context(), d.Now().Add(48*time.Hour)))
	})
}

// Where there is more than a round takes, the sweeps stay behind: an operation
// that nobody has looked at yet is not late.
func TestSweepsDoNotOvertakeTheIndex(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	n := newNode(t, d, newAuthorities(t).Setup())
	plant(t, d, idsAt(d.Now().Add(-time.Minute), ledger.RoundMax+1), nil)
	must(t, n.IndexRound(t.Context(), d.Now().Add(48*time.Hour)))
	same(t, "indexed in one round", one[int](t, d, "SELECT count(*) FROM operation_terms WHERE term = '#XX'"),
		ledger.RoundMax)
	must(t, n.IndexRound(t.Context(), d.Now().Add(48*time.Hour)))
	same(t, "indexed in two", one[int](t, d, "SELECT count(*) FROM operation_terms WHERE term = '#XX'"), ledger.RoundMax+1)
}

func TestTwoIndexersDoTheWorkOnce(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	n := newNode(t, d, newAuthorities(t).Setup())
	plant(t, d, idsAt(d.Now().Add(-time.Minute), 3*ledger.IndexSet), nil)
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- n.IndexRound(context.Background(), d.Now()) }()
	}
	for range 2 {
		if err := <-errs; err != nil && !strings.Contains(err.Error(), db.ErrStale.Error()) {
			t.Error(err)
		}
	}
	must(t, n.IndexRound(t.Context(), d.Now()))
	same(t, "indexed", one[int](t, d, "SELECT count(*) FROM operation_terms WHERE term = '#XX'"), 3*ledger.IndexSet)
}

func TestSearchGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	n := newNode(t, d, newAuthorities(t).Setup())
	window := ledger.SearchWindow()
	ids := idsAt(d.Now().Add(-time.Minute), window+10)
	plant(t, d, ids, func(i int, row map[string]any) {
		if i == 0 {
			row["kind"] = "CREDIT" // the oldest, behind more than one page looks at
		}
	})
	page, err := n.Search(t.Context(), ledger.Query{Kind: transaction.Credit})
	must(t, err)
	if len(page.List) != 0 || page.Next == "" || page.SearchedTo.IsZero() {
		t.Fatalf("a search that found nothing yet ended: %+v", page)
	}
	sameIDs(t, "the next page", found(n, ledger.Query{Kind: transaction.Credit, After: page.Next}), ids[0])

	var walked []string
	for after := ""; ; {
		page, err := n.Search(t.Context(), ledger.Query{Limit: ledger.SearchMax, After: after})
		must(t, err)
		for _, s := range page.List {
			walked = append(walked, s.OperationID)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	slices.Reverse(ids)
	if !slices.Equal(walked, ids) {
		t.Errorf("walking all pages gave %d operations, want %d in order", len(walked), len(ids))
	}
}

func TestOpenOperationsAreFoundHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	n := newNode(t, d, newAuthorities(t).Setup())
	open := func(_ int, row map[string]any) {
		row["stage"], row["status"], row["due_at"] = "received", "PROCESSING", 1
	}
	ids := idsAt(d.Now().Add(-time.Minute), ledger.OpenMax)
	plant(t, d, ids, open)
	for _, more := range []int{0, 1} { // at the limit and past it
		plant(t, d, idsAt(d.Now().Add(-time.Hour), more), open)
		page, err := n.Search(t.Context(), ledger.Query{Status: filing.Processing, Limit: 3})
		must(t, err)
		if len(page.List) != 3 || page.List[0].OperationID != ids[len(ids)-1] {
			t.Errorf("with %d more: %d found, the first is %s", more, len(page.List), page.List[0].OperationID)
		}
	}
}

func TestSearchRefusesWhatItCannotMean(t *testing.T) {
	t.Parallel()
	n := newNode(t, dbtest.SQLite(t), newAuthorities(t).Setup())
	good := []ledger.Query{
		{Limit: ledger.SearchMax}, {Text: strings.Repeat("x", ledger.TextMax)}, {Text: strings.Repeat("é", 60)},
		{Text: "'; DROP TABLE operations; --"},
	}
	bad := []ledger.Query{
		{Limit: ledger.SearchMax + 1}, {Limit: -1}, {Text: strings.Repeat("x", ledger.TextMax+1)}, {Text: "--"},
		{Status: "DONE"}, {After: "x"},
	}
	for _, q := range good {
		if _, err := n.Search(t.Context(), q); err != nil {
			t.Errorf("%+v: %v", q, err)
		}
	}
	for _, q := range bad {
		if _, err := n.Search(t.Context(), q); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

func FuzzTerm(f *testing.F) {
	for _, text := range []string{"", "INV-1", "XX 12.3", strings.Repeat("long", 60), "Ümläut", "\x00\xff", "ǆ"} {
		f.Add(text)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		term := ledger.TermOf(text)
		if len(term) > ledger.TermMax {
			t.Errorf("%q gives a term of %d bytes", text, len(term))
		}
		if strings.ContainsAny(term, "#=@ -./") || strings.ContainsRune(term, 0) {
			t.Errorf("%q gives %q", text, term)
		}
		if len(text) < ledger.TermMax/4 && ledger.TermOf(" "+text+".") != term {
			t.Errorf("%q is not found with a blank and a dot", text)
		}
		if id, ok := ledger.OperationIn(text); ok {
			if _, err := uuid.Parse(id); err != nil {
				t.Errorf("%q is taken for operation %q", text, id)
			}
		}
	})
}
