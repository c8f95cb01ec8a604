package period

import (
	"fmt"
	"strings"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/lifecycle"
	"tributary/internal/operation"
	"tributary/internal/webhook"
)

// Pauses before a period's document is made anew after a refusal, doubling.
const (
	retryFirst = time.Hour
	retryMost  = 24 * time.Hour
)

// Codes of life-cycle entries that tell of a period's document.
const (
	filed   = "PERIOD_FILED"
	refused = "PERIOD_REFUSED"
	left    = "PERIOD_LEFT"
)

// Ended is an operation that ends in this commit.
type Ended struct {
	*operation.Operation
	Success bool
	Leaves  bool // it was filed by itself and takes a sale out of its period
	Receipt country.Receipt
	Faults  []fault.Fault
}

// document is one of the service's own operations for periods that has ended.
type document struct {
	id, periodID, number, withdraws string
	sales                           int64
	replaces                        bool // the one before it, as a whole
	end                             Ended
}

// End does what the ends of operations mean to periods: documents and
// withdrawals of our own, which nobody is told of by themselves, and invoices
// that took a sale out. It answers which operations were our own, and what is
// told of the sales.
func (p *Periods) End(tx *db.Tx, at operation.Place, ends []Ended) (own map[string]bool, events []webhook.Event, err error) {
	byID, ids, leaves := map[string]Ended{}, make([]string, len(ends)), []*operation.Operation(nil)
	for i, e := range ends {
		byID[e.ID], ids[i] = e, e.ID
		if e.Success && e.Leaves {
			leaves = append(leaves, e.Operation)
		}
	}
	list, err := db.Collect(tx, func(scan func(...any) error) (d document, err error) {
		return d, scan(&d.id, &d.periodID, &d.number, &d.withdraws, &d.sales, &d.replaces)
	}, "SELECT d.operation_id, d.period_id, d.number, coalesce(d.withdraws, ''), d.sales, p.replaces FROM period_documents d JOIN periods p ON p.period_id = d.period_id WHERE "+p.DB.In("d.operation_id", "$1")+" ORDER BY d.operation_id", db.Strings(ids))
	if err != nil {
		return nil, nil, fmt.Errorf("look for documents of periods: %w", err)
	}
	if len(list)+len(leaves) == 0 {
		return nil, nil, nil
	}
	if err := lockPeriods(tx, at.Scope, at.SupplierID); err != nil {
		return nil, nil, err
	}
	own = map[string]bool{}
	for _, d := range list {
		own[d.id], d.end = true, byID[d.id]
		end := p.endDocument
		if d.withdraws != "" {
			end = p.endWithdrawal
		}
		some, err := end(tx, d)
		if err != nil {
			return nil, nil, err
		}
		events = append(events, some...)
	}
	for _, o := range leaves {
		if err := takeOut(tx, o); err != nil {
			return nil, nil, err
		}
	}
	return own, events, nil
}

// takeOut takes the sale that an operation replaces out of its period, whatever has it by now.
func takeOut(tx *db.Tx, o *operation.Operation) error {
	gone, err := db.Collect(tx, func(scan func(...any) error) (e struct {
		period string
		gross  int64
	}, err error) {
		return e, scan(&e.period, &e.gross)
	}, `UPDATE period_entries SET left_at = $3, left_by = $4, changes = changes + 1 WHERE left_at IS NULL
			AND operation_id = (SELECT success_id FROM transactions WHERE client_id = $1 AND transaction_id = $2) RETURNING period_id, gross`,
		o.Scope, o.ReferenceID, db.Micros(tx.Now()), o.TransactionID)
	if err != nil {
		return fmt.Errorf("take %s out of its period: %w", o.ReferenceID, err)
	}
	for _, e := range gone {
		if err := count(tx, e.period, -1, -e.gross); err != nil {
			return err
		}
		if err := hurryPeriod(tx, e.period, tx.Now()); err != nil {
			return err
		}
	}
	return nil
}

// endDocument tells the sales of a document what became of it. One that was
// refused gives them back: the period makes it anew, with what is right by then.
func (p *Periods) endDocument(tx *db.Tx, d document) (events []webhook.Event, err error) {
	now, r := db.Micros(tx.Now()), d.end.Receipt
	if d.end.Success {
		if err := d.accept(tx); err != nil {
			return nil, err
		}
		err := tx.Exec("UPDATE period_documents SET state = $2, authority_id_1 = $3, authority_id_2 = $4, ended_at = $5 WHERE operation_id = $1", d.id, docAccepted, r.AuthorityID1, r.AuthorityID2, now)
		if err == nil && !d.replaces {
			err = firstOf(
				tx.Exec("UPDATE period_entries SET authority_id_1 = $2, authority_id_2 = $3 WHERE document_id = $1 AND authority_id_1 IS NULL", d.id, db.Null(r.AuthorityID1), db.Null(r.AuthorityID2)),
				tx.Exec(`UPDATE periods SET failures = 0, retry_at = NULL WHERE period_id = $1
					AND NOT EXISTS (SELECT 1 FROM period_entries e WHERE e.period_id = $1 AND e.document_id IS NULL AND e.left_at IS NULL)`, d.periodID),
			)
		}
		if err == nil {
			err = hurryPeriod(tx, d.periodID, tx.Now()) // a sale may have left while it was on its way
		}
		if err == nil {
			events, _, err = p.tell(tx, d, country.News{Key: d.id, At: r.At, Code: filed,
				Name: "The period's document is accepted", Severity: country.Info,
				Message: strings.TrimSpace("document " + d.number + " " + r.AuthorityID1)})
		}
		if err != nil {
			return nil, err
		}
		some, err := p.passKept(tx, d)
		return append(events, some...), err
	}
	if err := forgetKept(tx, d); err != nil {
		return nil, err
	}
	why := reasonsOf(d.end.Faults)
	events, sales, err := p.tell(tx, d, country.News{Key: d.id, Code: refused,
		Name: "The period's document was not accepted", Severity: country.Problem,
		Message: "document " + d.number + ": " + why + "; it is made anew"})
	if err == nil {
		err = firstOf(
			tx.Exec("UPDATE period_documents SET state = $2, ended_at = $3 WHERE operation_id = $1", d.id, docFailed, now),
			d.giveBack(tx),
			retryPeriod(tx, d.periodID),
		)
	}
	if err == nil && sales > 0 {
		err = p.raise(tx, d, why)
	}
	return events, err
}

// endWithdrawal gives the sales that stay back to the period, which makes a new document of them.
func (p *Periods) endWithdrawal(tx *db.Tx, d document) ([]webhook.Event, error) {
	now := db.Micros(tx.Now())
	if !d.end.Success {
		why := reasonsOf(d.end.Faults)
		return nil, firstOf(
			tx.Exec("UPDATE period_documents SET state = $2, ended_at = $3 WHERE operation_id = $1", d.id, docFailed, now),
			retryPeriod(tx, d.periodID),
			p.Alerts.RaiseIn(tx, alert.PeriodRefused, d.periodID,
				fmt.Sprintf("document %s could not be withdrawn, although a sale has left it: %s; it is tried again", d.number, why)),
		)
	}
	gone, err := subjects(tx, "e.document_id = $1 AND e.left_at IS NOT NULL ORDER BY o.operation_id", d.withdraws)
	if err != nil {
		return nil, err
	}
	if err := firstOf(
		tx.Exec("UPDATE period_documents SET state = $2, ended_at = $3 WHERE operation_id = $1", d.id, docAccepted, now),
		tx.Exec("UPDATE period_documents SET state = $2 WHERE operation_id = $1", d.withdraws, docWithdrawn),
		tx.Exec("UPDATE period_entries SET document_id = NULL WHERE document_id = $1 AND left_at IS NULL", d.withdraws),
		hurryPeriod(tx, d.periodID, tx.Now()),
	); err != nil {
		return nil, err
	}
	return p.Cycle.TellAll(tx, gone, country.News{Key: d.id, At: d.end.Receipt.At, Code: left,
		Name: "The sale is out of its period's document", Severity: country.Info,
		Message: "document " + d.number + " was withdrawn and is made anew without it"})
}

// retryPeriod lets a period wait before anything of it is made anew: longer each
// time. The pause is stored: sales that leave and documents that are accepted
// meanwhile make the period due, and do not end it.
func retryPeriod(tx *db.Tx, period string) error {
	var failures int64
	if err := tx.Row("SELECT failures FROM periods WHERE period_id = $1", period).Scan(&failures); err != nil {
		return err
	}
	pause := retryFirst
	for range min(failures, 10) {
		pause = min(2*pause, retryMost)
	}
	until := tx.Now().Add(pause)
	if err := tx.Exec("UPDATE periods SET failures = failures + 1, retry_at = $2 WHERE period_id = $1", period,
		db.Micros(until)); err != nil {
		return err
	}
	return hurryPeriod(tx, period, until)
}

// subjects are the sales of a document.
func subjects(tx *db.Tx, where string, args ...any) ([]lifecycle.Subject, error) {
	list, err := db.Collect(tx, func(scan func(...any) error) (s lifecycle.Subject, err error) {
		return s, scan(&s.ID, &s.Scope, &s.TransactionID, &s.Succeeded)
	}, "SELECT o.operation_id, o.client_id, o.transaction_id, o.status = 'SUCCESS' FROM period_entries e JOIN operations o ON o.operation_id = e.operation_id WHERE "+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read the sales of a document: %w", err)
	}
	return list, nil
}

func reasonsOf(faults []fault.Fault) string {
	var list []string
	for _, f := range faults {
		if f.Type != fault.Warning {
			list = append(list, f.Message)
		}
	}
	return strings.Join(list, "; ")
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Forget destroys what periods have of operations.
func Forget(tx *db.Tx, d *db.DB, list string) error {
	in := d.In("operation_id", "$1")
	return firstOf(tx.Exec("DELETE FROM period_entries WHERE "+in, list), tx.Exec("DELETE FROM period_changes WHERE "+in, list))
}

// Open reports whether a supplier has operations that have not ended, or sales
// that no document of their period has.
func Open(r db.Reader, scope, supplierID string) (bool, error) {
	var open bool
	err := r.Row("SELECT EXISTS (SELECT 1 FROM operations WHERE client_id = $1 AND supplier_id = $2 AND status = 'PROCESSING') OR "+
		"EXISTS (SELECT 1 FROM periods p JOIN period_entries e ON e.period_id = p.period_id WHERE p.client_id = $1 AND p.supplier_id = $2 AND e.left_at IS NULL AND (e.document_id IS NULL OR "+
		"p.replaces AND e.document_id IN (SELECT d.operation_id FROM period_documents d WHERE d.period_id = p.period_id AND d.state = 'failed')))", scope, supplierID).Scan(&open)
	if err != nil {
		return false, fmt.Errorf("look for open work of a supplier: %w", err)
	}
	return open, nil
}
