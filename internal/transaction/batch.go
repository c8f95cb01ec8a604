package transaction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// batch is a set of operations of one lane on their way through the stages.
type batch struct {
	*visit
	ready     []*operation // bytes made in memory, not stored yet
	outgoing  []*operation // stored as prepared
	ambiguous []*operation // sent, no clean answer
	pending   []*operation // at the authority, undecided
	outcomes  []outcome
	moved     []*operation // to another lane, or behind their original
	retry     []*operation // could not be prepared now
	held      []*operation // wait for credentials
	evidence  []func(tx *db.Tx) error
	chain     country.Link // the head, once read
	chainRead bool
	head      int64 // position of the head as stored
}

// outcome is how an operation ends.
type outcome struct {
	op      *operation
	status  Status
	faults  []fault.Fault
	receipt country.Receipt
}

func (b *batch) settle(o outcome) { b.outcomes = append(b.outcomes, o) }

func (b *batch) fail(o *operation, faults ...fault.Fault) {
	b.settle(outcome{op: o, status: Failure, faults: faults})
}

// run takes every operation as far as it goes, one stored stage after the other.
func (b *batch) run(ctx context.Context) error {
	if err := b.storeRetries(ctx); err != nil {
		return err
	}
	if err := b.storePrepared(ctx); err != nil {
		return err
	}
	if err := b.poll(ctx); err != nil {
		return err
	}
	if err := b.resolve(ctx); err != nil {
		return err
	}
	if err := b.send(ctx); err != nil {
		return err
	}
	if len(b.ambiguous) > 0 {
		// The answer was lost just now: ask at once.
		if err := b.resolve(ctx); err != nil {
			return err
		}
	}
	if err := b.storePending(ctx); err != nil {
		return err
	}
	return b.storeOutcomes(ctx)
}

// storePrepared fixes bytes and chain positions: from here on they never change.
func (b *batch) storePrepared(ctx context.Context) error {
	if len(b.ready) == 0 {
		return nil
	}
	var kept []*operation
	var refused []outcome
	err := b.db.Write(ctx, func(tx *db.Tx) error {
		kept, refused = nil, nil
		if err := b.lease.Guard(tx); err != nil {
			return err
		}
		for _, o := range b.ready {
			if f, err := b.reserve(tx, o); err != nil {
				return err
			} else if f != nil {
				if b.chained {
					return errChainBroken // later links were built on this one: build them again without it
				}
				refused = append(refused, outcome{op: o, status: Failure, faults: []fault.Fault{*f}})
				continue
			}
			kept = append(kept, o)
		}
		return b.insertFilings(tx, kept)
	})
	if err != nil {
		return fmt.Errorf("store prepared filings: %w", err)
	}
	b.outcomes = append(b.outcomes, refused...)
	for _, o := range kept {
		if o.filing.Report == nil {
			b.settle(outcome{op: o, status: Success}) // nothing to file
			continue
		}
		o.stage = Prepared
		b.outgoing = append(b.outgoing, o)
	}
	return nil
}

// errChainBroken makes a visit start over; it is rare: two corrections of one original in one batch.
var errChainBroken = errors.New("a correction was refused in the middle of a chain")

func (b *batch) insertFilings(tx *db.Tx, ops []*operation) error {
	var filings, stages [][]any
	for _, o := range ops {
		if o.filing.Report == nil {
			continue
		}
		filings = append(filings, []any{o.id, o.filing.Report, o.filing.SHA256, encodeFiling(o.filing)})
		stages = append(stages, []any{o.id, o.supplierID, b.pack.Version})
	}
	if len(filings) == 0 {
		return nil
	}
	if err := tx.Insert("filings", "operation_id,report,sha256,filing", filings...); err != nil {
		return err
	}
	if err := tx.ExecEachOne("UPDATE operations SET stage = 'prepared', crashes = 0, supplier_id = $2, pack_version = $3 WHERE operation_id = $1 AND stage = 'received'", stages); err != nil {
		return err
	}
	if !b.chained {
		return nil
	}
	return b.storeChain(tx)
}

// storeChain moves the head from where it was read; anything else would fork the chain.
func (b *batch) storeChain(tx *db.Tx) error {
	text, err := json.Marshal(b.chain)
	if err != nil {
		return err
	}
	if b.head == 0 {
		return tx.Insert("chains", "lane,position,link", []any{b.lease.ID, b.chain.Position, string(text)})
	}
	return tx.ExecOne("UPDATE chains SET position = $1, link = $2 WHERE lane = $3 AND position = $4", b.chain.Position, string(text), b.lease.ID, b.head)
}

// readChain loads the head of the lane's chain.
func (b *batch) readChain(ctx context.Context) error {
	if b.chainRead {
		return nil
	}
	err := b.db.Read(ctx, func(r db.Reader) error {
		var text string
		err := r.Row("SELECT position, link FROM chains WHERE lane = $1", b.lease.ID).Scan(&b.head, &text)
		if errors.Is(err, db.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(text), &b.chain)
	})
	b.chainRead = err == nil
	return err
}

// send files what is prepared. Stage `sent` is on disk before the first byte leaves.
func (b *batch) send(ctx context.Context) error {
	if len(b.outgoing) == 0 || b.rest.After(b.db.Now()) {
		return nil
	}
	sortByID(b.outgoing)
	ops := b.outgoing[:min(len(b.outgoing), max(1, b.limits.Batch))]
	b.outgoing = b.outgoing[len(ops):]
	if err := b.markSent(ctx, ops); err != nil {
		return err
	}
	filings := make([]country.Filing, len(ops))
	for i, o := range ops {
		filings[i] = o.filing
	}
	call, cancel := b.callContext(ctx)
	began := b.db.Now()
	receipts, err := b.channel.Send(call, filings, b.creds)
	cancel()
	if err == nil && len(receipts) != len(ops) {
		err = fmt.Errorf("%d receipts for %d filings", len(receipts), len(ops))
	}
	b.record(ctx, exchange{verb: "send", at: began, ops: ops, receipts: receipts, err: err})
	if err != nil {
		return b.sendFailed(ctx, ops, err)
	}
	b.recovered()
	b.rest = b.db.Now().Add(b.limits.Wait)
	var again []*operation
	for i, o := range ops {
		if retry := b.answered(o, receipts[i]); retry {
			again = append(again, o)
		}
	}
	return b.postpone(ctx, again, Prepared)
}

func (b *batch) markSent(ctx context.Context, ops []*operation) error {
	return b.db.Write(ctx, func(tx *db.Tx) error {
		if err := b.lease.Guard(tx); err != nil {
			return err
		}
		rows := make([][]any, len(ops))
		for i, o := range ops {
			o.sentAt = tx.Now()
			rows[i] = []any{o.id, db.Micros(tx.Now())}
		}
		return tx.ExecEachOne("UPDATE operations SET stage = 'sent', sent_at = $2, tries = tries + 1, crashes = 0 WHERE operation_id = $1 AND stage IN ('prepared', 'sent')", rows)
	})
}

// answered turns a receipt into an outcome; true when the same bytes must go again.
func (b *batch) answered(o *operation, r country.Receipt) (again bool) {
	o.stage, o.receipt = Sent, r
	if r.Wait > 0 {
		if until := b.db.Now().Add(r.Wait); until.After(b.rest) {
			b.rest = until
		}
	}
	switch {
	case r.Outcome == country.NotTaken:
		return true
	case r.Duplicate && !b.ours(o, r):
		if r.SHA256 == "" && b.limits.Class == country.ByNumber {
			b.ambiguous = append(b.ambiguous, o) // "already received" without content: ask which
			return false
		}
		b.fail(o, numberUsed(r))
	case r.Outcome == country.Accepted:
		b.settle(outcome{op: o, status: Success, receipt: r, faults: r.Faults})
	case r.Outcome == country.Rejected:
		b.settle(outcome{op: o, status: Failure, receipt: r, faults: rejection(r)})
	case r.Outcome == country.Pending:
		b.pending = append(b.pending, o)
		o.stage = Pending
	default:
		b.ambiguous = append(b.ambiguous, o)
	}
	return false
}

// ours reports whether what the authority holds is what we filed. Where the
// handle itself is ours (a hash or a key of our making) the handle decides.
func (b *batch) ours(o *operation, r country.Receipt) bool {
	if r.SHA256 != "" {
		return r.SHA256 == o.filing.SHA256
	}
	return b.limits.Class == country.ByHash || b.limits.Class == country.ByKey
}

func numberUsed(r country.Receipt) fault.Fault {
	text := "the tax authority holds another document under this number"
	if r.AuthorityID1 != "" {
		text += " (" + r.AuthorityID1 + ")"
	}
	return fault.Fault{Code: fault.AuthorityNumberUsed, Type: fault.TaxAuthority, Field: "transaction_number", Message: text}
}

// rejection is never silent: a refusal without reasons still says that it was one.
func rejection(r country.Receipt) []fault.Fault {
	for _, f := range r.Faults {
		if f.Type != fault.Warning {
			return r.Faults
		}
	}
	return append(r.Faults, fault.Fault{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: "the tax authority refused the document"})
}

// sendFailed decides what a call without answer means for its filings.
func (b *batch) sendFailed(ctx context.Context, ops []*operation, err error) error {
	switch {
	case errors.Is(err, country.ErrCredentials):
		b.pause(ctx, err)
		return b.postpone(ctx, ops, Prepared)
	case errors.Is(err, country.ErrNotTaken):
		b.failed(err)
		return b.postpone(ctx, ops, Prepared)
	}
	b.log.Warn("no clean answer from the authority", "lane", b.lease.ID, "filings", len(ops), "error", err)
	b.ambiguous = append(b.ambiguous, ops...)
	return nil
}

// failed counts a call that brought nothing and lets the lane rest.
func (b *batch) failed(err error) {
	b.failures++
	b.trouble = err.Error()
	if until := b.db.Now().Add(b.backoff(b.failures)); until.After(b.rest) {
		b.rest = until
	}
}

func (b *batch) recovered() { b.failures, b.trouble = 0, "" }

// pause stops the lane until somebody brings new credentials; it looks again now and then.
func (b *batch) pause(ctx context.Context, err error) {
	b.failures++
	b.trouble = credentialsTrouble + ": " + err.Error()
	b.rest = b.db.Now().Add(b.backoff(b.failures))
	b.cfg.Alerts.Raise(ctx, alert.LanePausedCredentials, b.at.scope+"/"+b.at.supplierID, "filing is paused: "+err.Error())
}

// credentialsTrouble begins the trouble text of a lane that waits for credentials.
const credentialsTrouble = "credentials"

// postpone stores that operations go on later from a stage, or ends those that are hopeless.
func (b *batch) postpone(ctx context.Context, ops []*operation, stage Stage) error {
	if len(ops) == 0 {
		return nil
	}
	return b.db.Write(ctx, func(tx *db.Tx) error {
		if err := b.lease.Guard(tx); err != nil {
			return err
		}
		rows := make([][]any, 0, len(ops))
		for _, o := range ops {
			due := tx.Now().Add(b.backoff(o.tries + 1))
			if b.chained || b.rest.After(due) {
				due = o.acceptedAt // the lane rests as a whole; the operation keeps its place in it
			}
			rows = append(rows, []any{o.id, string(stage), db.Micros(due)})
		}
		return tx.ExecEachOne("UPDATE operations SET stage = $2, due_at = $3, crashes = 0 WHERE operation_id = $1 AND status = 'PROCESSING'", rows)
	})
}

func sortByID(ops []*operation) {
	sort.Slice(ops, func(i, j int) bool { return ops[i].id < ops[j].id })
}

func (b *batch) callContext(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := b.limits.CallTimeout
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	return context.WithTimeout(ctx, timeout)
}
