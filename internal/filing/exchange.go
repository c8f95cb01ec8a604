package filing

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// exchange is one call to an authority, kept for the person who asks what happened.
type exchange struct {
	verb     string
	at       time.Time
	ops      []*operation
	receipts []country.Receipt
	err      error
	traffic  *country.Traffic // nil: nothing was called
}

const (
	rawMax  = 16 << 10 // of an answer, in the record of a call
	saidMax = 500      // of what it says about one filing
)

// answeredCall is the outcome of a call that was answered; any other is what went wrong.
const answeredCall = "answered"

// Duplicate is the decision of an authority that has such a filing already; the
// others are those of [country.Outcome].
const Duplicate = "duplicate"

// record keeps a call. It is evidence, not state: without it nothing is lost.
func (b *batch) record(x exchange) {
	b.learn(x)
	b.evidence = append(b.evidence, b.evidenceOf(b.lease.ID, x))
}

// evidenceOf is the write that keeps a call of a lane.
func (s *Service) evidenceOf(lane string, x exchange) func(tx *db.Tx) error {
	result, raw := answeredCall, []byte(nil)
	if x.err != nil {
		result = x.err.Error()
	}
	if len(x.receipts) > 0 {
		raw = x.receipts[0].Raw
	}
	var out, in any // unknown where nothing was called
	if x.traffic != nil {
		out, in = x.traffic.Out(), x.traffic.In()
	}
	id := uuid.Must(uuid.NewV7()).String()
	row := []any{id, lane, x.verb, db.Micros(x.at), s.db.Now().Sub(x.at).Microseconds(), len(x.ops), result, raw[:min(len(raw), rawMax)], out, in}
	links := make([][]any, len(x.ops))
	for i, o := range x.ops {
		var r country.Receipt
		if x.err == nil && len(x.receipts) == len(x.ops) {
			r = x.receipts[i]
		}
		links[i] = []any{o.id, id, decisionOf(r), saidOf(r)}
	}
	return func(tx *db.Tx) error {
		if err := tx.Insert("exchanges", "exchange_id,lane,verb,at,took,filings,outcome,reply,bytes_out,bytes_in", row); err != nil {
			return err
		}
		return tx.Insert("exchange_operations", "operation_id,exchange_id,decision,said", links...)
	}
}

// decisionOf is what a receipt decides about its filing, in one word; "" is nothing.
func decisionOf(r country.Receipt) string {
	if r.Duplicate {
		return Duplicate
	}
	return string(r.Outcome)
}

// saidOf are the authority's own words about a filing, those that hinder it first.
func saidOf(r country.Receipt) string {
	var hinder, rest []string
	for _, f := range r.Faults {
		if f.Type == fault.Warning {
			rest = append(rest, f.Message)
		} else {
			hinder = append(hinder, f.Message)
		}
	}
	text := strings.Join(append(hinder, rest...), "; ")
	return strings.ToValidUTF8(text[:min(len(text), saidMax)], "")
}

// mark says of an operation since when its bytes may have left; zero: they have not.
type mark struct {
	operationID string
	at          time.Time
}

// keepMarks stores what marks that are about to be overwritten say of sendings,
// if nothing else is left of them: the process ended before an answer was stored.
// So every sending stays a fact of its own; those that were answered cost a look,
// and only at a retry.
func (s *Service) keepMarks(tx *db.Tx, lane string, of []mark) error {
	var marks []mark
	for _, m := range of {
		if !m.at.IsZero() {
			marks = append(marks, m)
		}
	}
	if len(marks) == 0 {
		return nil
	}
	told, err := s.lastTold(tx, marks)
	if err != nil {
		return err
	}
	var calls, links [][]any
	for _, m := range marks {
		if last, any := told[m.operationID]; any && last >= db.Micros(m.at) {
			continue
		}
		id := uuid.Must(uuid.NewV7()).String()
		calls = append(calls, []any{id, lane, "send", db.Micros(m.at), 0, 1, unrecorded})
		links = append(links, []any{m.operationID, id})
	}
	if len(calls) == 0 {
		return nil
	}
	if err := tx.Insert("exchanges", "exchange_id,lane,verb,at,took,filings,outcome", calls...); err != nil {
		return err
	}
	return tx.Insert("exchange_operations", "operation_id,exchange_id", links...)
}

// lastTold is when the last sending of each operation began that was recorded.
func (s *Service) lastTold(tx *db.Tx, marks []mark) (map[string]int64, error) {
	ids, first := make([]string, len(marks)), marks[0].at
	for i, m := range marks {
		if ids[i] = m.operationID; m.at.Before(first) {
			first = m.at
		}
	}
	rows, err := tx.Query(s.lastToldSQL(), db.Strings(ids), CallsFrom(first))
	if err != nil {
		return nil, err
	}
	told := map[string]int64{}
	return told, rows.Each(func(scan func(...any) error) error {
		var id string
		var at int64
		err := scan(&id, &at)
		told[id] = at
		return err
	})
}

// lastToldSQL asks for the call within the link, and does not join them: a
// planner that knows little of new partitions would begin with the calls. The
// ids tell PostgreSQL which days to look at.
func (s *Service) lastToldSQL() string {
	return `SELECT e.operation_id, coalesce(max((SELECT x.at FROM exchanges x WHERE x.exchange_id = e.exchange_id AND x.exchange_id >= $2 AND x.verb = 'send')), 0)
		FROM exchange_operations e WHERE ` + s.db.In("e.operation_id", "$1") + " AND e.exchange_id >= $2 GROUP BY e.operation_id"
}

// CallsFrom is where calls stand that were made after an instant: their ids begin
// with the time at which they were stored, by a clock that may be behind ours.
func CallsFrom(at time.Time) string { return IDAt(at.Add(-24 * time.Hour)) }

// unrecorded is the outcome of a sending whose answer nobody stored.
const unrecorded = "the process ended before an answer was recorded"
