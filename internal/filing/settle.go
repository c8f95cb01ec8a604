package filing

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/document"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/killpoint"
	"tributary/internal/transaction"
	"tributary/internal/webhook"
)

// ending is an outcome with everything the settling commit writes.
type ending struct {
	outcome
	result      string // JSON
	attachments []files.Attachment
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
	// a crash afterwards must not make us forget it. Where nothing else is to be done
	// the lane is given back in the same commit, too.
	last := (b.wait.After(b.db.Now()) || !b.more()) && b.failures == 0 && len(b.broken) == 0
	var done []transition
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
		done = ended(endings, tx.Now())
		if err := b.writeEndings(tx, endings); err != nil {
			return err
		}
		own, told, err := b.endPeriods(tx, endings)
		if err != nil {
			return err
		}
		follow, events, err := b.followUp(tx, endings, own)
		if err != nil {
			return err
		}
		updates, err := b.writeNews(tx, endings)
		if err != nil {
			return err
		}
		if err := apply(tx, append(done, follow...)); err != nil {
			return err
		}
		return b.cfg.Hooks.Notify(tx, slices.Concat(events, updates, told)...)
	})
	if err != nil {
		return fmt.Errorf("settle %d operations: %w", len(endings), err)
	}
	landed(done)
	b.left, b.evidence = last, nil
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

// ended moves operations to their end.
func ended(endings []ending, now time.Time) (list []transition) {
	for _, e := range endings {
		list = append(list, e.op.to(settled, string(e.status), db.Micros(now), e.result, e.op.supplierID, e.op.document.Number))
	}
	return list
}

// writeEndings stores what belongs to the ends besides their stages.
func (b *batch) writeEndings(tx *db.Tx, endings []ending) error {
	var transactions, receipts, failed [][]any
	var attachments []files.Attachment
	for _, e := range endings {
		o := e.op
		success := any(nil)
		if e.status == Success {
			success = o.id
		} else {
			for _, id := range o.refersTo() {
				failed = append(failed, []any{o.scope, id, o.id})
			}
		}
		transactions = append(transactions, []any{o.scope, o.transactionID, success})
		if e.receipt.Outcome != "" {
			receipts = append(receipts, []any{o.id, encodeReceipt(e.receipt), e.receipt.Document})
		}
		attachments = append(attachments, e.attachments...)
	}
	steps := []error{
		b.writeAdopted(tx, endings),
		tx.ExecEachOne("UPDATE transactions SET open = open - 1, success_id = coalesce(success_id, $3) WHERE client_id = $1 AND transaction_id = $2", transactions),
		tx.UpdateEach("UPDATE filings SET receipt = $2, document = $3 WHERE operation_id = $1", receipts),
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
// of the same transaction, and corrections of it. Nobody is told of operations
// of our own.
func (b *batch) followUp(tx *db.Tx, endings []ending, own map[string]bool) (list []transition, events []webhook.Event, err error) {
	ends := make(map[string]ending, len(endings))
	var ids []string
	for _, e := range endings {
		ends[e.op.transactionID] = e
		ids = append(ids, e.op.transactionID)
		if !own[e.op.id] {
			events = append(events, completed(e.op.scope, e.op.transactionID, e.op.id))
		}
	}
	waiting, err := db.Collect(tx, scanOperation, "SELECT "+operationFields+" FROM operations WHERE client_id = $1 AND "+b.db.In("transaction_id", "$2")+
		" AND stage = 'waiting' ORDER BY transaction_id, attempt", b.at.Scope, db.Strings(ids))
	if err != nil {
		return nil, nil, fmt.Errorf("look for waiting attempts: %w", err)
	}
	var behind []*operation // a success
	due, next := db.Micros(tx.Now()), map[string]bool{}
	for _, o := range waiting {
		e := ends[o.transactionID]
		if e.status == Success {
			behind = append(behind, o)
			events = append(events, completed(o.scope, o.transactionID, o.id))
		} else if !next[o.transactionID] {
			next[o.transactionID] = true
			list = append(list, o.to(promoted, due))
		}
	}
	joins, err := b.join(tx, behind, ends)
	if err != nil {
		return nil, nil, err
	}
	b.cfg.Count(tx, talliedEnds(endings, behind, own))
	freed, err := b.free(tx, ids)
	if list = slices.Concat(list, joins, freed); len(list) > 0 || b.more() {
		tx.Wake(laneQueue.Table)
	}
	return list, events, err
}

// free lets corrections go on that waited for transactions: their originals, or
// other corrections of these.
func (b *batch) free(tx *db.Tx, ids []string) (list []transition, err error) {
	for _, column := range []string{"reference_id", "behind"} {
		some, err := db.Collect(tx, func(scan func(...any) error) (t transition, err error) {
			t = transition{move: unblocked, from: Blocked, values: []any{db.Micros(tx.Now())}}
			return t, scan(&t.id)
		}, "SELECT operation_id FROM operations WHERE client_id = $1 AND "+b.db.In(column, "$2")+" AND stage = 'blocked'", b.at.Scope, db.Strings(ids))
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
func (b *batch) join(tx *db.Tx, waiting []*operation, ends map[string]ending) (list []transition, err error) {
	if len(waiting) == 0 {
		return nil, nil
	}
	if err := b.loadDigests(tx, waiting); err != nil {
		return nil, err
	}
	perTransaction := map[string]int64{}
	for _, o := range waiting {
		winner := ends[o.transactionID].op
		if winner.digest == "" {
			winner.digest = digestOf(winner.kind, winner.body)
		}
		warnings := any(nil)
		if o.digest != winner.digest {
			warnings = encodeFaults([]fault.Fault{fault.Warn("", fault.PayloadDiffers,
				"the body of this attempt differs from the one that is registered under this transaction_id; the registered one stands")})
		}
		list = append(list, o.to(joined, db.Micros(tx.Now()), winner.id, warnings))
		perTransaction[o.transactionID]++
	}
	var counts [][]any
	for id, n := range perTransaction {
		counts = append(counts, []any{b.at.Scope, id, n})
	}
	return list, tx.ExecEach("UPDATE transactions SET open = open - $3 WHERE client_id = $1 AND transaction_id = $2", counts)
}

// loadDigests reads what the intake noted of bodies that waited from the
// beginning. The others are read and decoded: a few small ones, and those that a
// node of the version before took.
func (b *batch) loadDigests(tx *db.Tx, ops []*operation) error {
	byID := make(map[string]*operation, len(ops))
	for _, o := range ops {
		byID[o.id] = o
	}
	rows, err := tx.Query("SELECT operation_id, coalesce(digest, '') FROM bodies WHERE "+b.db.In("operation_id", "$1"), db.Strings(slices.Collect(maps.Keys(byID))))
	if err != nil {
		return fmt.Errorf("read digests: %w", err)
	}
	err = rows.Each(func(scan func(...any) error) error {
		var id, digest string
		err := scan(&id, &digest)
		byID[id].digest = digest
		return err
	})
	if err != nil {
		return err
	}
	for _, o := range ops {
		if o.digest != "" {
			continue
		}
		if err := tx.Row("SELECT body FROM bodies WHERE operation_id = $1", o.id).Scan(&o.body); err != nil {
			return fmt.Errorf("read the body of %s: %w", o.id, err)
		}
		o.digest = digestOf(o.kind, o.body)
		o.body = nil
	}
	return nil
}

// issue renders and stores the documents of successes and builds all results.
func (b *batch) issue(ctx context.Context, outcomes []outcome) ([]ending, error) {
	if err := b.describable(ctx, outcomes); err != nil {
		return nil, err
	}
	endings := make([]ending, len(outcomes))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	visuals, reports := make([]*files.File, len(outcomes)), make([]*files.File, len(outcomes))
	for i := range outcomes {
		endings[i].outcome = outcomes[i]
		e := &endings[i]
		b.restructure(e.op, e.status)
		if e.status == Success && e.op.structured != nil && e.op.filing.Report == nil {
			report := files.NewFile(e.op.structured.Content)
			reports[i] = &report
		}
		if e.status != Success || !b.visual(e.op) {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			defer b.db.Pace().Turn(ctx)()
			visuals[i] = b.render(ctx, e)
		})
	}
	wg.Wait()
	var keep []files.File
	for _, f := range slices.Concat(visuals, reports) {
		if f != nil {
			keep = append(keep, *f)
		}
	}
	if err := b.cfg.Documents.Keep(ctx, keep...); err != nil {
		return nil, fmt.Errorf("%w: %w", errDocuments, err)
	}
	killpoint.Reach(killpoint.Rendered)
	now := b.db.Wall()
	for i := range endings {
		e := &endings[i]
		e.attachments = b.attach(e, visuals[i], reports[i], now)
		text, err := json.Marshal(b.result(e, visuals[i] != nil, now))
		if err != nil {
			return nil, fmt.Errorf("encode the result of %s: %w", e.op.id, err)
		}
		e.result = string(text)
	}
	return endings, nil
}

// describable makes sure that every operation can be shown: its body is read, a
// credit knows what it takes back, a document names what it corrects, and
// successes learn whether their number was used before.
func (b *batch) describable(ctx context.Context, outcomes []outcome) error {
	var forgetful []*operation
	numbers := map[string]bool{}
	for _, e := range outcomes {
		o := e.op
		if err := o.decode(); err != nil {
			b.log.Error("settle an operation", "operation", o.id, "error", err)
			o.document = &transaction.Transaction{Kind: o.kind, ID: o.transactionID, CountryCode: o.code, Number: o.number, SupplierID: o.supplierID}
		}
		unshown := e.status == Success && o.original == nil && (b.visual(o) || b.pack.Structured != nil)
		if o.correction() && (unshown || o.bare()) {
			forgetful = append(forgetful, o)
		}
		if e.status == Success && o.document.Number != "" {
			numbers[o.document.Number] = true
		}
	}
	if len(forgetful) == 0 && len(numbers) == 0 {
		return nil
	}
	return b.db.ReadEach(ctx, func(r db.Reader) error { // what they correct is settled and stays as it is
		for _, o := range forgetful {
			if err := b.remember(r, o); err != nil {
				return err
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
		if outcomes[i].status != Success || o.document.Number == "" || o.filing.Unprinted {
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
	return b.cfg.Render != nil && (o.useCase != country.Reporting || o.unfiled) && o.kind != transaction.Backfill && !o.filing.Unprinted
}

// render makes the document for people. A document that cannot be made does
// not undo a registration: the result says so and a person is told.
func (b *batch) render(ctx context.Context, e *ending) *files.File {
	var made document.Rendering
	err := safely("render a document", func() (err error) {
		made, err = b.cfg.Render(ctx, b.issued(e))
		return err
	})
	if err != nil {
		b.log.Error("render a document", "operation", e.op.id, "error", err)
		_ = b.cfg.Alerts.Raise(ctx, alert.DocumentFailed, e.op.id, "the document of operation "+e.op.id+" could not be made") // it is logged in any case
		e.faults = append(e.faults, fault.Warn("", fault.InternalError, "the document for people could not be made; the registration stands"))
		return nil
	}
	if made.English {
		e.faults = append(e.faults, fault.Warn("language_code", fault.LanguageFallback, "is not available for documents; English was used"))
	}
	if len(made.Missing) > 0 {
		e.faults = append(e.faults, fault.Warn("", fault.ScriptUnavailable, "no font is installed for %s: the document has that text in Latin letters", strings.Join(made.Missing, ", ")))
	}
	file := files.NewFile(made.PDF)
	return &file
}

// attach lists the attachments of an ending.
func (b *batch) attach(e *ending, visual, report *files.File, now time.Time) []files.Attachment {
	if e.status != Success {
		return nil
	}
	var list []files.Attachment
	add := func(kind, typ, place string, f files.File) {
		list = append(list, files.Attachment{
			ClientID: e.op.scope, OperationID: e.op.id, Kind: kind, Type: typ, Place: place, SHA256: f.SHA256, Size: f.Size, CreatedAt: now,
		})
	}
	if visual != nil {
		add("VISUAL", "PDF", files.InStore, *visual)
	}
	if report != nil {
		add("REPORT", e.op.structured.Format, files.InStore, *report)
	}
	if e.op.filing.Report != nil {
		add("REPORT", e.op.filing.Format, files.InRecord, files.NewFile(e.op.filing.Report))
	}
	if e.receipt.Document != nil {
		add("RECEIPT", e.receipt.Format, files.InRecord, files.NewFile(e.receipt.Document))
	}
	return list
}
