package db

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Trim says which rows of a table have had their time.
type Trim struct {
	Table  string
	Key    string // primary key, comma separated
	By     string // column that orders rows by age; it may be the key itself
	Before any    // rows from there on stay
	Of     string // narrows the table to what an index leads to, which By comes next in, with $1 and on for Args; "": all of it
	Where  string // what else must hold for a row to go, with Args too; "": nothing
	Args   []any

	// Also runs in the write that deletes some rows, with their keys: for rows of
	// the same owner that hang on them. Nil: nothing hangs on them.
	Also func(tx *Tx, keys [][]any) error
}

// Steps of a trim. One huge delete would stop every other write of a SQLite
// database, and on PostgreSQL run into its own time limit and be undone.
const (
	trimRowsFirst = 200
	trimRowsMost  = 5000
	trimStep      = 25 * time.Millisecond // what a step should take
)

// Trim deletes rows in small steps, each a write of its own, and gives others
// as much time in between as it took itself. What is to go is looked for in
// stretches outside of the writes: rows that stay, however many, keep nobody
// waiting. It returns how many are gone, also where it is interrupted: what is
// left is the next call's.
func (d *DB) Trim(ctx context.Context, t Trim) (deleted int, err error) {
	var at []any // age and key of the last row that was looked at
	for rows := trimRowsFirst; ; {
		s, err := t.stretch(ctx, d, at, rows)
		var gone int
		var took time.Duration // of the work itself: waiting for a turn costs others nothing
		if err == nil && s.matches > 0 {
			err = d.Write(ctx, func(tx *Tx) (err error) {
				began := time.Now()
				gone, err = t.clear(tx, at, s.last)
				took = time.Since(began)
				return err
			})
		}
		if err != nil {
			return deleted, fmt.Errorf("trim %s: %w", t.Table, err)
		}
		if deleted, at = deleted+gone, s.last; s.looked < rows {
			return deleted, nil
		}
		switch {
		case took > trimStep && rows > trimRowsFirst/4:
			rows /= 2
		case took < trimStep/2 && rows < trimRowsMost:
			rows *= 2
		}
		if Pause(ctx, took); ctx.Err() != nil {
			return deleted, ctx.Err()
		}
	}
}

// stretch is what was found in a bounded number of rows.
type stretch struct {
	looked, matches int
	last            []any
}

// order is what rows are gone through by: their age, then their key.
func (t Trim) order() []string {
	order := []string{t.By}
	for name := range strings.SplitSeq(t.Key, ",") {
		if name = strings.TrimSpace(name); name != t.By {
			order = append(order, name)
		}
	}
	return order
}

// within is the condition for rows behind one place, and up to another or, where
// that is nil, to the age from which on rows stay. Never both: SQLite takes one
// of two upper bounds, and the far one would make it walk the whole table. And
// without the first place PostgreSQL would step over what was deleted before,
// again and again.
func (t Trim) within(after, to []any) (where string, args []any) {
	args = append(args, t.Args...)
	where = "1 = 1" + t.of()
	if to == nil {
		args = append(args, t.Before)
		where += fmt.Sprintf(" AND %s < $%d", t.By, len(args))
	}
	tuple := "(" + strings.Join(t.order(), ", ") + ")"
	bound := func(than string, place []any) {
		if place == nil {
			return
		}
		marks := make([]string, len(place))
		for i, v := range place {
			args = append(args, v)
			marks[i] = fmt.Sprintf("$%d", len(args))
		}
		where += " AND " + tuple + than + "(" + strings.Join(marks, ", ") + ")"
	}
	bound(" > ", after)
	bound(" <= ", to)
	return where, args
}

func (t Trim) of() string {
	if t.Of == "" {
		return ""
	}
	return " AND " + t.Of
}

func (t Trim) matching() string {
	if t.Where == "" {
		return "1 = 1"
	}
	return "(" + t.Where + ")"
}

func (t Trim) stretch(ctx context.Context, d *DB, after []any, rows int) (s stretch, err error) {
	order := strings.Join(t.order(), ", ")
	where, args := t.within(after, nil)
	text := fmt.Sprintf("SELECT %s, CASE WHEN %s THEN 1 ELSE 0 END FROM %s WHERE %s ORDER BY %s LIMIT $%d", order,
		t.matching(), t.Table, where, order, len(args)+1)
	err = d.Read(ctx, func(r Reader) error {
		s = stretch{}
		result, err := r.Query(text, append(args, rows)...)
		if err != nil {
			return err
		}
		return result.Each(func(scan func(...any) error) error {
			place, into := targets(len(t.order()))
			var matches int
			err := scan(append(into, &matches)...)
			s = stretch{s.looked + 1, s.matches + matches, place}
			return err
		})
	})
	return s, err
}

func targets(n int) (values, into []any) {
	values, into = make([]any, n), make([]any, n)
	for i := range values {
		into[i] = &values[i]
	}
	return values, into
}

// clear deletes those rows of a stretch that are to go, asking again: somebody
// may have taken one up since it was looked at.
func (t Trim) clear(tx *Tx, after, to []any) (gone int, err error) {
	columns := strings.Split(t.Key, ",")
	where, args := t.within(after, to)
	keys, err := Collect(tx, func(scan func(...any) error) ([]any, error) {
		key, into := targets(len(columns))
		return key, scan(into...)
	}, fmt.Sprintf("SELECT %s FROM %s WHERE %s AND %s", t.Key, t.Table, where, t.matching()), args...)
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	by := make([]string, len(columns))
	for i, name := range columns {
		by[i] = fmt.Sprintf("%s = $%d", strings.TrimSpace(name), len(t.Args)+i+1)
	}
	rows := make([][]any, len(keys))
	for i, key := range keys {
		rows[i] = append(append([]any{}, t.Args...), key...)
	}
	if t.Also != nil {
		err = t.Also(tx, keys)
	}
	// The conditions stand here too: on PostgreSQL another commit may come between.
	return len(keys), errors.Join(err, tx.ExecEach("DELETE FROM "+t.Table+" WHERE "+t.matching()+t.of()+" AND "+strings.Join(by, " AND "), rows))
}
