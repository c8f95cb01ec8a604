// Package correction knows what operations refer to: a correction its originals,
// a payment what it was for. It says whether they may be referred to, hands over
// what a pack must know of them, and keeps account of what corrections took.
//
// It owns the table corrections. What becomes of an operation whose originals
// forbid it, or have not ended, the package filing decides: a [Verdict] says why.
package correction

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operation"
	"tributary/internal/result"
	"tributary/internal/transaction"
)

// References is what an operation refers to, as a pack is told of it.
type References struct {
	Original    *country.Original
	OperationID string          // of Original, where there is one alone
	Shares      []country.Share // what a payment report is for, or the originals of an adjustment of several
	Earlier     []string        // the operations of Original.Corrections
}

// Verdict is what the originals of an operation say about it; zero: it may go on.
type Verdict struct {
	Refused *fault.Fault // it ends
	Behind  string       // it waits for this transaction
	Move    string       // it belongs to the lane of this supplier
	Again   bool         // another one ended since it was prepared, which it does not know
}

// Terms are what decides about corrections beside what is stored of them.
type Terms struct {
	DB         *db.DB
	Pack       country.Pack
	EarlierMax int64 // bytes of the earlier corrections that one more is handed; 0: the default
}

// Resolve finds the documents an operation refers to, and completes it from
// them: supplier, and for credits and cancellations parties, items and currency.
func (t Terms) Resolve(ctx context.Context, o *operation.Operation) (References, Verdict, error) {
	if o.Kind == transaction.PaymentReport {
		return t.resolvePaid(ctx, o)
	}
	if len(o.Document.Shares) > 1 {
		return t.resolveOriginals(ctx, o)
	}
	ref, v, err := t.correctable(ctx, o, o.ReferenceID)
	if err != nil || v != (Verdict{}) {
		return References{}, v, err
	}
	if v := inherit(o, ref.op); v != (Verdict{}) {
		return References{}, v, nil
	}
	refs := References{Original: ref.original(), OperationID: ref.op.ID}
	refs.Original.Corrections, refs.Earlier, v, err = t.earlier(ctx, o, o.ReferenceID)
	return refs, v, err
}

// inherit completes a correction from its original.
func inherit(o, original *operation.Operation) Verdict {
	itemless := original.Kind == transaction.PaymentReport || original.Kind == transaction.Period
	if o.Whole() && !itemless && (original.SupplierID == "" || len(original.Document.Items) == 0) {
		return Verdict{Refused: o.Refers(o.ReferenceID, fault.UnsupportedOperation,
			"was backfilled without supplier or items, so it can only be adjusted")}
	}
	if o.SupplierID == "" {
		return Verdict{Move: original.SupplierID}
	}
	if original.SupplierID != "" && original.SupplierID != o.SupplierID {
		return refused(fault.At("supplier.id", fault.ValidationMatchInvalid, "is not the supplier of the original"))
	}
	if o.Whole() {
		o.Complete(original)
	}
	number(o)
	return Verdict{}
}

func refused(f fault.Fault) Verdict { return Verdict{Refused: &f} }

// number gives a document that came without one the service's own.
func number(o *operation.Operation) {
	if o.Document.Number == "" {
		o.Document.Number = o.UniqueNumber()
	}
}

// correctable finds a transaction that an operation may correct.
func (t Terms) correctable(ctx context.Context, o *operation.Operation, id string) (ref reference, v Verdict, err error) {
	ref, v, err = t.referred(ctx, o, id)
	if err != nil || v != (Verdict{}) {
		return ref, v, err
	}
	if v.Refused = otherCurrency(o, ref.op); v.Refused == nil {
		v.Refused = t.deadline(o, ref.op)
	}
	return ref, v, nil
}

// referred finds a transaction that an operation refers to and that may be referred to.
func (t Terms) referred(ctx context.Context, o *operation.Operation, id string) (ref reference, v Verdict, err error) {
	if err := t.DB.Read(ctx, func(r db.Reader) (err error) {
		ref, err = find(r, o.Scope, id)
		return err
	}); err != nil {
		return ref, v, err
	}
	switch {
	case !ref.known:
		v.Refused = o.Refers(id, fault.ReferenceUnknown, "is not known")
		return ref, v, t.confirmUnknown(ctx, o.Scope, id)
	case ref.gone:
		v.Refused = o.Refers(id, fault.ReferenceUnknown, "is no longer kept: the years of its record are over")
	case ref.op == nil && ref.open > 0:
		v.Behind = id
	case ref.op == nil:
		v.Refused = o.Refers(id, fault.ReferenceNotSuccessful, "did not succeed")
	case ref.op.Kind == transaction.Cancellation:
		v.Refused = o.Refers(id, fault.UnsupportedOperation, "is a cancellation, which nothing corrects")
	case ref.op.Kind == transaction.Response:
		v.Refused = o.Refers(id, fault.UnsupportedOperation, "is an answer to a document of somebody else, which nothing corrects")
	case ref.op.Kind == transaction.PaymentReport && o.Kind != transaction.Cancellation:
		v.Refused = o.Refers(id, fault.UnsupportedOperation, "is a payment, which can be cancelled and not corrected")
	case ref.op.Code != o.Code:
		v = refused(fault.At("country_code", fault.ValidationMatchInvalid, "differs from the original's, %s", ref.op.Code))
	}
	return ref, v, nil
}

// ErrMissing marks what must be stored and is not: trouble of the storage,
// never a reason to end an operation.
var ErrMissing = errors.New("is missing in the database")

// confirmUnknown asks again where writes go before a correction of nothing ends:
// a read may come from a server that no longer leads.
func (t Terms) confirmUnknown(ctx context.Context, scope, id string) error {
	var ref reference
	err := t.DB.Write(ctx, func(tx *db.Tx) (err error) {
		ref, err = find(tx, scope, id)
		return err
	})
	if err == nil && ref.known {
		err = fmt.Errorf("transaction %s %w for this connection", id, ErrMissing)
	}
	return err
}

// otherCurrency refuses amounts that cannot be added up with the original's. A
// backfill may have none.
func otherCurrency(o, original *operation.Operation) *fault.Fault {
	if o.Whole() || original.Document == nil || original.Document.CurrencyCode == "" ||
		strings.EqualFold(o.Document.CurrencyCode, original.Document.CurrencyCode) {
		return nil
	}
	f := fault.At("currency_code", fault.ValidationMatchInvalid, "differs from the original's, %s",
		original.Document.CurrencyCode)
	return &f
}

// deadline refuses corrections after the country's last day for them.
func (t Terms) deadline(o, original *operation.Operation) *fault.Fault {
	c, ok := t.Pack.Facts.Correction(o.Kind)
	if !ok || c.Days == 0 || original.Document == nil {
		return nil
	}
	last := original.Document.Date.AddDate(0, 0, c.Days)
	if !t.DB.Wall().After(last) {
		return nil
	}
	return o.Refers(original.TransactionID, fault.UnsupportedOperation,
		fmt.Sprintf("could be corrected in this way only until %s", last.Format("2006-01-02")))
}

// reference is what is stored of an original.
type reference struct {
	known  bool
	gone   bool // it succeeded, and its record was destroyed after its years
	open   int64
	op     *operation.Operation // the successful one, nil if there is none
	filing country.Filing
	result *result.Result
}

// original is what a pack learns of a transaction that others refer to.
func (ref reference) original() *country.Original {
	original := &country.Original{
		Transaction: *ref.op.Document, Totals: ref.op.Totals, UniqueNumber: ref.op.UniqueNumber(),
		Report: ref.filing.Report, Backfilled: ref.op.Kind == transaction.Backfill,
	}
	if ref.result != nil {
		original.AuthorityID1, original.AuthorityID2 = result.Text(ref.result.AuthorityID1), result.Text(ref.result.AuthorityID2)
	}
	return original
}

// find reads what is known of a transaction that others refer to.
func find(r db.Reader, scope, transactionID string) (ref reference, err error) {
	var successID *string
	err = r.Row("SELECT open, success_id FROM transactions WHERE client_id = $1 AND transaction_id = $2", scope,
		transactionID).Scan(&ref.open, &successID)
	if errors.Is(err, db.ErrNoRows) {
		return ref, nil
	}
	ref.known = true
	if err != nil || successID == nil {
		return ref, err
	}
	if ref.gone, err = result.Retired(r, *successID); err != nil || ref.gone {
		return ref, err
	}
	if ref.op, err = Read(r, scope, *successID); err != nil {
		return ref, err
	}
	var report []byte
	var filing string
	switch err := r.Row("SELECT report, filing FROM filings WHERE operation_id = $1", *successID).Scan(&report, &filing); {
	case err == nil:
		if ref.filing, err = operation.ReadFiling(filing, report); err != nil {
			return ref, err
		}
	case !errors.Is(err, db.ErrNoRows):
		return ref, err
	}
	ref.result, err = result.Stored(r, *successID)
	return ref, err
}

// Read reads one operation with its body; a credit or cancellation is completed
// from its own original, so that it can be corrected or shown again.
func Read(r db.Reader, scope, id string) (*operation.Operation, error) {
	o, err := operation.Scan(r.Row("SELECT "+operation.Fields+" FROM operations WHERE operation_id = $1 AND client_id = $2", id, scope).Scan)
	if err != nil {
		return nil, err
	}
	var warnings *string
	if err := r.Row("SELECT body, warnings, coalesce(customer, '') FROM bodies WHERE operation_id = $1", id).Scan(&o.Body,
		&warnings, &o.Customer); err != nil {
		return nil, fmt.Errorf("read the body of %s: %w", id, err)
	}
	o.Warnings = operation.ReadFaults(warnings)
	if err := o.Decode(); err != nil {
		return nil, err
	}
	if o.Incomplete() {
		ref, err := find(r, scope, o.ReferenceID)
		if err != nil || ref.op == nil {
			return o, err
		}
		o.Complete(ref.op)
	}
	return o, nil
}

// Remember finds again what a correction refers to, for its document: whoever
// settles it need not be the one that prepared it.
func Remember(r db.Reader, o *operation.Operation) (refs References, err error) {
	for i, id := range o.RefersTo() {
		ref, err := find(r, o.Scope, id)
		if err != nil {
			return refs, err
		}
		if ref.op == nil {
			return refs, nil // its record is gone: the document does without
		}
		original := ref.original()
		if i == 0 {
			refs.Original = original
			if o.Bare() {
				o.Complete(ref.op)
			}
		}
		if len(o.Document.Shares) > i {
			refs.Shares = append(refs.Shares, country.Share{Original: *original, Amount: o.Document.Shares[i].Amount})
		}
	}
	return refs, nil
}
