package filing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// prepare builds the filing of a received operation in memory, or finds out
// why there will be none.
func (b *batch) prepare(ctx context.Context, o *operation) error {
	if err := o.decode(); err != nil {
		b.log.Error("prepare", "operation", o.id, "error", err)
		b.fail(o, internal())
		return nil
	}
	if o.correction() {
		if goOn, err := b.meetOriginal(ctx, o); err != nil || !goOn {
			return err
		}
	}
	if b.unknownSupplier(o) {
		known, err := b.confirmSupplier(ctx, o)
		if err != nil {
			return err
		}
		if known {
			return fmt.Errorf("the company %s %w for this connection", o.supplierID, errMissing)
		}
		b.fail(o, fault.Fault{Code: fault.SupplierUnknown, Type: fault.Validation, Field: "supplier.id",
			Message: "supplier.id is not the id of an onboarded company"})
		return nil
	}
	if !b.meetCustomer(o) {
		return nil
	}
	if o.kind == transaction.Backfill {
		b.settle(outcome{op: o, status: Success})
		return nil
	}
	if b.channel != nil && b.supplier.CountryCode != b.pack.Code {
		b.fail(o, fault.At("supplier.id", fault.ValidationMatchInvalid, "belongs to a company onboarded in %s, not in %s", b.supplier.CountryCode, b.pack.Code))
		return nil
	}
	if !b.files(o) {
		if faults := b.structure(o); len(faults) > 0 {
			b.fail(o, faults...)
			return nil
		}
		b.ready = append(b.ready, o) // documents only
		return nil
	}
	if goOn, err := b.gather(ctx, o); err != nil || !goOn {
		return err
	}
	return b.draft(ctx, o)
}

// structure makes the invoice as data of an operation that is not filed. A
// document that its own law refuses ends the attempt; a defect of ours does not
// undo a sale: the result says so, and a person looks at it.
func (b *batch) structure(o *operation) []fault.Fault {
	if b.pack.Structured == nil {
		return nil
	}
	in := b.issued(&ending{outcome: outcome{op: o}})
	err := safely("make a structured invoice", func() (err error) {
		o.structured, err = b.pack.Structured(in.Country(o.document.LanguageCode))
		return err
	})
	var wrong *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Kind == fault.Invalid && len(wrong.Faults) > 0:
		return wrong.Faults
	}
	b.log.Error("make a structured invoice", "operation", o.id, "error", err)
	o.warnings = append(o.warnings, fault.Warn("", fault.InternalError, "the structured invoice could not be made; the document for people stands"))
	return nil
}

// restructure learns of a filing that is the invoice as data what paper shows of
// it: the filing may be older than this visit, and than this program.
func (b *batch) restructure(o *operation, end Status) {
	if end == Success && o.structured == nil && o.filing.Report != nil && b.pack.Structured != nil {
		b.structure(o)
	}
}

func (b *batch) unknownSupplier(o *operation) bool {
	return !b.known && (o.kind != transaction.Backfill || o.supplierID != "")
}

// confirmSupplier asks again where writes go before an operation ends for what
// a read did not find: a read may come from a server that no longer leads.
func (b *batch) confirmSupplier(ctx context.Context, o *operation) (known bool, err error) {
	err = b.db.Write(ctx, func(tx *db.Tx) error {
		supplier, err := b.cfg.Companies.Supplier(tx, o.scope, o.supplierID)
		known = err == nil && !supplier.Closed
		if fault.KindOf(err) == fault.NotFound {
			return nil
		}
		return err
	})
	return known, err
}

// files reports whether the operation goes to an authority.
func (b *batch) files(o *operation) bool {
	if b.channel == nil {
		return false
	}
	originals := []*country.Original{o.original}
	for i := range o.shares {
		originals = append(originals, &o.shares[i].Original)
	}
	o.unfiled = !b.pack.Filed(o.useCase, &b.supplier, o.document, originals...)
	return !o.unfiled
}

// draft asks the pack for the exact bytes.
func (b *batch) draft(ctx context.Context, o *operation) error {
	if b.held != nil {
		return nil // the chain was stopped a moment ago
	}
	if b.paused {
		return nil // the credentials were refused a moment ago: it stays due, and the lane rests
	}
	// By the client's own number first: what is registered needs no draft, which
	// a law might refuse by now.
	if decided, err := b.fillGap(ctx, o, o.document.Number); decided || err != nil {
		return err
	}
	if b.chained {
		if err := b.readChain(ctx); err != nil {
			return err
		}
	}
	refused, err := b.refusedBefore(ctx, o)
	if err != nil {
		return err
	}
	sequence, ready, err := b.sequence(ctx)
	if err != nil || !ready {
		return err
	}
	var filing country.Filing
	err = safely("prepare a filing", func() (err error) {
		draft := b.draftOf(o)
		draft.Previous, draft.Refused, draft.Sequence = b.chain, refused, sequence
		filing, err = b.channel.Prepare(draft)
		return err
	})
	var wrong *fault.Error
	switch {
	case err == nil:
		if decided, err := b.fillGap(ctx, o, filing.Number); decided || err != nil {
			return err
		}
		if renamed(b.chain, filing.Link) {
			return b.stopRenamed(ctx, filing.Link.Name)
		}
		filing.OperationID, filing.Leaves = o.id, o.gathered != nil && o.gathered.Filed
		filing.PreparedAt = b.db.Wall()
		o.filing = filing
		if b.chained {
			b.chain = filing.Link
		}
		b.ready = append(b.ready, o)
	case errors.Is(err, country.ErrCredentials):
		b.pause(err)
	case errors.As(err, &wrong) && wrong.Kind == fault.Invalid:
		faults := wrong.Faults
		if len(faults) == 0 {
			faults = []fault.Fault{{Code: fault.FieldNotValid, Type: fault.Validation, Message: wrong.Message}}
		}
		b.fail(o, faults...)
	default:
		b.log.Error("prepare a filing", "operation", o.id, "error", err)
		b.retry = append(b.retry, o)
	}
	return nil
}

// draftOf is what the pack is told of an operation.
func (b *batch) draftOf(o *operation) country.Draft {
	return country.Draft{
		OperationID: o.id, UniqueNumber: uniqueNumber(o.code, o.id), Transaction: *o.document, Totals: o.totals,
		Supplier: b.supplier, Original: o.original, Shares: o.shares, Period: o.period, Location: b.location, Now: b.db.Wall(),
		Live: o.live, Late: b.lease.Row.failures > 0, Credentials: b.creds,
	}
}

// refusedBefore are the filings of earlier attempts that the authority refused:
// some must be told that this is the mended one.
func (b *batch) refusedBefore(ctx context.Context, o *operation) (refused []country.Filing, err error) {
	if o.attempt <= 1 {
		return nil, nil
	}
	type attempt struct{ filing, receipt string }
	err = b.db.Read(ctx, func(r db.Reader) error {
		attempts, err := db.Collect(r, func(scan func(...any) error) (a attempt, err error) { return a, scan(&a.filing, &a.receipt) },
			`SELECT f.filing, f.receipt FROM operations o JOIN filings f ON f.operation_id = o.operation_id
				WHERE o.client_id = $1 AND o.transaction_id = $2 AND o.attempt < $3 AND o.status = 'FAILURE' AND f.receipt IS NOT NULL ORDER BY o.attempt`,
			o.scope, o.transactionID, o.attempt)
		if err != nil {
			return err
		}
		for _, a := range attempts {
			var before country.Receipt
			if err := json.Unmarshal([]byte(a.receipt), &before); err != nil {
				return err
			}
			if before.Outcome != country.Rejected {
				continue
			}
			f, err := ReadFiling(a.filing, nil)
			if err != nil {
				return err
			}
			refused = append(refused, f)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for refusals of %s: %w", o.id, err)
	}
	return refused, nil
}

func internal() fault.Fault {
	return fault.Fault{Code: fault.InternalError, Type: fault.General, Message: "the transaction could not be processed; nothing was registered"}
}

// storeRetries puts off operations that could not be prepared. Each counts
// twice, because it is known to be the cause: a body that makes the pack panic
// ends in quarantine after the third time. Those held
// back for their supplier's credentials stay due; their lane rests.
func (b *batch) storeRetries(ctx context.Context) error {
	if len(b.retry) == 0 {
		return nil
	}
	err := b.commit(ctx, func(now time.Time) (list []transition) {
		for _, o := range b.retry {
			list = append(list, o.to(putOff, db.Micros(now.Add(b.Backoff((o.crashes+1)/2)))))
		}
		return list
	})
	if err != nil {
		return fmt.Errorf("put off operations: %w", err)
	}
	return nil
}
