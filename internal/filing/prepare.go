package filing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tributary/internal/adoption"
	"tributary/internal/correction"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operation"
	"tributary/internal/period"
	"tributary/internal/series"
	"tributary/internal/transaction"
)

// drafting makes the filings of a batch and stores them.
type drafting struct {
	b         *batch
	chain     country.Link // the head, once read
	chainRead bool
	head      int64           // position of the head as stored
	enlisted  map[string]bool // operations that are in a period already; nil: nobody has looked
	numbers   series.Span     // of the endpoint's sequence, drawn and not given out

	unanswered bool // what a draft depends on is not known: somebody did not answer, or our identity is not set
}

// prepare builds the filing of a received operation in memory, or finds out
// why there will be none.
func (d *drafting) prepare(ctx context.Context, o *op) error {
	b, v := d.b, d.b.v
	if err := decode(ctx, v, o); err != nil {
		v.s.log.Error("prepare", "operation", o.ID, "error", err)
		b.fail(o, internal())
		return nil
	}
	if o.Correction() {
		if goOn, err := resolveOriginal(ctx, b, o); err != nil || !goOn {
			return err
		}
	}
	if !v.lane.known && (o.Kind != transaction.Backfill || o.SupplierID != "") {
		return failUnknownSupplier(ctx, b, o)
	}
	if faults := checkCustomer(o, v.lane.pack); len(faults) > 0 {
		b.fail(o, faults...)
		return nil
	}
	if o.Kind == transaction.Backfill {
		b.settle(outcome{op: o, status: Success})
		return nil
	}
	if v.lane.channel != nil && v.lane.supplier.CountryCode != v.lane.pack.Code {
		b.fail(o, fault.At("supplier.id", fault.ValidationMatchInvalid, "belongs to a company onboarded in %s, not in %s", v.lane.supplier.CountryCode, v.lane.pack.Code))
		return nil
	}
	if !isFiled(v, o) {
		if faults := structure(ctx, v, o); len(faults) > 0 {
			b.fail(o, faults...)
			return nil
		}
		b.ready = append(b.ready, o) // documents only
		return nil
	}
	if !d.learn(ctx, o) {
		return nil
	}
	if goOn, err := d.gather(ctx, o); err != nil || !goOn {
		return err
	}
	return d.draft(ctx, o)
}

func decode(ctx context.Context, v *visit, o *op) error {
	defer v.s.turn(ctx, o)()
	return o.Decode()
}

// resolveOriginal finds the documents an operation refers to. It answers false
// when the operation does not go on now: it failed, waits, or moved to the
// lane of the original's supplier.
func resolveOriginal(ctx context.Context, b *batch, o *op) (goOn bool, err error) {
	v := b.v
	refs, verdict, err := correction.Terms{DB: v.s.db, Pack: v.lane.pack, EarlierMax: v.s.earlierMax}.Resolve(ctx, o.Operation)
	if err != nil {
		return false, err
	}
	o.refs = refs
	if verdict == (correction.Verdict{}) && v.lane.pack.Periods != nil && refs.OperationID != "" {
		if verdict, err = resolveEntry(ctx, v, o); err != nil {
			return false, err
		}
	}
	return act(ctx, b, o, verdict)
}

// resolveEntry tells a correction where its original stands in a period. While a
// document of the period is on its way, the correction waits for it.
func resolveEntry(ctx context.Context, v *visit, o *op) (verdict correction.Verdict, err error) {
	var e *period.Entry
	err = v.s.db.Read(ctx, func(r db.Reader) (err error) {
		e, err = period.EntryOf(r, o.refs.OperationID)
		return err
	})
	if o.gather.Entry = e; err != nil || e == nil {
		return verdict, err
	}
	if e.Left {
		verdict.Refused = o.Refers(o.ReferenceID, fault.ReferenceAlreadyCorrected, "was taken out of its period by "+e.LeftBy+": correct that one")
		return verdict, nil
	}
	if verdict.Behind = e.Behind; e.Behind == "" {
		e.Tell(o.refs.Original)
	}
	return verdict, nil
}

// act does what a verdict says; true: the operation goes on.
func act(ctx context.Context, b *batch, o *op, verdict correction.Verdict) (goOn bool, err error) {
	switch {
	case verdict.Refused != nil:
		b.fail(o, *verdict.Refused)
	case verdict.Move != "":
		return false, move(ctx, b, o, verdict.Move)
	case verdict.Again:
		b.moved = append(b.moved, o) // it stays due
	case verdict.Behind != "":
		return false, block(ctx, b, o, verdict.Behind)
	default:
		return true, nil
	}
	return false, nil
}

// block lets a correction wait until its original is settled, or another
// correction of it. Its 48 hours begin anew when it goes on.
//
// Failure policy: what it waits for may settle between our look and this write;
// so the write looks again, under the lock of that transaction's row, and
// otherwise leaves the operation due. Corrections that wait for each other would
// wait for ever: blocks of one client are made one by one, and the one that
// would close a circle fails.
func block(ctx context.Context, b *batch, o *op, waitsFor string) error {
	circle, behind := false, waitsFor
	if behind == o.ReferenceID {
		behind = ""
	}
	err := b.v.commit(ctx, func(time.Time) []transition {
		if circle {
			return nil
		}
		return []transition{o.to(blocked, db.Null(behind))}
	}, func(tx *db.Tx) (err error) {
		if err := tx.Lock("blocks|" + o.Scope); err != nil {
			return err
		}
		if circle, err = closesCircle(tx, o, waitsFor); err != nil || circle {
			return err
		}
		return tx.Exec("UPDATE transactions SET open = open WHERE client_id = $1 AND transaction_id = $2", o.Scope, waitsFor)
	})
	switch {
	case err != nil:
		return fmt.Errorf("wait for the original: %w", err)
	case circle:
		b.fail(o, *o.Refers(waitsFor, fault.ReferenceNotSuccessful, "waits for this transaction itself"))
	default:
		// Not uncounted: where the original has just settled, the count is still raised.
		b.moved = append(b.moved, o)
	}
	return nil
}

// closesCircle follows what an operation would wait for, and what that waits for itself.
func closesCircle(tx *db.Tx, o *op, waitsFor string) (bool, error) {
	seen := map[string]bool{}
	for id := waitsFor; !seen[id]; {
		seen[id] = true
		var next string
		err := tx.Row("SELECT coalesce(behind, reference_id) FROM operations WHERE client_id = $1 AND transaction_id = $2 AND stage = 'blocked' LIMIT 1", o.Scope, id).Scan(&next)
		if errors.Is(err, db.ErrNoRows) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("follow references: %w", err)
		}
		if next == o.TransactionID {
			return true, nil
		}
		id = next
	}
	return false, nil
}

// move sends a correction that names no supplier to the lane of the original's.
func move(ctx context.Context, b *batch, o *op, supplierID string) error {
	b.moved = append(b.moved, o)
	to, v := o.Place(), b.v
	to.SupplierID = supplierID
	lane := to.Lane(operation.Shard(o.ID, o.Document, v.lane.pack, operation.Shards(v.s.cfg.Atlas, v.lane.pack, o.Live)))
	return v.commit(ctx, func(time.Time) []transition { return []transition{o.to(moved, lane, supplierID)} }, func(tx *db.Tx) error {
		tx.Wake(laneQueue.Table)
		return nil
	})
}

// failUnknownSupplier asks again where writes go before an operation ends for what
// a read did not find: a read may come from a server that no longer leads.
func failUnknownSupplier(ctx context.Context, b *batch, o *op) error {
	known := false
	err := b.v.s.db.Write(ctx, func(tx *db.Tx) error {
		supplier, err := b.v.s.cfg.Companies.Supplier(tx, o.Scope, o.SupplierID)
		known = err == nil && !supplier.Closed
		if fault.KindOf(err) == fault.NotFound {
			return nil
		}
		return err
	})
	if err == nil && known {
		err = fmt.Errorf("the company %s %w for this connection", o.SupplierID, correction.ErrMissing)
	}
	if err == nil {
		b.fail(o, fault.Fault{Code: fault.SupplierUnknown, Type: fault.Validation, Field: "supplier.id",
			Message: "supplier.id is not the id of an onboarded company"})
	}
	return err
}

// checkCustomer makes the checks that the intake could not: on the facts of a
// customer that is named by id.
func checkCustomer(o *op, pack country.Pack) (wrong []fault.Fault) {
	customer := o.Document.Customer
	if customer == nil || customer.ID == "" || o.Whole() {
		return nil // the original's was met
	}
	if customer.LegalName == "" {
		return []fault.Fault{fault.At("customer.id", fault.FieldNotValid, "is not the id of a company that is onboarded and open")}
	}
	for _, f := range pack.Check(country.Case{Transaction: o.Document, Totals: o.Totals, UseCase: o.UseCase, Now: o.AcceptedAt}) {
		if f.Type != fault.Warning {
			wrong = append(wrong, f)
		} else if !slices.ContainsFunc(o.Warnings, func(known fault.Fault) bool { return known.Code == f.Code && known.Field == f.Field }) {
			o.Warnings = append(o.Warnings, f)
		}
	}
	return wrong
}

// isFiled reports whether the operation goes to an authority.
func isFiled(v *visit, o *op) bool {
	if v.lane.channel == nil || o.Kind == transaction.Response {
		return v.lane.channel != nil
	}
	originals := []*country.Original{o.refs.Original}
	for i := range o.refs.Shares {
		originals = append(originals, &o.refs.Shares[i].Original)
	}
	o.unfiled = !v.lane.pack.Filed(o.UseCase, &v.lane.supplier, o.Document, originals...)
	return !o.unfiled
}

// learn asks whoever knows what the draft depends on. False: nobody answers; the
// operation stays due, and the lane rests.
func (d *drafting) learn(ctx context.Context, o *op) bool {
	v := d.b.v
	learner, ok := v.lane.channel.(country.Learner)
	if !ok || o.Kind == transaction.Period || o.Kind == transaction.Response || v.held != nil || v.health.paused {
		return true
	}
	if d.unanswered {
		return false
	}
	var said country.Learned
	err := country.Safely("learn what a draft depends on", func() (err error) {
		call, cancel := context.WithTimeout(ctx, learnFor)
		defer cancel()
		said, err = learner.Learn(call, draftOf(v, o), v.lane.creds)
		return err
	})
	switch {
	case err == nil:
		o.learns, o.Warnings = said.Text, append(o.Warnings, said.Warnings...)
		return true
	case errors.Is(err, country.ErrCredentials):
		v.pause(err)
	case v.exhausted(err) != nil: // the lane rests until more is granted
	default:
		v.failed(err)
	}
	d.unanswered = true
	return false
}

// learnFor bounds one question that a draft depends on.
const learnFor = 30 * time.Second

// gather decides whether an operation is filed by itself, and loads what is in a
// period's document. False: nothing is drafted.
func (d *drafting) gather(ctx context.Context, o *op) (goOn bool, err error) {
	b, v := d.b, d.b.v
	if v.lane.pack.Periods == nil || o.Kind == transaction.Response {
		return true, nil
	}
	if o.Kind == transaction.Period {
		return assemble(ctx, b, o)
	}
	if err := d.learnEnlisted(ctx); err != nil {
		return false, err
	}
	if d.enlisted[o.ID] {
		o.gather.Waits = true
		b.ready = append(b.ready, o)
		return false, nil
	}
	var made *country.Gathered
	err = country.Safely("gather a sale", func() (err error) {
		defer v.s.turn(ctx, o)()
		made, err = v.lane.pack.Periods.Gather(draftOf(v, o))
		return err
	})
	var wrong *fault.Error
	switch {
	case errors.As(err, &wrong) && wrong.Kind == fault.Invalid && len(wrong.Faults) > 0:
		b.fail(o, wrong.Faults...)
		return false, nil
	case err != nil:
		v.s.log.Error("gather a sale", "operation", o.ID, "error", err)
		b.retry = append(b.retry, o)
		return false, nil
	}
	o.gather.Gathered = made
	if made == nil || made.Filed {
		return true, nil
	}
	o.gather.Waits = true
	b.ready = append(b.ready, o)
	return false, nil
}

// learnEnlisted asks which of the batch are in a period already, once.
func (d *drafting) learnEnlisted(ctx context.Context) error {
	if d.enlisted != nil {
		return nil
	}
	return d.b.v.s.db.ReadEach(ctx, func(r db.Reader) (err error) {
		d.enlisted, err = period.Enlisted(r, d.b.v.s.db, idsOf(d.b.ops))
		return err
	})
}

// assemble loads what is in a period's document.
func assemble(ctx context.Context, b *batch, o *op) (goOn bool, err error) {
	err = b.v.s.db.Read(ctx, func(r db.Reader) (err error) {
		o.gather.Period, o.Totals, err = period.Assemble(r, b.v.lane.pack.Periods, o.ID, o.Document.Number)
		return err
	})
	if err != nil {
		return false, err
	}
	if o.gather.Period.Count == 0 {
		b.fail(o, fault.Fault{Code: fault.UnsupportedOperation, Type: fault.General, Message: "every sale has left the period before its document was made"})
		return false, nil
	}
	return true, nil
}

// draft asks the pack for the exact bytes.
func (d *drafting) draft(ctx context.Context, o *op) error {
	b, v := d.b, d.b.v
	if v.held != nil {
		return nil // the chain was stopped a moment ago
	}
	if v.health.paused || d.unanswered {
		return nil // the credentials were refused a moment ago, or are not there: it stays due, and the lane rests
	}
	// By the client's own number first: what is registered needs no draft, which
	// a law might refuse by now.
	if decided, err := fillGap(ctx, b, o, adoption.Names{Number: o.Document.Number}); decided || err != nil {
		return err
	}
	if v.lane.chained() {
		if err := d.readChain(ctx); err != nil {
			return err
		}
	}
	refused, err := operation.Refused(ctx, v.s.db, &o.Accepted)
	if err != nil {
		return err
	}
	sequence, ready, err := d.sequence(ctx)
	if err != nil || !ready {
		return err
	}
	var filing country.Filing
	err = country.Safely("prepare a filing", func() (err error) {
		defer v.s.turn(ctx, o)()
		draft := draftOf(v, o)
		draft.Previous, draft.Refused, draft.Sequence = d.chain, refused, sequence
		filing, err = v.lane.channel.Prepare(draft)
		return err
	})
	var wrong *fault.Error
	switch {
	case err == nil:
		return d.drafted(ctx, o, filing)
	case errors.Is(err, country.ErrCredentials):
		v.pause(err)
	case errors.Is(err, country.ErrNoIdentity): // only the operator can help
		v.failed(err)
		d.unanswered = true
	case errors.As(err, &wrong) && wrong.Kind == fault.Invalid:
		faults := wrong.Faults
		if len(faults) == 0 {
			faults = []fault.Fault{{Code: fault.FieldNotValid, Type: fault.Validation, Message: wrong.Message}}
		}
		b.fail(o, faults...)
	default:
		v.s.log.Error("prepare a filing", "operation", o.ID, "error", err)
		b.retry = append(b.retry, o)
	}
	return nil
}

// drafted takes the bytes that a pack made.
func (d *drafting) drafted(ctx context.Context, o *op, filing country.Filing) error {
	b, v := d.b, d.b.v
	if decided, err := fillGap(ctx, b, o, adoption.Names{Number: filing.Number, SHA256: filing.SHA256}); decided || err != nil {
		return err
	}
	if renamed(d.chain, filing.Link) {
		return stopRenamed(ctx, v, d.chain.Name, filing.Link.Name)
	}
	filing.OperationID, filing.Leaves = o.ID, o.gather.Gathered != nil && o.gather.Gathered.Filed
	filing.PreparedAt = v.s.db.Wall()
	o.filing = filing
	if v.lane.chained() {
		d.chain = filing.Link
	}
	b.ready = append(b.ready, o)
	return nil
}

// draftOf is what the pack is told of an operation.
func draftOf(v *visit, o *op) country.Draft {
	return country.Draft{
		OperationID: o.ID, UniqueNumber: o.UniqueNumber(), Transaction: *o.Document, Totals: o.Totals,
		Supplier: v.lane.supplier, Original: o.refs.Original, Shares: o.refs.Shares, Period: o.gather.Period, Location: v.lane.location, Now: v.s.db.Wall(),
		Live: o.Live, Learned: o.learns, Late: v.lease.Row.failures > 0, Credentials: v.lane.creds,
	}
}

// sequence is the number of the next draft; 0 where the country has none. Not
// ready: too many were drawn, and the lane rests until there is room.
func (d *drafting) sequence(ctx context.Context) (number int64, ready bool, err error) {
	v := d.b.v
	if !v.lane.pack.Sequence {
		return 0, true, nil
	}
	if d.numbers.Empty() {
		want, wait := int64(0), time.Duration(0)
		for _, o := range d.b.ops {
			if o.stage == Received && o.filing.Report == nil {
				want++
			}
		}
		err := v.s.db.Write(ctx, func(tx *db.Tx) (err error) {
			if err := v.lease.Guard(tx); err != nil {
				return err
			}
			d.numbers, wait, err = series.Sequence(tx, v.lane.at.Environment(), v.s.db.Wall(), max(want, 1))
			return err
		})
		if err != nil {
			return 0, false, fmt.Errorf("draw %d numbers: %w", want, err)
		}
		if d.numbers.Empty() {
			v.restUntil(v.now().Add(wait))
			return 0, false, nil
		}
	}
	d.numbers.Next++
	return d.numbers.Next - 1, true, nil
}
