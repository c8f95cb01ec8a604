package series

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tributary/internal/db"
)

// Transaction is the key to which a drawn number belongs.
type Transaction struct{ Scope, ID string }

// Want is a transaction that came without a number.
type Want struct {
	Of   Transaction
	From *Draw
}

// Numbers draws for transactions of one set. Those that have drawn before keep
// what they have.
//
// Failure policy: it runs in the commit that accepts, behind the rows of
// transactions and in the order of the series' ids, so that two sets never wait
// for each other; a commit that fails has drawn nothing.
func Numbers(tx *db.Tx, wants []Want) (map[Transaction]string, error) {
	known := map[Transaction]string{}
	var fresh []Want
	for _, w := range wants {
		if _, there := known[w.Of]; there {
			continue
		}
		var number string
		err := tx.Row("SELECT number FROM drawn_numbers WHERE client_id = $1 AND transaction_id = $2", w.Of.Scope,
			w.Of.ID).Scan(&number)
		switch {
		case errors.Is(err, db.ErrNoRows):
			fresh = append(fresh, w)
		case err != nil:
			return nil, fmt.Errorf("look for a drawn number: %w", err)
		}
		known[w.Of] = number
	}
	return known, drawFresh(tx, fresh, known)
}

// drawFresh counts up each series once for all that draw from it.
func drawFresh(tx *db.Tx, fresh []Want, known map[Transaction]string) error {
	if len(fresh) == 0 {
		return nil
	}
	slices.SortStableFunc(fresh, func(a, b Want) int {
		if c := strings.Compare(a.From.ID, b.From.ID); c != 0 {
			return c
		}
		return int(a.From.from - b.From.from)
	})
	var rows [][]any
	for len(fresh) > 0 {
		first := fresh[0].From
		n := 1
		for n < len(fresh) && fresh[n].From.ID == first.ID && fresh[n].From.from == first.from {
			n++
		}
		next, err := advance(tx, first, int64(n))
		if err != nil {
			return err
		}
		for i, w := range fresh[:n] {
			number := w.From.number(next+int64(i), w.From.of)
			known[w.Of] = number
			rows = append(rows, []any{w.Of.Scope, w.Of.ID, w.From.ID, number, db.Micros(tx.Now())})
		}
		fresh = fresh[n:]
	}
	if err := tx.Insert("drawn_numbers", "client_id,transaction_id,series_id,number,drawn_at", rows...); err != nil {
		return fmt.Errorf("store drawn numbers: %w", err)
	}
	return nil
}
