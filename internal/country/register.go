package country

import (
	"context"
	"errors"
	"time"

	"tributary/internal/transaction"
)

// Register is the optional ability of a [Channel] whose authority can list
// what it holds. Reconciliation compares the list with our own records; after
// an old backup was restored it says what the backup does not know.
type Register interface {
	// Registered lists everything the authority holds of a supplier whose
	// document date is the given day, in the authority's order. It reads all
	// pages; an error means that the list is not known, and never will be where
	// it wraps [ErrNoList].
	Registered(ctx context.Context, s Supplier, day Day, c Credentials) ([]Entry, error)
}

// LineReader is the optional ability of a [Register] whose list says nothing of lines: it
// reads them from the document itself, with a call for each. Only a document that an
// operation is about to adopt is read.
type LineReader interface {
	// Lines are as [Entry].Lines: nil where such a document has none to compare, empty
	// where what it has cannot be read. An error means that they are not known; one that
	// wraps [Exhausted] says from when on they may be asked for.
	Lines(ctx context.Context, s Supplier, e Entry, c Credentials) ([]int64, error)
}

// ErrNoList marks an error of [Register] after which asking again is useless:
// this supplier's way to the authority has no list.
var ErrNoList = errors.New("the authority does not list what it holds")

// ChainKeeper is the optional ability of a chained [Channel] whose authority
// can say where a supplier's chain stands.
type ChainKeeper interface {
	// Head is the last link that the authority holds of a supplier, as
	// [Filing].Link had it; begun is false while it holds none.
	Head(ctx context.Context, s Supplier, c Credentials) (head Link, begun bool, err error)
}

// Day is a calendar day in the supplier's own time zone.
type Day struct {
	Year  int
	Month time.Month
	Day   int
}

// String is the day as YYYY-MM-DD.
func (d Day) String() string {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
}

// Entry is one document that an authority holds. Beside the number every
// member is optional: what an authority says helps to recognise a document of
// which nothing else is left.
type Entry struct {
	Number       string // as [Filing].Number
	AuthorityID1 string // "" where the list has none
	AuthorityID2 string
	Cancelled    bool      // the authority holds it as cancelled
	At           time.Time // of the registration

	// Kind is "" where the list does not say. A list that says it has
	// cancellations as documents of their own; where it does not, Cancelled is
	// all that is seen of them.
	Kind      transaction.Kind
	Reference string // number of the document that it corrects
	SHA256    string // of the document
	QRCode    string // as on the document
	Gross     *int64 // as [Totals].Gross of the draft it was made from; nil where the list does not say; of a payment what was paid
	Net, Tax  *int64 // the same

	Currency string   // of the sums; "" for that of the draft
	Customer string   // tax number
	Sales    []string // numbers in the document of a period; nil where the list does not say
	Lines    []int64  // of a sale: what each line amounts to without tax, after its discount; nil where the list does not say
}
