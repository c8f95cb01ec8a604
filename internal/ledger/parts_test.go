package ledger_test

import (
	"fmt"
	"slices"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/ledger"
)

// A piece is enough: the beginning of any word, without accents, of what a
// person remembers of a transaction.
func TestOperationsAreFoundByPieces(t *testing.T) {
	t.Parallel()
	a := newAuthorities(t)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, a.Setup()).Start()
		supplier := n.Supplier(byNumber, "seller-"+d.Engine())
		execSQL(t, d, `UPDATE companies SET profile = replace(profile, '"legal_name":"', '"legal_name":"Żółta Gęś ')`)
		sale := withCustomer(invoice(byNumber, supplier, "Bestellung/4711-"+d.Engine()).With("transaction_number",
			"RE-2026-000815"), "XX-123.456.789")
		sale["customer"].(map[string]any)["legal_name"] = "Crédit Łódź & Søn"
		id := n.File(sale)
		n.Succeeds(id)
		other := n.File(invoice(byNumber, supplier, "other-"+d.Engine()).With("transaction_number", "X-1"))
		n.Succeeds(other)
		index(n)
		for _, text := range []string{"RE-2026-000815", "re2026", "2026-0008", "bestell", "credit",
			"CRÉDIT ŁÓDŹ", "lodz", "son", "søn", "123.456", id[:13], id[len(id)-6:]} {
			sameIDs(t, text, found(n, ledger.Query{Text: text}), id)
		}
		for _, text := range []string{"000815", "815", "4711"} { // which an id of another may have, too, by chance
			if list := found(n, ledger.Query{Text: text}); !slices.Contains(list, id) {
				t.Errorf("%s: found %v", text, list)
			}
		}
		for _, text := range []string{"zolta", "gęś", "ges"} {
			sameIDs(t, text, found(n, ledger.Query{Text: text}), other, id)
		}
		for _, text := range []string{"réd", "ódź", "0081", "z"} { // inside of a word, or too little
			sameIDs(t, text, found(n, ledger.Query{Text: text}))
		}
		total := *life(n, id).Result.TotalAmount
		for _, text := range []string{fmt.Sprintf("%d.%02d", total/100, total%100),
			fmt.Sprintf("%d,%02d", total/100, total%100)} {
			sameIDs(t, text, found(n, ledger.Query{Text: text}), other, id)
		}
		ids, err := n.Namesakes(t.Context(), "zolta g", 10)
		if must(t, err); len(ids) != 1 || ids[0] != supplier {
			t.Errorf("the supplier by its name: %v", ids)
		}
		page, err := n.Search(t.Context(), ledger.Query{Text: "re2026"})
		if must(t, err); page.Cut {
			t.Error("one is not many")
		}
	})
}

// Past the bound a page says that there are more.
func TestAPieceOfTooManySaysSo(t *testing.T) {
	t.Parallel()
	n := newNode(t, dbtest.SQLite(t), newAuthorities(t).Setup())
	execSQL(t, n.DB, `WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < $1)
		INSERT INTO operation_parts (part, operation_id) SELECT 'MANY' || i, 'o' || i FROM c`, ledger.PiecesMax)
	for text, want := range map[string]bool{"many": true, "many1": false} {
		page, err := n.Search(t.Context(), ledger.Query{Text: text})
		if must(t, err); page.Cut != want {
			t.Errorf("%s: cut is %v", text, page.Cut)
		}
	}
}
