package ledger

import (
	"context"
	"errors"
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

// headMax is what a list reads of a stored result: its row has some three KiB.
const headMax = 16 << 10

// List answers operations, newest accepted first, and where to go on. A page may
// be shorter than its limit where documents are large. What it reads is weighed first.
func (s *Ledger) List(ctx context.Context, scope string, f Filter) (list []*result.Row, next string, err error) {
	where, args := f.conditions(scope)
	var weight int64
	read := func(weighed bool) error {
		return s.db.Read(ctx, func(r db.Reader) error {
			ids, err := db.Collect(r, func(scan func(...any) error) (id string, err error) { return id, scan(&id) },
				"SELECT operation_id FROM operations WHERE "+where+" ORDER BY operation_id DESC LIMIT "+strconv.Itoa(f.Limit+1), args...)
			if err != nil {
				return fmt.Errorf("list operations: %w", err)
			}
			if next = ""; len(ids) > f.Limit {
				ids = ids[:f.Limit]
				next = ids[f.Limit-1]
			}
			of, err := s.outcomesOf(r, scope, ids)
			if err != nil {
				return err
			}
			if n := pageOf(of); n < len(of) {
				of, next = of[:n], of[n-1].id
			}
			if weight = weightOf(of); weight > readSmall && !weighed {
				return nil
			}
			list, err = s.rows(r, scope, of)
			return err
		})
	}
	if err = read(false); err != nil || list != nil {
		return list, next, err
	}
	leave, err := s.reads.Enter(ctx, scope, weight)
	if err != nil {
		return nil, "", err
	}
	defer leave()
	err = read(true)
	return list, next, err
}

// outcomesOf finds results without reading them, newest first.
func (s *Ledger) outcomesOf(r db.Reader, scope string, ids []string) ([]outcome, error) {
	of, err := db.Collect(r, scanOutcome, outcomesSQL+s.db.In("o.operation_id", "$2")+" ORDER BY o.operation_id DESC", scope,
		db.Strings(ids))
	if err != nil {
		return nil, fmt.Errorf("find the results of a list: %w", err)
	}
	return of, nil
}

// pageOf is how many of them fill a page.
func pageOf(of []outcome) (n int) {
	for sum := int64(0); n < len(of) && sum <= pageBytesMax; n++ {
		sum += max(of[n].length, of[n].size)
	}
	return n
}

// weightOf is what the rows of a page cost: of settled ones their heads.
func weightOf(of []outcome) (sum int64) {
	for i := range of {
		if weight := of[i].weight(); of[i].settled {
			sum += min(weight, headMax)
		} else {
			sum += weight
		}
	}
	return sum
}

// rows are what a list shows of them.
func (s *Ledger) rows(r db.Reader, scope string, of []outcome) (list []*result.Row, err error) {
	heads, err := s.headsOf(r, of)
	if err != nil {
		return nil, err
	}
	list = make([]*result.Row, 0, len(of))
	ids := make([]string, 0, len(of))
	for i := range of {
		row, err := s.row(r, scope, &of[i], heads)
		if fault.KindOf(err) == fault.Expired {
			continue // there is nothing left to list
		}
		if err != nil {
			return nil, err
		}
		list, ids = append(list, row), append(ids, row.TransactionID)
	}
	corrections, err := s.correctionsOfAll(r, scope, ids)
	for _, row := range list {
		row.Corrections = append(row.Corrections, corrections[row.TransactionID]...)
	}
	return list, err
}

// headsOf reads the beginnings of stored results: no line of a document is sent, so
// none is read further than it stands in the way.
func (s *Ledger) headsOf(r db.Reader, of []outcome) (map[string]string, error) {
	var ids []string
	for i := range of {
		if of[i].settled && of[i].length > 0 {
			ids = append(ids, of[i].winner)
		}
	}
	heads := make(map[string]string, len(ids))
	if len(ids) == 0 {
		return heads, nil
	}
	rows, err := r.Query(fmt.Sprintf(`SELECT operation_id, CASE WHEN octet_length(result) <= %[1]d THEN result ELSE substr(result, 1, %[1]d) END
		FROM operations WHERE `, headMax)+s.db.In("operation_id", "$1"), db.Strings(ids))
	if err != nil {
		return nil, fmt.Errorf("read the results of a list: %w", err)
	}
	return heads, rows.Each(func(scan func(...any) error) error {
		var id, head string
		err := scan(&id, &head)
		heads[id] = head
		return err
	})
}

// row is one of a list, but for its corrections.
func (s *Ledger) row(r db.Reader, scope string, at *outcome, heads map[string]string) (*result.Row, error) {
	if !at.settled {
		whole, err := s.unsettled(r, scope, at.id)
		if err != nil {
			return nil, err
		}
		own := whole.Row // its lines may go
		return &own, nil
	}
	at.text.Text = heads[at.winner]
	row, _, err := at.text.Row()
	if errors.Is(err, result.ErrCut) { // it says more of itself than rows do, or is gone
		var whole *result.Result
		if whole, err = result.Stored(r, at.winner); err == nil {
			row = &whole.Row
		}
	}
	if err != nil {
		return nil, err
	}
	row.OperationID, row.Errors = at.id, append(row.Errors, at.extra...)
	return row, nil
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
