package transaction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// pollMax caps the doubling between two polls.
const pollMax = 5 * time.Minute

// poll asks for decisions on pending filings.
func (b *batch) poll(ctx context.Context) error {
	asked := b.pending
	b.pending = nil
	for _, o := range asked {
		call, cancel := b.callContext(ctx)
		began := b.db.Now()
		r, err := b.channel.Poll(call, o.filing, o.receipt, b.creds)
		cancel()
		b.record(ctx, exchange{verb: "poll", at: began, ops: []*operation{o}, receipts: []country.Receipt{r}, err: err})
		if err != nil {
			b.failed(err)
			b.pending = append(b.pending, o)
			continue
		}
		b.recovered()
		if r.Outcome == country.Pending && r.Handle == "" {
			r.Handle = o.receipt.Handle
		}
		if b.answered(o, r) {
			b.pending = append(b.pending, o)
		}
	}
	return b.storePending(ctx)
}

// storePending keeps what Poll needs and says when to ask again.
func (b *batch) storePending(ctx context.Context) error {
	if len(b.pending) == 0 {
		return nil
	}
	ops := b.pending
	b.pending = nil
	return b.db.Write(ctx, func(tx *db.Tx) error {
		if err := b.lease.Guard(tx); err != nil {
			return err
		}
		var stages, receipts [][]any
		for _, o := range ops {
			stages = append(stages, []any{o.id, db.Micros(tx.Now().Add(b.pollPause(o))), doubtOf(o.receipt)})
			receipts = append(receipts, []any{o.id, encodeReceipt(o.receipt)})
		}
		if err := tx.ExecEachOne("UPDATE operations SET stage = 'pending', due_at = $2, doubts = $3, tries = tries + 1, crashes = 0 WHERE operation_id = $1 AND status = 'PROCESSING'", stages); err != nil {
			return err
		}
		if err := tx.ExecEach("UPDATE filings SET receipt = $2 WHERE operation_id = $1", receipts); err != nil {
			return err
		}
		return b.raiseOverdue(tx, ops, alert.AwaitingAcceptance24h, alert.AwaitingAcceptance48h)
	})
}

func doubtOf(r country.Receipt) string {
	if r.Awaiting {
		return string(fault.AwaitingAcceptance)
	}
	return ""
}

func (b *batch) pollPause(o *operation) time.Duration {
	pause := b.limits.PollEvery
	if pause == 0 {
		pause = b.cfg.RetryBase
	}
	for i := int64(1); i < o.tries && pause < pollMax; i++ {
		pause *= 2
	}
	return min(pause, pollMax)
}

// resolve asks the authority about filings whose answer was lost. Nothing is
// sent again before it said that it does not have them.
//
// Failure policy: found with our hash is adopted; found with another is
// FAILURE, never SUCCESS; not found, after the authority's own visibility
// delay, sends the same bytes again; no answer leaves everything as it is.
func (b *batch) resolve(ctx context.Context) error {
	asked := b.ambiguous
	b.ambiguous = nil
	var unknown, later []*operation
	for _, o := range asked {
		switch {
		case b.limits.Class == country.ByHash, b.limits.Class == country.ByKey:
			b.outgoing = append(b.outgoing, o) // the authority recognises the same bytes itself
			continue
		case b.limits.Class == country.ByNothing, b.rest.After(b.db.Now()) && b.failures > 0:
			unknown = append(unknown, o)
			continue
		}
		r, err := b.find(ctx, o)
		switch {
		case errors.Is(err, country.ErrCredentials):
			b.pause(ctx, err)
			unknown = append(unknown, o)
		case err != nil:
			b.failed(err)
			unknown = append(unknown, o)
		case r.Outcome == country.Absent && b.db.Now().Before(o.sentAt.Add(b.limits.VisibleAfter)):
			later = append(later, o)
		case r.Outcome == country.Absent:
			b.recovered()
			b.outgoing = append(b.outgoing, o)
		case !b.ours(o, r):
			b.recovered()
			b.fail(o, numberUsed(r))
		default:
			b.recovered()
			b.adopt(o, r)
		}
	}
	if err := b.stayUnknown(ctx, unknown); err != nil {
		return err
	}
	return b.lookLater(ctx, later)
}

func (b *batch) find(ctx context.Context, o *operation) (r country.Receipt, err error) {
	call, cancel := b.callContext(ctx)
	defer cancel()
	began := b.db.Now()
	r, err = b.channel.Find(call, o.filing, b.creds)
	b.record(ctx, exchange{verb: "find", at: began, ops: []*operation{o}, receipts: []country.Receipt{r}, err: err})
	return r, err
}

// adopt takes what the authority holds as the answer we lost.
func (b *batch) adopt(o *operation, r country.Receipt) {
	if r.Outcome == country.Accepted && r.AuthorityID1 == "" {
		r.Faults = append(r.Faults, fault.Warn("", fault.AuthorityIDUnavailable, "the document is registered; its id was in an answer that got lost"))
	}
	r.Duplicate = false
	b.answered(o, r)
}

// stayUnknown keeps operations PROCESSING: nobody knows whether they are registered.
func (b *batch) stayUnknown(ctx context.Context, ops []*operation) error {
	if len(ops) == 0 {
		return nil
	}
	return b.db.Write(ctx, func(tx *db.Tx) error {
		if err := b.lease.Guard(tx); err != nil {
			return err
		}
		rows := make([][]any, 0, len(ops))
		for _, o := range ops {
			due := any(db.Micros(o.acceptedAt)) // the lane rests; it will ask again first thing
			if b.limits.Class == country.ByNothing {
				due = nil // nobody can be asked: a person decides
			}
			doubt := ""
			if b.limits.Class == country.ByNothing || b.age(o, tx) >= hopelessAfter {
				doubt = string(fault.OutcomeUnknown)
			}
			rows = append(rows, []any{o.id, due, doubt})
		}
		if err := tx.ExecEachOne("UPDATE operations SET due_at = $2, doubts = $3, crashes = 0 WHERE operation_id = $1 AND status = 'PROCESSING'", rows); err != nil {
			return err
		}
		return b.raiseOverdue(tx, ops, alert.OutcomeUnknown24h, alert.OutcomeUnknown48h)
	})
}

// lookLater waits for the authority's visibility delay.
func (b *batch) lookLater(ctx context.Context, ops []*operation) error {
	if len(ops) == 0 {
		return nil
	}
	return b.db.Write(ctx, func(tx *db.Tx) error {
		if err := b.lease.Guard(tx); err != nil {
			return err
		}
		rows := make([][]any, 0, len(ops))
		for _, o := range ops {
			rows = append(rows, []any{o.id, db.Micros(o.sentAt.Add(b.limits.VisibleAfter))})
		}
		return tx.ExecEachOne("UPDATE operations SET due_at = $2, crashes = 0 WHERE operation_id = $1 AND status = 'PROCESSING'", rows)
	})
}

func (b *batch) age(o *operation, tx *db.Tx) time.Duration { return tx.Now().Sub(o.startedAt) }

// raiseOverdue alerts once per operation at 24 and once at 48 hours.
func (b *batch) raiseOverdue(tx *db.Tx, ops []*operation, doubtful, hopeless alert.Name) error {
	for _, o := range ops {
		age := b.age(o, tx)
		name := doubtful
		switch {
		case age >= hopelessAfter:
			name = hopeless
		case age < doubtfulAfter:
			continue
		}
		if err := b.cfg.Alerts.RaiseIn(tx, name, o.id, fmt.Sprintf("operation %s has been in stage %s for %s: %s", o.id, o.stage, age.Round(time.Minute), b.trouble)); err != nil {
			return err
		}
	}
	return nil
}

// exchange is one call to an authority, kept for the person who asks what happened.
type exchange struct {
	verb     string
	at       time.Time
	ops      []*operation
	receipts []country.Receipt
	err      error
}

const rawMax = 16 << 10 // of an answer, in the record of a call

// record keeps a call. It is evidence, not state: without it nothing is lost.
func (b *batch) record(ctx context.Context, x exchange) {
	id, err := uuid.NewV7()
	if err != nil {
		return
	}
	result, raw := "answered", []byte(nil)
	if x.err != nil {
		result = x.err.Error()
	}
	if len(x.receipts) > 0 {
		raw = x.receipts[0].Raw
	}
	row := []any{id.String(), b.lease.ID, x.verb, db.Micros(x.at), b.db.Now().Sub(x.at).Microseconds(), len(x.ops), result, raw[:min(len(raw), rawMax)]}
	links := make([][]any, len(x.ops))
	for i, o := range x.ops {
		links[i] = []any{o.id, id.String()}
	}
	b.evidence = append(b.evidence, func(tx *db.Tx) error {
		if err := tx.Insert("exchanges", "exchange_id,lane,verb,at,took,filings,outcome,reply", row); err != nil {
			return err
		}
		return tx.Insert("exchange_operations", "operation_id,exchange_id", links...)
	})
}

// loadFilings reads the stored bytes of operations that have them.
func (v *visit) loadFilings(r db.Reader, byID map[string]*operation, ids []string) error {
	rows, err := r.Query("SELECT operation_id, report, filing, receipt FROM filings WHERE "+v.db.In("operation_id", "$1"), db.Strings(ids))
	if err != nil {
		return fmt.Errorf("load filings: %w", err)
	}
	return rows.Each(func(scan func(...any) error) error {
		var id, text string
		var report []byte
		var receipt *string
		if err := scan(&id, &report, &text, &receipt); err != nil {
			return err
		}
		o := byID[id]
		if o.filing, err = decodeFiling(text, report); err != nil {
			return err
		}
		if receipt != nil {
			return json.Unmarshal([]byte(*receipt), &o.receipt)
		}
		return nil
	})
}

// expire ends operations of a resting lane that were never prepared in 48
// hours, and warns about the others. It goes on until none is left: a long
// outage must not be paid by the hour.
func (b *batch) expire(ctx context.Context) error {
	if b.failures == 0 {
		return nil
	}
	code := fault.AuthorityUnavailable
	text := "the tax authority could not be reached for 48 hours; nothing was registered"
	if len(b.trouble) >= len(credentialsTrouble) && b.trouble[:len(credentialsTrouble)] == credentialsTrouble {
		code, text = fault.CredentialsInvalid, "the supplier's credentials did not work for 48 hours; nothing was registered"
	}
	for ctx.Err() == nil {
		var old []*operation
		err := b.db.Read(ctx, func(r db.Reader) (err error) {
			limit := db.Micros(r.Now().Add(-hopelessAfter))
			old, err = db.Collect(r, scanOperation, "SELECT "+operationFields+` FROM operations WHERE lane = $1 AND due_at <= $2
				AND coalesce(started_at, due_at) <= $2 AND (stage = 'received' OR stage = 'prepared' AND $3 = 0) ORDER BY due_at LIMIT 200`, b.lease.ID, limit, chainedFlag(b.chained))
			if err != nil || len(old) == 0 {
				return err
			}
			return b.load(r, old)
		})
		if err != nil || len(old) == 0 {
			return err
		}
		next := &batch{visit: b.visit}
		for _, o := range old {
			next.fail(o, fault.Fault{Code: code, Type: fault.TaxAuthority, Message: text})
		}
		if err := next.storeOutcomes(ctx); err != nil {
			return err
		}
	}
	return nil
}

func chainedFlag(chained bool) int {
	if chained {
		return 1
	}
	return 0
}
