// Package exchange is the record of calls to authorities, for the person who asks
// what happened: what was called, what came back, what that said of each
// operation; how long calls that brought nothing are left alone; and forgetting
// them again.
//
// It owns the tables exchanges and exchange_operations. It is evidence, not state:
// nothing is decided by it, but that a filing which left twice is known to have.
package exchange

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operation"
)

// Call is one call to an authority.
type Call struct {
	Verb       string
	At         time.Time
	Operations []string
	Receipts   []country.Receipt
	Err        error
	Traffic    *country.Traffic // nil: nothing was called
}

const saidMax = 500 // of what an answer says about one filing

// answeredCall is the outcome of a call that was answered; any other is what went wrong.
const answeredCall = "answered"

// Duplicate is the decision of an authority that has such a filing already; the
// others are those of [country.Outcome].
const Duplicate = "duplicate"

// Record is the write that keeps a call of a lane.
func (x Call) Record(d *db.DB, lane string) func(tx *db.Tx) error {
	result, raw := answeredCall, []byte(nil)
	if x.Err != nil {
		result = x.Err.Error()
	}
	if len(x.Receipts) > 0 {
		raw = x.Receipts[0].Raw
	}
	var out, in any // unknown where nothing was called
	if x.Traffic != nil {
		out, in = x.Traffic.Out(), x.Traffic.In()
	}
	id := uuid.Must(uuid.NewV7()).String()
	row := []any{id, lane, x.Verb, db.Micros(x.At), d.Now().Sub(x.At).Microseconds(), len(x.Operations), result,
		raw[:min(len(raw), country.RawBytesMax)], out, in}
	links := make([][]any, len(x.Operations))
	for i, operationID := range x.Operations {
		var r country.Receipt
		if x.Err == nil && len(x.Receipts) == len(x.Operations) {
			r = x.Receipts[i]
		}
		links[i] = []any{operationID, id, decisionOf(r), saidOf(r)}
	}
	return func(tx *db.Tx) error {
		if err := tx.Insert("exchanges", "exchange_id,lane,verb,at,took,filings,outcome,reply,bytes_out,bytes_in",
			row); err != nil {
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

// Mark says of an operation since when its bytes may have left; zero: they have not.
type Mark struct {
	OperationID string
	At          time.Time
}

// KeepMarks stores what marks that are about to be overwritten say of sendings,
// if nothing else is left of them: the process ended before an answer was stored.
// So every sending stays a fact of its own; those that were answered cost a look,
// and only at a retry.
func KeepMarks(tx *db.Tx, d *db.DB, lane string, of []Mark) error {
	var marks []Mark
	for _, m := range of {
		if !m.At.IsZero() {
			marks = append(marks, m)
		}
	}
	if len(marks) == 0 {
		return nil
	}
	told, err := lastTold(tx, d, marks)
	if err != nil {
		return err
	}
	var calls, links [][]any
	for _, m := range marks {
		if last, any := told[m.OperationID]; any && last >= db.Micros(m.At) {
			continue
		}
		id := uuid.Must(uuid.NewV7()).String()
		calls = append(calls, []any{id, lane, "send", db.Micros(m.At), 0, 1, unrecorded})
		links = append(links, []any{m.OperationID, id})
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
func lastTold(tx *db.Tx, d *db.DB, marks []Mark) (map[string]int64, error) {
	ids, first := make([]string, len(marks)), marks[0].At
	for i, m := range marks {
		if ids[i] = m.OperationID; m.At.Before(first) {
			first = m.At
		}
	}
	rows, err := tx.Query(lastToldSQL(d), db.Strings(ids), From(first))
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
func lastToldSQL(d *db.DB) string {
	return `SELECT e.operation_id, coalesce(max((SELECT x.at FROM exchanges x WHERE x.exchange_id = e.exchange_id AND x.exchange_id >= $2 AND x.verb = 'send')), 0)
		FROM exchange_operations e WHERE ` + d.In("e.operation_id", "$1") + " AND e.exchange_id >= $2 GROUP BY e.operation_id"
}

// From is where calls stand that were made after an instant: their ids begin
// with the time at which they were stored, by a clock that may be behind ours.
func From(at time.Time) string { return operation.IDAt(at.Add(-24 * time.Hour)) }

// unrecorded is the outcome of a sending whose answer nobody stored.
const unrecorded = "the process ended before an answer was recorded"

// SentBefore reports whether a filing left more than once, as far as anybody
// knows: an authority that refuses the name of the second as used echoes the
// first, which lives on. A sending that certainly brought nothing does not count.
func SentBefore(tx *db.Tx, operationID string) (before bool, err error) {
	var one int64
	err = tx.Row(sentBeforeSQL, operationID, string(country.NotTaken)).Scan(&one)
	switch {
	case errors.Is(err, db.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look whether %s was sent before: %w", operationID, err)
	}
	return true, nil
}

// sentBeforeSQL looks at every day: whatever a clock said, a sending that there was is found.
const sentBeforeSQL = `SELECT 1 FROM exchange_operations e WHERE e.operation_id = $1 AND coalesce(e.decision, '') <> $2
	AND (SELECT x.verb = 'send' AND x.at < (SELECT o.sent_at FROM operations o WHERE o.operation_id = e.operation_id) FROM exchanges x WHERE x.exchange_id = e.exchange_id) LIMIT 1`
