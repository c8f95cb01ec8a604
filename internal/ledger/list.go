package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/result"
)

// HistoryEntry is one attempt of a transaction.
type HistoryEntry struct {
	OperationID string        `json:"operation_id"`
	Status      filing.Status `json:"status"`
}

// History lists the attempts of a transaction, oldest first; empty when it is unknown.
func (s *Ledger) History(ctx context.Context, scope, transactionID string) (history []HistoryEntry, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		history, err = db.Collect(r, func(scan func(...any) error) (h HistoryEntry, err error) {
			return h, scan(&h.OperationID, &h.Status)
		},
			"SELECT operation_id, status FROM operations WHERE client_id = $1 AND transaction_id = $2 ORDER BY attempt", scope,
			transactionID)
		return err
	})
	return history, err
}

// Filter narrows a list. Zero members do not narrow.
type Filter struct {
	Status     filing.Status
	Country    string // upper case
	SupplierID string
	Number     string
	From, To   time.Time // of transaction_date, both inclusive
	Limit      int
	After      string // operation id of the last entry seen
}

// pageBytesMax bounds what is read for one page: results have up to 5,000 lines,
// and a hundred of them would hold a node's memory for one caller. The row that
// passes it is the page's last.
const pageBytesMax = 4 << 20

// List answers operations, newest accepted first, and where to go on. A page may
// be shorter than its limit where documents are large.
func (s *Ledger) List(ctx context.Context, scope string, f Filter) (list []*result.Row, next string, err error) {
	where, args := f.conditions(scope)
	err = s.db.Read(ctx, func(r db.Reader) error {
		ids, err := db.Collect(r, func(scan func(...any) error) (id string, err error) { return id, scan(&id) },
			"SELECT operation_id FROM operations WHERE "+where+" ORDER BY operation_id DESC LIMIT "+strconv.Itoa(f.Limit+1), args...)
		if err != nil {
			return fmt.Errorf("list operations: %w", err)
		}
		if len(ids) > f.Limit {
			ids = ids[:f.Limit]
			next = ids[f.Limit-1]
		}
		list = make([]*result.Row, 0, len(ids))
		for read, i := 0, 0; i < len(ids); i++ {
			row, size, err := s.row(r, scope, ids[i])
			if fault.KindOf(err) == fault.Expired {
				continue // there is nothing left to list
			}
			if err != nil {
				return err
			}
			list = append(list, row)
			if read += size; read > pageBytesMax && i+1 < len(ids) {
				next = ids[i]
				return nil
			}
		}
		return nil
	})
	return list, next, err
}

func (f Filter) conditions(scope string) (where string, args []any) {
	// Documents of periods are the service's own: their sales are listed, and would count twice.
	parts := []string{"client_id = $1",
		"NOT EXISTS (SELECT 1 FROM period_documents d WHERE d.operation_id = operations.operation_id)"}
	args = []any{scope}
	add := func(condition string, value any) {
		args = append(args, value)
		parts = append(parts, condition+" $"+strconv.Itoa(len(args)))
	}
	if f.Status != "" {
		add("status =", string(f.Status))
	}
	if f.Country != "" {
		add("country =", f.Country)
	}
	if f.SupplierID != "" {
		add("supplier_id =", f.SupplierID)
	}
	if f.Number != "" {
		add("number =", f.Number)
	}
	if !f.From.IsZero() {
		add("dated_at >=", db.Micros(f.From))
	}
	if !f.To.IsZero() {
		add("dated_at <=", db.Micros(f.To))
	}
	if f.After != "" {
		add("operation_id <", f.After)
	}
	return strings.Join(parts, " AND "), args
}
