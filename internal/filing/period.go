package filing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Where the law lets sales be gathered by period ([country.Periods]) a sale ends
// in SUCCESS once its own document is made and it is enlisted: a row in
// period_entries. When the period has ended its document is made, see
// period_close.go; what becomes of it is told to the sales, see period_end.go.
//
// Failure policy: an entry is stored before the sale ends, and decides from then
// on: whatever is done again after a crash finds it. While no document has it,
// corrections change it; from the commit on that gives it to a document it stays
// as it is, and corrections wait for that document or refer to it.

// entry is a sale in its period, as those who correct it see it.
type entry struct {
	saleID     string
	periodID   string
	data       []byte
	changes    int64
	documentID string // "": no document has it
	state      string // of that document
	behind     string // transaction that must end first: the document's, or that of its withdrawal
	left       bool
	leftBy     string // the transaction that took it out
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

// readEntry finds the entry of a sale; nil: it has none.
func readEntry(r db.Reader, saleID string) (*entry, error) {
	e := &entry{saleID: saleID}
	var left *int64
	err := r.Row(`SELECT e.period_id, e.data, e.changes, e.left_at, coalesce(e.left_by, ''), coalesce(e.document_id, ''), coalesce(d.state, ''), coalesce(d.authority_id_1, ''), coalesce(d.authority_id_2, ''), coalesce(d.number, ''),
			coalesce((SELECT w.transaction_id FROM period_documents w WHERE w.withdraws = d.operation_id AND w.state = 'open' LIMIT 1), CASE WHEN d.state = 'open' THEN d.transaction_id END, ''),
			EXISTS (SELECT 1 FROM period_entries x JOIN operations s ON s.operation_id = x.operation_id
				JOIN corrections c ON c.client_id = s.client_id AND c.original_id = s.transaction_id JOIN operations o ON o.operation_id = c.operation_id
				JOIN filings f ON f.operation_id = o.operation_id
				WHERE x.document_id = d.operation_id AND x.left_at IS NULL AND o.status = 'SUCCESS' AND c.kind IN ('CREDIT', 'ADJUSTMENT'))
		FROM period_entries e LEFT JOIN period_documents d ON d.operation_id = e.document_id WHERE e.operation_id = $1`, saleID).
		Scan(&e.periodID, &e.data, &e.changes, &left, &e.leftBy, &e.documentID, &e.state, &e.ids[0], &e.ids[1], &e.number, &e.behind, &e.noted)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the entry of %s: %w", saleID, err)
	}
	e.left = left != nil
	return e, nil
}

// enlistedBefore reports whether an operation was enlisted, or changed an entry,
// when it was worked before. All of the batch are asked about in one read.
func (b *batch) enlistedBefore(ctx context.Context, o *operation) (bool, error) {
	if b.enlisted != nil {
		return b.enlisted[o.id], nil
	}
	found, ids := map[string]bool{}, make([]string, len(b.ops))
	for i, o := range b.ops {
		ids[i] = o.id
	}
	err := b.db.ReadEach(ctx, func(r db.Reader) error {
		rows, err := r.Query("SELECT operation_id FROM period_entries WHERE "+b.db.In("operation_id", "$1")+
			" UNION ALL SELECT operation_id FROM period_changes WHERE "+b.db.In("operation_id", "$1"), db.Strings(ids))
		if err != nil {
			return err
		}
		return rows.Each(func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			found[id] = true
			return err
		})
	})
	if err != nil {
		return false, fmt.Errorf("look for those that are enlisted: %w", err)
	}
	b.enlisted = found
	return found[o.id], nil
}

// inPeriod tells a correction where its original stands in a period. False: a
// document of the period is on its way, and the correction waits for it.
func (b *batch) inPeriod(ctx context.Context, o *operation, sale string) (goOn bool, err error) {
	if b.pack.Periods == nil {
		return true, nil
	}
	err = b.db.Read(ctx, func(r db.Reader) (err error) {
		o.entry, err = readEntry(r, sale)
		return err
	})
	if err != nil || o.entry == nil {
		return err == nil, err
	}
	if o.entry.left {
		b.fail(o, o.refers(o.referenceID, fault.ReferenceAlreadyCorrected, "was taken out of its period by "+o.entry.leftBy+": correct that one"))
		return false, nil
	}
	if o.entry.behind != "" {
		return false, b.block(ctx, o, o.entry.behind)
	}
	o.original.Gathered = &country.InPeriod{Noted: o.entry.noted}
	if o.entry.documentID == "" {
		o.original.Gathered.Data = o.entry.data
		return true, nil
	}
	o.original.Gathered.Number = o.entry.number
	o.original.AuthorityID1, o.original.AuthorityID2 = o.entry.ids[0], o.entry.ids[1]
	return true, nil
}

// gather decides whether an operation is filed by itself, and loads what is in a
// period's document. False: nothing is drafted.
func (b *batch) gather(ctx context.Context, o *operation) (goOn bool, err error) {
	if b.pack.Periods == nil {
		return true, nil
	}
	if o.kind == transaction.Period {
		return b.assemble(ctx, o)
	}
	before, err := b.enlistedBefore(ctx, o)
	if err != nil {
		return false, err
	}
	if before {
		o.waits = true
		b.ready = append(b.ready, o)
		return false, nil
	}
	var made *country.Gathered
	err = safely("gather a sale", func() (err error) {
		made, err = b.pack.Periods.Gather(b.draftOf(o))
		return err
	})
	var wrong *fault.Error
	switch {
	case errors.As(err, &wrong) && wrong.Kind == fault.Invalid && len(wrong.Faults) > 0:
		b.fail(o, wrong.Faults...)
		return false, nil
	case err != nil:
		b.log.Error("gather a sale", "operation", o.id, "error", err)
		b.retry = append(b.retry, o)
		return false, nil
	case made == nil:
		return true, nil
	}
	o.gathered = made
	if made.Filed {
		return true, nil
	}
	o.waits = true
	b.ready = append(b.ready, o)
	return false, nil
}

// waiting is what the result of a gathered operation says.
func (o *operation) waiting() []fault.Fault {
	if !o.waits {
		return nil
	}
	if o.correction() {
		return []fault.Fault{fault.Warn("", fault.WaitsForPeriod, "changes what the document of the original's period says; nothing is filed for it by itself")}
	}
	return []fault.Fault{fault.Warn("", fault.WaitsForPeriod, "is gathered with other sales of its period; the authority's ids are filled in when the period's document is accepted")}
}

// lockPeriods orders everything that is done to the periods of a supplier.
func lockPeriods(tx *db.Tx, scope, supplierID string) error {
	return tx.Lock("periods|" + scope + "|" + supplierID)
}

// enlist stores what was gathered. again: the entry changed since it was read.
func (b *batch) enlist(tx *db.Tx, o *operation) (reserved, error) {
	g := o.gathered
	if g == nil || g.Filed {
		return reserved{}, nil
	}
	if err := lockPeriods(tx, o.scope, o.supplierID); err != nil {
		return reserved{}, err
	}
	if o.kind == transaction.Invoice {
		return reserved{}, b.enlistSale(tx, o)
	}
	now, e := db.Micros(tx.Now()), o.entry
	change := []any{e.saleID, e.changes, e.documentID}
	text := `UPDATE period_entries SET changes = changes + 1, left_at = $4, left_by = $5 WHERE operation_id = $1 AND changes = $2 AND coalesce(document_id, '') = $3 AND left_at IS NULL RETURNING period_id`
	if g.Leaves {
		change = append(change, now, o.transactionID)
	} else {
		text = `UPDATE period_entries SET changes = changes + 1, data = $4, lines = $5, gross = $6, net = $7, tax = $8
			WHERE operation_id = $1 AND changes = $2 AND coalesce(document_id, '') = $3 AND left_at IS NULL RETURNING period_id`
		change = append(change, g.Data, g.Lines, g.Gross, g.Net, g.Tax)
	}
	var before int64
	switch err := tx.Row("SELECT gross FROM period_entries WHERE operation_id = $1", e.saleID).Scan(&before); {
	case errors.Is(err, db.ErrNoRows):
		return reserved{again: true}, nil
	case err != nil:
		return reserved{}, err
	}
	var period string
	switch err := tx.Row(text, change...).Scan(&period); {
	case errors.Is(err, db.ErrNoRows):
		return reserved{again: true}, nil
	case err != nil:
		return reserved{}, fmt.Errorf("change the entry of %s: %w", e.saleID, err)
	}
	if err := tx.Insert("period_changes", "operation_id,sale_id", []any{o.id, e.saleID}); err != nil {
		return reserved{}, err
	}
	fewer := int64(0)
	if g.Leaves {
		fewer = 1
	}
	if err := tx.Exec("UPDATE periods SET sales = sales - $2, gross = gross + $3 WHERE period_id = $1", period, fewer, g.Gross-before); err != nil {
		return reserved{}, err
	}
	if e.documentID == "" {
		return reserved{}, nil
	}
	return reserved{}, hurryPeriod(tx, period, tx.Now())
}

// enlistSale puts a sale into the open period of its day. The row of a period
// that closes meanwhile is locked by whoever closes it.
func (b *batch) enlistSale(tx *db.Tx, o *operation) error {
	g := o.gathered
	period, err := b.openPeriod(tx, o)
	if err != nil {
		return err
	}
	row := []any{o.id, period, o.transactionID, cmp.Or(o.document.Number, uniqueNumber(o.code, o.id)), g.Data, g.Lines, g.Gross, g.Net, g.Tax}
	if err := tx.Insert("period_entries", "operation_id,period_id,transaction_id,number,data,lines,gross,net,tax", row); err != nil {
		return fmt.Errorf("enlist %s: %w", o.id, err)
	}
	return tx.ExecOne("UPDATE periods SET sales = sales + 1, gross = gross + $2 WHERE period_id = $1", period, g.Gross)
}

// openPeriod finds the period of a sale that is not closed, or makes it. The
// caller holds the lock of the supplier's periods.
func (b *batch) openPeriod(tx *db.Tx, o *operation) (id string, err error) {
	span, currency := o.gathered.Span, o.document.CurrencyCode
	first := span.First.Format(time.DateOnly)
	var series int64
	var closed *int64
	err = tx.Row(`SELECT period_id, series, closed_at FROM periods WHERE client_id = $1 AND supplier_id = $2 AND currency = $3 AND cadence = $4 AND first_day = $5
		ORDER BY series DESC LIMIT 1`, o.scope, o.supplierID, currency, string(span.Cadence), first).Scan(&id, &series, &closed)
	switch {
	case err == nil && closed == nil:
		return id, nil
	case err != nil && !errors.Is(err, db.ErrNoRows):
		return "", fmt.Errorf("look for the period: %w", err)
	}
	made, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make a period id: %w", err)
	}
	wall := b.db.Wall()
	ends := span.Next
	if !ends.After(wall) {
		ends = country.SpanOf(country.Daily, wall.In(span.First.Location())).Next // it came late: with the end of this day
	}
	// Waiting goes by the database's own clock, which nobody sets.
	due := tx.Now().Add(ends.Sub(wall))
	tx.Wake(periodQueue.Table)
	return made.String(), tx.Insert("periods", "period_id,place,client_id,supplier_id,country,live,currency,cadence,first_day,last_day,series,zone,ends_at,deadline_at,due_at",
		[]any{made.String(), o.scope + "|" + o.supplierID, o.scope, o.supplierID, o.code, bool(o.live), currency, string(span.Cadence), first,
			span.Next.AddDate(0, 0, -1).Format(time.DateOnly), series + 1, span.First.Location().String(), db.Micros(span.Next), db.Micros(span.Next.Add(b.pack.Periods.Within)), db.Micros(due)})
}

// hurryPeriod makes a closed period due. Whoever holds it looks at what is
// stored before it lets go, so nothing is missed.
func hurryPeriod(tx *db.Tx, period string, at time.Time) error {
	tx.Wake(periodQueue.Table)
	return tx.Exec("UPDATE periods SET due_at = $2 WHERE period_id = $1 AND lease_until IS NULL AND closed_at IS NOT NULL AND (due_at IS NULL OR due_at > $2)", period, db.Micros(at))
}

// assemble loads what is in a period's document.
func (b *batch) assemble(ctx context.Context, o *operation) (goOn bool, err error) {
	p := &country.Period{Number: o.document.Number}
	err = b.db.Read(ctx, func(r db.Reader) error {
		var first, last, zone string
		err := r.Row(`SELECT p.cadence, p.first_day, p.last_day, p.zone FROM period_documents d JOIN periods p ON p.period_id = d.period_id WHERE d.operation_id = $1`, o.id).
			Scan(&p.Cadence, &first, &last, &zone)
		if err != nil {
			return err
		}
		if p.First, p.Next, err = spanOf(first, last, zone); err != nil {
			return err
		}
		p.Sales, err = db.Collect(r, func(scan func(...any) error) (s country.PeriodSale, err error) {
			return s, scan(&s.TransactionID, &s.Number, &s.Data, &s.Gross, &s.Net, &s.Tax)
		}, "SELECT transaction_id, number, data, gross, net, tax FROM period_entries WHERE document_id = $1 AND left_at IS NULL ORDER BY operation_id", o.id)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("read the period of %s: %w", o.id, err)
	}
	if len(p.Sales) == 0 {
		b.fail(o, fault.Fault{Code: fault.UnsupportedOperation, Type: fault.General, Message: "every sale has left the period before its document was made"})
		return false, nil
	}
	o.totals = transaction.Totals{}
	for _, s := range p.Sales {
		o.totals.Gross += s.Gross
		o.totals.Net += s.Net
		o.totals.Tax += s.Tax
	}
	o.period = p
	return true, nil
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
