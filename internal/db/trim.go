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
	By     string // BIGINT column: the age of a row. An index leads to it
	Before int64  // rows younger than that stay
	Where  string // more conditions, with $1 and on for Args; "": none
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
// as much time in between as it took itself. It returns how many are gone, also
// where it is interrupted: what is left is the next call's.
func (d *DB) Trim(ctx context.Context, t Trim) (deleted int, err error) {
	from, rows := int64(-1<<63), trimRowsFirst
	for {
		began := time.Now()
		var gone int
		err := d.Write(ctx, func(tx *Tx) (err error) {
			gone, from, err = t.step(tx, from, rows)
			return err
		})
		if err != nil {
			return deleted, fmt.Errorf("trim %s: %w", t.Table, err)
		}
		deleted += gone
		if gone < rows {
			return deleted, nil
		}
		took := time.Since(began)
		switch {
		case took > trimStep && rows > trimRowsFirst/4:
			rows /= 2
		case took < trimStep/2 && rows < trimRowsMost:
			rows *= 2
		}
		if pause(ctx, took); ctx.Err() != nil {
			return deleted, ctx.Err()
		}
	}
}

// step deletes the oldest rows from an age on and returns the age to go on
// from: beginning anew, PostgreSQL would step over what was deleted before, again
// and again.
func (t Trim) step(tx *Tx, from int64, rows int) (gone int, next int64, err error) {
	keys, last, err := t.oldest(tx, from, rows)
	if err != nil || len(keys) == 0 {
		return 0, from, err
	}
	columns := strings.Split(t.Key, ",")
	where := make([]string, len(columns))
	for i, name := range columns {
		where[i] = fmt.Sprintf("%s = $%d", strings.TrimSpace(name), i+1)
	}
	if t.Also != nil {
		err = t.Also(tx, keys)
	}
	return len(keys), last, errors.Join(err, tx.ExecEach("DELETE FROM "+t.Table+" WHERE "+strings.Join(where, " AND "), keys))
}

// oldest reads the keys of the next rows to go.
func (t Trim) oldest(tx *Tx, from int64, rows int) (keys [][]any, last int64, err error) {
	n := len(t.Args)
	text := fmt.Sprintf("SELECT %s, %s FROM %s WHERE %s < $%d AND %s >= $%d", t.Key, t.By, t.Table, t.By, n+1, t.By, n+2)
	if t.Where != "" {
		text += " AND (" + t.Where + ")"
	}
	text += fmt.Sprintf(" ORDER BY %s LIMIT $%d", t.By, n+3)
	width := strings.Count(t.Key, ",") + 1
	result, err := tx.Query(text, append(append([]any{}, t.Args...), t.Before, from, rows)...)
	if err != nil {
		return nil, 0, err
	}
	err = result.Each(func(scan func(...any) error) error {
		key, into := make([]any, width), make([]any, width+1)
		for i := range key {
			into[i] = &key[i]
		}
		into[width] = &last
		err := scan(into...)
		keys = append(keys, key)
		return err
	})
	return keys, last, err
}
