package lease_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lease"
	"tributary/internal/needs"
)

// row is what the model knows of a row of the table.
type row struct {
	key   string
	due   time.Time // zero: nothing to do; while held, the lease's end
	token int64
	held  bool
}

// model is a queue in memory, beside the real one.
type model struct {
	t      *rapid.T
	d      *db.DB
	q      *lease.Queue[string]
	rows   map[string]*row
	leases []*lease.Lease[string]
}

// Whatever is done in whatever order: a claim gives exactly what is due, only
// the latest holder of a row can write it, and in the end nothing is forgotten.
func TestLeasesAgreeWithTheirModel(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		q := work(t, d)
		db.StopClock(d)
		rapid.Check(t, func(t *rapid.T) {
			must(t, d.Write(context.Background(), func(tx *db.Tx) error { return tx.Exec("DELETE FROM work") }))
			m := &model{t: t, d: d, q: q, rows: map[string]*row{}}
			t.Repeat(map[string]func(*rapid.T){
				"add":   m.add,
				"claim": m.claim,
				"time": func(t *rapid.T) {
					db.ShiftClock(d, rapid.SampledFrom([]time.Duration{time.Second, 4 * time.Second, 11 * time.Second}).Draw(t, "by"))
				},
				"guard":  func(*rapid.T) { m.use(func(tx *db.Tx, l *lease.Lease[string]) error { return l.Guard(tx) }, m.renewed) },
				"renew":  m.renew,
				"finish": m.finish,
			})
			m.drain()
		})
	})
}

func (m *model) add(t *rapid.T) {
	id := fmt.Sprintf("row%d", len(m.rows))
	r := &row{key: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")}
	var due any
	if after := rapid.SampledFrom([]time.Duration{-5, 0, 5, 30, -1000}).Draw(t, "due"); after != -1000 {
		r.due = m.d.Now().Add(after * time.Second)
		due = db.Micros(r.due)
	}
	must(t, m.d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Insert("work", "id,fair,due_at", []any{id, r.key, due})
	}))
	m.rows[id] = r
}

func (m *model) claim(t *rapid.T) {
	c := lease.Claim{Max: rapid.IntRange(1, 6).Draw(t, "max"), Fair: rapid.Bool().Draw(t, "fair"),
		From: rapid.SampledFrom([]string{"", "a", "b", "x"}).Draw(t, "from")}
	room := rapid.IntRange(0, 3).Draw(t, "room")
	if room > 0 {
		c.Room = func(string) int { return room }
	}
	before := m.d.Now()
	got, _, err := m.q.Due(context.Background(), m.d, c)
	must(t, err)
	m.check(c, got, before)
}

// check holds a claim's answer against the model and notes what was taken.
func (m *model) check(c lease.Claim, got []*lease.Lease[string], before time.Time) {
	after := m.d.Now()
	dueBefore, perKey, newest := 0, map[string]int{}, time.Time{}
	for _, r := range m.rows {
		if !r.due.IsZero() && !r.due.After(before) {
			dueBefore++
		}
	}
	for _, l := range got {
		r := m.rows[l.ID]
		if r == nil || r.due.IsZero() || r.due.After(after) {
			m.t.Fatalf("%s was claimed but is not due: %+v", l.ID, r)
		}
		if l.Token != r.token+1 || l.Key != r.key {
			m.t.Fatalf("%s has token %d and key %s after %+v", l.ID, l.Token, l.Key, r)
		}
		perKey[l.Key]++
		if r.due.After(newest) {
			newest = r.due
		}
		r.token, r.held = l.Token, true
	}
	for key, n := range perKey {
		if c.Room != nil && n > c.Room(key) {
			m.t.Fatalf("%d rows of key %s, room for %d", n, key, c.Room(key))
		}
	}
	if !c.Fair && c.Room == nil {
		if len(got) < min(c.Max, dueBefore) {
			m.t.Fatalf("claimed %d rows of %d that are due", len(got), dueBefore)
		}
		for id, r := range m.rows {
			if taken := slices.ContainsFunc(got, func(l *lease.Lease[string]) bool {
				return l.ID == id
			}); !taken && !r.due.IsZero() && r.due.Before(newest) {
				m.t.Fatalf("%s due at %s was left behind for newer rows", id, r.due)
			}
		}
	}
	if len(got) > c.Max || dueBefore > 0 && len(got) == 0 {
		m.t.Fatalf("claimed %d rows, at most %d, %d due", len(got), c.Max, dueBefore)
	}
	for _, l := range got {
		m.renewed(l)
	}
	m.leases = append(m.leases, got...)
}

// renewed notes a lease's new end, as the table has it.
func (m *model) renewed(l *lease.Lease[string]) {
	var due, until int64
	must(m.t, m.d.Read(context.Background(), func(r db.Reader) error {
		return r.Row("SELECT due_at, lease_until FROM work WHERE id = $1", l.ID).Scan(&due, &until)
	}))
	left := db.FromMicros(until).Sub(m.d.Now())
	if due != until || left != lease.Term {
		m.t.Fatalf("a lease of %s ends in %s, due %d until %d", l.ID, left, due, until)
	}
	m.rows[l.ID].due = db.FromMicros(until)
}

// holds: only the latest claim of a row, and only until it is finished.
func (m *model) holds(l *lease.Lease[string]) bool {
	r := m.rows[l.ID]
	return r.held && r.token == l.Token
}

// use writes under one of all leases ever given, and checks who may.
func (m *model) use(fn func(*db.Tx, *lease.Lease[string]) error, then func(*lease.Lease[string])) {
	if len(m.leases) == 0 {
		return
	}
	l := rapid.SampledFrom(m.leases).Draw(m.t, "lease")
	mark := fmt.Sprintf("%s by %d", l.ID, l.Token)
	err := m.d.Write(context.Background(), func(tx *db.Tx) error {
		if err := tx.Exec("UPDATE work SET payload = $1 WHERE id = $2", mark, l.ID); err != nil {
			return err
		}
		return fn(tx, l)
	})
	if m.holds(l) {
		must(m.t, err)
		then(l)
		return
	}
	if !errors.Is(err, db.ErrStale) {
		m.t.Fatalf("a lease of %s with token %d wrote after %d: %v", l.ID, l.Token, m.rows[l.ID].token, err)
	}
}

func (m *model) finish(t *rapid.T) {
	again := rapid.SampledFrom([]time.Duration{0, 5, 30}).Draw(t, "again")
	var next time.Time
	m.use(func(tx *db.Tx, l *lease.Lease[string]) error {
		if next = (time.Time{}); again != 0 {
			next = tx.Now().Add(again * time.Second)
		}
		return l.Finish(tx, next)
	}, func(l *lease.Lease[string]) {
		m.rows[l.ID].held, m.rows[l.ID].due = false, next
	})
}

func (m *model) renew(t *rapid.T) {
	lost, err := m.q.Renew(context.Background(), m.d, m.leases)
	must(t, err)
	for _, l := range m.leases {
		if m.holds(l) == slices.Contains(lost, l) {
			t.Fatalf("lease of %s with token %d: held %t, lost %t", l.ID, l.Token, m.holds(l), !m.holds(l))
		}
		if m.holds(l) {
			m.renewed(l)
		}
	}
}

// drain waits long enough and works everything: no more and no less than what has something to do.
func (m *model) drain() {
	want := map[string]bool{}
	for id, r := range m.rows {
		if !r.due.IsZero() {
			want[id] = true
		}
	}
	db.ShiftClock(m.d, time.Minute)
	got := map[string]bool{}
	from := ""
	for i := 0; ; i++ {
		leases, next, err := m.q.Due(context.Background(), m.d, lease.Claim{Max: 2, Fair: i%2 == 0, From: from})
		must(m.t, err)
		if len(leases) == 0 {
			break
		}
		from = next
		for _, l := range leases {
			if got[l.ID] {
				m.t.Fatalf("%s was given out twice", l.ID)
			}
			got[l.ID] = true
		}
		must(m.t, m.d.Write(context.Background(), func(tx *db.Tx) error { return finishAll(tx, leases, time.Time{}) }))
	}
	if !maps.Equal(got, want) {
		m.t.Fatalf("worked %v in the end, want %v", got, want)
	}
}

// Many workers that stall at any point, on PostgreSQL on two nodes: each row
// ends exactly once, and its writes are ordered by token.
func TestStallingWorkersNeverWriteBesideEachOther(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		nodes := []*db.DB{dbtest.Open(t, db.Config{URL: url})}
		if nodes[0].Engine() == "postgres" {
			nodes = append(nodes, dbtest.Open(t, db.Config{URL: url}))
		}
		q := work(t, nodes[0])
		must(t, nodes[0].Write(context.Background(), func(tx *db.Tx) error {
			serial := map[string]string{"sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT",
				"postgres": "BIGSERIAL PRIMARY KEY"}[nodes[0].Engine()]
			return tx.Exec("CREATE TABLE journal (n " + serial +
				", id TEXT NOT NULL, token BIGINT NOT NULL, what TEXT NOT NULL)")
		}))
		const rows, workers = 60, 8
		for i := range rows {
			addWork(t, nodes[0], []any{fmt.Sprintf("%02d", i), fmt.Sprint("key", i%5), "", db.Micros(nodes[0].Now())})
		}
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() { workUntilDone(t, q, nodes, w, rows) })
		}
		wg.Wait()
		journal := readJournal(t, nodes[0])
		for i := range rows {
			tokens := journal[fmt.Sprintf("%02d", i)]
			if !slices.IsSorted(tokens) || len(tokens) == 0 {
				t.Errorf("row %d was written by %v: not in the order of its holders", i, tokens)
			}
		}
	})
}

// workUntilDone claims, writes under Guard, stalls or not, and finishes.
func workUntilDone(t *testing.T, q *lease.Queue[string], nodes []*db.DB, worker, rows int) {
	ctx := context.Background()
	random := rand.New(rand.NewPCG(uint64(worker), 1))
	note := func(l *lease.Lease[string], what string, end func(*db.Tx) error) func(*db.Tx) error {
		return func(tx *db.Tx) error {
			if err := end(tx); err != nil {
				return err
			}
			return tx.Exec("INSERT INTO journal (id, token, what) VALUES ($1, $2, $3)", l.ID, l.Token, what)
		}
	}
	for {
		d := nodes[random.IntN(len(nodes))]
		leases, _, err := q.Due(ctx, d, lease.Claim{Max: 4, Fair: random.IntN(2) == 0})
		if err != nil {
			t.Error(err)
			return
		}
		for _, l := range leases {
			if random.IntN(4) == 0 { // everybody's leases run out, this one's too
				for _, n := range nodes {
					db.ShiftClock(n, lease.Term+time.Second)
				}
			}
			err := d.Write(ctx, note(l, "guard", l.Guard))
			if err == nil && random.IntN(5) == 0 {
				continue // dies here
			}
			if err == nil {
				err = d.Write(ctx, note(l, "finish", func(tx *db.Tx) error { return l.Finish(tx, time.Time{}) }))
			}
			if err != nil && !errors.Is(err, db.ErrStale) {
				t.Error(err)
			}
		}
		if len(leases) == 0 {
			var left int
			must(t, d.Read(ctx, func(r db.Reader) error {
				return r.Row("SELECT count(*) FROM work WHERE due_at IS NOT NULL").Scan(&left)
			}))
			if left == 0 {
				return
			}
			for _, n := range nodes {
				db.ShiftClock(n, lease.Term/4)
			}
		}
	}
}

// readJournal gives the tokens of each row's writes in the order of their
// commits, and fails where a row was finished not exactly once.
func readJournal(t *testing.T, d *db.DB) map[string][]int64 {
	t.Helper()
	tokens, finished := map[string][]int64{}, map[string]int{}
	must(t, d.Read(context.Background(), func(r db.Reader) error {
		rows, err := r.Query("SELECT id, token, what FROM journal ORDER BY id, n")
		if err != nil {
			return err
		}
		return rows.Each(func(scan func(...any) error) error {
			var id, what string
			var token int64
			err := scan(&id, &token, &what)
			if tokens[id] = append(tokens[id], token); what == "finish" {
				finished[id]++
			}
			return err
		})
	}))
	for id := range tokens {
		if finished[id] != 1 {
			t.Errorf("row %s was finished %d times", id, finished[id])
		}
	}
	return tokens
}
