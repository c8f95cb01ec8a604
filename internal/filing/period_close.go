package filing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/killpoint"
	"tributary/internal/lease"
	"tributary/internal/transaction"
)

// periodsAtOnce is how many periods are closed at the same time; of one supplier one.
const periodsAtOnce = 4

// Bounds of a document where the pack names none.
const (
	periodLinesDefault = 1000
	periodBytesDefault = 1 << 20
)

// periodQueue leases periods: at their end, when one of their documents was
// refused, and when a sale has left an accepted one.
var periodQueue = &lease.Queue[periodRow]{
	Table: "periods", ID: "period_id", Key: "place", Columns: "client_id, supplier_id, country, live, currency, cadence, first_day",
	Scan: func(scan func(...any) error) (p periodRow, err error) {
		var live bool
		err = scan(&p.at.Scope, &p.at.SupplierID, &p.at.Code, &live, &p.currency, &p.cadence, &p.firstDay)
		p.at.Live = country.Live(live)
		return p, err
	},
	Group: "|",
}

type periodRow struct {
	at                          Place
	currency, cadence, firstDay string
}

// closePeriods makes the documents of periods until ctx ends.
func (s *Service) closePeriods(ctx context.Context) {
	pump := &lease.Pump[periodRow]{DB: s.db, Queue: periodQueue, Log: s.log, InFlight: periodsAtOnce, Poll: s.poll, Work: s.closePeriod, Room: func(string) int { return 1 }}
	if err := pump.Run(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("close periods", "error", err)
	}
}

// closePeriod closes a period and makes what it needs, one operation a commit.
//
// Failure policy: the commit that makes a document's operation also gives the
// sales to it, under the lease of the period and the lock of the supplier's
// periods. So a sale is in one document whenever the process ends: what no
// document has is taken up by the next holder, and a document that was made is
// filed like everything else, exactly once.
func (s *Service) closePeriod(ctx context.Context, lease *lease.Lease[periodRow]) {
	for more := true; more && ctx.Err() == nil; {
		err := s.db.Write(ctx, func(tx *db.Tx) (err error) {
			more, err = s.nextOfPeriod(tx, lease)
			return err
		})
		switch {
		case errors.Is(err, db.ErrStale), ctx.Err() != nil:
			return
		case err != nil:
			s.log.Error("close a period", "period", lease.ID, "error", err)
			return // its lease ends, and it is closed again
		}
		if more {
			s.reached(killpoint.Gathered, lease.ID)
		}
	}
	s.reached("rested", lease.ID) // for those who wait for it, in tests
}

// nextOfPeriod makes the next operation of a period; false: there is none, and
// the period was given back.
func (s *Service) nextOfPeriod(tx *db.Tx, lease *lease.Lease[periodRow]) (more bool, err error) {
	row := lease.Row
	if err := lockPeriods(tx, row.at.Scope, row.at.SupplierID); err != nil {
		return false, err
	}
	if err := lease.Guard(tx); err != nil {
		return false, err
	}
	pack, known := s.cfg.Atlas.Pack(row.at.Code)
	if !known || pack.Periods == nil {
		return false, lease.Finish(tx, tx.Now().Add(time.Hour)) // not in this program; another node, or the next version, has it
	}
	var pause time.Time
	if err := tx.Row("UPDATE periods SET closed_at = coalesce(closed_at, $2) WHERE period_id = $1 RETURNING retry_at", lease.ID, db.Micros(tx.Now())).Scan(db.NullInstant(&pause)); err != nil {
		return false, err
	}
	if pause.After(tx.Now()) { // whatever woke it: what was refused a moment ago would be refused again
		return false, lease.Finish(tx, pause)
	}
	sales, err := s.nextSales(tx, lease.ID, pack.Periods)
	if err != nil {
		return false, err
	}
	if len(sales) > 0 {
		return true, s.makeDocument(tx, lease, sales)
	}
	deserted, err := s.nextDeserted(tx, lease.ID)
	if err != nil {
		return false, err
	}
	if deserted.id != "" {
		return true, s.makeWithdrawal(tx, lease, deserted, pack.Periods.Withdraw)
	}
	return false, lease.Finish(tx, time.Time{})
}

// sized is a sale that no document has.
type sized struct {
	id                  string
	lines, bytes, gross int64
}

// nextSales are the sales of the next document: the oldest, as many as it takes.
func (s *Service) nextSales(tx *db.Tx, period string, limits *country.Periods) ([]sized, error) {
	lines, bytes := int64(limits.LinesMax), int64(limits.BytesMax)
	if lines == 0 {
		lines = periodLinesDefault
	}
	if bytes == 0 {
		bytes = periodBytesDefault
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

// makeDocument gives sales to a new document.
func (s *Service) makeDocument(tx *db.Tx, lease *lease.Lease[periodRow], sales []sized) error {
	own, err := s.ownOperation(tx, lease, transaction.Period)
	if err != nil {
		return err
	}
	var earlier int64
	if err := tx.Row(`SELECT count(*) FROM period_documents d JOIN periods p ON p.period_id = d.period_id WHERE p.client_id = $1 AND p.supplier_id = $2 AND p.currency = $3
		AND p.cadence = $4 AND p.first_day = $5 AND d.withdraws IS NULL`, lease.Row.at.Scope, lease.Row.at.SupplierID, lease.Row.currency, lease.Row.cadence, lease.Row.firstDay).Scan(&earlier); err != nil {
		return fmt.Errorf("count documents: %w", err)
	}
	own.number = documentNumber(lease.Row, earlier+1)
	own.body["transaction_number"] = own.number
	own.body["currency_code"] = lease.Row.currency
	own.body["supplier"] = map[string]any{"id": lease.Row.at.SupplierID}
	var gross int64
	given := make([][]any, len(sales))
	for i, e := range sales {
		gross += e.gross
		own.bytes += e.bytes
		given[i] = []any{e.id, own.id}
	}
	if err := tx.ExecEachOne("UPDATE period_entries SET document_id = $2 WHERE operation_id = $1 AND document_id IS NULL AND left_at IS NULL", given); err != nil {
		return fmt.Errorf("give sales to a document: %w", err)
	}
	row := []any{own.id, lease.ID, own.transactionID, nil, own.number, docOpen, len(sales), gross, db.Micros(tx.Now())}
	return errors.Join(s.insertOwn(tx, own), tx.Insert("period_documents", periodDocumentColumns, row))
}

const periodDocumentColumns = "operation_id,period_id,transaction_id,withdraws,number,state,sales,gross,made_at"

// documentNumber names the n-th document of a period: D20261116-MXN-1,
// W20261116-MXN-1, M202611-MXN-1.
func documentNumber(p periodRow, n int64) string {
	day := strings.ReplaceAll(p.firstDay, "-", "")
	if p.cadence == string(country.Monthly) {
		day = day[:6]
	}
	return fmt.Sprintf("%s%s-%s-%d", strings.ToUpper(p.cadence[:1]), day, strings.ToUpper(p.currency), n)
}

// deserted is an accepted document that a sale has left.
type deserted struct {
	id, transactionID, number string
}

// nextDeserted finds one whose withdrawal is not on its way.
func (s *Service) nextDeserted(tx *db.Tx, period string) (d deserted, err error) {
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
func (s *Service) makeWithdrawal(tx *db.Tx, lease *lease.Lease[periodRow], of deserted, reason string) error {
	own, err := s.ownOperation(tx, lease, transaction.Cancellation)
	if err != nil {
		return err
	}
	own.reference = of.transactionID
	own.body["reference_transaction_id"] = of.transactionID
	own.body["reason"] = reason
	row := []any{own.id, lease.ID, own.transactionID, of.id, of.number, docOpen, 0, 0, db.Micros(tx.Now())}
	return errors.Join(s.insertOwn(tx, own), tx.Insert("period_documents", periodDocumentColumns, row))
}

// ownOperation is an operation that no client asked for.
type ownOperation struct {
	id, transactionID string
	kind              transaction.Kind
	at                Place
	number, reference string
	date              time.Time
	body              map[string]any
	bytes             int64 // of what it will hold in memory beside its body
}

func (s *Service) ownOperation(tx *db.Tx, lease *lease.Lease[periodRow], kind transaction.Kind) (*ownOperation, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("make an operation id: %w", err)
	}
	own := &ownOperation{id: id.String(), transactionID: "period:" + id.String(), kind: kind, at: lease.Row.at, date: s.db.Wall().UTC().Truncate(time.Second)}
	own.body = map[string]any{"country_code": own.at.Code, "transaction_id": own.transactionID, "transaction_date": own.date.Format(time.RFC3339)}
	return own, nil
}

// insertOwn stores it like a submission: from here on it is worked like any other.
func (s *Service) insertOwn(tx *db.Tx, own *ownOperation) error {
	body, err := json.Marshal(own.body)
	if err != nil {
		return fmt.Errorf("write the body of %s: %w", own.id, err)
	}
	pack, _ := s.cfg.Atlas.Pack(own.at.Code)
	now := db.Micros(tx.Now())
	lane := own.at.Lane(shardOf(own.id, lanesOf(s.cfg.Atlas, pack, own.at.Live)))
	tx.Wake(laneQueue.Table)
	return errors.Join(
		tx.Insert("transactions", "client_id,transaction_id,attempts,open", []any{own.at.Scope, own.transactionID, 1, 1}),
		tx.Insert("operations", operationColumns, []any{
			own.id, own.at.Scope, own.transactionID, 1, string(own.kind), own.at.Code, bool(own.at.Live), string(country.Reporting), own.at.SupplierID, own.number,
			db.Micros(own.date), now, db.Null(own.reference), lane, string(Received), string(Processing), now, pack.Version, int64(len(body)) + own.bytes,
		}),
		tx.Insert("bodies", "operation_id,body", []any{own.id, body}),
	)
}
