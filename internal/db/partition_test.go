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
)

// lastWhole is the last version without partitions.
const lastWhole = 39

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

const (
	insertCall = "INSERT INTO exchanges (exchange_id, lane, verb, at, took, filings, outcome) VALUES ($1, $2, 'send', $3, 1, 1, 'answered')"
	insertLink = "INSERT INTO exchange_operations (operation_id, exchange_id) VALUES ($1, $2)"
	findCall   = "SELECT x.lane FROM exchange_operations e JOIN exchanges x ON x.exchange_id = e.exchange_id WHERE e.operation_id = $1"
)

func addCall(tx *db.Tx, id, lane, operation string, at time.Time) error {
	if err := tx.Exec(insertCall, id, lane, db.Micros(at)); err != nil {
		return err
	}
	return tx.Exec(insertLink, operation, id)
}

// fillCalls stores calls of the last ninety days, with statements of the version before.
func fillCalls(t *testing.T, url string, rows int) {
	t.Helper()
	conn := as(t, url)
	for _, text := range []string{
		`INSERT INTO exchanges (exchange_id, lane, verb, at, took, filings, outcome)
			SELECT substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-7000-8000-' || lpad(to_hex(n), 12, '0'), 'c' || n % 50 || '|XX|test|0|s', 'send', ms * 1000, 1, 1, 'answered'
			FROM (SELECT n, ms, lpad(to_hex(ms), 12, '0') AS h FROM (SELECT n, (extract(epoch FROM now())::bigint - n * 7776000::bigint / $1) * 1000 AS ms FROM generate_series(1, $1::bigint) AS n) AS a) AS b`,
		"INSERT INTO exchange_operations (operation_id, exchange_id) SELECT 'o' || right(exchange_id, 12), exchange_id FROM exchanges WHERE $1::bigint > 0",
	} {
		_, err := conn.Exec(t.Context(), text, rows)
		must(t, err)
	}
}

// calls writes and reads as a node of the version before does, until it is ended.
type calls struct {
	stop    atomic.Bool
	wg      sync.WaitGroup
	written atomic.Int64
	mu      sync.Mutex
	longest time.Duration
}

func startCalls(t *testing.T, d *db.DB) *calls {
	t.Helper()
	c := &calls{}
	for w := range 4 {
		c.wg.Go(func() {
			for i := 0; !c.stop.Load(); i++ {
				asked := time.Now()
				operation, lane := fmt.Sprintf("new%d-%d", w, i), fmt.Sprintf("c%d|XX|test|0|s", w)
				err := d.Write(context.Background(), func(tx *db.Tx) error { return addCall(tx, uuid.Must(uuid.NewV7()).String(), lane, operation, asked) })
				took := time.Since(asked)
				if err != nil {
					t.Errorf("a call beside the migration: %v", err)
					return
				}
				c.written.Add(1)
				var found string
				err = d.Read(context.Background(), func(r db.Reader) error { return r.Row(findCall, operation).Scan(&found) })
				if err != nil || found != lane {
					t.Errorf("a call beside the migration is not found: %q, %v", found, err)
				}
				c.mu.Lock()
				c.longest = max(c.longest, took)
				c.mu.Unlock()
			}
		})
	}
	return c
}

func (c *calls) end() time.Duration {
	c.stop.Store(true)
	c.wg.Wait()
	return c.longest
}

// A store that is in use is parted: a node of the version before goes on, by a
// role without the rights of the owner, nothing is lost, nothing is copied, and
// nobody waits for long, also where somebody else has the table for a while.
func TestTablesArePartedBesideTheVersionBefore(t *testing.T) {
	t.Parallel()
	const rows = salesRows
	dbtest.ServedURL(t) // the roles belong to the server
	url := dbtest.PostgresURL(t)
	ctx := context.Background()
	var said dbtest.Journal
	next, err := db.Open(ctx, db.Config{URL: url, Log: slog.New(slog.NewTextHandler(&said, nil))})
	must(t, err)
	defer func() { _ = next.Close() }() // tested elsewhere
	_, err = db.MigrateTo(ctx, next, lastWhole)
	must(t, err)
	fillCalls(t, url, rows)
	owner := as(t, url)
	_, err = owner.Exec(ctx, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "+dbtest.ServeRole+"; GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO "+dbtest.ServeRole+
		"; INSERT INTO schema_roles VALUES (1, '"+dbtest.ServeRole+"', '"+dbtest.ReadRole+"')")
	must(t, err)
	files := func() (list string) {
		must(t, owner.QueryRow(ctx, "SELECT string_agg(relfilenode::text, ' ' ORDER BY relfilenode) FROM pg_class WHERE relname ~ '^exchange(s|_operations)(_before)?(_pkey|_by_lane)?$' AND relkind IN ('r', 'i') AND relfilenode <> 0").Scan(&list))
		return list
	}
	before := files()
	old, err := db.Open(ctx, db.Config{URL: strings.Replace(url, "://tributary@", "://"+dbtest.ServeRole+"@", 1)})
	must(t, err)
	defer func() { _ = old.Close() }() // tested elsewhere
	traffic := startCalls(t, old)
	end := holdTable(t, url, "exchanges")
	migrated := make(chan error, 1)
	go func() { migrated <- second(next.Migrate(ctx)) }()
	said.Await(t, "steps back")
	close(end)
	must(t, <-migrated)
	longest := traffic.end()
	if longest > 2*time.Second { // half a second for the lock, and a machine that others use
		t.Errorf("a write beside the migration took %s", longest)
	}
	t.Logf("%d calls beside the migration of %d, the longest took %s", traffic.written.Load(), rows, longest)
	want := int64(rows) + traffic.written.Load()
	for _, text := range []string{"SELECT count(*) FROM exchanges", "SELECT count(*) FROM exchange_operations", "SELECT count(*) FROM exchanges_before",
		"SELECT count(*) FROM exchange_operations e JOIN exchanges x ON x.exchange_id = e.exchange_id"} {
		if n := count(t, next, text); int64(n) != want {
			t.Errorf("%s: %d, want %d", text, n, want)
		}
	}
	for _, kept := range strings.Fields(before) {
		if !strings.Contains(" "+files()+" ", " "+kept+" ") {
			t.Errorf("a table or an index was written anew: %s, before %s", files(), before)
		}
	}
	wantIndexes(t, next, "exchanges_pkey", "exchanges_by_lane", "exchange_operations_pkey")
	if n := count(t, next, "SELECT count(*) FROM pg_constraint WHERE conname LIKE 'exchange%_before'"); n != 0 {
		t.Errorf("%d bounds are left on the first partitions: they would refuse rows for ever", n)
	}
	must(t, next.CheckSchema(ctx))
}

// What a migration had done when it broke off is not done twice, and writers go on.
func TestAPartingThatBrokeOffIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	ctx := context.Background()
	var said dbtest.Journal
	d, err := db.Open(ctx, db.Config{URL: url, Log: slog.New(slog.NewTextHandler(&said, nil))})
	must(t, err)
	defer func() { _ = d.Close() }() // tested elsewhere
	_, err = db.MigrateTo(ctx, d, lastWhole)
	must(t, err)
	write := func(n int) {
		t.Helper()
		must(t, d.Write(ctx, func(tx *db.Tx) error {
			return addCall(tx, idAt(time.Now(), n), "c|XX|test|0|s", fmt.Sprint("o", n), time.Now())
		}))
	}
	write(1)
	end := holdTable(t, url, "exchange_operations") // the calls are parted, the links are not
	cut, cancel := context.WithCancel(ctx)
	migrated := make(chan error, 1)
	go func() { migrated <- second(d.Migrate(cut)) }()
	said.Await(t, "steps back")
	cancel()
	if err := <-migrated; err == nil {
		t.Error("a migration that broke off says that it is done")
	}
	close(end)
	kind := "SELECT count(*) FROM pg_class WHERE relkind = 'p' AND relname IN ('exchanges', 'exchange_operations')"
	if n := count(t, d, kind); n != 1 {
		t.Fatalf("%d tables are parted, want the first", n)
	}
	if err := d.CheckSchema(ctx); err == nil {
		t.Error("half a step passes for the whole")
	}
	write(2)
	// The next one breaks off between the bound and the look through the table.
	_, err = as(t, url).Exec(ctx, `DO $$ BEGIN EXECUTE format('ALTER TABLE exchange_operations ADD CONSTRAINT exchange_operations_before CHECK (exchange_id < %L) NOT VALID',
		(SELECT day_id(first_day) FROM partitioned WHERE name = 'exchange_operations')); END $$`)
	must(t, err)
	write(3)
	steps, err := d.Migrate(ctx)
	if must(t, err); steps != 1 || count(t, d, kind) != 2 {
		t.Errorf("%d steps", steps)
	}
	write(4)
	if n := count(t, d, "SELECT count(*) FROM exchange_operations e JOIN exchanges x ON x.exchange_id = e.exchange_id"); n != 4 {
		t.Errorf("%d calls with their links, want 4", n)
	}
}

// A clock that was ahead once puts the first day off; an id that bears no time stops the step before it has begun.
func TestPartitionsBeginBehindEveryRow(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	old := func(id string) *db.DB {
		url := dbtest.PostgresURL(t)
		d, err := db.Open(ctx, db.Config{URL: url})
		must(t, err)
		t.Cleanup(func() { _ = d.Close() }) // tested elsewhere
		_, err = db.MigrateTo(ctx, d, lastWhole)
		must(t, err)
		must(t, d.Write(ctx, func(tx *db.Tx) error { return addCall(tx, id, "c|XX|test|0|s", "o", time.Now()) }))
		return d
	}
	ahead := time.Now().AddDate(1, 0, 0)
	d := old(idAt(ahead, 1))
	_, err := d.Migrate(ctx)
	must(t, err)
	rooms, err := d.Rooms(ctx, time.Now())
	must(t, err)
	for _, r := range rooms {
		if !r.Until.After(ahead) || r.Until.After(ahead.Add(24*time.Hour)) || r.Rest != 0 {
			t.Errorf("%+v, want the day after %s", r, ahead)
		}
	}
	d = old("somebody else's")
	if _, err := d.Migrate(ctx); err == nil || !strings.Contains(err.Error(), "does not begin with its time: somebody else's") {
		t.Errorf("an id without a time: %v", err)
	}
	if n := count(t, d, "SELECT count(*) FROM pg_class WHERE relkind = 'p'"); n != 0 {
		t.Error("something was parted")
	}
	must(t, d.Write(ctx, func(tx *db.Tx) error { return tx.Exec("DELETE FROM exchanges") }))
	must(t, d.Write(ctx, func(tx *db.Tx) error { return tx.Exec("DELETE FROM exchange_operations") }))
	must(t, second(d.Migrate(ctx)))
}

// A role that changes no schema makes the days to come and drops those that are over, and nothing else.
func TestTheServingRoleMakesAndDropsDays(t *testing.T) {
	served, owner := dbtest.ServedURL(t)
	d := dbtest.Open(t, db.Config{URL: served})
	ctx := t.Context()
	now := time.Now().UTC().AddDate(0, 0, 40)
	stray := now.AddDate(0, 0, 3)
	must(t, d.Write(ctx, func(tx *db.Tx) error { return addCall(tx, idAt(stray, 1), "c|XX|test|0|s", "stray", stray) }))
	made, err := d.MakePartitions(ctx, now)
	if must(t, err); made != 2*db.PartitionsAhead { // today and seven more, but the stray's
		t.Errorf("%d partitions are made", made)
	}
	if made, err := d.MakePartitions(ctx, now); made != 0 || err != nil {
		t.Errorf("again %d partitions are made: %v", made, err)
	}
	for i := range db.PartitionsAhead + 1 {
		at := now.AddDate(0, 0, i)
		must(t, d.Write(ctx, func(tx *db.Tx) error { return addCall(tx, idAt(at, i), "c|XX|test|0|s", fmt.Sprint("o", i), at) }))
	}
	for table, want := range map[string]int{"exchanges_rest": 2, "exchanges_" + now.Format("20060102"): 1, "exchange_operations_" + now.AddDate(0, 0, 7).Format("20060102"): 1, "exchanges_before": 0} {
		if n := ownCount(t, owner, "SELECT count(*) FROM "+table); n != want {
			t.Errorf("%d rows in %s, want %d", n, table, want)
		}
	}
	if made, err := d.MakePartitions(ctx, now.AddDate(0, 0, 1)); made != 2 || err != nil {
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
	if n := ownCount(t, owner, "SELECT count(*) FROM exchanges"); n != db.PartitionsAhead+2-2 {
		t.Errorf("%d calls are left", n)
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
	url := dbtest.MigratedURL(t)
	d := dbtest.Open(t, db.Config{URL: url})
	now := time.Now().UTC().AddDate(0, 0, 40)
	end := holdTable(t, url, "exchanges")
	traffic := startCalls(t, d)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	some, err := d.MakePartitions(ctx, now)
	if err == nil {
		t.Error("partitions are made beside somebody who reads the rest")
	}
	close(end)
	if longest := traffic.end(); longest > 2*time.Second {
		t.Errorf("a write waited for %s", longest)
	}
	if made, err := d.MakePartitions(t.Context(), now); some+made != 2*(db.PartitionsAhead+1) || err != nil {
		t.Errorf("%d and %d partitions are made: %v", some, made, err)
	}
}
