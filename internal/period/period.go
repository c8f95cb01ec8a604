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
	"tributary/internal/transaction"
)

// Periods keeps the periods of all suppliers.
type Periods struct {
	DB     *db.DB
	Atlas  *country.Atlas
	Cycle  *lifecycle.Cycle
	Alerts *alert.Alerts
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
}

// States of the service's own operations for periods.
const (
	docOpen      = "open"
	docAccepted  = "accepted"
	docFailed    = "failed"
	docWithdrawn = "withdrawn"
)

// EntryOf finds the entry of a sale; nil: it has none.
func EntryOf(r db.Reader, saleID string) (*Entry, error) {
	e := &Entry{saleID: saleID}
	var left *int64
	err := r.Row(`SELECT e.period_id, e.data, e.changes, e.left_at, coalesce(e.left_by, ''), coalesce(e.document_id, ''), coalesce(d.state, ''), coalesce(d.authority_id_1, ''), coalesce(d.authority_id_2, ''), coalesce(d.number, ''),
			coalesce((SELECT w.transaction_id FROM period_documents w WHERE w.withdraws = d.operation_id AND w.state = 'open' LIMIT 1), CASE WHEN d.state = 'open' THEN d.transaction_id END, ''),
			EXISTS (SELECT 1 FROM period_entries x JOIN operations s ON s.operation_id = x.operation_id
				JOIN corrections c ON c.client_id = s.client_id AND c.original_id = s.transaction_id JOIN operations o ON o.operation_id = c.operation_id
				JOIN filings f ON f.operation_id = o.operation_id
				WHERE x.document_id = d.operation_id AND x.left_at IS NULL AND o.status = 'SUCCESS' AND c.kind IN ('CREDIT', 'ADJUSTMENT'))
		FROM period_entries e LEFT JOIN period_documents d ON d.operation_id = e.document_id WHERE e.operation_id = $1`, saleID).
		Scan(&e.periodID, &e.data, &e.changes, &left, &e.LeftBy, &e.documentID, &e.state, &e.ids[0], &e.ids[1], &e.number,
			&e.Behind, &e.noted)
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
	if e.documentID == "" {
		original.Gathered.Data = e.data
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
			"changes what the document of the original's period says; nothing is filed for it by itself")}
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
	if o.Kind == transaction.Invoice {
		return false, p.enlistSale(tx, o, g)
	}
	now, e := db.Micros(tx.Now()), of.Entry
	change := []any{e.saleID, e.changes, e.documentID}
	text := `UPDATE period_entries SET changes = changes + 1, left_at = $4, left_by = $5 WHERE operation_id = $1 AND changes = $2 AND coalesce(document_id, '') = $3 AND left_at IS NULL RETURNING period_id`
	if g.Leaves {
		change = append(change, now, o.TransactionID)
	} else {
		text = `UPDATE period_entries SET changes = changes + 1, data = $4, lines = $5, gross = $6, net = $7, tax = $8
			WHERE operation_id = $1 AND changes = $2 AND coalesce(document_id, '') = $3 AND left_at IS NULL RETURNING period_id`
		change = append(change, g.Data, g.Lines, g.Gross, g.Net, g.Tax)
	}
	var before int64
	switch err := tx.Row("SELECT gross FROM period_entries WHERE operation_id = $1", e.saleID).Scan(&before); {
	case errors.Is(err, db.ErrNoRows):
		return true, nil
	case err != nil:
		return false, err
	}
	var period string
	switch err := tx.Row(text, change...).Scan(&period); {
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
	if err := tx.Exec("UPDATE periods SET sales = sales - $2, gross = gross + $3 WHERE period_id = $1", period, fewer,
		g.Gross-before); err != nil {
		return false, err
	}
	if e.documentID == "" {
		return false, nil
	}
	return false, hurryPeriod(tx, period, tx.Now())
}

// enlistSale puts a sale into the open period of its day. The row of a period
// that closes meanwhile is locked by whoever closes it.
func (p *Periods) enlistSale(tx *db.Tx, o *operation.Operation, g *country.Gathered) error {
	period, err := p.openPeriod(tx, o, g.Span)
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
	return tx.ExecOne("UPDATE periods SET sales = sales + 1, gross = gross + $2 WHERE period_id = $1", period, g.Gross)
}

// openPeriod finds the period of a sale that is not closed, or makes it. The
// caller holds the lock of the supplier's periods.
func (p *Periods) openPeriod(tx *db.Tx, o *operation.Operation, span country.Span) (id string, err error) {
	currency := o.Document.CurrencyCode
	first := span.First.Format(time.DateOnly)
	var series int64
	var closed *int64
	err = tx.Row(`SELECT period_id, series, closed_at FROM periods WHERE client_id = $1 AND supplier_id = $2 AND currency = $3 AND cadence = $4 AND first_day = $5
		ORDER BY series DESC LIMIT 1`, o.Scope, o.SupplierID, currency, string(span.Cadence), first).Scan(&id, &series, &closed)
	switch {
	case err == nil && closed == nil:
		return id, nil
	case err != nil && !errors.Is(err, db.ErrNoRows):
		return "", fmt.Errorf("look for the period: %w", err)
	}
	pack, _ := p.Atlas.Pack(o.Code)
	made, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make a period id: %w", err)
	}
	wall := p.DB.Wall()
	ends := span.Next
	if !ends.After(wall) {
		ends = country.SpanOf(country.Daily, wall.In(span.First.Location())).Next // it came late: with the end of this day
	}
	// Waiting goes by the database's own clock, which nobody sets.
	due := tx.Now().Add(ends.Sub(wall))
	tx.Wake(Queue.Table)
	return made.String(), tx.Insert("periods",
		"period_id,place,client_id,supplier_id,country,live,currency,cadence,first_day,last_day,series,zone,ends_at,deadline_at,due_at",
		[]any{made.String(), o.Scope + "|" + o.SupplierID, o.Scope, o.SupplierID, o.Code, bool(o.Live), currency,
			string(span.Cadence), first,
			span.Next.AddDate(0, 0, -1).Format(time.DateOnly), series + 1, span.First.Location().String(), db.Micros(span.Next),
			db.Micros(span.Next.Add(pack.Periods.Within)), db.Micros(due)})
}

// hurryPeriod makes a closed period due. Whoever holds it looks at what is
// stored before it lets go, so nothing is missed.
func hurryPeriod(tx *db.Tx, period string, at time.Time) error {
	tx.Wake(Queue.Table)
	return tx.Exec("UPDATE periods SET due_at = $2 WHERE period_id = $1 AND lease_until IS NULL AND closed_at IS NOT NULL AND (due_at IS NULL OR due_at > $2)", period, db.Micros(at))
}

// Assemble loads what is in a period's document.
func Assemble(r db.Reader, operationID, number string) (*country.Period, error) {
	p := &country.Period{Number: number}
	var first, last, zone string
	err := r.Row(`SELECT p.cadence, p.first_day, p.last_day, p.zone FROM period_documents d JOIN periods p ON p.period_id = d.period_id WHERE d.operation_id = $1`, operationID).
		Scan(&p.Cadence, &first, &last, &zone)
	if err == nil {
		p.First, p.Next, err = spanOf(first, last, zone)
	}
	if err == nil {
		p.Sales, err = db.Collect(r, func(scan func(...any) error) (s country.PeriodSale, err error) {
			return s, scan(&s.TransactionID, &s.Number, &s.Data, &s.Gross, &s.Net, &s.Tax)
		}, "SELECT transaction_id, number, data, gross, net, tax FROM period_entries WHERE document_id = $1 AND left_at IS NULL ORDER BY operation_id", operationID)
	}
	if err != nil {
		return nil, fmt.Errorf("read the period of %s: %w", operationID, err)
	}
	return p, nil
}

// Totals are what the sales of a document amount to.
func Totals(p *country.Period) (t transaction.Totals) {
	for _, s := range p.Sales {
		t.Gross += s.Gross
		t.Net += s.Net
		t.Tax += s.Tax
	}
	return t
}

// spanOf reads the days of a stored period.
func spanOf(first, last, zone string) (from, next time.Time, err error) {
	where, err := time.LoadLocation(zone)
	if err != nil {
		return from, next, err
	}
	if from, err = time.ParseInLocation(time.DateOnly, first, where); err != nil {
		return from, next, err
	}
	next, err = time.ParseInLocation(time.DateOnly, last, where)
	return from, next.AddDate(0, 0, 1), err
}
