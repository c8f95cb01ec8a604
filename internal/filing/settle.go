package filing

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sort"
	"sync"
	"time"

	"tributary/internal/transaction"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/document"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
	"tributary/internal/webhook"
)

// ending is an outcome with everything the settling commit writes.
type ending struct {
	outcome
	result      string // JSON
	attachments []document.Attachment
}

// storeOutcomes settles operations: documents first, then outcome, result,
// what waited for them and the webhook events in one commit.
//
// Failure policy: documents are on disk before the commit that mentions them;
// a crash in between leaves files nobody mentions, which the sweeper removes.
func (b *batch) storeOutcomes(ctx context.Context) error {
	if len(b.outcomes) == 0 {
		return b.storeEvidence(ctx)
	}
	endings, err := b.issue(ctx, b.outcomes)
	if err != nil {
		return err
	}
	b.outcomes = nil
	// One order for everybody who touches transactions, see Service.store.
	sort.Slice(endings, func(i, j int) bool { return endings[i].op.transactionID < endings[j].op.transactionID })
	// A pause that the authority asked for is stored with the answer that asked:
	// a crash afterwards must not make us forget it.
	last := b.wait.After(b.db.Now()) && b.failures == 0 && len(b.broken) == 0
	err = b.db.Write(ctx, func(tx *db.Tx) error {
		if last {
			left := *b.visit
			left.leftover = append(left.leftover, b.uncounted(endings)...)
			if err := left.leave(tx); err != nil {
				return err
			}
		} else if err := b.lease.Guard(tx); err != nil {
			return err
		}
		if err := b.writeEndings(tx, endings); err != nil {
			return err
		}
		events, err := b.followUp(tx, endings)
		if err != nil {
			return err
		}
		return b.cfg.Hooks.Notify(tx, events...)
	})
	if err != nil {
		return fmt.Errorf("settle %d operations: %w", len(endings), err)
	}
	b.left, b.evidence = last, nil
	for _, e := range endings {
		e.op.counted = false
	}
	b.reached(killpoint.Settled, b.lease.ID)
	return nil
}

func (b *batch) storeEvidence(ctx context.Context) error {
	if len(b.evidence) == 0 {
		return nil
	}
	list := b.evidence
	b.evidence = nil
	return b.db.Write(ctx, func(tx *db.Tx) error {
		for _, fn := range list {
			if err := fn(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *batch) writeEndings(tx *db.Tx, endings []ending) error {
	var operations, transactions, receipts, failed [][]any
	var attachments []document.Attachment
	now := db.Micros(tx.Now())
	for _, e := range endings {
		o := e.op
		operations = append(operations, []any{o.id, string(e.status), now, e.result, o.supplierID, o.document.Number})
		success := any(nil)
		if e.status == Success {
			success = o.id
		} else if o.correction() {
			failed = append(failed, []any{o.scope, o.referenceID, o.id})
		}
		transactions = append(transactions, []any{o.scope, o.transactionID, success})
		if e.receipt.Outcome != "" {
			receipts = append(receipts, []any{o.id, encodeReceipt(e.receipt), e.receipt.Document})
		}
		attachments = append(attachments, e.attachments...)
	}
	steps := []error{
		b.writeAdopted(tx, endings),
		tx.ExecEachOne(`UPDATE operations SET stage = 'settled', status = $2, settled_at = $3, due_at = NULL, crashes = 0, doubts = '', result = $4,
			supplier_id = $5, number = $6 WHERE operation_id = $1 AND status = 'PROCESSING'`, operations),
		tx.ExecEachOne("UPDATE transactions SET open = open - 1, success_id = coalesce(success_id, $3) WHERE client_id = $1 AND transaction_id = $2", transactions),
		tx.ExecEach("UPDATE filings SET receipt = $2, document = $3 WHERE operation_id = $1", receipts),
		tx.ExecEach("DELETE FROM corrections WHERE client_id = $1 AND original_id = $2 AND operation_id = $3", failed),
	}
	for _, err := range steps {
		if err != nil {
			return err
		}
	}
	if err := b.cfg.Documents.Attach(tx, attachments...); err != nil {
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
// of the same transaction, and corrections of it.
func (b *batch) followUp(tx *db.Tx, endings []ending) (events []webhook.Event, err error) {
	ended := make(map[string]ending, len(endings))
	var ids []string
	for _, e := range endings {
		ended[e.op.transactionID] = e
		ids = append(ids, e.op.transactionID)
		events = append(events, completed(e.op.scope, e.op.transactionID, e.op.id))
	}
	waiting, err := db.Collect(tx, scanOperation, "SELECT "+operationFields+" FROM operations WHERE client_id = $1 AND "+b.db.In("transaction_id", "$2")+
		" AND stage = 'waiting' ORDER BY transaction_id, attempt", b.at.Scope, db.Strings(ids))
	if err != nil {
		return nil, fmt.Errorf("look for waiting attempts: %w", err)
	}
	var joined []*operation
	var next [][]any
	promoted := map[string]bool{}
	for _, o := range waiting {
		e := ended[o.transactionID]
		if e.status == Success {
			joined = append(joined, o)
			events = append(events, completed(o.scope, o.transactionID, o.id))
		} else if !promoted[o.transactionID] {
			promoted[o.transactionID] = true
			next = append(next, []any{o.id, db.Micros(tx.Now())})
		}
	}
	if err := b.join(tx, joined, ended); err != nil {
		return nil, err
	}
	b.cfg.Count(tx, talliedEnds(endings, joined))
	if err := tx.ExecEachOne("UPDATE operations SET stage = 'received', due_at = $2 WHERE operation_id = $1 AND stage = 'waiting'", next); err != nil {
		return nil, err
	}
	if err := tx.Exec("UPDATE operations SET stage = 'received', due_at = $1 WHERE client_id = $2 AND "+b.db.In("reference_id", "$3")+
		" AND stage = 'blocked'", db.Micros(tx.Now()), b.at.Scope, db.Strings(ids)); err != nil {
		return nil, err
	}
	tx.Wake(laneQueue.Table)
	return events, nil
}

// join ends attempts that waited behind a success: with the registered result,
// and a warning where their own body said something else.
func (b *batch) join(tx *db.Tx, waiting []*operation, ended map[string]ending) error {
	if len(waiting) == 0 {
		return nil
	}
	if err := b.load(tx, waiting); err != nil {
		return err
	}
	rows := make([][]any, 0, len(waiting))
	perTransaction := map[string]int64{}
	for _, o := range waiting {
		winner := ended[o.transactionID]
		warnings := any(nil)
		if differs(o, winner.op) {
			warnings = encodeFaults([]fault.Fault{fault.Warn("", fault.PayloadDiffers,
				"the body of this attempt differs from the one that is registered under this transaction_id; the registered one stands")})
		}
		rows = append(rows, []any{o.id, db.Micros(tx.Now()), winner.op.id, warnings})
		perTransaction[o.transactionID]++
	}
	if err := tx.ExecEachOne(`UPDATE operations SET stage = 'settled', status = 'SUCCESS', settled_at = $2, due_at = NULL, settled_by = $3, result = $4
		WHERE operation_id = $1 AND status = 'PROCESSING'`, rows); err != nil {
		return err
	}
	var counts [][]any
	for id, n := range perTransaction {
		counts = append(counts, []any{b.at.Scope, id, n})
	}
	return tx.ExecEach("UPDATE transactions SET open = open - $3 WHERE client_id = $1 AND transaction_id = $2", counts)
}

// differs compares what two bodies say, not how they are written.
func differs(a, b *operation) bool {
	if string(a.body) == string(b.body) && a.kind == b.kind {
		return false
	}
	mine, _, _ := transaction.Decode(a.kind, a.body)
	theirs, _, _ := transaction.Decode(b.kind, b.body)
	return !reflect.DeepEqual(mine, theirs)
}

// issue renders and stores the documents of successes and builds all results.
func (b *batch) issue(ctx context.Context, outcomes []outcome) ([]ending, error) {
	if err := b.describable(ctx, outcomes); err != nil {
		return nil, err
	}
	endings := make([]ending, len(outcomes))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	files, reports := make([]*document.File, len(outcomes)), make([]*document.File, len(outcomes))
	for i := range outcomes {
		endings[i].outcome = outcomes[i]
		e := &endings[i]
		if e.status == Success && e.op.structured != nil {
			report := document.NewFile(e.op.structured.Content)
			reports[i] = &report
		}
		if e.status != Success || !b.visual(e.op) {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			files[i] = b.render(ctx, e)
		})
	}
	wg.Wait()
	var keep []document.File
	for _, f := range slices.Concat(files, reports) {
		if f != nil {
			keep = append(keep, *f)
		}
	}
	if err := b.cfg.Documents.Keep(ctx, keep...); err != nil {
		return nil, fmt.Errorf("store documents: %w", err)
	}
	killpoint.Reach(killpoint.Rendered)
	now := b.db.Now()
	for i := range endings {
		e := &endings[i]
		e.attachments = b.attach(e, files[i], reports[i], now)
		text, err := json.Marshal(b.result(e, files[i] != nil, now))
		if err != nil {
			return nil, fmt.Errorf("encode the result of %s: %w", e.op.id, err)
		}
		e.result = string(text)
	}
	return endings, nil
}

// describable makes sure that every operation can be shown: its body is read, a
// credit knows what it takes back, and successes learn whether their number
// was used before.
func (b *batch) describable(ctx context.Context, outcomes []outcome) error {
	var incomplete []*operation
	numbers := map[string]bool{}
	for _, e := range outcomes {
		o := e.op
		if err := o.decode(); err != nil {
			b.log.Error("settle an operation", "operation", o.id, "error", err)
			o.document = &transaction.Transaction{Kind: o.kind, ID: o.transactionID, CountryCode: o.code, Number: o.number, SupplierID: o.supplierID}
		}
		if o.whole() && o.correction() && len(o.document.Items) == 0 {
			incomplete = append(incomplete, o)
		}
		if e.status == Success && o.document.Number != "" {
			numbers[o.document.Number] = true
		}
	}
	if len(incomplete) == 0 && len(numbers) == 0 {
		return nil
	}
	return b.db.Read(ctx, func(r db.Reader) error {
		for _, o := range incomplete {
			ref, err := b.lookUp(r, o.scope, o.referenceID)
			if err != nil {
				return err
			}
			if ref.op != nil {
				o.complete(ref.op)
			}
		}
		return b.warnReused(r, outcomes, slices.Collect(maps.Keys(numbers)))
	})
}

// warnReused warns of numbers that the supplier used for another successful
// transaction. It hinders nothing: some countries restart their numbers.
func (b *batch) warnReused(r db.Reader, outcomes []outcome, numbers []string) error {
	if len(numbers) == 0 || b.at.SupplierID == "" {
		return nil
	}
	type use struct{ number, first, last string }
	used, err := db.Collect(r, func(scan func(...any) error) (u use, err error) { return u, scan(&u.number, &u.first, &u.last) },
		"SELECT number, min(transaction_id), max(transaction_id) FROM operations WHERE client_id = $1 AND "+b.db.In("number", "$2")+
			" AND supplier_id = $3 AND status = 'SUCCESS' GROUP BY number", b.at.Scope, db.Strings(numbers), b.at.SupplierID)
	if err != nil {
		return fmt.Errorf("look for numbers in use: %w", err)
	}
	users := map[string][]string{}
	for _, u := range used {
		users[u.number] = []string{u.first, u.last}
	}
	for i := range outcomes {
		o := outcomes[i].op
		if outcomes[i].status != Success || o.document.Number == "" {
			continue
		}
		number := o.document.Number
		if slices.ContainsFunc(users[number], func(id string) bool { return id != o.transactionID }) {
			outcomes[i].faults = append(outcomes[i].faults, fault.Warn("transaction_number", fault.NumberReused,
				"was used by this supplier for another successful transaction"))
		}
		users[number] = append(users[number], o.transactionID) // the next one in this very batch
	}
	return nil
}

func (b *batch) visual(o *operation) bool {
	return b.cfg.Render != nil && o.useCase != country.Reporting && o.kind != transaction.Backfill
}

// render makes the document for people. A document that cannot be made does
// not undo a registration: the result says so and a person is told.
func (b *batch) render(ctx context.Context, e *ending) *document.File {
	var made []byte
	var fallback bool
	err := safely("render a document", func() (err error) {
		made, fallback, err = b.cfg.Render(ctx, b.issued(e))
		return err
	})
	if err != nil {
		b.log.Error("render a document", "operation", e.op.id, "error", err)
		b.cfg.Alerts.Raise(ctx, alert.DocumentFailed, e.op.id, "the document of operation "+e.op.id+" could not be made")
		e.faults = append(e.faults, fault.Warn("", fault.InternalError, "the document for people could not be made; the registration stands"))
		return nil
	}
	if fallback {
		e.faults = append(e.faults, fault.Warn("language_code", fault.LanguageFallback, "is not available for documents; English was used"))
	}
	file := document.NewFile(made)
	return &file
}

// attach lists the attachments of an ending.
func (b *batch) attach(e *ending, visual, report *document.File, now time.Time) []document.Attachment {
	if e.status != Success {
		return nil
	}
	var list []document.Attachment
	add := func(kind, typ, place string, f document.File) {
		list = append(list, document.Attachment{
			ClientID: e.op.scope, OperationID: e.op.id, Kind: kind, Type: typ, Place: place, SHA256: f.SHA256, Size: f.Size, CreatedAt: now,
		})
	}
	if visual != nil {
		add("VISUAL", "PDF", document.InStore, *visual)
	}
	if report != nil {
		add("REPORT", e.op.structured.Format, document.InStore, *report)
	}
	if e.op.filing.Report != nil {
		add("REPORT", e.op.filing.Format, document.InRecord, document.NewFile(e.op.filing.Report))
	}
	if e.receipt.Document != nil {
		add("RECEIPT", e.receipt.Format, document.InRecord, document.NewFile(e.receipt.Document))
	}
	return list
}
