// Package operation is one processing attempt of a transaction as it is stored:
// who it is, what its body says, where it rides, what was filed of it.
//
// It reads: the rows are the package filing's, and filing alone moves an
// operation from stage to stage.
package operation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Stage is where an operation stands. It is stored before anything is done
// that could not be done twice.
type Stage string

// The stages.
const (
	Waiting     Stage = "waiting"     // behind earlier attempts of the same transaction
	Blocked     Stage = "blocked"     // a correction behind its original
	Received    Stage = "received"    // on disk, nothing built yet
	Prepared    Stage = "prepared"    // exact bytes on disk, provably unsent
	Sent        Stage = "sent"        // may be at the authority
	Pending     Stage = "pending"     // at the authority, undecided
	Quarantined Stage = "quarantined" // crashed the process too often; a person must look
	Settled     Stage = "settled"
)

// Status is what the client sees.
type Status string

// The statuses of a result.
const (
	Processing Status = "PROCESSING"
	Success    Status = "SUCCESS"
	Failure    Status = "FAILURE"
)

// Operation is one processing attempt: what was accepted, and what its body says.
type Operation struct {
	Accepted
	Content
}

// Accepted is what the intake stored of an operation; it never changes.
type Accepted struct {
	ID            string
	Scope         string
	TransactionID string
	Attempt       int64
	Kind          transaction.Kind
	Code          string
	Live          country.Live
	UseCase       country.UseCase
	SupplierID    string
	ReferenceID   string
	Number        string // the client's, or drawn from a series
	Series        string // that it was drawn from; "" without one
	AcceptedAt    time.Time
}

// Content is what the body of an operation says.
type Content struct {
	Body     []byte
	Warnings []fault.Fault
	Customer string                   // facts of the company that the body names by id, as stored
	Digest   string                   // of what the body says; empty: taken when it is needed
	Document *transaction.Transaction // nil: not decoded yet
	Totals   transaction.Totals
}

// Fields are the columns that Targets are read from.
const Fields = `operation_id, client_id, transaction_id, attempt, kind, country, live, use_case, supplier_id,
	coalesce(reference_id, ''), number, coalesce(series, ''), accepted_at`

// Targets are where Fields are read to.
func (o *Accepted) Targets(live *bool, accepted *int64) []any {
	return []any{&o.ID, &o.Scope, &o.TransactionID, &o.Attempt, &o.Kind, &o.Code, live, &o.UseCase, &o.SupplierID,
		&o.ReferenceID, &o.Number, &o.Series, accepted}
}

// Correction reports whether the operation refers to an original.
func (o *Accepted) Correction() bool { return o.ReferenceID != "" }

// Whole reports whether the operation takes back all of an original.
func (o *Accepted) Whole() bool {
	return o.Kind == transaction.Credit || o.Kind == transaction.Cancellation
}

// Incomplete reports whether the body leaves something to what it refers to.
func (o *Accepted) Incomplete() bool {
	return (o.Whole() || o.Kind == transaction.PaymentReport) && o.Correction()
}

// UniqueNumber is the service's own number of the transaction.
func (o *Accepted) UniqueNumber() string { return UniqueNumber(o.Code, o.ID) }

// UniqueNumber is unique because the operation's id is, and readable on paper.
func UniqueNumber(code, operationID string) string {
	return code + "-" + strings.ToUpper(strings.ReplaceAll(operationID, "-", ""))
}

// IsUniqueNumber reports whether a number is one of the service's own.
func IsUniqueNumber(code, number string) bool {
	id, ours := strings.CutPrefix(number, code+"-")
	if ours {
		_, err := uuid.Parse(id)
		ours = err == nil && len(id) == len(uuid.UUID{})*2
	}
	return ours
}

// Decode reads the stored body again. An earlier version accepted it, so what
// can be read counts, whatever this version would say about it today.
func (o *Operation) Decode() error {
	if o.Document != nil {
		return nil
	}
	t, _, err := transaction.Decode(o.Kind, o.Body)
	if t == nil {
		return fmt.Errorf("read the stored body of %s: %w", o.ID, err)
	}
	if t.SupplierOwnID != "" {
		t.SupplierID = o.SupplierID
	}
	if o.Series != "" {
		t.Number = o.Number
	}
	WithCustomer(t, o.Customer)
	o.Document = t
	o.Totals, _ = transaction.Calculate(t.Items)
	return nil
}

// Bare reports whether what the body leaves to another is still missing.
func (o *Operation) Bare() bool {
	return o.Incomplete() && len(o.Document.Items) == 0 && o.Document.CurrencyCode == ""
}

// RefersTo are the transactions that the operation refers to.
func (o *Operation) RefersTo() (ids []string) {
	if o.Document != nil && len(o.Document.Shares) > 0 {
		for _, p := range o.Document.Shares {
			ids = append(ids, p.TransactionID)
		}
		return ids
	}
	if o.Correction() {
		ids = []string{o.ReferenceID}
	}
	return ids
}

// Refers says what is wrong with a transaction that the operation refers to,
// where the client named it.
func (o *Operation) Refers(id string, code fault.Code, what string) *fault.Fault {
	field := "reference_transaction_id"
	if o.Document != nil && len(o.Document.Shares) > 1 {
		i := slices.IndexFunc(o.Document.Shares, func(s transaction.Share) bool { return s.TransactionID == id })
		field = fmt.Sprintf("references.%d.transaction_id", max(i, 0))
	}
	f := fault.At(field, code, "%s", what)
	return &f
}

// Complete gives a credit, a cancellation or a payment what its body leaves to
// the original: a payment its parties and currency.
func (o *Operation) Complete(source *Operation) {
	t, from := o.Document, source.Document
	t.SupplierID = o.SupplierID
	if o.Kind != transaction.PaymentReport || t.CurrencyCode == "" {
		t.CurrencyCode = from.CurrencyCode
	}
	t.Customer, t.Issuer, t.ThirdParties = from.Customer, from.Issuer, from.ThirdParties
	t.Period, t.Delivery = from.Period, from.Delivery
	if t.LanguageCode == "" {
		t.LanguageCode = from.LanguageCode
	}
	if o.Kind == transaction.PaymentReport {
		return
	}
	t.Items, t.OrderItems = from.Items, from.OrderItems
	t.ExchangeRate, t.ExchangeRateDate = from.ExchangeRate, from.ExchangeRateDate
	t.References = from.References // the buyer finds the credit where the invoice was
	o.Totals = source.Totals
}

// IDAt is the smallest operation id that could have been made at an instant:
// an id of version 7 begins with its milliseconds.
func IDAt(at time.Time) string {
	var id uuid.UUID
	ms := max(0, at.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id.String()[:13]
}
