package ledger

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// Period is a period in which sales are gathered, as operators see it.
type Period struct {
	ID         string           `json:"period_id"`
	ClientID   string           `json:"client_id"`
	SupplierID string           `json:"supplier_id"`
	Country    string           `json:"country_code"`
	Live       bool             `json:"live"`
	Currency   string           `json:"currency_code"`
	Cadence    string           `json:"cadence"`
	Report     string           `json:"report"`    // which of several about the same days; "" where there is one
	FirstDay   string           `json:"first_day"` // both in the supplier's time zone
	LastDay    string           `json:"last_day"`
	Sales      int64            `json:"sales"`
	Gross      int64            `json:"total_amount"`
	EndsAt     time.Time        `json:"ends_at"`
	Deadline   time.Time        `json:"due_by"`  // the law's
	DueDay     string           `json:"due_day"` // the last one on which it is in time, where the supplier is
	State      PeriodState      `json:"state"`
	Overdue    bool             `json:"overdue"`
	Next       *time.Time       `json:"next_at"` // when something is done about it by itself; nil: nothing is left to do
	Documents  []PeriodDocument `json:"documents"`
}

// PeriodState is how far a period is.
type PeriodState string

// The states of a period.
const (
	PeriodOpen   PeriodState = "open"    // sales are enlisted
	PeriodFiling PeriodState = "filing"  // a document of it is on its way, or about to be made
	PeriodRetry  PeriodState = "refused" // the last document was not accepted; a new one is made
	PeriodDone   PeriodState = "filed"   // every sale in it is in an accepted document
)

// PeriodDocument is a document of a period, or the withdrawal of one.
type PeriodDocument struct {
	OperationID string `json:"operation_id"`
	Number      string `json:"number"`
	Withdrawal  bool   `json:"withdrawal"`
	State       string `json:"state"`
	Sales       int64  `json:"sales"`
	Gross       int64  `json:"total_amount"`
	AuthorityID string `json:"tax_authority_id_1"`
}

// PeriodSale is a sale in a period.
type PeriodSale struct {
	OperationID   string `json:"operation_id"`
	TransactionID string `json:"transaction_id"`
	Number        string `json:"transaction_number"`
	Gross         int64  `json:"total_amount"`
	Document      string `json:"document"` // number of the document that has it; "" while none does
	LeftBy        string `json:"left_by"`  // the transaction that took it out; "" while it is in
}

// PeriodFilter narrows the list of periods. Zero members do not narrow.
type PeriodFilter struct {
	ClientID, SupplierID string
	ID                   string
	Limit                int
	After                string // id of the last one seen
}

// A period whose documents take each other's place is not filed while it has changed
// since the accepted one was made.
const periodColumns = `p.period_id, p.client_id, p.supplier_id, p.country, p.live, p.currency, p.cadence, p.report, p.first_day, p.last_day, p.sales, p.gross,
	p.zone, p.ends_at, p.deadline_at, p.closed_at IS NOT NULL, p.failures, p.due_at,
	CASE WHEN NOT p.replaces THEN EXISTS (SELECT 1 FROM period_entries e WHERE e.period_id = p.period_id AND e.document_id IS NULL AND e.left_at IS NULL)
		WHEN EXISTS (SELECT 1 FROM period_documents d WHERE d.period_id = p.period_id AND d.state = 'accepted')
		THEN p.revision > (SELECT max(d.revision) FROM period_documents d WHERE d.period_id = p.period_id AND d.state = 'accepted') ELSE p.sales > 0 END,
	EXISTS (SELECT 1 FROM period_documents d WHERE d.period_id = p.period_id AND d.state = 'open')`

// Periods lists periods, newest first, and where to go on.
func Periods(r db.Reader, f PeriodFilter) (list []Period, next string, err error) {
	parts, args := []string{"1 = 1"}, []any{}
	for _, c := range []struct{ condition, value string }{
		{"p.client_id =", f.ClientID}, {"p.supplier_id =", f.SupplierID}, {"p.period_id =", f.ID}, {"p.period_id <", f.After},
	} {
		if c.value != "" {
			args = append(args, c.value)
			parts = append(parts, c.condition+" $"+strconv.Itoa(len(args)))
		}
	}
	limit := max(1, f.Limit)
	list, err = db.Collect(r, func(scan func(...any) error) (Period, error) { return scanPeriod(scan, r.Now()) },
		"SELECT "+periodColumns+" FROM periods p WHERE "+strings.Join(parts, " AND ")+" ORDER BY p.period_id DESC LIMIT "+
			strconv.Itoa(limit+1), args...)
	if err != nil {
		return nil, "", fmt.Errorf("list periods: %w", err)
	}
	if len(list) > limit {
		list = list[:limit]
		next = list[limit-1].ID
	}
	for i := range list {
		if list[i].Documents, err = documentsOf(r, list[i].ID); err != nil {
			return nil, "", err
		}
	}
	return list, next, nil
}

func scanPeriod(scan func(...any) error, now time.Time) (p Period, err error) {
	var ends, deadline, failures int64
	var zone string
	var closed, waiting, open bool
	var due time.Time
	err = scan(&p.ID, &p.ClientID, &p.SupplierID, &p.Country, &p.Live, &p.Currency, &p.Cadence, &p.Report, &p.FirstDay, &p.LastDay,
		&p.Sales, &p.Gross,
		&zone, &ends, &deadline, &closed, &failures, db.NullInstant(&due), &waiting, &open)
	p.EndsAt, p.Deadline = db.FromMicros(ends), db.FromMicros(deadline)
	if where, unknown := time.LoadLocation(zone); unknown == nil {
		p.DueDay = p.Deadline.Add(-1).In(where).Format(time.DateOnly)
	}
	switch {
	case !closed:
		p.State = PeriodOpen
	case failures > 0 && !open:
		p.State = PeriodRetry
	case waiting || open:
		p.State = PeriodFiling
	default:
		p.State = PeriodDone
	}
	p.Overdue = p.State != PeriodDone && p.Sales > 0 && now.After(p.Deadline)
	if !due.IsZero() {
		p.Next = &due
	}
	return p, err
}

// periodDocumentsShown is how many documents a period shows, the newest.
const periodDocumentsShown = 100

func documentsOf(r db.Reader, period string) ([]PeriodDocument, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (d PeriodDocument, err error) {
		return d, scan(&d.OperationID, &d.Number, &d.Withdrawal, &d.State, &d.Sales, &d.Gross, &d.AuthorityID)
	}, `SELECT operation_id, number, withdraws IS NOT NULL, state, sales, gross, coalesce(authority_id_1, '') FROM period_documents
		WHERE period_id = $1 ORDER BY operation_id DESC LIMIT `+strconv.Itoa(periodDocumentsShown), period)
	if err != nil {
		return nil, fmt.Errorf("read the documents of a period: %w", err)
	}
	return append([]PeriodDocument{}, list...), nil
}

// PeriodOf is one period with a page of its sales, oldest first, and where to go on.
func PeriodOf(r db.Reader, id, after string, limit int) (p Period, sales []PeriodSale, next string, err error) {
	list, _, err := Periods(r, PeriodFilter{ID: id, Limit: 1})
	if err == nil && len(list) == 0 {
		err = fault.New(fault.NotFound, "unknown period")
	}
	if err != nil {
		return p, nil, "", err
	}
	sales, err = db.Collect(r, func(scan func(...any) error) (s PeriodSale, err error) {
		return s, scan(&s.OperationID, &s.TransactionID, &s.Number, &s.Gross, &s.Document, &s.LeftBy)
	}, `SELECT e.operation_id, e.transaction_id, e.number, e.gross, coalesce(d.number, ''), coalesce(e.left_by, '') FROM period_entries e
		LEFT JOIN period_documents d ON d.operation_id = e.document_id AND d.state <> 'failed'
		WHERE e.period_id = $1 AND e.operation_id > $2 ORDER BY e.operation_id LIMIT $3`, id, after, limit+1)
	if err != nil {
		return p, nil, "", fmt.Errorf("read the sales of a period: %w", err)
	}
	if len(sales) > limit {
		sales = sales[:limit]
		next = sales[limit-1].OperationID
	}
	return list[0], append([]PeriodSale{}, sales...), next, nil
}
