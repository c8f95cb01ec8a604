package filing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
)

// batch is a set of operations of one lane on their way through the stages.
type batch struct {
	*visit
	ops       []*operation // all of them
	full      bool         // others are due behind them
	ready     []*operation // bytes made in memory, not stored yet
	outgoing  []*operation // stored as prepared, or to be sent once more
	ambiguous []*operation // sent, no clean answer
	pending   []*operation // at the authority, undecided
	broken    []*operation // refused because their links do not follow the authority's last one
	outcomes  []outcome
	moved     []*operation // to another lane, or behind their original
	retry     []*operation // could not be prepared now
	evidence  []func(tx *db.Tx) error
	chain     country.Link // the head, once read
	chainRead bool
	head      int64           // position of the head as stored
	enlisted  map[string]bool // operations that are in a period already; nil: nobody has looked
	numbers   numbers         // of the endpoint's sequence, drawn and not given out
}

// outcome is how an operation ends.
type outcome struct {
	op      *operation
	status  Status
	faults  []fault.Fault
	receipt country.Receipt
}

// more reports whether the lane may have others that are due.
func (b *batch) more() bool { return b.full || len(b.moved) > 0 }

func (b *batch) settle(o outcome) { b.outcomes = append(b.outcomes, o) }

func (b *batch) fail(o *operation, faults ...fault.Fault) {
	b.settle(outcome{op: o, status: Failure, faults: faults})
}

// uncounted lists operations whose crash count no write has taken back yet,
// besides those that are being settled.
func (b *batch) uncounted(endings []ending) (ids []string) {
	for _, o := range b.ops {
		if o.counted && !slices.ContainsFunc(endings, func(e ending) bool { return e.op == o }) {
			ids = append(ids, o.id)
		}
	}
	return ids
}

// run takes every operation as far as it goes, one stored stage after the other.
func (b *batch) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		b.storePrepared, b.storeRetries, b.poll, b.resolve, b.send, b.resolveLost, b.storePending, b.storeOutcomes, b.mendChain,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// storePrepared fixes bytes and chain positions: from here on they never change.
func (b *batch) storePrepared(ctx context.Context) error {
	for len(b.ready) > 0 {
		kept, left, err := b.tryPrepared(ctx)
		broken := errors.Is(err, errChainBroken)
		if err != nil && !broken {
			return fmt.Errorf("store prepared filings: %w", err)
		}
		for o, why := range left {
			if why.refused != nil {
				b.fail(o, *why.refused)
			} else if why.again {
				b.moved = append(b.moved, o) // it stays due
			} else if err := b.block(ctx, o, why.behind); err != nil {
				return err
			}
		}
		if broken {
			if err := b.prepareAgain(ctx, left); err != nil {
				return err
			}
			continue
		}
		b.ready = nil
		for _, o := range kept {
			if o.gap != nil {
				b.settle(b.adopted(o))
				continue
			}
			if o.filing.Report == nil {
				b.settle(outcome{op: o, status: Success, faults: o.waiting()}) // nothing to file
				continue
			}
			b.outgoing = append(b.outgoing, o)
		}
		b.reached(killpoint.Prepared, b.lease.ID)
	}
	return nil
}

// tryPrepared stores what is ready. A correction that the original does not
// allow, or not yet, is left out; in a chain that undoes the write, because later
// links were built on it.
func (b *batch) tryPrepared(ctx context.Context) (kept []*operation, left map[*operation]reserved, err error) {
	err = b.commit(ctx, func(time.Time) []transition { return b.preparedNow(kept) }, func(tx *db.Tx) error {
		kept, left = nil, map[*operation]reserved{}
		if err := lockOriginals(tx, b.ready); err != nil {
			return err
		}
		for _, o := range b.ready {
			why, err := b.reserve(tx, o)
			if err == nil && why == (reserved{}) {
				why, err = b.enlist(tx, o)
			}
			if err != nil {
				return err
			}
			if why == (reserved{}) {
				kept = append(kept, o)
			} else {
				left[o] = why
			}
		}
		if b.chained && len(left) > 0 {
			return errChainBroken
		}
		return b.insertFilings(tx, kept)
	})
	return kept, left, err
}

// errChainBroken undoes a write of links; it is rare: two corrections of one original in one batch.
var errChainBroken = errors.New("a correction was left out in the middle of a chain")

// prepareAgain builds the links anew, from the stored head and without those left out.
func (b *batch) prepareAgain(ctx context.Context, left map[*operation]reserved) error {
	list := b.ready
	b.ready, b.chain, b.chainRead, b.head = nil, country.Link{}, false, 0
	for _, o := range list {
		if _, out := left[o]; out {
			continue
		}
		if o.gap != nil {
			b.ready = append(b.ready, o)
			continue
		}
		o.filing = country.Filing{}
		if !b.files(o) || o.waits {
			b.ready = append(b.ready, o)
		} else if err := b.draft(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// insertFilings stores the bytes, and in a chain its new head.
func (b *batch) insertFilings(tx *db.Tx, ops []*operation) error {
	var filings [][]any
	for _, o := range ops {
		if o.filing.Report != nil {
			filings = append(filings, []any{o.id, o.filing.Report, o.filing.SHA256, encodeFiling(o.filing)})
		}
	}
	if len(filings) == 0 {
		return nil
	}
	if err := tx.Insert("filings", "operation_id,report,sha256,filing", filings...); err != nil {
		return err
	}
	if err := b.keepHandles(tx, ops, func(o *operation) string { return o.filing.DedupeKey }); err != nil {
		return err
	}
	if !b.chained {
		return nil
	}
	return b.storeChain(tx)
}

// preparedNow moves those with bytes; those without are settled.
func (b *batch) preparedNow(ops []*operation) (list []transition) {
	for _, o := range ops {
		if o.filing.Report == nil {
			continue
		}
		due := o.dueAt
		if b.chained {
			due = chainDue(o)
		}
		list = append(list, o.to(prepared, o.supplierID, b.pack.Version, db.Micros(due)))
	}
	return list
}

// chainDue makes links due in the order of the chain, before everything that
// is not yet in it: an instant long ago, as many microseconds as its position.
func chainDue(o *operation) time.Time { return db.FromMicros(o.filing.Link.Position) }

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
	err := b.db.ReadEach(ctx, func(r db.Reader) error {
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
	if err != nil {
		return fmt.Errorf("read the chain: %w", err)
	}
	b.chainRead = true
	return nil
}

// postpone stores that operations go on later with the same bytes.
func (b *batch) postpone(ctx context.Context, ops []*operation) error {
	if len(ops) == 0 {
		return nil
	}
	return b.commit(ctx, func(now time.Time) (list []transition) {
		for _, o := range ops {
			code, said := o.hindrance()
			list = append(list, o.to(notTaken, db.Micros(b.dueAgain(now, o)), code, said))
		}
		return list
	})
}

// hindrance is the published reason that the authority gave for not taking this
// one document, while it takes others, and its words; "" where it gave none.
func (o *operation) hindrance() (code string, said any) {
	if o.receipt.Outcome != country.NotTaken || len(o.receipt.Faults) == 0 {
		return "", nil
	}
	return string(o.receipt.Faults[0].Code), encodeFaults(o.receipt.Faults[:1])
}

// dueAgain is when an operation goes on. While the lane rests as a whole the
// operation keeps its place in it.
func (b *batch) dueAgain(now time.Time, o *operation) time.Time {
	switch {
	case b.ordered && o.filing.Link.Position > 0:
		return chainDue(o)
	case b.until().After(now):
		return o.acceptedAt
	}
	return now.Add(b.Backoff(o.tries + 1))
}

func sortByID(ops []*operation) {
	sort.Slice(ops, func(i, j int) bool { return ops[i].id < ops[j].id })
}

// inOrder sorts filings as they are sent: along the chain, else by age.
func inOrder(ops []*operation) {
	sort.Slice(ops, func(i, j int) bool {
		if a, b := ops[i].filing.Link.Position, ops[j].filing.Link.Position; a != b {
			return a < b
		}
		return ops[i].id < ops[j].id
	})
}

func (b *batch) callContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return callContext(ctx, b.limits)
}

// callContext bounds one call to an authority, and counts its bytes.
func callContext(ctx context.Context, l country.Limits) (context.Context, context.CancelFunc) {
	timeout := l.CallTimeout
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	return context.WithTimeout(country.WithTraffic(ctx), timeout)
}
