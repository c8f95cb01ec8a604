package filing

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tributary/internal/db"
)

// drawing is an operation of the set that gets its number from a series.
type drawing struct {
	row int // of in.operations
	sub int // of in.set
}

const numberColumn = 9 // of operationColumns

// numbers draws for the operations of a set that came without a number. Those of
// transactions that have drawn before keep what they have.
//
// Failure policy: it runs in the commit that accepts, behind the rows of
// transactions and in the order of the series' ids, so that two sets never wait
// for each other; a commit that fails has drawn nothing.
func (in *intakeSet) numbers(tx *db.Tx) error {
	if len(in.drawings) == 0 {
		return nil
	}
	known := map[[2]string]string{}
	var fresh []drawing
	for _, d := range in.drawings {
		key := in.set[d.sub].key()
		if _, there := known[key]; there {
			continue
		}
		var number string
		err := tx.Row("SELECT number FROM drawn_numbers WHERE client_id = $1 AND transaction_id = $2", key[0], key[1]).Scan(&number)
		switch {
		case errors.Is(err, db.ErrNoRows):
			fresh = append(fresh, d)
		case err != nil:
			return fmt.Errorf("look for a drawn number: %w", err)
		}
		known[key] = number
	}
	if err := in.drawFresh(tx, fresh, known); err != nil {
		return err
	}
	var named [][]any
	for _, d := range in.drawings {
		sub := in.set[d.sub]
		in.operations[d.row][numberColumn] = known[sub.key()]
		named = append(named, []any{sub.operationID, sub.draw.ID})
	}
	in.named = named
	return nil
}

// drawFresh counts up each series once for all that draw from it.
func (in *intakeSet) drawFresh(tx *db.Tx, fresh []drawing, known map[[2]string]string) error {
	slices.SortStableFunc(fresh, func(a, b drawing) int {
		x, y := in.set[a.sub].draw, in.set[b.sub].draw
		if c := strings.Compare(x.ID, y.ID); c != 0 {
			return c
		}
		return int(x.from - y.from)
	})
	var rows [][]any
	for len(fresh) > 0 {
		first := in.set[fresh[0].sub].draw
		n := 1
		for n < len(fresh) && in.set[fresh[n].sub].draw.ID == first.ID && in.set[fresh[n].sub].draw.from == first.from {
			n++
		}
		var next int64
		err := tx.Row(`INSERT INTO series_counters (series_id, year, next) VALUES ($1, $2, 1 + $3)
			ON CONFLICT (series_id, year) DO UPDATE SET next = series_counters.next + $3 RETURNING next`, first.ID, first.from, n).Scan(&next)
		if err != nil {
			return fmt.Errorf("draw from series %s: %w", first.ID, err)
		}
		for i, d := range fresh[:n] {
			sub := in.set[d.sub]
			number := sub.draw.number(next-int64(n)+int64(i), sub.draw.of)
			known[sub.key()] = number
			rows = append(rows, []any{sub.caller.Scope, sub.examined.Transaction.ID, sub.draw.ID, number, db.Micros(tx.Now())})
		}
		fresh = fresh[n:]
	}
	if err := tx.Insert("drawn_numbers", "client_id,transaction_id,series_id,number,drawn_at", rows...); err != nil {
		return fmt.Errorf("store drawn numbers: %w", err)
	}
	return nil
}
