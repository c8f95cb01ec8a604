package filing

import (
	"errors"
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

// keepMark stores what a mark that is about to be overwritten says of a sending,
// if nothing else is left of it: the process ended before its answer was stored.
// So every sending stays a fact of its own; one that was answered costs a look,
// and only at a retry.
func keepMark(tx *db.Tx, lane, operationID string, mark time.Time) error {
	if mark.IsZero() {
		return nil
	}
	var told int64
	err := tx.Row(`SELECT 1 FROM exchange_operations e JOIN exchanges x ON x.exchange_id = e.exchange_id
		WHERE e.operation_id = $1 AND x.verb = 'send' AND x.at >= $2 LIMIT 1`, operationID, db.Micros(mark)).Scan(&told)
	if !errors.Is(err, db.ErrNoRows) {
		return err
	}
	id := uuid.Must(uuid.NewV7()).String()
	if err := tx.Insert("exchanges", "exchange_id,lane,verb,at,took,filings,outcome", []any{id, lane, "send", db.Micros(mark), 0, 1, unrecorded}); err != nil {
		return err
	}
	return tx.Insert("exchange_operations", "operation_id,exchange_id", []any{operationID, id})
}

// unrecorded is the outcome of a sending whose answer nobody stored.
const unrecorded = "the process ended before an answer was recorded"
