package db_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

// lastWhole is the last version without partitions.
const lastWhole = 39

// lastWholeEvents is the last version in which events are one table.
const lastWholeEvents = 40

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
	tables [2]string
	last   int // version without their partitions
	id     func(at time.Time, n int) string
	insert [2]string // of an id, an owner, an instant; of a key and an id
	find   string    // the owner by the key
	fill   [2]string
	files  string // tables and indexes that must be the same afterwards
}

func ofCalls() parted {
	return parted{tables: [2]string{"exchanges", "exchange_operations"}, last: lastWhole, id: idAt, insert: [2]string{
		"INSERT INTO exchanges (exchange_id, lane, verb, at, took, filings, outcome) VALUES ($1, $2, 'send', $3, 1, 1, 'answered')",
		"INSERT INTO exchange_operations (operation_id, exchange_id) VALUES ($1, $2)"},
		find: "SELECT x.lane FROM exchange_operations e JOIN exchanges x ON x.exchange_id = e.exchange_id WHERE e.operation_id = $1",
		fill: [2]string{`INSERT INTO exchanges (exchange_id, lane, verb, at, took, filings, outcome)
			SELECT substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-7000-8000-' || lpad(to_hex(n), 12, '0'), 'c' || n % 50 || '|XX|test|0|s', 'send', ms * 1000, 1, 1, 'answered'
			FROM ` + momentsSQL, "INSERT INTO exchange_operations (operation_id, exchange_id) SELECT 'o' || right(exchange_id, 12), exchange_id FROM exchanges WHERE $1::bigint > 0"},
		files: "^exchange(s|_operations)(_before)?(_pkey|_by_lane)?$"}
}

func ofEvents() parted {
	return parted{tables: [2]string{"webhook_events", "webhook_tries"}, last: lastWholeEvents, id: eventID, insert: [2]string{
		"INSERT INTO webhook_events (webhook_id, lane, created_at, client_id, event_type, resource_id, resource_path, status) VALUES ($1, $2, $3, 'c', 'x', 'r', '/r', 'pending')",
		"INSERT INTO webhook_tries (record, webhook_id, try) VALUES ($1, $2, 1)"},
		find: "SELECT e.lane FROM webhook_tries t JOIN webhook_events e ON e.webhook_id = t.webhook_id WHERE t.record = $1 AND t.webhook_id >= $2",
		fill: [2]string{`INSERT INTO webhook_events (webhook_id, lane, created_at, client_id, event_type, resource_id, resource_path, status)
			SELECT h || lpad(to_hex(n), 28, '0'), 'c' || n % 50, ms * 1000, 'c', 'x', 'r', '/r', 'delivered'
			FROM ` + momentsSQL, "INSERT INTO webhook_tries (record, webhook_id, try) SELECT 'o' || right(webhook_id, 12), webhook_id, 1 FROM webhook_events WHERE $1::bigint > 0"},
		files: "^webhook_(events|tries)(_before)?(_pkey|_list|_open|_series|_due|_lane|_node)?$"}
}

// momentsSQL are so many moments of the last ninety days.
const momentsSQL = `(SELECT n, ms, lpad(to_hex(ms), 12, '0') AS h FROM
	(SELECT n, (extract(epoch FROM now())::bigint - n * 7776000::bigint / $1) * 1000 AS ms FROM generate_series(1, $1::bigint) AS n) AS a) AS b`

func (p parted) add(tx *db.Tx, id, owner, key string, at time.Time) error {
	if err := tx.Exec(p.insert[0], id, owner, db.Micros(at)); err != nil {
		return err
	}
	return tx.Exec(p.insert[1], key, id)
}

// pairs counts the rows of the second table that have theirs in the first.
func (p parted) pairs(t *testing.T, d *db.DB) int {
	t.Helper()
	id := map[string]string{"exchanges": "exchange_id", "webhook_events": "webhook_id"}[p.tables[0]]
	return count(t, d, fmt.Sprintf("SELECT count(*) FROM %s b JOIN %s a ON a.%[3]s = b.%[3]s", p.tables[1], p.tables[0], id))
}

// eachParted runs a test for calls and for events.
func eachParted(t *testing.T, fn func(t *testing.T, p parted)) {
	t.Helper()
	for _, p := range []parted{ofCalls(), ofEvents()} {
		t.Run(p.tables[0], func(t *testing.T) { t.Parallel(); fn(t, p) })
	}
}

func (p parted) migrate(t *testing.T, url string, said *dbtest.Journal) *db.DB {
	t.Helper()
	d, err := db.Open(context.Background(), db.Config{URL: url, Log: slog.New(slog.NewTextHandler(said, nil))})
	must(t, err)
	t.Cleanup(func() { _ = d.Close() }) // tested elsewhere
	must(t, second(db.MigrateTo(context.Background(), d, p.last)))
	return d
}

// writers write and read as a node of the version before does, until they are ended.
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
					t.Errorf("a row beside the migration: %v", err)
					return
				}
				c.written.Add(1)
				var found string
				args := []any{key, id}[:strings.Count(p.find, "$")]
				err = d.Read(context.Background(), func(r db.Reader) error { return r.Row(p.find, args...).Scan(&found) })
				if err != nil || found != owner {
					t.Errorf("a row beside the migration is not found: %q, %v", found, err)
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
	for enough := c.written.Load() + 20; c.written.Load() < enough; time.Sleep(time.Millisecond) { // a load has no signal to give
		if t.Failed() {
			t.FailNow()
		}
	}
}

func (c *writers) end() {
	c.stop.Store(true)
	c.wg.Wait()
}

// A store that is in use is parted: a node of the version before goes on, by a
// role without the rights of the owner, nothing is lost, nothing is copied, and
// nobody waits for long, also where somebody else has the table for a while.
func TestTablesArePartedBesideTheVersionBefore(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.ServedURL(t) // the roles belong to the server
	eachParted(t, func(t *testing.T, p parted) {
		rows := salesRows() / 2
		url := dbtest.PostgresURL(t)
		ctx := context.Background()
		var said dbtest.Journal
		next := p.migrate(t, url, &said)
		owner := as(t, url)
		for _, text := range p.fill {
			_, err := owner.Exec(ctx, text, rows)
			must(t, err)
		}
		_, err := owner.Exec(ctx, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "+dbtest.ServeRole+"; GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO "+dbtest.ServeRole+
			"; INSERT INTO schema_roles VALUES (1, '"+dbtest.ServeRole+"', '"+dbtest.ReadRole+"')")
		must(t, err)
		files := func() (list string) {
			must(t, owner.QueryRow(ctx, "SELECT string_agg(relfilenode::text, ' ' ORDER BY relfilenode) FROM pg_class WHERE relname ~ $1 AND relkind IN ('r', 'i') AND relfilenode <> 0", p.files).Scan(&list))
			return list
		}
		before := files()
		old, err := db.Open(ctx, db.Config{URL: strings.Replace(url, "://tributary@", "://"+dbtest.ServeRole+"@", 1)})
		must(t, err)
		defer func() { _ = old.Close() }() // tested elsewhere
		traffic := startWriters(t, old, p)
		end := holdTable(t, url, p.tables[0])
		migrated := make(chan error, 1)
		go func() { migrated <- second(next.Migrate(ctx)) }()
		said.Await(t, "steps back")
		traffic.goOn(t)
		close(end)
		must(t, <-migrated)
		traffic.end()
		t.Logf("%d rows beside the migration of %d", traffic.written.Load(), rows)
		want := rows + int(traffic.written.Load())
		for _, table := range []string{p.tables[0], p.tables[1], p.tables[0] + "_before"} {
			if n := count(t, next, "SELECT count(*) FROM "+table); n != want {
				t.Errorf("%s: %d, want %d", table, n, want)
			}
		}
		if n := p.pairs(t, next); n != want {
			t.Errorf("%d pairs, want %d", n, want)
		}
		for _, kept := range strings.Fields(before) {
			if !strings.Contains(" "+files()+" ", " "+kept+" ") {
				t.Errorf("a table or an index was written anew: %s, before %s", files(), before)
			}
		}
		wantIndexes(t, next, p.tables[0]+"_pkey", p.tables[1]+"_pkey")
		if n := count(t, next, "SELECT count(*) FROM pg_constraint WHERE conname ~ '^(exchange|webhook).*_before$'"); n != 0 {
			t.Errorf("%d bounds are left on the first partitions: they would refuse rows for ever", n)
		}
		must(t, next.CheckSchema(ctx))
	})
}

// What hangs on a table goes with it: its checks, how it is vacuumed, the number
// that grows, its policies and those of others that look into it. New days have it, too.
func TestWhatHangsOnATableGoesWithItsPartitions(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.ServedURL(t) // the roles belong to the server
	p := ofEvents()
	url := dbtest.PostgresURL(t)
	ctx := t.Context()
	var said dbtest.Journal
	d := p.migrate(t, url, &said)
	must(t, d.Grant(ctx, db.Roles{Serve: dbtest.ServeRole, Read: dbtest.ReadRole}))
	owner := as(t, url)
	_, err := owner.Exec(ctx, "CREATE POLICY reports ON webhook_events AS RESTRICTIVE FOR SELECT TO "+dbtest.ReadRole+" USING (lane <> 'hidden')")
	must(t, err)
	for i, lane := range []string{"a", "hidden"} {
		must(t, d.Write(ctx, func(tx *db.Tx) error { return p.add(tx, p.id(time.Now(), i), lane, "try", time.Now()) }))
	}
	var last int64
	must(t, owner.QueryRow(ctx, "SELECT max(seq) FROM webhook_events").Scan(&last))
	must(t, second(d.Migrate(ctx)))
	later := time.Now().AddDate(0, 0, 40)
	must(t, second(d.MakePartitions(ctx, later)))
	served := dbtest.Open(t, db.Config{URL: strings.Replace(url, "://tributary@", "://"+dbtest.ServeRole+"@", 1), Guest: true})
	must(t, served.Write(ctx, func(tx *db.Tx) error { return p.add(tx, p.id(later, 3), "a", "try", later) }))
	if n := count(t, d, fmt.Sprintf("SELECT count(*) FROM webhook_events WHERE seq = %d", last+1)); n != 1 {
		t.Errorf("the number of the next event does not go on behind %d", last)
	}
	err = served.Write(ctx, func(tx *db.Tx) error {
		return tx.Exec("UPDATE webhook_events SET status = 'lost' WHERE webhook_id = $1", p.id(later, 3))
	})
	if err == nil {
		t.Error("a new day takes a status that there is not")
	}
	for _, part := range []string{"before", "rest", later.UTC().Format("20060102")} {
		if n := count(t, d, "SELECT count(*) FROM pg_class WHERE relname = 'webhook_events_"+part+"' AND reloptions @> ARRAY['autovacuum_vacuum_scale_factor=0.005', 'autovacuum_vacuum_threshold=5000']"); n != 1 {
			t.Errorf("%s is not vacuumed as the table was", part)
		}
	}
	seen := func(client, table string) (n int) {
		t.Helper()
		must(t, served.Read(db.ForClient(ctx, client), func(r db.Reader) error { return r.Row("SELECT count(*) FROM " + table).Scan(&n) }))
		return n
	}
	if a, b, c, e := seen("c", "webhook_events"), seen("c", "webhook_tries"), seen("other", "webhook_events"), seen("other", "webhook_tries"); a != 2 || b != 2 || c+e != 0 {
		t.Errorf("a client sees %d events and %d tries, another %d and %d", a, b, c, e)
	}
}

// What a migration had done when it broke off is not done twice, and writers go on.
func TestAPartingThatBrokeOffIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	eachParted(t, func(t *testing.T, p parted) {
		url := dbtest.PostgresURL(t)
		ctx := context.Background()
		var said dbtest.Journal
		d := p.migrate(t, url, &said)
		write := func(n int) {
			t.Helper()
			must(t, d.Write(ctx, func(tx *db.Tx) error {
				return p.add(tx, p.id(time.Now(), n), "c|XX|test|0|s", fmt.Sprint("o", n), time.Now())
			}))
		}
		breakOff := func(table string) {
			t.Helper()
			said.Reset()
			end := holdTable(t, url, table)
			cut, cancel := context.WithCancel(ctx)
			migrated := make(chan error, 1)
			go func() { migrated <- second(db.MigrateTo(cut, d, p.last+1)) }()
			said.Await(t, "steps back")
			cancel()
			if err := <-migrated; err == nil {
				t.Error("a migration that broke off says that it is done")
			}
			close(end)
		}
		bound := func(table string) (convalidated string) {
			must(t, as(t, url).QueryRow(ctx, "SELECT coalesce(bool_and(convalidated)::text, '') FROM pg_constraint WHERE conname = $1", table+"_before").Scan(&convalidated))
			return convalidated
		}
		write(1)
		breakOff(p.tables[1]) // the first is parted, the second is not
		kind := fmt.Sprintf("SELECT count(*) FROM pg_class WHERE relkind = 'p' AND relname IN ('%s', '%s')", p.tables[0], p.tables[1])
		if n := count(t, d, kind); n != 1 || bound(p.tables[1]) != "" {
			t.Fatalf("%d tables are parted, want the first", n)
		}
		if err := d.CheckSchema(ctx); err == nil {
			t.Error("half a step passes for the whole")
		}
		write(2)
		// The next one breaks off between the bound and the look through the table.
		first := map[bool]string{true: "day_id(first_day, digits)", false: "day_id(first_day)"}[p.last == lastWholeEvents]
		_, err := as(t, url).Exec(ctx, strings.NewReplacer("{table}", p.tables[1], "{first}", first, "{id}", map[bool]string{true: "webhook_id", false: "exchange_id"}[p.last == lastWholeEvents]).Replace(`DO $$ BEGIN
			EXECUTE format('ALTER TABLE {table} ADD CONSTRAINT {table}_before CHECK ({id} < %L) NOT VALID', (SELECT {first} FROM partitioned WHERE name = '{table}')); END $$`))
		must(t, err)
		write(3)
		// And the one after it between that look and the swap.
		breakOff(p.tables[1])
		if !strings.Contains(said.String(), "looking through a table") || bound(p.tables[1]) != "true" || count(t, d, kind) != 1 {
			t.Errorf("it did not break off before the swap: bound %q", bound(p.tables[1]))
		}
		write(4)
		said.Reset()
		steps, err := db.MigrateTo(ctx, d, p.last+1)
		if must(t, err); steps != 1 || count(t, d, kind) != 2 {
			t.Errorf("%d steps", steps)
		}
		if strings.Contains(said.String(), "looking through a table") {
			t.Error("what was looked through is looked through again")
		}
		write(5)
		if n := p.pairs(t, d); n != 5 {
			t.Errorf("%d pairs, want 5", n)
		}
	})
}

// A clock that was ahead once puts the first day off; an id that bears no time stops the step before it has begun.
func TestPartitionsBeginBehindEveryRow(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	eachParted(t, func(t *testing.T, p parted) {
		ctx := context.Background()
		old := func(id string) *db.DB {
			var said dbtest.Journal
			d := p.migrate(t, dbtest.PostgresURL(t), &said)
			must(t, d.Write(ctx, func(tx *db.Tx) error { return p.add(tx, id, "c|XX|test|0|s", "o", time.Now()) }))
			return d
		}
		ahead := time.Now().AddDate(1, 0, 0)
		d := old(p.id(ahead, 1))
		must(t, second(db.MigrateTo(ctx, d, p.last+1)))
		rooms, err := d.Rooms(ctx, time.Now())
		must(t, err)
		for _, r := range rooms {
			if r.Table != p.tables[0] && r.Table != p.tables[1] {
				continue
			}
			if !r.Until.After(ahead) || r.Until.After(ahead.Add(24*time.Hour)) || r.Rest != 0 {
				t.Errorf("%+v, want the day after %s", r, ahead)
			}
		}
		d = old("somebody else's")
		if _, err := d.Migrate(ctx); err == nil || !strings.Contains(err.Error(), "does not begin with its time: somebody else's") {
			t.Errorf("an id without a time: %v", err)
		}
		if n := count(t, d, fmt.Sprintf("SELECT count(*) FROM pg_class WHERE relkind = 'p' AND relname IN ('%s', '%s')", p.tables[0], p.tables[1])); n != 0 {
			t.Error("something was parted")
		}
		for _, table := range p.tables {
			must(t, d.Write(ctx, func(tx *db.Tx) error { return tx.Exec("DELETE FROM " + table) }))
		}
		must(t, second(d.Migrate(ctx)))
	})
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
	made, err := d.MakePartitions(ctx, now)
	if must(t, err); made != 4*db.PartitionsAhead { // today and seven more, but the stray's
		t.Errorf("%d partitions are made", made)
	}
	if made, err := d.MakePartitions(ctx, now); made != 0 || err != nil {
		t.Errorf("again %d partitions are made: %v", made, err)
	}
	for i := range db.PartitionsAhead + 1 {
		at := now.AddDate(0, 0, i)
		for _, p := range []parted{ofCalls(), ofEvents()} {
			must(t, d.Write(ctx, func(tx *db.Tx) error { return p.add(tx, p.id(at, 100+i), "c|XX|test|0|s", fmt.Sprint("o", i), at) }))
		}
	}
	for table, want := range map[string]int{"exchanges_rest": 2, "exchanges_" + now.Format("20060102"): 1, "exchange_operations_" + now.AddDate(0, 0, 7).Format("20060102"): 1, "exchanges_before": 0,
		"webhook_events_rest": 2, "webhook_events_" + now.Format("20060102"): 1, "webhook_tries_" + now.AddDate(0, 0, 7).Format("20060102"): 1, "webhook_events_before": 0} {
		if n := ownCount(t, owner, "SELECT count(*) FROM "+table); n != want {
			t.Errorf("%d rows in %s, want %d", n, table, want)
		}
	}
	if made, err := d.MakePartitions(ctx, now.AddDate(0, 0, 1)); made != 4 || err != nil {
		t.Errorf("a day later %d partitions are made: %v", made, err)
	}
	list, err := d.Partitions(ctx)
	must(t, err)
	end := now.Truncate(24*time.Hour).AddDate(0, 0, 2)
	for _, p := range list {
		if over := !p.Rest && !p.Ends.After(end); over != (d.DropPartition(ctx, p, end) == nil) {
			t.Errorf("%s: dropped %v", p.Name, !over)
		}
	}
	for _, table := range []string{"exchanges", "exchange_operations", "webhook_events", "webhook_tries"} {
		if n := ownCount(t, owner, "SELECT count(*) FROM "+table); n != db.PartitionsAhead+2-2 {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
	conn := as(t, served)
	// As docs/operations.md says, where the rest has become too large to be looked through beside writers.
	if _, err := conn.Exec(ctx, "SELECT make_partition('exchanges', current_date - DATE '1970-01-01' + 100, 0)"); err == nil || !strings.Contains(err.Error(), "exchanges_rest has grown to 8192 bytes") {
		t.Errorf("a rest that is too large: %v", err)
	}
	must(t, as(t, owner).QueryRow(ctx, "SELECT count(make_partition('exchanges', current_date - DATE '1970-01-01' + n, 1000000000000)) FROM generate_series(100, 101) AS n").Scan(&made))
	if n := ownCount(t, owner, "SELECT count(*) FROM pg_class WHERE relname = 'exchanges_"+time.Now().UTC().AddDate(0, 0, 101).Format("20060102")+"'"); n != 1 {
		t.Error("an operator's partition is not made")
	}
	for _, statement := range []string{
		"DROP TABLE exchanges_rest", "TRUNCATE exchanges", "CREATE TABLE mine PARTITION OF exchanges FOR VALUES FROM ('0') TO ('1')", "SELECT * FROM exchanges_rest",
		"ALTER TABLE exchanges DETACH PARTITION exchanges_rest", "UPDATE partitioned SET first_day = 0",
	} {
		refusedAs(t, conn, statement)
	}
	for _, statement := range []string{"SELECT drop_partition('exchanges_rest', 99999)", "SELECT drop_partition('operations', 99999)", "SELECT drop_partition('exchanges', 99999)",
		fmt.Sprintf("SELECT drop_partition('exchanges_%s', %d)", now.AddDate(0, 0, 6).Format("20060102"), now.Unix()/86400), "SELECT make_partition('operations', 99999, 1)", "SELECT make_partition('exchanges', 1, 1)"} {
		if _, err := conn.Exec(ctx, statement); err == nil {
			t.Errorf("%s is done", statement)
		}
	}
}

func ownCount(t *testing.T, url, text string) (n int) {
	t.Helper()
	must(t, as(t, url).QueryRow(t.Context(), text).Scan(&n))
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
	some, err := d.MakePartitions(t.Context(), now) // whoever waited for the reader would wait for ever
	if err == nil || !strings.Contains(err.Error(), "lock timeout") {
		t.Errorf("partitions beside somebody who reads the rest: %v", err)
	}
	traffic.goOn(t)
	close(end)
	traffic.end()
	if made, err := d.MakePartitions(t.Context(), now); some+made != 4*(db.PartitionsAhead+1) || err != nil {
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
	must(t, second(d.MakePartitions(t.Context(), now)))
	all := []string{"exchanges", "exchange_operations", "webhook_events", "webhook_tries"}
	var ends []chan struct{}
	for _, table := range all {
		ends = append(ends, holdTable(t, url, table))
	}
	calls, events := startWriters(t, d, ofCalls()), startWriters(t, d, ofEvents())
	nothing := func(db.Reader, db.Partition) (bool, error) { return false, nil }
	end := now.Truncate(24*time.Hour).AddDate(0, 0, 1)
	var wg sync.WaitGroup
	for _, table := range all {
		wg.Go(func() {
			_, err := d.DropDays(t.Context(), table, end, func(r db.Reader, day db.Partition) (bool, error) {
				return day.From == "", nil // the first partition has rows of today
			})
			if err == nil || !strings.Contains(err.Error(), "drop partition "+table+"_"+now.Format("20060102")) || !strings.Contains(err.Error(), "lock timeout") {
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
		if _, err := d.DropDays(t.Context(), table, end, nothing); err != nil {
			t.Errorf("%s afterwards: %v", table, err)
		}
	}
	if n := count(t, d, "SELECT count(*) FROM pg_class WHERE relname ~ '_(before|"+now.Format("20060102")+")$' AND relispartition AND relkind = 'r'"); n != 0 {
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
	drop := func() (int, error) {
		return d.DropDays(t.Context(), "webhook_events", time.Now().AddDate(0, 0, 60), func(db.Reader, db.Partition) (bool, error) { return false, nil })
	}
	if rows, err := drop(); rows != 0 || err != nil || count(t, d, "SELECT count(*) FROM webhook_events") != 1 {
		t.Errorf("%d rows are gone: %v", rows, err)
	}
	must(t, d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec("UPDATE webhook_events SET due_at = NULL") }))
	if rows, err := drop(); rows != 1 || err != nil || count(t, d, "SELECT count(*) FROM webhook_events") != 0 {
		t.Errorf("%d rows are gone afterwards: %v", rows, err)
	}
}
