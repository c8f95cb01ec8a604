package schema_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
	"tributary/internal/schema"
)

// eventID is one of an event, as webhooks make them.
func eventID(at time.Time, n int) string { return fmt.Sprintf("%012x%028x", at.UnixMilli(), n) }

// idAt is an id as the program makes them, of another time.
func idAt(at time.Time, n int) string {
	id := uuid.Must(uuid.NewV7())
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	for i := range 4 {
		id[12+i] = byte(n >> (24 - 8*i))
	}
	return id.String()
}

// parted are two tables that stand in the same days, the second with the first.
type parted struct {
	id     func(at time.Time, n int) string
	insert [2]string // of an id, an owner, an instant; of a key and an id
	find   string    // the owner by the key
}

func ofCalls() parted {
	return parted{id: idAt, insert: [2]string{
		"INSERT INTO exchanges (exchange_id, lane, verb, at, took, filings, outcome) VALUES ($1, $2, 'send', $3, 1, 1, 'answered')",
		"INSERT INTO exchange_operations (operation_id, exchange_id) VALUES ($1, $2)"},
		find: "SELECT x.lane FROM exchange_operations e JOIN exchanges x ON x.exchange_id = e.exchange_id WHERE e.operation_id = $1"}
}

func ofEvents() parted {
	return parted{id: eventID, insert: [2]string{
		"INSERT INTO webhook_events (webhook_id, lane, created_at, client_id, event_type, resource_id, resource_path, status) VALUES ($1, $2, $3, 'c', 'x', 'r', '/r', 'pending')",
		"INSERT INTO webhook_tries (record, webhook_id, try) VALUES ($1, $2, 1)"},
		find: "SELECT e.lane FROM webhook_tries t JOIN webhook_events e ON e.webhook_id = t.webhook_id WHERE t.record = $1 AND t.webhook_id >= $2"}
}

func (p parted) add(tx *db.Tx, id, owner, key string, at time.Time) error {
	if err := tx.Exec(p.insert[0], id, owner, db.Micros(at)); err != nil {
		return err
	}
	return tx.Exec(p.insert[1], key, id)
}

// writers write and read as a node does, until they are ended.
type writers struct {
	stop    atomic.Bool
	wg      sync.WaitGroup
	written atomic.Int64
}

func startWriters(t *testing.T, d *db.DB, p parted) *writers {
	t.Helper()
	c := &writers{}
	for w := range 4 {
		c.wg.Go(func() {
			for i := 0; !c.stop.Load(); i++ {
				at := time.Now()
				key, owner, id := fmt.Sprintf("new%d-%d", w, i), fmt.Sprintf("c%d|XX|test|0|s", w), p.id(at, w<<24|i)
				err := d.Write(context.Background(), func(tx *db.Tx) error { return p.add(tx, id, owner, key, at) })
				if err != nil {
					t.Errorf("a row beside it: %v", err)
					return
				}
				c.written.Add(1)
				var found string
				args := []any{key, id}[:strings.Count(p.find, "$")]
				err = d.Read(context.Background(), func(r db.Reader) error { return r.Row(p.find, args...).Scan(&found) })
				if err != nil || found != owner {
					t.Errorf("a row beside it is not found: %q, %v", found, err)
				}
				time.Sleep(5 * time.Millisecond) // a load, not all that the machine can do
			}
		})
	}
	t.Cleanup(c.end)
	return c
}

// goOn waits until every writer has written again, beside whatever the test
// lets hold the table now: who waited for that would wait for ever.
func (c *writers) goOn(t *testing.T) {
	t.Helper()
	// a load has no signal to give
	for enough := c.written.Load() + 20; c.written.Load() < enough; time.Sleep(time.Millisecond) {
		if t.Failed() {
			t.FailNow()
		}
	}
}

func (c *writers) end() {
	c.stop.Store(true)
	c.wg.Wait()
}

// A new day has what its table has: its checks, how it is vacuumed, the number
// that grows, its policies and those of others that look into it.
func TestANewDayHasWhatItsTableHas(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	served, url := dbtest.ServedURL(t)
	p, ctx := ofEvents(), t.Context()
	d := dbtest.Open(t, db.Config{URL: url})
	owner := dbtest.Connect(t, url)
	_, err := owner.Exec(ctx,
		"CREATE POLICY reports ON webhook_events AS RESTRICTIVE FOR SELECT TO "+dbtest.ReadRole+" USING (lane <> 'hidden')")
	must(t, err)
	for i, lane := range []string{"a", "hidden"} {
		must(t, d.Write(ctx, func(tx *db.Tx) error { return p.add(tx, p.id(time.Now(), i), lane, "try", time.Now()) }))
	}
	var last int64
	must(t, owner.QueryRow(ctx, "SELECT max(seq) FROM webhook_events").Scan(&last))
	later := time.Now().AddDate(0, 0, 40)
	must(t, second(schema.MakePartitions(ctx, d, later)))
	node := dbtest.Open(t, db.Config{URL: served, NoWorkers: true})
	must(t, node.Write(ctx, func(tx *db.Tx) error { return p.add(tx, p.id(later, 3), "a", "try", later) }))
	if n := dbtest.Count(t, d, fmt.Sprintf("SELECT count(*) FROM webhook_events WHERE seq = %d", last+1)); n != 1 {
		t.Errorf("the number of the next event does not go on behind %d", last)
	}
	err = node.Write(ctx, func(tx *db.Tx) error {
		return tx.Exec("UPDATE webhook_events SET status = 'lost' WHERE webhook_id = $1", p.id(later, 3))
	})
	if err == nil {
		t.Error("a new day takes a status that there is not")
	}
	for _, part := range []string{"before", "rest", later.UTC().Format("20060102")} {
		if n := dbtest.Count(t, d,
			"SELECT count(*) FROM pg_class WHERE relname = 'webhook_events_"+part+
				"' AND reloptions @> ARRAY['autovacuum_vacuum_scale_factor=0.005', 'autovacuum_vacuum_threshold=5000']"); n != 1 {
			t.Errorf("%s is not vacuumed as the table was", part)
		}
	}
	seen := func(client, table string) (n int) {
		t.Helper()
		must(t, node.Read(db.ForClient(ctx, client), func(r db.Reader) error {
			return r.Row("SELECT count(*) FROM " + table).Scan(&n)
		}))
		return n
	}
	if a, b, c, e := seen("c", "webhook_events"), seen("c", "webhook_tries"), seen("other", "webhook_events"),
		seen("other", "webhook_tries"); a != 2 || b != 2 || c+e != 0 {
		t.Errorf("a client sees %d events and %d tries, another %d and %d", a, b, c, e)
	}
}

// A role that changes no schema makes the days to come and drops those that are over, and nothing else.
func TestTheServingRoleMakesAndDropsDays(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	served, owner := dbtest.ServedURL(t)
	d := dbtest.Open(t, db.Config{URL: served})
	ctx := t.Context()
	now := time.Now().UTC().AddDate(0, 0, 40)
	stray := now.AddDate(0, 0, 3)
	for _, p := range []parted{ofCalls(), ofEvents()} {
		must(t, d.Write(ctx, func(tx *db.Tx) error { return p.add(tx, p.id(stray, 1), "c|XX|test|0|s", "stray", stray) }))
	}
	made, err := schema.MakePartitions(ctx, d, now)
	if must(t, err); made != 4*schema.PartitionsAhead { // today and seven more, but the stray's
		t.Errorf("%d partitions are made", made)
	}
	if made, err := schema.MakePartitions(ctx, d, now); made != 0 || err != nil {
		t.Errorf("again %d partitions are made: %v", made, err)
	}
	for i := range schema.PartitionsAhead + 1 {
		at := now.AddDate(0, 0, i)
		for _, p := range []parted{ofCalls(), ofEvents()} {
			must(t, d.Write(ctx, func(tx *db.Tx) error {
				return p.add(tx, p.id(at, 100+i), "c|XX|test|0|s", fmt.Sprint("o", i), at)
			}))
		}
	}
	for table, want := range map[string]int{"exchanges_rest": 2, "exchanges_" + now.Format("20060102"): 1,
		"exchange_operations_" + now.AddDate(0, 0, 7).Format("20060102"): 1, "exchanges_before": 0,
		"webhook_events_rest": 2, "webhook_events_" + now.Format("20060102"): 1,
		"webhook_tries_" + now.AddDate(0, 0, 7).Format("20060102"): 1, "webhook_events_before": 0} {
		if n := ownCount(t, owner, "SELECT count(*) FROM "+table); n != want {
			t.Errorf("%d rows in %s, want %d", n, table, want)
		}
	}
	if made, err := schema.MakePartitions(ctx, d, now.AddDate(0, 0, 1)); made != 4 || err != nil {
		t.Errorf("a day later %d partitions are made: %v", made, err)
	}
	list, err := schema.Partitions(ctx, d)
	must(t, err)
	end := now.Truncate(24*time.Hour).AddDate(0, 0, 2)
	for _, p := range list {
		if err := schema.DropPartition(ctx, d, p, end); err == nil {
			t.Errorf("%s is dropped before its ninety days are over", p.Name)
		}
	}
	dbtest.Ahead(t, d, 40+2+90)
	for _, p := range list {
		if over := !p.Rest && !p.Ends.After(end); over != (schema.DropPartition(ctx, d, p, end) == nil) {
			t.Errorf("%s: dropped %v", p.Name, !over)
		}
	}
	for _, table := range []string{"exchanges", "exchange_operations", "webhook_events", "webhook_tries"} {
		if n := ownCount(t, owner, "SELECT count(*) FROM "+table); n != schema.PartitionsAhead+2-2 {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
	conn := dbtest.Connect(t, served)
	// As docs/operations.md says, where the rest has become too large to be looked through beside writers.
	if _, err := conn.Exec(ctx, "SELECT make_partition('exchanges', current_date - DATE '1970-01-01' + 100, 0)"); err ==
		nil || !strings.Contains(err.Error(), "exchanges_rest has grown to 8192 bytes") {
		t.Errorf("a rest that is too large: %v", err)
	}
	must(t, dbtest.Connect(t, owner).QueryRow(ctx,
		"SELECT count(make_partition('exchanges', current_date - DATE '1970-01-01' + n, 1000000000000)) FROM generate_series(100, 101) AS n").Scan(&made))
	if n := ownCount(t, owner,
		"SELECT count(*) FROM pg_class WHERE relname = 'exchanges_"+time.Now().UTC().AddDate(0, 0, 101).Format("20060102")+
			"'"); n != 1 {
		t.Error("an operator's partition is not made")
	}
	for _, statement := range []string{
		"DROP TABLE exchanges_rest", "TRUNCATE exchanges",
		"CREATE TABLE mine PARTITION OF exchanges FOR VALUES FROM ('0') TO ('1')", "SELECT * FROM exchanges_rest",
		"ALTER TABLE exchanges DETACH PARTITION exchanges_rest", "UPDATE partitioned SET first_day = 0",
	} {
		refusedAs(t, conn, statement)
	}
	for _, statement := range []string{"SELECT drop_partition('exchanges_rest', 99999)",
		"SELECT drop_partition('operations', 99999)", "SELECT drop_partition('exchanges', 99999)",
		fmt.Sprintf("SELECT drop_partition('exchanges_%s', %d)", now.AddDate(0, 0, 6).Format("20060102"), now.Unix()/86400),
		"SELECT make_partition('operations', 99999, 1)", "SELECT make_partition('exchanges', 1, 1)"} {
		if _, err := conn.Exec(ctx, statement); err == nil {
			t.Errorf("%s is done", statement)
		}
	}
	// The function looks at the age itself, by the server's clock and nobody else's.
	last := now.AddDate(0, 0, 6)
	statement := fmt.Sprintf("SELECT drop_partition('exchanges_%s', %d)", last.Format("20060102"), last.Unix()/86400)
	for _, days := range []int{0, 40 + 6 + 89} {
		dbtest.Ahead(t, d, days)
		refused(t, conn, statement, "is not ninety days old")
	}
	dbtest.Ahead(t, d, 40+6+90)
	_, err = conn.Exec(ctx, statement)
	must(t, err)
}

func ownCount(t *testing.T, url, text string) (n int) {
	t.Helper()
	must(t, dbtest.Connect(t, url).QueryRow(t.Context(), text).Scan(&n))
	return n
}

// Whoever reads the rest or the table for long puts making and dropping off, and keeps no writer waiting behind them.
func TestATableInUseIsLeftForTomorrow(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	url := dbtest.MigratedURL(t)
	d := dbtest.Open(t, db.Config{URL: url})
	now := time.Now().UTC().AddDate(0, 0, 40)
	end := holdTable(t, url, "exchanges")
	traffic := startWriters(t, d, ofCalls())
	some, err := schema.MakePartitions(t.Context(), d, now) // whoever waited for the reader would wait for ever
	if err == nil || !strings.Contains(err.Error(), "lock timeout") {
		t.Errorf("partitions beside somebody who reads the rest: %v", err)
	}
	traffic.goOn(t)
	close(end)
	traffic.end()
	if made, err := schema.MakePartitions(t.Context(), d, now); some+made != 4*(schema.PartitionsAhead+1) || err != nil {
		t.Errorf("%d and %d partitions are made: %v", some, made, err)
	}
}

// A day is not dropped beside somebody who reads its table for long: it says so, and goes when he has ended.
func TestADayInUseIsNotDropped(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	url := dbtest.MigratedURL(t)
	d := dbtest.Open(t, db.Config{URL: url})
	now := time.Now().UTC().AddDate(0, 0, 40)
	dbtest.Ahead(t, d, 40+1+90)
	must(t, second(schema.MakePartitions(t.Context(), d, now)))
	all := []string{"exchanges", "exchange_operations", "webhook_events", "webhook_tries"}
	var ends []chan struct{}
	for _, table := range all {
		ends = append(ends, holdTable(t, url, table))
	}
	calls, events := startWriters(t, d, ofCalls()), startWriters(t, d, ofEvents())
	nothing := func(db.Reader, schema.Partition) (bool, error) { return false, nil }
	end := now.Truncate(24*time.Hour).AddDate(0, 0, 1)
	var wg sync.WaitGroup
	for _, table := range all {
		wg.Go(func() {
			_, err := schema.DropDays(t.Context(), d, table, end, func(r db.Reader, day schema.Partition) (bool, error) {
				return day.From == "", nil // the first partition has rows of today
			})
			if err == nil || !strings.Contains(err.Error(), "drop partition "+table+"_"+now.Format("20060102")) ||
				!strings.Contains(err.Error(), "lock timeout") {
				t.Errorf("%s beside a reader: %v", table, err)
			}
		})
	}
	wg.Wait()
	calls.goOn(t)
	events.goOn(t)
	for _, held := range ends {
		close(held)
	}
	calls.end()
	events.end()
	for _, table := range all {
		if _, err := schema.DropDays(t.Context(), d, table, end, nothing); err != nil {
			t.Errorf("%s afterwards: %v", table, err)
		}
	}
	if n := dbtest.Count(t, d,
		"SELECT count(*) FROM pg_class WHERE relname ~ '_(before|"+now.Format("20060102")+
			")$' AND relispartition AND relkind = 'r'"); n != 0 {
		t.Errorf("%d days are left", n)
	}
}

// What is due again when its day is to go keeps it, whatever was looked at before.
func TestADayWithSomethingDueIsNotDropped(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	d := dbtest.Postgres(t)
	must(t, d.Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec("INSERT INTO webhook_events (webhook_id, client_id, event_type, resource_id, resource_path, lane, status, created_at, due_at) VALUES ($1, 'c', 'x', 'r', '/r', 'l', 'pending', 1, 1)", eventID(time.Now(), 1))
	}))
	dbtest.Ahead(t, d, 60+90)
	drop := func() (int, error) {
		return schema.DropDays(t.Context(), d, "webhook_events", time.Now().AddDate(0, 0, 60),
			func(db.Reader, schema.Partition) (bool, error) {
				return false, nil
			})
	}
	if rows, err := drop(); rows != 0 || err != nil || dbtest.Count(t, d, "SELECT count(*) FROM webhook_events") != 1 {
		t.Errorf("%d rows are gone: %v", rows, err)
	}
	must(t, d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec("UPDATE webhook_events SET due_at = NULL") }))
	if rows, err := drop(); rows != 1 || err != nil || dbtest.Count(t, d, "SELECT count(*) FROM webhook_events") != 0 {
		t.Errorf("%d rows are gone afterwards: %v", rows, err)
	}
}
