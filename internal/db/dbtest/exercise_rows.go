package dbtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/db"
)

func insertSets(t *testing.T, d *db.DB, table string) {
	const many = 600
	rows := make([][]any, many)
	for i := range rows {
		rows[i] = []any{fmt.Sprintf("%05d", i), i, nil}
	}
	write(t, d, func(tx *db.Tx) error {
		if err := tx.Insert(table, "id, n, note", rows...); err != nil {
			return err
		}
		if err := tx.Insert(table, "id, n, note", []any{"later", 1, "x"}); err != nil {
			return err
		}
		return errors.Join(tx.Insert(table, "id"), tx.ExecEach("nonsense", nil), tx.ExecEachOne("nonsense", nil))
	})
	if got := len(ids(t, d, table)); got != many+1 {
		t.Errorf("%d rows, want %d", got, many+1)
	}
	for name, row := range map[string][]any{"too few values": {"short"}, "a value of a strange type": {"odd", struct{}{}}} {
		if err := d.Write(context.Background(), func(tx *db.Tx) error { return tx.Insert(table, "id,n", row) }); err == nil {
			t.Errorf("%s: the insert was taken", name)
		}
	}
	if err := d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Insert(table, "id,nowhere", []any{"a", 1})
	}); err == nil {
		t.Error("a column that does not exist was taken")
	}
	if got := len(ids(t, d, table)); got != many+1 {
		t.Errorf("%d rows after refused inserts, want %d", got, many+1)
	}
}

func insertReturning(t *testing.T, d *db.DB, table string) {
	returned := func(suffix string, rows ...[]any) (got []string) {
		write(t, d, func(tx *db.Tx) error {
			got = nil // it may run twice
			return tx.InsertReturning(db.Insert{Table: table, Columns: "id,n", Suffix: suffix}, rows, func(r *db.Rows) error {
				var id string
				var n int
				err := r.Scan(&id, &n)
				got = append(got, fmt.Sprintf("%s=%d", id, n))
				return err
			})
		})
		slices.Sort(got)
		return got
	}
	if got := returned("RETURNING id, n", []any{"a", 1}, []any{"b", 2}); !slices.Equal(got, []string{"a=1", "b=2"}) {
		t.Errorf("insert returned %v", got)
	}
	if got := returned("ON CONFLICT (id) DO NOTHING RETURNING id, n", []any{"b", 3}, []any{"c", 3}); !slices.Equal(got,
		[]string{"c=3"}) {
		t.Errorf("a refused conflict returned %v, want the new row only", got)
	}
	up := "ON CONFLICT (id) DO UPDATE SET n = " + table + ".n + excluded.n RETURNING id, n"
	if got := returned(up, []any{"a", 10}, []any{"d", 4}); !slices.Equal(got, []string{"a=11", "d=4"}) {
		t.Errorf("an upsert returned %v", got)
	}
	mine := errors.New("mine")
	err := d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.InsertReturning(db.Insert{Table: table, Columns: "id", Suffix: "RETURNING id"}, [][]any{{"e"}, {"f"}},
			func(*db.Rows) error {
				return mine
			})
	})
	if !errors.Is(err, mine) {
		t.Errorf("error is %v, want the callback's", err)
	}
	wantIDs(t, d, table, "a b c d")
}

// named is a string by another name, as slices use for their states.
type named string

func nullsAndTypes(t *testing.T, d *db.DB, table string) {
	var noText *string
	text, long := "é\n\t'\"\\ 漢", int64(-1<<62)
	rows := [][]any{
		{"full", long, []byte{0, 1, 255}, true, text},
		{"pointers", &long, []byte{}, false, &text},
		{"named", int32(7), nil, nil, named("état")},
		{"nil", nil, []byte(nil), nil, noText},
		{"null", db.Null(0), nil, db.Null(false), db.Null("")},
	}
	write(t, d, func(tx *db.Tx) error { return tx.Insert(table, "id,n,raw,yes,note", rows...) })
	write(t, d, func(tx *db.Tx) error {
		for _, row := range rows {
			if err := tx.Exec("INSERT INTO "+table+" (id,n,raw,yes,note) VALUES ($1,$2,$3,$4,$5)",
				append([]any{"exec " + row[0].(string)}, row[1:]...)...); err != nil {
				return err
			}
		}
		return nil
	})
	want := map[string]string{
		"full":     fmt.Sprintf("%d|0001ff.|true|%s", long, text),
		"pointers": fmt.Sprintf("%d|.|false|%s", long, text),
		"named":    "7|NULL|NULL|état",
		"nil":      "NULL|NULL|NULL|NULL",
		"null":     "NULL|NULL|NULL|NULL",
	}
	err := d.Read(context.Background(), func(r db.Reader) error {
		for id, want := range want {
			for _, id := range []string{id, "exec " + id} {
				got, err := db.Collect(r, scanShown, "SELECT n, raw, yes, note, raw IS NULL FROM "+table+" WHERE id = $1", id)
				if err != nil || len(got) != 1 || got[0] != want {
					t.Errorf("%s: stored %q, want %q (%v)", id, got, want, err)
				}
			}
		}
		if err := r.Row("SELECT n FROM "+table+" WHERE id = $1", "nobody").Scan(new(int)); !errors.Is(err, db.ErrNoRows) {
			t.Errorf("a row that is not there answers %v, want ErrNoRows", err)
		}
		none, err := db.Collect(r, scanID, "SELECT id FROM "+table+" WHERE id = 'nobody'")
		if len(none) != 0 {
			t.Errorf("collected %v from nothing", none)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// scanShown reads a row of every type as one line.
func scanShown(scan func(...any) error) (string, error) {
	var n *int64
	var raw []byte
	var yes *bool
	var note *string
	var none bool // an empty value is not NULL; reading it may give nil
	err := scan(&n, &raw, &yes, &note, &none)
	shown := "NULL"
	if !none {
		shown = fmt.Sprintf("%x.", raw)
	}
	return strings.Join([]string{orNull(n), shown, orNull(yes), orNull(note)}, "|"), err
}

func orNull[T any](p *T) string {
	if p == nil {
		return "NULL"
	}
	return fmt.Sprint(*p)
}

func timeIsFixed(t *testing.T, d *db.DB, table string) {
	before := d.Now()
	last := before
	for range 20 {
		write(t, d, func(tx *db.Tx) error {
			now, wall := tx.Now(), tx.Wall()
			if err := insertID(table, fmt.Sprint(db.Micros(now)))(tx); err != nil {
				return err
			}
			if !tx.Now().Equal(now) || !tx.Wall().Equal(wall) {
				return fmt.Errorf("now was %s and became %s in one write, the time of day was %s and became %s", now, tx.Now(),
					wall, tx.Wall())
			}
			if away := time.Since(wall); away.Abs() > time.Minute || !db.FromMicros(db.Micros(wall)).Equal(wall) ||
				wall.Location() != time.UTC {
				return fmt.Errorf("the time of day is %s, %s away from this machine's", wall, away)
			}
			if now.Before(last) {
				return fmt.Errorf("now went back from %s to %s", last, now)
			}
			if !db.FromMicros(db.Micros(now)).Equal(now) || now.Location() != time.UTC {
				return fmt.Errorf("%s is not what would be stored", now)
			}
			last = now
			return nil
		})
	}
	if !last.After(before) || last.After(d.Now()) {
		t.Errorf("writes between %s and %s carry %s", before, d.Now(), last)
	}
	if away := time.Since(last); away > time.Minute || away < -time.Minute {
		t.Errorf("the database's time is %s away from this machine's", away)
	}
}

func readIsSnapshot(t *testing.T, d *db.DB, table string) {
	write(t, d, insertID(table, "a"))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	inside, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { // a writer that takes its time, with a row nobody may see yet
		done <- d.Write(ctx, func(tx *db.Tx) error {
			if err := insertID(table, "b")(tx); err != nil {
				return err
			}
			if _, err := db.Collect(tx, scanID, "SELECT id FROM "+table); err != nil { // sends what is queued
				return err
			}
			inside <- struct{}{}
			<-release
			return nil
		})
	}()
	<-inside
	err := d.Read(ctx, func(r db.Reader) error {
		count := func() (n int, err error) { return n, r.Row("SELECT count(*) FROM " + table).Scan(&n) }
		if n, err := count(); err != nil || n != 1 {
			return fmt.Errorf("a read beside a writer sees %d rows, want 1: %w", n, err)
		}
		now, wall := r.Now(), r.Wall()
		close(release)
		if err := <-done; err != nil { // the writer does not wait for the reader either
			return err
		}
		if n, err := count(); err != nil || n != 1 {
			return fmt.Errorf("the snapshot changed to %d rows: %w", n, err)
		}
		if !r.Now().Equal(now) || !r.Wall().Equal(wall) || r.Context() != ctx {
			return errors.New("time or context changed within a read")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantIDs(t, d, table, "a b")
}

// readsInParallel catches a pool that needs a second connection per read: with
// all of them taken, everybody would wait for everybody.
func readsInParallel(t *testing.T, d *db.DB, table string) {
	write(t, d, insertID(table, "a"))
	const readers = 16
	var wg sync.WaitGroup
	var begun sync.WaitGroup
	begun.Add(4) // the smallest pool has four
	for i := range readers {
		wg.Go(func() {
			err := d.Read(context.Background(), func(r db.Reader) error {
				if i < 4 {
					begun.Done()
				}
				if i < 4 {
					begun.Wait()
				}
				var id string
				return r.Row(fmt.Sprintf("SELECT id FROM %s WHERE n < %d", table, 1000+i)).Scan(&id)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func readFails(t *testing.T, d *db.DB, table string) {
	write(t, d, insertID(table, "a"))
	mine := errors.New("mine")
	if err := d.Read(context.Background(), func(db.Reader) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("error is %v, want the function's own", err)
	}
	if err := d.Read(context.Background(), func(r db.Reader) error {
		return r.Row("SELECT nothing FROM nowhere").Scan(new(int))
	}); err == nil {
		t.Error("nonsense was read")
	}
	err := d.Read(context.Background(), func(r db.Reader) error {
		rows, err := r.Query("DELETE FROM " + table + " RETURNING id")
		if err != nil {
			return err
		}
		return rows.Each(func(func(...any) error) error { return nil })
	})
	if err == nil {
		t.Error("a read may write")
	}
	wantIDs(t, d, table, "a")
}

func lists(t *testing.T, d *db.DB, table string) {
	write(t, d, func(tx *db.Tx) error {
		return tx.Insert(table, "id,raw", []any{"a", []byte("x")}, []any{`b"'`, nil}, []any{"c", nil})
	})
	err := d.Read(context.Background(), func(r db.Reader) error {
		for _, c := range []struct {
			list []string
			want string
		}{{[]string{"a", `b"'`, "nobody"}, `a b"'`}, {nil, ""}, {[]string{}, ""}, {[]string{"c"}, "c"}} {
			got, err := db.Collect(r, scanID, "SELECT id FROM "+table+" WHERE "+d.In("id", "$1")+" ORDER BY id", db.Strings(c.list))
			if err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("one of %q: %v, want %s (%v)", c.list, got, c.want, err)
			}
		}
		var raw []byte
		if err := r.Row("SELECT raw FROM "+table+" WHERE id = $1", "a").Scan(&raw); err != nil || !bytes.Equal(raw, []byte("x")) {
			t.Errorf("raw is %q (%v)", raw, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
