package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"tributary/internal/db"
	"tributary/internal/operation"
	"tributary/internal/webhook"
)

const (
	indexEvery     = time.Second
	indexSet       = 200  // operations in one write: the writer is away from the intake for a few milliseconds
	sweepSet       = 5000 // operations looked at in one read
	setsIdle       = 50   // sets in one round when there is nothing else to do
	setsBusy       = 2    // while transactions arrive
	busyPerSecond  = 200  // events since the last round, a second ago, that count as busy
	settledTrail   = 15 * time.Second
	indexAgainMin  = 5 * time.Second // after another node was faster
	indexAgainVary = 10 * time.Second
)

// Cursors of the index. Ids grow with time but commits do not come in the
// order of ids, so new ones are indexed at once and the same stretch is looked
// at again, for those that came late, after a minute and after a day.
const (
	cursorNew     = "new"
	cursorSettled = "settled"
)

var sweeps = []struct {
	cursor string
	after  time.Duration
}{
	{"minute", time.Minute},
	{"day", 24 * time.Hour},
}

// indexer makes operations findable, behind the intake and never in its way.
//
// Failure policy: a set of terms and the move of its cursor are one commit, and
// the cursor moves from where it was read, so two nodes that index at the same
// time, or one that is killed, repeat work and lose none. An operation whose
// commit came later than a day after its id was made would be missed; no
// request lives that long.
type indexer struct {
	ledger *Ledger
	now    func() time.Time
	seen   int64 // events of the tally at the last round
}

func (s *Ledger) newIndexer() *indexer { return &indexer{ledger: s, now: s.db.Now} }

// Run makes operations findable until ctx ends. One node is enough; others find
// the cursor moved and stand back.
func (s *Ledger) Run(ctx context.Context) error {
	x := s.newIndexer()
	wait := time.Duration(indexEvery)
	if s.poll > 0 {
		wait = s.poll
	}
	for pause(ctx, wait) {
		err := x.round(ctx)
		switch {
		case err == nil, ctx.Err() != nil:
		case errors.Is(err, db.ErrStale):
			pause(ctx, indexAgainMin+rand.N(indexAgainVary))
		default:
			s.log.Warn("index operations", "error", err)
		}
	}
	return nil
}

// pause waits unless ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// round indexes what is there, at most so much that others get their turn:
// little as soon as transactions arrive.
func (x *indexer) round(ctx context.Context) error {
	began := x.seen
	x.seen = x.ledger.tally.total.Load()
	steps := []func(context.Context) (bool, error){x.indexNew, x.indexSettled, x.indexCompanies, x.indexOlder}
	for _, s := range sweeps {
		steps = append(steps, func(ctx context.Context) (bool, error) { return x.sweep(ctx, s.cursor, s.after) })
	}
	for _, step := range steps {
		more := true
		for n := 0; more && (n < setsBusy || n < setsIdle && x.ledger.tally.total.Load()-began <= busyPerSecond); n++ {
			var err error
			done := x.ledger.db.Pace().Turn(ctx)
			more, err = step(ctx)
			if done(); err != nil {
				return err
			}
		}
	}
	return nil
}

const indexedColumns = "o.operation_id, o.transaction_id, o.country, o.supplier_id, o.number, o.kind, b.body, coalesce(b.customer, '') FROM operations o JOIN bodies b ON b.operation_id = o.operation_id"

// nextSQL says of both tables where to begin: PostgreSQL merges them and would
// otherwise walk one of them from its start.
const nextSQL = "SELECT " + indexedColumns +
	" WHERE o.operation_id > $1 AND b.operation_id > $1 ORDER BY o.operation_id LIMIT $2"

// readIndexed reads operations and what they are found by. Each body is decoded
// once and let go before the next is read: two hundred of the largest would not
// fit into memory.
func readIndexed(r db.Reader, query string, args ...any) (ids []string, e Entries, err error) {
	rows, err := r.Query(query, args...)
	if err != nil {
		return nil, e, err
	}
	err = rows.Each(func(scan func(...any) error) error {
		var o indexed
		if err := scan(&o.id, &o.transactionID, &o.country, &o.supplierID, &o.number, &o.kind, &o.body, &o.customer); err != nil {
			return err
		}
		t := o.decode()
		ids = append(ids, o.id)
		e.add(o.id, o.terms(t), o.parts(t))
		return nil
	})
	return ids, e, err
}

// indexNew indexes the next operations by id; true when there may be more.
func (x *indexer) indexNew(ctx context.Context) (more bool, err error) {
	var from string
	var ids []string
	var rows Entries
	err = x.ledger.db.Read(ctx, func(r db.Reader) error {
		if from, err = readCursor(r, cursorNew); err != nil {
			return err
		}
		ids, rows, err = readIndexed(r, nextSQL, from, indexSet)
		return err
	})
	if err != nil || len(ids) == 0 {
		return false, err
	}
	// A node whose clock is ahead must not take the cursor with it.
	to := min(ids[len(ids)-1], operation.IDAt(x.now().Add(2*time.Second)))
	if to <= from {
		return false, nil
	}
	return len(ids) == indexSet, x.store(ctx, move{cursorNew, from, to}, rows)
}

// indexSettled adds what is known of operations that were settled. Every
// settlement has an event, so the events say which.
func (x *indexer) indexSettled(ctx context.Context) (more bool, err error) {
	var from string
	var events []webhook.Told
	var rows Entries
	err = x.ledger.db.Read(ctx, func(r db.Reader) error {
		rows = Entries{}
		if from, err = readCursor(r, cursorSettled); err != nil {
			return err
		}
		if events, err = x.ledger.cfg.Hooks.Since(r, from, x.now().Add(-settledTrail), indexSet); err != nil || len(events) == 0 {
			return err
		}
		var ids []string
		for _, e := range events {
			if e.EventType == webhook.TransactionCompleted {
				ids = append(ids, e.ResourceID)
			}
		}
		rows, err = x.ledger.decidedTerms(r, ids)
		return err
	})
	if err != nil || len(events) == 0 {
		return false, err
	}
	return len(events) == indexSet, x.store(ctx, move{cursorSettled, from, events[len(events)-1].WebhookID}, rows)
}

func (s *Ledger) decidedTerms(r db.Reader, ids []string) (rows Entries, err error) {
	if len(ids) == 0 {
		return rows, nil
	}
	found, err := r.Query("SELECT operation_id, result FROM operations WHERE "+s.db.In("operation_id", "$1")+
		" AND settled_by IS NULL AND result IS NOT NULL", db.Strings(ids))
	if err != nil {
		return rows, err
	}
	err = found.Each(func(scan func(...any) error) error {
		var id, result string
		if err := scan(&id, &result); err != nil {
			return err
		}
		var d decided
		if err := json.Unmarshal([]byte(result), &d); err != nil {
			return fmt.Errorf("read the result of %s: %w", id, err)
		}
		rows.add(id, d.terms(), d.parts())
		return nil
	})
	return rows, err
}

// Entries are what the index holds of some operations: rows of its two tables.
type Entries struct{ terms, parts [][]any }

func (e *Entries) add(id string, terms, parts termSet) {
	for _, term := range terms {
		e.terms = append(e.terms, []any{term, id})
	}
	for _, part := range parts {
		e.parts = append(e.parts, []any{part, id})
	}
}

func (e Entries) with(other Entries) Entries {
	return Entries{append(e.terms, other.terms...), append(e.parts, other.parts...)}
}

// Entries makes them again of bodies and results, because the index is not kept
// by operation. It is read outside of the write that calls Forget: decoding
// bodies there would keep others waiting.
func (s *Ledger) Entries(r db.Reader, ids []string) (Entries, error) {
	_, submitted, err := readIndexed(r, "SELECT "+indexedColumns+" WHERE "+s.db.In("o.operation_id", "$1"), db.Strings(ids))
	if err != nil {
		return Entries{}, fmt.Errorf("read what operations are found by: %w", err)
	}
	decided, err := s.decidedTerms(r, ids)
	if err != nil {
		return Entries{}, fmt.Errorf("read what operations are found by: %w", err)
	}
	return submitted.with(decided), nil
}

// Forget removes entries from the index.
func (s *Ledger) Forget(tx *db.Tx, e Entries) error {
	err := tx.ExecEach("DELETE FROM operation_terms WHERE term = $1 AND operation_id = $2", e.terms)
	if err == nil {
		err = tx.ExecEach("DELETE FROM operation_parts WHERE part = $1 AND operation_id = $2", e.parts)
	}
	if err != nil {
		return fmt.Errorf("take operations out of the index: %w", err)
	}
	return nil
}

// sweep looks once more at a stretch of ids for operations that were committed
// after their neighbours were indexed.
func (x *indexer) sweep(ctx context.Context, cursor string, after time.Duration) (more bool, err error) {
	var from, to string
	var looked int
	var rows Entries
	err = x.ledger.db.Read(ctx, func(r db.Reader) error {
		rows, looked = Entries{}, 0
		if from, err = readCursor(r, cursor); err != nil {
			return err
		}
		// Not past what was indexed at all: all of that would be late.
		end, err := readCursor(r, cursorNew)
		if err != nil {
			return err
		}
		end = min(end, operation.IDAt(x.now().Add(-after)))
		var late []string
		found, err := r.Query(`SELECT o.operation_id, EXISTS (SELECT 1 FROM operation_terms t WHERE t.term = '#' || o.country AND t.operation_id = o.operation_id)
			FROM operations o WHERE o.operation_id > $1 AND o.operation_id < $2 ORDER BY o.operation_id LIMIT $3`, from, end, sweepSet)
		if err != nil {
			return err
		}
		if err := found.Each(func(scan func(...any) error) error {
			var there bool
			err := scan(&to, &there)
			if looked++; !there && err == nil {
				late = append(late, to)
			}
			return err
		}); err != nil || len(late) == 0 {
			return err
		}
		_, submitted, err := readIndexed(r, "SELECT "+indexedColumns+" WHERE "+x.ledger.db.In("o.operation_id", "$1"), db.Strings(late))
		if err != nil {
			return err
		}
		settled, err := x.ledger.decidedTerms(r, late)
		rows = submitted.with(settled)
		return err
	})
	if err != nil || looked == 0 {
		return false, err
	}
	return looked == sweepSet, x.store(ctx, move{cursor, from, to}, rows)
}

// move is a cursor on its way.
type move struct{ cursor, from, to string }

func readCursor(r db.Reader, name string) (position string, err error) {
	if err = r.Row("SELECT position FROM search_cursors WHERE name = $1", name).Scan(&position); err != nil {
		return "", fmt.Errorf("read how far the index is: %w", err)
	}
	return position, nil
}

func (x *indexer) store(ctx context.Context, m move, rows Entries) error {
	return x.ledger.db.Write(ctx, func(tx *db.Tx) error {
		err := tx.ExecOne("UPDATE search_cursors SET position = $1 WHERE name = $2 AND position = $3", m.to, m.cursor, m.from)
		if err != nil {
			return err
		}
		err = tx.InsertReturning(db.Insert{Table: "operation_terms", Columns: "term,operation_id",
			Suffix: "ON CONFLICT DO NOTHING"}, rows.terms, nil)
		if err != nil {
			return err
		}
		return tx.InsertReturning(db.Insert{Table: "operation_parts", Columns: "part,operation_id",
			Suffix: "ON CONFLICT DO NOTHING"}, rows.parts, nil)
	})
}

// madeAt is when an operation id was made; zero for none of ours.
func madeAt(operationID string) time.Time {
	id, err := uuid.Parse(operationID)
	if err != nil {
		return time.Time{}
	}
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms).UTC()
}

// IndexedTo is how far terms are known: what was accepted later may not be
// found by numbers and amounts yet.
func (s *Ledger) IndexedTo(ctx context.Context) (at time.Time, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		at, err = s.indexedTo(r)
		return err
	})
	return at, err
}

// newestSQL is one look at the end of an index. Asking for one row behind the
// cursor would read the whole table where there is none.
const newestSQL = "SELECT coalesce(max(operation_id), '') FROM operations"

func (s *Ledger) indexedTo(r db.Reader) (time.Time, error) {
	position, err := readCursor(r, cursorNew)
	if err != nil {
		return time.Time{}, err
	}
	var newest string
	if err := r.Row(newestSQL).Scan(&newest); err != nil {
		return time.Time{}, fmt.Errorf("read how far the index is: %w", err)
	}
	if newest <= position {
		return r.Now(), nil
	}
	if len(position) == 13 { // the time of a clock that is ahead, see indexNew
		position += "-7000-8000-000000000000"
	}
	return madeAt(position), nil
}
