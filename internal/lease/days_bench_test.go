package lease_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lease"
	"tributary/internal/schema"
)

// eventStore is a store of events with one session to its server.
type eventStore struct {
	name       string
	conn       *pgx.Conn
	pid        int
	statements map[string]lease.Statement
	spent      map[string]int64
}

// cpu is what the server's process of this session has used, in nanoseconds: other work on the machine does not blur
// it.
func (s *eventStore) cpu(b *testing.B) int64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", s.pid))
	must(b, err)
	used, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
	must(b, err)
	return used
}

func (s *eventStore) run(b *testing.B, name string, times int) {
	b.Helper()
	before := s.cpu(b)
	for range times {
		rows, err := s.conn.Query(context.Background(), s.statements[name].Text, s.statements[name].Args...)
		must(b, err)
		rows.Close()
		must(b, rows.Err())
	}
	s.spent[name] += s.cpu(b) - before
}

func newEventStore(b *testing.B, name string) *eventStore {
	b.Helper()
	ctx := context.Background()
	url := dbtest.PostgresURL(b)
	d, err := db.Open(ctx, db.Config{URL: url})
	must(b, err)
	b.Cleanup(func() { _ = d.Close() }) // tested elsewhere
	q := eventQueue()
	_, err = schema.Migrate(ctx, d)
	must(b, err)
	manyDays(b, d, 100, 1200)
	if name == "unknown" {
		q.IDFrom = nil
	}
	addEvents(b, d, d.Now(), 0, 2000)
	must(b, d.Write(ctx, func(tx *db.Tx) error { return tx.Exec("ANALYZE webhook_events") }))
	s := &eventStore{name: name, conn: dbtest.Connect(b, url), spent: map[string]int64{}}
	must(b, s.conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&s.pid))
	s.statements, err = lease.QueueStatements(ctx, q, d, "c001 x")
	must(b, err)
	s.statements["look for days"] = lease.Statement{Text: lease.OpenDaysText(eventQueue())}
	s.statements["record"] = lease.Statement{
		Text: "UPDATE webhook_events SET tries = tries + 1, due_at = due_at WHERE webhook_id = $1",
		Args: []any{eventID(d.Now(), 1)}}
	s.statements["insert"] = lease.Statement{Text: `INSERT INTO webhook_events (webhook_id, client_id, event_type, resource_id, resource_path, lane, status, created_at, due_at)
		SELECT $1 || lpad(nextval('bench')::text, 28, '0'), 'c', 'x', 'r', '/r', 'c001 x', 'pending', 1, 1 FROM generate_series(1, 10)`, Args: []any{eventIDFrom(d.Now())}}
	_, err = s.conn.Exec(ctx, "CREATE SEQUENCE bench START 1000000")
	must(b, err)
	return s
}

// BenchmarkQueueAmongDays measures what the statements of the queue cost the server in 108 partitions whose open days
// are known, and where they are not, taking turns: 120,000 events, 2,000 of them due. All in milliseconds of its
// processor.
func BenchmarkQueueAmongDays(b *testing.B) {
	var stores []*eventStore
	for _, name := range []string{"days", "unknown"} {
		stores = append(stores, newEventStore(b, name))
	}
	names := []string{"oldest", "walk", "claim", "next", "holders", "record", "insert", "look for days"}
	const warm, each = 8, 5 // a session plans a statement for good after five
	for _, s := range stores {
		for _, name := range names {
			s.run(b, name, warm)
		}
		clear(s.spent)
	}
	for b.Loop() {
		for _, name := range names {
			for _, s := range stores {
				_, err := s.conn.Exec(context.Background(), "BEGIN")
				must(b, err)
				s.run(b, name, each)
				_, err = s.conn.Exec(context.Background(), "ROLLBACK")
				must(b, err)
			}
		}
	}
	for _, s := range stores {
		for _, name := range names {
			b.ReportMetric(float64(s.spent[name])/1e6/float64(each*b.N), strings.ReplaceAll(name, " ", "-")+"/"+s.name+"-ms")
		}
	}
}
