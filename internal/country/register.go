package country

import (
	"context"
	"time"
)

// Register is the optional ability of a [Channel] whose authority can list
// what it holds. Reconciliation compares the list with our own records.
type Register interface {
	// Registered lists everything the authority holds of a supplier whose
	// document date is the given day, in the authority's order. It reads all
	// pages; an error means that the list is not known.
	Registered(ctx context.Context, s Supplier, day Day, c Credentials) ([]Entry, error)
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

// Entry is one document that an authority holds.
type Entry struct {
	Number       string // as [Filing].Number
	AuthorityID1 string // "" where the list has none
	AuthorityID2 string
	Cancelled    bool // the authority holds it as cancelled
	At           time.Time
}
