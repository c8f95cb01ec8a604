package filing

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"tributary/internal/correction"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/killpoint"
	"tributary/internal/lifecycle"
	"tributary/internal/operation"
	"tributary/internal/period"
	"tributary/internal/webhook"
)

// storeOutcomes settles operations: documents first, then outcome, result,
// what waited for them and the webhook events in one commit.
//
// Failure policy: documents are on disk before the commit that mentions them;
// a crash in between leaves files nobody mentions, which the sweeper removes.
func storeOutcomes(ctx context.Context, b *batch) error {
	if err := renumberUsed(ctx, b); err != nil {
		return err
	}
	if len(b.outcomes) == 0 {
		return b.storeEvidence(ctx)
	}
	endings, err := issue(ctx, b.v, b.outcomes)
	if err != nil {
		return err
	}
	b.outcomes = nil
	// One order for everybody who touches transactions, see Service.store.
	sort.Slice(endings, func(i, j int) bool { return endings[i].op.TransactionID < endings[j].op.TransactionID })
	// A pause that the authority asked for is stored with the answer that asked:
	// a crash afterwards must not make us forget it. Where nothing else is to be done
	// the lane is given back in the same commit, too.
	last := (b.v.health.wait.After(b.v.now()) || !b.more()) && b.v.health.failures == 0 && len(b.broken) == 0
	var done []transition
	err = b.v.s.db.Write(ctx, func(tx *db.Tx) error {
		if last {
			if err := b.v.leave(tx, slices.Concat(b.v.leftover, b.uncounted(endings))); err != nil {
				return err
			}
		} else if err := b.v.lease.Guard(tx); err != nil {
			return err
		}
		done = ended(endings, tx.Now())
		if err := writeEndings(tx, b, endings); err != nil {
			return err
		}
		own, told, err := endPeriods(tx, b.v, endings)
		if err != nil {
			return err
		}
		follow, events, err := followUp(tx, b, endings, own)
		if err != nil {
			return err
		}
		updates, err := writeNews(tx, b, endings)
		if err != nil {
			return err
		}
		answered, err := b.v.s.tellAnswered(tx, endings)
		if err != nil {
			return err
		}
		if err := apply(tx, append(done, follow...)); err != nil {
			return err
		}
		return b.v.s.cfg.Hooks.Notify(tx, slices.Concat(events, updates, told, answered)...)
	})
	if err != nil {
		return fmt.Errorf("settle %d operations: %w", len(endings), err)
	}
	landed(done)
	b.v.left, b.evidence = last, nil
	b.v.s.reached(killpoint.Settled, b.v.lease.ID)
	return nil
}

// ended moves operations to their end.
func ended(endings []ending, now time.Time) (list []transition) {
	for _, e := range endings {
		list = append(list, e.op.to(settled, string(e.status), db.Micros(now), e.result, e.op.SupplierID, e.op.Document.Number))
	}
	return list
}

// writeEndings stores what belongs to the ends besides their stages.
func writeEndings(tx *db.Tx, b *batch, endings []ending) error {
	var transactions, receipts [][]any
	var failed []*operation.Operation
	var attachments []files.Attachment
	for _, e := range endings {
		o := e.op
		success := any(nil)
		if e.status == Success {
			success = o.ID
		} else {
			failed = append(failed, o.Operation)
		}
		transactions = append(transactions, []any{o.Scope, o.TransactionID, success})
		if e.receipt.Outcome != "" {
			receipts = append(receipts, []any{o.ID, operation.EncodeReceipt(e.receipt), e.receipt.Document})
		}
		attachments = append(attachments, e.attachments...)
	}
	steps := []error{
		writeAdopted(tx, b.v, endings),
		tx.ExecEachOne("UPDATE transactions SET open = open - 1, success_id = coalesce(success_id, $3) WHERE client_id = $1 AND transaction_id = $2", transactions),
		tx.UpdateEach("UPDATE filings SET receipt = $2, document = $3 WHERE operation_id = $1", receipts),
		correction.Undo(tx, failed),
	}
	for _, err := range steps {
		if err != nil {
			return err
		}
	}
	if err := b.v.s.cfg.Documents.Attach(tx, attachments...); err != nil {
		return err
	}
	for _, fn := range b.evidence {
		if err := fn(tx); err != nil {
			return err
		}
	}
	return nil
}

// followUp moves those who waited for the settled operations: later attempts
// of the same transaction, and corrections of it. Nobody is told of operations
// of our own.
func followUp(tx *db.Tx, b *batch, endings []ending, own map[string]bool) (list []transition, events []webhook.Event, err error) {
	ends := make(map[string]ending, len(endings))
	var ids []string
	for _, e := range endings {
		ends[e.op.TransactionID] = e
		ids = append(ids, e.op.TransactionID)
		if !own[e.op.ID] {
			events = append(events, lifecycle.Completed(e.op.Scope, e.op.TransactionID, e.op.ID))
		}
	}
	waiting, err := db.Collect(tx, scanOp, "SELECT "+opFields+" FROM operations WHERE client_id = $1 AND "+b.v.s.db.In("transaction_id", "$2")+
		" AND stage = 'waiting' ORDER BY transaction_id, attempt", b.v.lane.at.Scope, db.Strings(ids))
	if err != nil {
		return nil, nil, fmt.Errorf("look for waiting attempts: %w", err)
	}
	var behind []*op // a success
	due, next := db.Micros(tx.Now()), map[string]bool{}
	for _, o := range waiting {
		e := ends[o.TransactionID]
		if e.status == Success {
			behind = append(behind, o)
			events = append(events, lifecycle.Completed(o.Scope, o.TransactionID, o.ID))
		} else if !next[o.TransactionID] {
			next[o.TransactionID] = true
			list = append(list, o.to(promoted, due))
		}
	}
	joins, err := join(tx, b.v, behind, ends)
	if err != nil {
		return nil, nil, err
	}
	b.v.s.cfg.Count(tx, talliedEnds(endings, behind, own))
	freed, err := free(tx, b.v, ids)
	if list = slices.Concat(list, joins, freed); len(list) > 0 || b.more() {
		tx.Wake(laneQueue.Table)
	}
	return list, events, err
}

// free lets corrections go on that waited for transactions: their originals, or
// other corrections of these.
func free(tx *db.Tx, v *visit, ids []string) (list []transition, err error) {
	for _, column := range []string{"reference_id", "behind"} {
		some, err := db.Collect(tx, func(scan func(...any) error) (t transition, err error) {
			t = transition{move: unblocked, from: Blocked, values: []any{db.Micros(tx.Now())}}
			return t, scan(&t.id)
		}, "SELECT operation_id FROM operations WHERE client_id = $1 AND "+v.s.db.In(column, "$2")+" AND stage = 'blocked'", v.lane.at.Scope, db.Strings(ids))
		if err != nil {
			return nil, fmt.Errorf("look for corrections that wait: %w", err)
		}
		list = append(list, some...)
	}
	slices.SortFunc(list, func(a, b transition) int { return strings.Compare(a.id, b.id) })
	return slices.CompactFunc(list, func(a, b transition) bool { return a.id == b.id }), nil
}

// join ends attempts that waited behind a success: with the registered result,
// and a warning where their own body said something else. Bodies are compared by
// digests; those of large ones were taken by the intake.
func join(tx *db.Tx, v *visit, waiting []*op, ends map[string]ending) (list []transition, err error) {
	if len(waiting) == 0 {
		return nil, nil
	}
	if err := loadDigests(tx, v.s.db, waiting); err != nil {
		return nil, err
	}
	perTransaction := map[string]int64{}
	for _, o := range waiting {
		winner := ends[o.TransactionID].op
		if winner.Digest == "" {
			winner.Digest = digestOf(winner.Kind, winner.Body)
		}
		warnings := any(nil)
		if o.Digest != winner.Digest {
			warnings = operation.EncodeFaults([]fault.Fault{fault.Warn("", fault.PayloadDiffers,
				"the body of this attempt differs from the one that is registered under this transaction_id; the registered one stands")})
		}
		list = append(list, o.to(joined, db.Micros(tx.Now()), winner.ID, warnings))
		perTransaction[o.TransactionID]++
	}
	var counts [][]any
	for id, n := range perTransaction {
		counts = append(counts, []any{v.lane.at.Scope, id, n})
	}
	return list, tx.ExecEach("UPDATE transactions SET open = open - $3 WHERE client_id = $1 AND transaction_id = $2", counts)
}

// loadDigests reads what the intake noted of bodies that waited from the
// beginning. The others are read and decoded: a few small ones, and those that a
// node of the version before took.
func loadDigests(tx *db.Tx, d *db.DB, ops []*op) error {
	byID := make(map[string]*op, len(ops))
	for _, o := range ops {
		byID[o.ID] = o
	}
	rows, err := tx.Query("SELECT operation_id, coalesce(digest, '') FROM bodies WHERE "+d.In("operation_id", "$1"), db.Strings(slices.Collect(maps.Keys(byID))))
	if err != nil {
		return fmt.Errorf("read digests: %w", err)
	}
	err = rows.Each(func(scan func(...any) error) error {
		var id, digest string
		err := scan(&id, &digest)
		byID[id].Digest = digest
		return err
	})
	if err != nil {
		return err
	}
	for _, o := range ops {
		if o.Digest != "" {
			continue
		}
		if err := tx.Row("SELECT body FROM bodies WHERE operation_id = $1", o.ID).Scan(&o.Body); err != nil {
			return fmt.Errorf("read the body of %s: %w", o.ID, err)
		}
		o.Digest = digestOf(o.Kind, o.Body)
		o.Body = nil
	}
	return nil
}

// endPeriods does what the ends mean to periods. It answers which operations were
// our own, and what is told of sales.
func endPeriods(tx *db.Tx, v *visit, endings []ending) (own map[string]bool, events []webhook.Event, err error) {
	if v.lane.pack.Periods == nil {
		return nil, nil, nil
	}
	ends := make([]period.Ended, len(endings))
	for i, e := range endings {
		ends[i] = period.Ended{Operation: e.op.Operation, Success: e.status == Success, Leaves: e.op.filing.Leaves, Receipt: e.receipt, Faults: e.faults}
	}
	return v.s.periods.End(tx, v.lane.at, ends)
}

// writeNews stores what came with the receipts that ended operations. Of a
// success it answers the events of everything that was said so far, and from now
// on somebody listens, where the authority may speak later.
func writeNews(tx *db.Tx, b *batch, endings []ending) (events []webhook.Event, err error) {
	v := b.v
	if v.lane.channel == nil {
		return nil, nil
	}
	var ops []*op
	var listened []string
	succeeded := map[string]lifecycle.Subject{}
	for _, e := range endings {
		e.op.receipt = e.receipt
		ops = append(ops, e.op)
		if e.status != Success {
			continue
		}
		succeeded[e.op.ID] = lifecycle.Of(&e.op.Accepted)
		if e.op.filing.Number != "" {
			listened = append(listened, e.op.ID)
		}
	}
	if err := keepSaid(b, tx, ops); err != nil {
		return nil, err
	}
	if v.lane.pack.Speaks() {
		if err := lifecycle.ForgetDecisions(tx, v.s.db, idsOf(ops)); err != nil {
			return nil, err
		}
	}
	if len(succeeded) == 0 {
		return nil, nil
	}
	if events, err = v.s.life.Said(tx, succeeded); err != nil {
		return nil, err
	}
	slices.Sort(listened)
	return events, v.s.life.Listen(tx, v.lease.ID, v.lane.limits.Listen, listened)
}
