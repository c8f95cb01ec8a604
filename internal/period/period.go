// Package period gathers sales whose authority is told of them by period, in one
// document for many.
//
// It owns periods, period_entries, period_changes and period_documents. The
// documents and their withdrawals are operations like any other: this package
// says which are due ([Periods.Next]), and filing stores and files them.
//
// Where the law lets sales be gathered by period ([country.Periods]) a sale ends
// in SUCCESS once its own document is made and it is enlisted: a row in
// period_entries. When the period has ended its document is made, see
// close.go; what becomes of it is told to the sales, see end.go.
//
// Failure policy: an entry is stored before the sale ends, and decides from then
// on: whatever is done again after a crash finds it. While no document has it,
// corrections change it; from the commit on that gives it to a document it stays
// as it is, and corrections wait for that document or refer to it.
package period

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/lifecycle"
	"tributary/internal/operation"
)

// Periods keeps the periods of all suppliers.
type Periods struct {
	DB     *db.DB
	Atlas  *country.Atlas
	Cycle  *lifecycle.Cycle
	Alerts *alert.Alerts
	AtOnce int // sales that are told in one commit
}

// Gathering is an operation's part in a period.
type Gathering struct {
	Entry    *Entry            // of the original, where that was gathered
	Gathered *country.Gathered // it is gathered by period, or changes what is
	Waits    bool              // nothing is filed for it by itself
	Period   *country.Period   // what is in the document of a period
}

// Entry is a sale in its period, as those who correct it see it.
type Entry struct {
	saleID     string
	periodID   string
	data       []byte
	changes    int64
	documentID string // "": no document has it
	state      string // of that document
	Behind     string // transaction that must end first: the document's, or that of its withdrawal
	Left       bool
	LeftBy     string // the transaction that took it out
	ids        [2]string
	number     string // of the document
	noted      bool
	replaces   bool // its period's documents take each other's place
}

// States of the service's own operations for periods.
const (
	docOpen      = "open"
	docAccepted  = "accepted"
	docFailed    = "failed"
	docWithdrawn = "withdrawn"
	docReplaced  = "replaced"
)

// EntryOf finds the entry of a sale; nil: it has none.
func EntryOf(r db.Reader, saleID string) (*Entry, error) {
	e := &Entry{saleID: saleID}
	var left *int64
	err := r.Row(`SELECT e.period_id, e.data, e.changes, e.left_at, coalesce(e.left_by, ''), coalesce(e.document_id, ''), coalesce(d.state, ''), coalesce(d.authority_id_1, ''), coalesce(d.authority_id_2, ''), coalesce(d.number, ''),
			coalesce((SELECT w.transaction_id FROM period_documents w WHERE w.withdraws = d.operation_id AND w.state = 'open' LIMIT 1), CASE WHEN d.state = 'open' THEN d.transaction_id END,
				CASE WHEN p.replaces THEN (SELECT w.transaction_id FROM period_documents w WHERE w.period_id = p.period_id AND w.state = 'open' LIMIT 1) END, ''), p.replaces,
			EXISTS (SELECT 1 FROM period_entries x JOIN operations s ON s.operation_id = x.operation_id
				JOIN corrections c ON c.client_id = s.client_id AND c.original_id = s.transaction_id JOIN operations o ON o.operation_id = c.operation_id
				JOIN filings f ON f.operation_id = o.operation_id
				WHERE x.document_id = d.operation_id AND x.left_at IS NULL AND o.status = 'SUCCESS' AND c.kind IN ('CREDIT', 'ADJUSTMENT'))
		FROM period_entries e JOIN periods p ON p.period_id = e.period_id LEFT JOIN period_documents d ON d.operation_id = e.document_id WHERE e.operation_id = $1`, saleID).
		Scan(&e.periodID, &e.data, &e.changes, &left, &e.LeftBy, &e.documentID, &e.state, &e.ids[0], &e.ids[1], &e.number,
			&e.Behind, &e.replaces, &e.noted)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the entry of %s: %w", saleID, err)
	}
	e.Left = left != nil
	return e, nil
}

// Tell tells a correction's pack where the original stands in its period.
func (e *Entry) Tell(original *country.Original) {
	original.Gathered = &country.InPeriod{Noted: e.noted}
	if e.documentID == "" || e.replaces {
		original.Gathered.Data = e.data
	}
	if e.documentID == "" {
		return
	}
	original.Gathered.Number = e.number
	original.AuthorityID1, original.AuthorityID2 = e.ids[0], e.ids[1]
}

// Enlisted are those of some operations that were enlisted, or changed an entry,
// when they were worked before.
func Enlisted(r db.Reader, d *db.DB, ids []string) (map[string]bool, error) {
	rows, err := r.Query("SELECT operation_id FROM period_entries WHERE "+d.In("operation_id", "$1")+
		" UNION ALL SELECT operation_id FROM period_changes WHERE "+d.In("operation_id", "$1"), db.Strings(ids))
	if err != nil {
		return nil, fmt.Errorf("look for those that are enlisted: %w", err)
	}
	found := map[string]bool{}
	return found, rows.Each(func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		found[id] = true
		return err
	})
}

// Warnings is what the result of a gathered operation says.
func (g *Gathering) Warnings(correction bool) []fault.Fault {
	if !g.Waits {
		return nil
	}
	if correction {
		return []fault.Fault{fault.Warn("", fault.WaitsForPeriod,
			"is told with the document of a period; nothing is filed for it by itself")}
	}
	return []fault.Fault{fault.Warn("", fault.WaitsForPeriod,
		"is gathered with other sales of its period; the authority's ids are filled in when the period's document is accepted")}
}

// lockPeriods orders everything that is done to the periods of a supplier.
func lockPeriods(tx *db.Tx, scope, supplierID string) error {
	return tx.Lock("periods|" + scope + "|" + supplierID)
}

// Enlist stores what was gathered. again: the entry changed since it was read.
func (p *Periods) Enlist(tx *db.Tx, o *operation.Operation, of Gathering) (again bool, err error) {
	g := of.Gathered
	if g == nil || g.Filed {
		return false, nil
	}
	if err := lockPeriods(tx, o.Scope, o.SupplierID); err != nil {
		return false, err
	}
	if !g.Span.First.IsZero() {
		return false, p.enlistSale(tx, o, g)
	}
	return p.change(tx, o, of)
}

// change does what a correction makes of a sale's entry, once.
func (p *Periods) change(tx *db.Tx, o *operation.Operation, of Gathering) (again bool, err error) {
	now, e, g := db.Micros(tx.Now()), of.Entry, of.Gathered
	var before int64
	switch err := tx.Row(`SELECT e.gross FROM period_entries e WHERE e.operation_id = $1 AND NOT EXISTS (SELECT 1 FROM periods p
		JOIN period_documents d ON d.period_id = p.period_id WHERE p.period_id = e.period_id AND p.replaces AND d.state = 'open')`, e.saleID).Scan(&before); {
	case errors.Is(err, db.ErrNoRows):
		return true, nil
	case err != nil:
		return false, err
	}
	args := []any{e.saleID, e.changes, e.documentID}
	text := `UPDATE period_entries SET changes = changes + 1, left_at = $4, left_by = $5 WHERE operation_id = $1 AND changes = $2 AND coalesce(document_id, '') = $3 AND left_at IS NULL RETURNING period_id`
	if g.Leaves {
		args = append(args, now, o.TransactionID)
	} else { // a document that is replaced as a whole has it no longer
		text = `UPDATE period_entries SET changes = changes + 1, data = $4, lines = $5, gross = $6, net = $7, tax = $8, document_id = NULL
			WHERE operation_id = $1 AND changes = $2 AND coalesce(document_id, '') = $3 AND left_at IS NULL RETURNING period_id`
		args = append(args, g.Data, g.Lines, g.Gross, g.Net, g.Tax)
	}
	var period string
	switch err := tx.Row(text, args...).Scan(&period); {
	case errors.Is(err, db.ErrNoRows):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("change the entry of %s: %w", e.saleID, err)
	}
	if err := tx.Insert("period_changes", "operation_id,sale_id", []any{o.ID, e.saleID}); err != nil {
		return false, err
	}
	fewer := int64(0)
	if g.Leaves {
		fewer = 1
	}
	if err := count(tx, period, -fewer, g.Gross-before); err != nil {
		return false, err
	}
	if e.replaces {
		return false, p.putOff(tx, period)
	}
	if e.documentID == "" {
		return false, nil
	}
	return false, hurryPeriod(tx, period, tx.Now())
}

// count takes note of what has changed in a period.
func count(tx *db.Tx, period string, sales, gross int64) error {
	return tx.Exec("UPDATE periods SET sales = sales + $2, gross = gross + $3, revision = revision + 1 WHERE period_id = $1", period, sales, gross)
}

// enlistSale puts a sale into the open period of its day. The row of a period
// that closes meanwhile is locked by whoever closes it.
func (p *Periods) enlistSale(tx *db.Tx, o *operation.Operation, g *country.Gathered) error {
	period, late, err := p.openPeriod(tx, o, g)
	if err != nil {
		return err
	}
	number := cmp.Or(o.Document.Number, o.UniqueNumber())
	row := []any{o.ID, period, o.TransactionID, number, g.Data, g.Lines, g.Gross, g.Net, g.Tax}
	if err := tx.Insert("period_entries", "operation_id,period_id,transaction_id,number,data,lines,gross,net,tax",
		row); err != nil {
		return fmt.Errorf("enlist %s: %w", o.ID, err)
	}
	if err := hurryKnown(tx, o, period, number); err != nil {
		return fmt.Errorf("look whether %s is registered: %w", o.ID, err)
	}
	if err := count(tx, period, 1, g.Gross); err != nil || !late {
		return err
	}
	return p.putOff(tx, period)
}

// openPeriod finds the period of a sale that is not closed, or makes it; late: it is
// closed, and its document is replaced. The caller holds the lock of the supplier's
// periods.
func (p *Periods) openPeriod(tx *db.Tx, o *operation.Operation, g *country.Gathered) (id string, late bool, err error) {
	span, currency := g.Span, cmp.Or(g.Currency, o.Document.CurrencyCode)
	first := span.First.Format(time.DateOnly)
	var series int64
	var closed *int64
	var replaces bool
	err = tx.Row(`SELECT period_id, series, closed_at, replaces FROM periods WHERE client_id = $1 AND supplier_id = $2 AND currency = $3 AND cadence = $4 AND first_day = $5 AND report = $6
		ORDER BY series DESC LIMIT 1`, o.Scope, o.SupplierID, currency, string(span.Cadence), first, span.Report).Scan(&id, &series, &closed, &replaces)
	switch {
	case err == nil && (closed == nil || replaces):
		return id, closed != nil, nil
	case err != nil && !errors.Is(err, db.ErrNoRows):
		return "", false, fmt.Errorf("look for the period: %w", err)
	}
	pack, _ := p.Atlas.Pack(o.Code)
	made, err := uuid.NewV7()
	if err != nil {
		return "", false, fmt.Errorf("make a period id: %w", err)
	}
	wall := p.DB.Wall()
	ends := span.Next
	if !ends.After(wall) {
		ends = country.SpanOf(country.Daily, wall.In(span.First.Location())).Next // it came late: with the end of this day
	}
	if span.Due.IsZero() {
		span.Due = span.Next.Add(pack.Periods.Within)
	}
	// Waiting goes by the database's own clock, which nobody sets.
	due := tx.Now().Add(ends.Sub(wall))
	tx.Wake(Queue.Table)
	return made.String(), false, tx.Insert("periods",
		"period_id,place,client_id,supplier_id,country,live,currency,cadence,report,first_day,last_day,series,zone,ends_at,deadline_at,replaces,due_at",
		[]any{made.String(), o.Scope + "|" + o.SupplierID, o.Scope, o.SupplierID, o.Code, bool(o.Live), currency,
			string(span.Cadence), span.Report, first,
			span.Next.AddDate(0, 0, -1).Format(time.DateOnly), series + 1, span.First.Location().String(), db.Micros(span.Next),
			db.Micros(span.Due), pack.Periods.Replaces, db.Micros(due)})
}

// hurryPeriod makes a closed period due. Whoever holds it looks at what is
// stored before it lets go, so nothing is missed.
func hurryPeriod(tx *db.Tx, period string, at time.Time) error {
	tx.Wake(Queue.Table)
	return tx.Exec("UPDATE periods SET due_at = $2 WHERE period_id = $1 AND lease_until IS NULL AND closed_at IS NOT NULL AND (due_at IS NULL OR due_at > $2)", period, db.Micros(at))
}
