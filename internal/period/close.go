package period

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/lease"
	"tributary/internal/operation"
	"tributary/internal/transaction"
)

// Bounds of a document where the pack names none.
const (
	linesDefault = 1000
	bytesDefault = 1 << 20
)

// Queue leases periods: at their end, when one of their documents was
// refused, and when a sale has left an accepted one.
var Queue = &lease.Queue[Row]{
	Table: "periods", ID: "period_id", Key: "place",
	Columns: "client_id, supplier_id, country, live, currency, cadence, report, first_day, replaces",
	Scan: func(scan func(...any) error) (p Row, err error) {
		var live bool
		err = scan(&p.at.Scope, &p.at.SupplierID, &p.at.Code, &live, &p.currency, &p.cadence, &p.report, &p.firstDay, &p.replaces)
		p.at.Live = country.Live(live)
		return p, err
	},
	Group: "|",
	// Open ones are due at their end, closed ones after a pause.
	Longest:  fmt.Sprintf("CASE WHEN closed_at IS NULL AND ends_at > $1 THEN ends_at - $1 + %[1]d ELSE %[1]d END", pauseMax.Microseconds()),
	Recalled: "CASE WHEN closed_at IS NULL AND ends_at > $1 THEN ends_at ELSE $1 END",
}

// pauseMax is longer than any pause of a period; a longer one a wrong clock has stored.
const pauseMax = 2 * retryMost

// Row is what a claim reads of a period.
type Row struct {
	at                                  operation.Place
	currency, cadence, report, firstDay string
	replaces                            bool
}

// Next closes a period and makes the next operation that it needs, or tells some of
// its sales what became of their document. No more: there is nothing to do, and the
// period was given back.
//
// Failure policy: the commit that makes a document's operation also gives the
// sales to it, under the lease of the period and the lock of the supplier's
// periods. So a sale is in one document whenever the process ends: what no
// document has is taken up by the next holder, and a document that was made is
// filed like everything else, exactly once.
func (p *Periods) Next(tx *db.Tx, lease *lease.Lease[Row]) (own *Own, more bool, err error) {
	row := lease.Row
	if err := lockPeriods(tx, row.at.Scope, row.at.SupplierID); err != nil {
		return nil, false, err
	}
	if err := lease.Guard(tx); err != nil {
		return nil, false, err
	}
	if more, err := p.tellMore(tx, lease.ID); more || err != nil {
		return nil, more, err
	}
	own, err = p.next(tx, lease)
	return own, own != nil, err
}

// next makes the next operation; nil: there is none, and the period was given back.
func (p *Periods) next(tx *db.Tx, lease *lease.Lease[Row]) (*Own, error) {
	row := lease.Row
	pack, known := p.Atlas.Pack(row.at.Code)
	if !known || pack.Periods == nil {
		return nil, lease.Finish(tx, tx.Now().Add(time.Hour)) // not in this program; another node, or the next version, has it
	}
	var pause time.Time
	if err := tx.Row("UPDATE periods SET closed_at = coalesce(closed_at, $2) WHERE period_id = $1 RETURNING retry_at",
		lease.ID, db.Micros(tx.Now())).Scan(db.NullInstant(&pause)); err != nil {
		return nil, err
	}
	if pause.After(tx.Now()) && pause.Before(tx.Now().Add(pauseMax)) { // whatever woke it: what was refused a moment ago would be refused again
		return nil, lease.Finish(tx, pause)
	}
	if row.replaces {
		return p.nextReplacing(tx, lease, pack.Periods)
	}
	if own, rests, err := p.rests(tx, lease); err != nil || rests || own != nil {
		return own, err
	}
	sales, err := nextSales(tx, lease.ID, pack.Periods)
	if err != nil {
		return nil, err
	}
	if len(sales) > 0 {
		return p.makeDocument(tx, lease, sales, "")
	}
	left, err := nextPendingWithdrawal(tx, lease.ID)
	if err != nil {
		return nil, err
	}
	if left.id != "" {
		return p.makeWithdrawal(tx, lease, left, pack.Periods.Withdraw)
	}
	return nil, lease.Finish(tx, time.Time{})
}

// sized is a sale that no document has.
type sized struct {
	id                  string
	lines, bytes, gross int64
}

// nextSales are the sales of the next document: the oldest, as many as it takes.
func nextSales(tx *db.Tx, period string, limits *country.Periods) ([]sized, error) {
	lines, bytes := int64(limits.LinesMax), int64(limits.BytesMax)
	if lines == 0 {
		lines = linesDefault
	}
	if bytes == 0 {
		bytes = bytesDefault
	}
	all, err := db.Collect(tx, func(scan func(...any) error) (e sized, err error) {
		return e, scan(&e.id, &e.lines, &e.bytes, &e.gross)
	},
		"SELECT operation_id, lines, length(data), gross FROM period_entries WHERE period_id = $1 AND document_id IS NULL AND left_at IS NULL ORDER BY operation_id LIMIT $2", period, lines)
	if err != nil {
		return nil, fmt.Errorf("look for sales without a document: %w", err)
	}
	for i, e := range all {
		lines, bytes = lines-e.lines, bytes-e.bytes
		if i > 0 && (lines < 0 || bytes < 0) {
			return all[:i], nil
		}
	}
	return all, nil
}

// makeDocument gives sales to a new document. number is the one under which the
// authority holds it; "": it is a new one.
func (p *Periods) makeDocument(tx *db.Tx, lease *lease.Lease[Row], sales []sized, number string) (*Own, error) {
	own, err := p.newDocument(tx, lease, number)
	if err != nil {
		return nil, err
	}
	var gross int64
	given := make([][]any, len(sales))
	for i, e := range sales {
		gross += e.gross
		own.Bytes += e.bytes
		given[i] = []any{e.id, own.ID}
	}
	if err := tx.ExecEachOne(
		"UPDATE period_entries SET document_id = $2 WHERE operation_id = $1 AND document_id IS NULL AND left_at IS NULL",
		given); err != nil {
		return nil, fmt.Errorf("give sales to a document: %w", err)
	}
	row := []any{own.ID, lease.ID, own.TransactionID, nil, own.Number, docOpen, 0, len(sales), gross, db.Micros(tx.Now())}
	return own, tx.Insert("period_documents", documentColumns, row)
}

const documentColumns = "operation_id,period_id,transaction_id,withdraws,number,state,revision,sales,gross,made_at"

// newDocument is the operation of a period's document.
func (p *Periods) newDocument(tx *db.Tx, lease *lease.Lease[Row], number string) (*Own, error) {
	own, err := p.newOwn(lease, transaction.Period)
	if err != nil {
		return nil, err
	}
	if own.Number = number; number == "" {
		if own.Number, err = freeNumber(tx, lease.Row); err != nil {
			return nil, err
		}
	}
	own.body["transaction_number"] = own.Number
	own.body["currency_code"] = lease.Row.currency
	own.body["supplier"] = map[string]any{"id": lease.Row.at.SupplierID}
	return own, nil
}

// documentNumber names the n-th document of a period: D20261116-MXN-1,
// W20261116-MXN-1, M202611-MXN-1, T20261111-EUR-1, B202611-EUR-1; of a report
// "payments" PM202611-EUR-1.
func documentNumber(p Row, n int64) string {
	day, letter := strings.ReplaceAll(p.firstDay, "-", ""), strings.ToUpper(p.cadence[:1])
	switch country.Cadence(p.cadence) {
	case country.Monthly:
		day = day[:6]
	case country.TwoMonthly:
		day, letter = day[:6], "B"
	}
	return fmt.Sprintf("%s%s%s-%s-%d", strings.ToUpper(p.report[:min(1, len(p.report))]), letter, day, strings.ToUpper(p.currency), n)
}

// pendingWithdrawal is an accepted document that a sale has left.
type pendingWithdrawal struct {
	id, transactionID, number string
}

// nextPendingWithdrawal finds one whose withdrawal is not on its way.
func nextPendingWithdrawal(tx *db.Tx, period string) (d pendingWithdrawal, err error) {
	err = tx.Row(`SELECT d.operation_id, d.transaction_id, d.number FROM period_documents d WHERE d.period_id = $1 AND d.withdraws IS NULL AND d.state = 'accepted'
			AND EXISTS (SELECT 1 FROM period_entries e WHERE e.document_id = d.operation_id AND e.left_at IS NOT NULL)
			AND NOT EXISTS (SELECT 1 FROM period_documents w WHERE w.withdraws = d.operation_id AND w.state = 'open')
		ORDER BY d.operation_id LIMIT 1`, period).Scan(&d.id, &d.transactionID, &d.number)
	if err != nil && !errors.Is(err, db.ErrNoRows) {
		return d, fmt.Errorf("look for documents that a sale has left: %w", err)
	}
	return d, nil
}

// makeWithdrawal takes a document back, so that it can be made anew without those that left.
func (p *Periods) makeWithdrawal(tx *db.Tx, lease *lease.Lease[Row], of pendingWithdrawal, reason string) (*Own, error) {
	own, err := p.newOwn(lease, transaction.Cancellation)
	if err != nil {
		return nil, err
	}
	own.Reference = of.transactionID
	own.body["reference_transaction_id"] = of.transactionID
	own.body["reason"] = reason
	row := []any{own.ID, lease.ID, own.TransactionID, of.id, of.number, docOpen, 0, 0, 0, db.Micros(tx.Now())}
	return own, tx.Insert("period_documents", documentColumns, row)
}

// Own is an operation that no client asked for.
type Own struct {
	ID, TransactionID string
	Kind              transaction.Kind
	At                operation.Place
	Number, Reference string
	Date              time.Time
	Bytes             int64 // of what it will hold in memory beside its body
	body              map[string]any
}

// Body is its body, as a client would have sent it.
func (o *Own) Body() ([]byte, error) {
	body, err := json.Marshal(o.body)
	if err != nil {
		return nil, fmt.Errorf("write the body of %s: %w", o.ID, err)
	}
	return body, nil
}

func (p *Periods) newOwn(lease *lease.Lease[Row], kind transaction.Kind) (*Own, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("make an operation id: %w", err)
	}
	own := &Own{ID: id.String(), TransactionID: ownPrefix + id.String(), Kind: kind, At: lease.Row.at,
		Date: p.DB.Wall().UTC().Truncate(time.Second)}
	own.body = map[string]any{"country_code": own.At.Code, "transaction_id": own.TransactionID,
		"transaction_date": own.Date.Format(time.RFC3339)}
	return own, nil
}
