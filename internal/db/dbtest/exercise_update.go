package dbtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tributary/internal/db"
)

const updatedNames = "abcdefgh"

// before is what every case of updatesOfMany starts from.
const before = "a 0 old -|b 1 old -|c 2 old -|d 3 old -|e 4 old -|f 5 old -|g 6 old -|h 7 old -"

// updatesOfMany are the same however the engine runs them: as one statement, or
// row by row where two argument lists mean the same row, or an argument is part
// of an expression.
func updatesOfMany(t *testing.T, d *db.DB, table string) {
	insert := func(tx *db.Tx) error {
		var rows [][]any
		for i, name := range updatedNames {
			rows = append(rows, []any{string(name), i, "old"})
		}
		return tx.Insert(table, "id,n,note", rows...)
	}
	for name, c := range updateCases(table) {
		write(t, d, func(tx *db.Tx) error { return tx.Exec("DELETE FROM " + table) })
		write(t, d, insert)
		if err := d.Write(context.Background(), c.run); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
		if got := storedRows(t, d, table); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
	err := d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.UpdateEach("UPDATE "+table+" SET missing = $2 WHERE id = $1", [][]any{{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}})
	})
	if err == nil || errors.Is(err, db.ErrStale) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a column that does not exist: %v", err)
	}
}

type updateCase struct {
	run  func(*db.Tx) error
	err  error
	want string
}

func updateCases(table string) map[string]updateCase {
	set := "UPDATE " + table + " SET n = $2, note = $3, raw = $5, yes = $6, id = id WHERE id = $1 AND n = $4"
	plain := updateRows(func(int, []any) {})
	stale := updateRows(func(i int, row []any) { row[3] = i + i/7 })
	null := updateRows(func(_ int, row []any) { row[1], row[2] = nil, db.Null("") })
	one := func(text string, rows [][]any) func(*db.Tx) error {
		return func(tx *db.Tx) error { return tx.UpdateEachOne(text, rows) }
	}
	return map[string]updateCase{
		"every row": {run: one(set, plain),
			want: "a 0 new true|b 10 new false|c 20 new true|d 30 new false|e 40 new true|f 50 new false|g 60 new true|h 70 new false"},
		"NULL is a value": {run: one(set, null),
			want: "a - - true|b - - false|c - - true|d - - false|e - - true|f - - false|g - - true|h - - false"},
		"one is not as it was believed": {run: one(set, stale), err: db.ErrStale, want: before},
		"one is not as it was believed, and need not be": {run: func(tx *db.Tx) error { return tx.UpdateEach(set, stale) },
			want: "a 0 new true|b 10 new false|c 20 new true|d 30 new false|e 40 new true|f 50 new false|g 60 new true|h 7 old -"},
		"the same row many times": {
			run:  one("UPDATE "+table+" SET n = n + 1 WHERE id = $1", [][]any{{"a"}, {"b"}, {"a"}, {"a"}, {"a"}, {"a"}}),
			want: "a 5 old -|b 2 old -|c 2 old -|d 3 old -|e 4 old -|f 5 old -|g 6 old -|h 7 old -"},
		"an argument in an expression": {
			run:  one("UPDATE "+table+" SET n = n + $2 WHERE id = $1", [][]any{{"a", 9}, {"b", 9}, {"c", 9}, {"d", 9}, {"e", 9}}),
			want: "a 9 old -|b 10 old -|c 11 old -|d 12 old -|e 13 old -|f 5 old -|g 6 old -|h 7 old -"},
		"as few as run row by row": {run: one(set, plain[:3]),
			want: "a 0 new true|b 10 new false|c 20 new true|d 3 old -|e 4 old -|f 5 old -|g 6 old -|h 7 old -"},
		"as few as run together": {run: one(set, plain[:4]),
			want: "a 0 new true|b 10 new false|c 20 new true|d 30 new false|e 4 old -|f 5 old -|g 6 old -|h 7 old -"},
		"nothing": {run: func(tx *db.Tx) error {
			return errors.Join(tx.UpdateEach("nonsense", nil), tx.UpdateEachOne("nonsense", nil))
		}, want: before},
	}
}

// updateRows are the arguments of one update of every row, each changed as the
// case wants it.
func updateRows(change func(i int, row []any)) (rows [][]any) {
	type text string // as our own types of stages are
	for i, name := range updatedNames {
		row := []any{string(name), 10 * i, text("new"), i, []byte{byte(i)}, i%2 == 0}
		change(i, row)
		rows = append(rows, row)
	}
	return rows
}

func storedRows(t *testing.T, d *db.DB, table string) string {
	t.Helper()
	var rows []string
	err := d.Read(context.Background(), func(r db.Reader) (err error) {
		rows, err = db.Collect(r, func(scan func(...any) error) (string, error) {
			var id string
			var n *int64
			var note *string
			var yes *bool
			err := scan(&id, &n, &note, &yes)
			return fmt.Sprintf("%s %s %s %s", id, orDash(n), orDash(note), orDash(yes)), err
		}, "SELECT id, n, note, yes FROM "+table+" ORDER BY id")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(rows, "|")
}

func orDash[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}
