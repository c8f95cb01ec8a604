package operation

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Own is a document of ours with an authority, for whoever compares.
type Own struct {
	OperationID, TransactionID string
	Kind                       transaction.Kind
	Number                     string // under which the authority knows it
	AuthorityID                string
	Status                     Status
	Cancelled                  bool // by a cancellation that succeeded
	Mends                      bool // what the authority holds of another document: it lists the two as one
}

// cancellationsOf counts the successful cancellations of operation o.
const cancellationsOf = `(SELECT count(*) FROM corrections c JOIN operations x ON x.operation_id = c.operation_id
			WHERE c.client_id = o.client_id AND c.original_id = o.transaction_id AND c.kind = 'CANCELLATION' AND x.status = 'SUCCESS')`

// OwnBetween lists what was filed of a supplier, or is on its way, in a span of document dates.
func OwnBetween(r db.Reader, of Place, within [2]time.Time) ([]Own, error) {
	list, err := db.Collect(r, scanOwn, `SELECT o.operation_id, o.transaction_id, o.kind, o.status, f.filing, coalesce(f.receipt, '{}'), `+cancellationsOf+`
		FROM operations o JOIN filings f ON f.operation_id = o.operation_id
		WHERE o.client_id = $1 AND o.supplier_id = $2 AND o.dated_at >= $3 AND o.dated_at < $4 AND o.status IN ('SUCCESS', 'PROCESSING')
			AND o.kind NOT IN ('BACKFILL', 'RESPONSE')`, of.Scope, of.SupplierID, db.Micros(within[0]), db.Micros(within[1]))
	if err != nil {
		return nil, fmt.Errorf("read what was filed: %w", err)
	}
	return list, nil
}

// OwnUnder lists a supplier's successes under numbers. A backfill has no filing;
// its number says enough.
func OwnUnder(r db.Reader, d *db.DB, of Place, numbers []string) ([]Own, error) {
	list, err := db.Collect(r, scanOwn, `SELECT o.operation_id, o.transaction_id, o.kind, o.status,
			coalesce(f.filing, '{}'), coalesce(f.receipt, '{}'), `+cancellationsOf+`
		FROM operations o LEFT JOIN filings f ON f.operation_id = o.operation_id
		WHERE o.client_id = $1 AND `+d.In("o.number", "$2")+` AND o.supplier_id = $3 AND o.status = 'SUCCESS' AND o.settled_by IS NULL`,
		of.Scope, db.Strings(numbers), of.SupplierID)
	if err != nil {
		return nil, fmt.Errorf("look for numbers: %w", err)
	}
	backfilled, err := db.Collect(r, func(scan func(...any) error) (own Own, err error) {
		own.Status = Success
		return own, scan(&own.Number)
	}, `SELECT number FROM operations WHERE client_id = $1 AND `+d.In("number", "$2")+` AND supplier_id = $3 AND status = 'SUCCESS' AND kind = 'BACKFILL'`,
		of.Scope, db.Strings(numbers), of.SupplierID)
	if err != nil {
		return nil, fmt.Errorf("look for numbers: %w", err)
	}
	return append(list, backfilled...), nil
}

func scanOwn(scan func(...any) error) (own Own, err error) {
	var filing, receipt string
	var cancellations int
	if err := scan(&own.OperationID, &own.TransactionID, &own.Kind, &own.Status, &filing, &receipt, &cancellations); err != nil {
		return own, err
	}
	f, err := ReadFiling(filing, nil)
	if err != nil {
		return own, err
	}
	var answer country.Receipt
	if err := json.Unmarshal([]byte(receipt), &answer); err != nil {
		return own, fmt.Errorf("read a stored receipt: %w", err)
	}
	own.Number, own.AuthorityID, own.Cancelled, own.Mends = f.Number, answer.AuthorityID1, cancellations > 0, f.Unprinted
	return own, nil
}

// FilingLag is how far from their date the documents of one supplier were accepted.
type FilingLag struct {
	ClientID, SupplierID string
	Late, Early          time.Duration
	Last                 time.Time // acceptance
	Open                 time.Time // the earliest date of an operation that has not ended; zero: none
}

// Lags reads every operation once. Backfills are left out: nobody filed them.
func Lags(r db.Reader) ([]FilingLag, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (h FilingLag, err error) {
		var last, late, early int64
		err = scan(&h.ClientID, &h.SupplierID, &last, &late, &early, db.NullInstant(&h.Open))
		h.Last, h.Late, h.Early = db.FromMicros(last), time.Duration(late)*time.Microsecond, time.Duration(early)*time.Microsecond
		return h, err
	}, `SELECT client_id, supplier_id, max(accepted_at), max(accepted_at - dated_at), max(dated_at - accepted_at),
		min(CASE WHEN status = 'PROCESSING' THEN dated_at END) FROM operations WHERE kind NOT IN ('BACKFILL', 'RESPONSE') GROUP BY client_id, supplier_id`)
	if err != nil {
		return nil, fmt.Errorf("learn when documents come: %w", err)
	}
	return list, nil
}

// Filed is an operation with what was filed of it.
type Filed struct {
	Place         Place
	TransactionID string
	Status        Status
	Filing        country.Filing // without its report
}

// FiledOf finds what an operation filed. One that filed nothing is fault.NotFound.
func FiledOf(r db.Reader, operationID string) (out Filed, err error) {
	var text string
	var live bool
	err = r.Row(`SELECT o.client_id, o.country, o.live, o.supplier_id, o.transaction_id, o.status, f.filing
		FROM operations o JOIN filings f ON f.operation_id = o.operation_id WHERE o.operation_id = $1`, operationID).
		Scan(&out.Place.Scope, &out.Place.Code, &live, &out.Place.SupplierID, &out.TransactionID, &out.Status, &text)
	if errors.Is(err, db.ErrNoRows) {
		return out, fault.New(fault.NotFound, "nothing was filed with an authority by operation %q", operationID)
	}
	if err != nil {
		return out, fmt.Errorf("look for the filing of %s: %w", operationID, err)
	}
	out.Place.Live = country.Live(live)
	out.Filing, err = ReadFiling(text, nil)
	return out, err
}
