package filing

import (
	"fmt"
	"strings"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/webhook"
)

// Pauses before a period's document is made anew after a refusal, doubling.
const (
	periodRetryFirst = time.Hour
	periodRetryMost  = 24 * time.Hour
)

// Codes of life-cycle entries that tell of a period's document.
const (
	periodFiled   = "PERIOD_FILED"
	periodRefused = "PERIOD_REFUSED"
	periodLeft    = "PERIOD_LEFT"
)

// ownDocument is one of the service's own operations for periods that has ended.
type ownDocument struct {
	id, periodID, number, withdraws string
	ending                          ending
}

// endPeriods does what the ends of operations mean to periods: documents and
// withdrawals of our own, which nobody is told of by themselves, and invoices
// that took a sale out. It answers which operations were our own, and what is
// told of the sales.
func (b *batch) endPeriods(tx *db.Tx, endings []ending) (own map[string]bool, events []webhook.Event, err error) {
	if b.pack.Periods == nil {
		return nil, nil, nil
	}
	byID, ids := map[string]ending{}, make([]string, len(endings))
	for i, e := range endings {
		byID[e.op.id], ids[i] = e, e.op.id
	}
	list, err := db.Collect(tx, func(scan func(...any) error) (d ownDocument, err error) {
		return d, scan(&d.id, &d.periodID, &d.number, &d.withdraws)
	}, "SELECT operation_id, period_id, number, coalesce(withdraws, '') FROM period_documents WHERE "+b.db.In("operation_id", "$1")+" ORDER BY operation_id", db.Strings(ids))
	if err != nil {
		return nil, nil, fmt.Errorf("look for documents of periods: %w", err)
	}
	leaves := leaving(endings)
	if len(list)+len(leaves) == 0 {
		return nil, nil, nil
	}
	if err := lockPeriods(tx, b.at.Scope, b.at.SupplierID); err != nil {
		return nil, nil, err
	}
	own = map[string]bool{}
	for _, d := range list {
		own[d.id], d.ending = true, byID[d.id]
		var some []webhook.Event
		if d.withdraws != "" {
			some, err = b.endWithdrawal(tx, d)
		} else {
			some, err = b.endDocument(tx, d)
		}
		if err != nil {
			return nil, nil, err
		}
		events = append(events, some...)
	}
	for _, o := range leaves {
		if err := b.takeOut(tx, o); err != nil {
			return nil, nil, err
		}
	}
	return own, events, nil
}

// leaving are operations that were filed by themselves and take a sale out of its period.
func leaving(endings []ending) (list []*operation) {
	for _, e := range endings {
		if e.status == Success && e.op.filing.Leaves {
			list = append(list, e.op)
		}
	}
	return list
}

// takeOut takes the sale that an operation replaces out of its period, whatever has it by now.
func (b *batch) takeOut(tx *db.Tx, o *operation) error {
	gone, err := db.Collect(tx, func(scan func(...any) error) (e struct {
		period string
		gross  int64
	}, err error) {
		return e, scan(&e.period, &e.gross)
	}, `UPDATE period_entries SET left_at = $3, left_by = $4, changes = changes + 1 WHERE left_at IS NULL
			AND operation_id = (SELECT success_id FROM transactions WHERE client_id = $1 AND transaction_id = $2) RETURNING period_id, gross`,
		o.scope, o.referenceID, db.Micros(tx.Now()), o.transactionID)
	if err != nil {
		return fmt.Errorf("take %s out of its period: %w", o.referenceID, err)
	}
	for _, e := range gone {
		if err := tx.Exec("UPDATE periods SET sales = sales - 1, gross = gross - $2 WHERE period_id = $1", e.period, e.gross); err != nil {
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
func (b *batch) endDocument(tx *db.Tx, d ownDocument) ([]webhook.Event, error) {
	sales, err := b.salesOf(tx, d.id)
	if err != nil {
		return nil, err
	}
	now := db.Micros(tx.Now())
	if d.ending.status == Success {
		r := d.ending.receipt
		err := firstOf(
			tx.Exec("UPDATE period_documents SET state = $2, authority_id_1 = $3, authority_id_2 = $4, ended_at = $5 WHERE operation_id = $1", d.id, docAccepted, r.AuthorityID1, r.AuthorityID2, now),
			tx.Exec("UPDATE period_entries SET authority_id_1 = $2, authority_id_2 = $3 WHERE document_id = $1 AND authority_id_1 IS NULL", d.id, db.Null(r.AuthorityID1), db.Null(r.AuthorityID2)),
			tx.Exec(`UPDATE periods SET failures = 0, retry_at = NULL WHERE period_id = $1
				AND NOT EXISTS (SELECT 1 FROM period_entries e WHERE e.period_id = $1 AND e.document_id IS NULL AND e.left_at IS NULL)`, d.periodID),
			hurryPeriod(tx, d.periodID, tx.Now()), // a sale may have left while it was on its way
		)
		if err != nil {
			return nil, err
		}
		return b.tellSales(tx, sales, country.News{Key: d.id, At: d.ending.receipt.At, Code: periodFiled, Name: "The period's document is accepted", Severity: country.Info,
			Message: strings.TrimSpace("document " + d.number + " " + r.AuthorityID1)})
	}
	if err := firstOf(
		tx.Exec("UPDATE period_documents SET state = $2, ended_at = $3 WHERE operation_id = $1", d.id, docFailed, now),
		tx.Exec("UPDATE period_entries SET document_id = NULL WHERE document_id = $1", d.id),
		b.retryPeriod(tx, d.periodID),
	); err != nil || len(sales) == 0 {
		return nil, err
	}
	why := reasonsOf(d.ending.faults)
	if err := b.cfg.Alerts.RaiseIn(tx, alert.PeriodRefused, d.periodID, fmt.Sprintf("document %s of %d sales was not accepted: %s; it is made anew", d.number, len(sales), why)); err != nil {
		return nil, err
	}
	return b.tellSales(tx, sales, country.News{Key: d.id, Code: periodRefused, Name: "The period's document was not accepted", Severity: country.Problem,
		Message: "document " + d.number + ": " + why + "; it is made anew"})
}

// endWithdrawal gives the sales that stay back to the period, which makes a new document of them.
func (b *batch) endWithdrawal(tx *db.Tx, d ownDocument) ([]webhook.Event, error) {
	now := db.Micros(tx.Now())
	if d.ending.status != Success {
		why := reasonsOf(d.ending.faults)
		return nil, firstOf(
			tx.Exec("UPDATE period_documents SET state = $2, ended_at = $3 WHERE operation_id = $1", d.id, docFailed, now),
			b.retryPeriod(tx, d.periodID),
			b.cfg.Alerts.RaiseIn(tx, alert.PeriodRefused, d.periodID, fmt.Sprintf("document %s could not be withdrawn, although a sale has left it: %s; it is tried again", d.number, why)),
		)
	}
	gone, err := b.leftOf(tx, d.withdraws)
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
	return b.tellSales(tx, gone, country.News{Key: d.id, At: d.ending.receipt.At, Code: periodLeft, Name: "The sale is out of its period's document", Severity: country.Info,
		Message: "document " + d.number + " was withdrawn and is made anew without it"})
}

// retryPeriod lets a period wait before anything of it is made anew: longer each
// time. The pause is stored: sales that leave and documents that are accepted
// meanwhile make the period due, and do not end it.
func (b *batch) retryPeriod(tx *db.Tx, period string) error {
	var failures int64
	if err := tx.Row("SELECT failures FROM periods WHERE period_id = $1", period).Scan(&failures); err != nil {
		return err
	}
	pause := periodRetryFirst
	for range min(failures, 10) {
		pause = min(2*pause, periodRetryMost)
	}
	until := tx.Now().Add(pause)
	if err := tx.Exec("UPDATE periods SET failures = failures + 1, retry_at = $2 WHERE period_id = $1", period, db.Micros(until)); err != nil {
		return err
	}
	return hurryPeriod(tx, period, until)
}

func (b *batch) salesOf(tx *db.Tx, document string) ([]subject, error) {
	return b.subjects(tx, "e.document_id = $1 AND e.left_at IS NULL", document)
}

func (b *batch) leftOf(tx *db.Tx, document string) ([]subject, error) {
	return b.subjects(tx, "e.document_id = $1 AND e.left_at IS NOT NULL", document)
}

func (b *batch) subjects(tx *db.Tx, where, document string) ([]subject, error) {
	list, err := db.Collect(tx, func(scan func(...any) error) (s subject, err error) {
		return s, scan(&s.id, &s.scope, &s.transactionID, &s.succeeded)
	}, "SELECT o.operation_id, o.client_id, o.transaction_id, o.status = 'SUCCESS' FROM period_entries e JOIN operations o ON o.operation_id = e.operation_id WHERE "+where+" ORDER BY o.operation_id", document)
	if err != nil {
		return nil, fmt.Errorf("read the sales of a document: %w", err)
	}
	return list, nil
}

// tellSales adds an entry to the life cycle of each sale, once, and answers
// their events. A sale that has not ended yet tells with its end.
func (b *batch) tellSales(tx *db.Tx, sales []subject, n country.News) (events []webhook.Event, err error) {
	n.Source = country.FromAuthority
	n = b.kept(n)
	rows := make([][]any, len(sales))
	for i, s := range sales {
		rows[i] = []any{s.id, string(n.Source), n.Key, s.scope, db.Micros(n.At), n.Code, n.Name, string(n.Severity), n.Message, db.Micros(tx.Now())}
	}
	in := insertNews
	in.Suffix = "ON CONFLICT (operation_id, source, message_key) DO NOTHING RETURNING operation_id"
	fresh := map[string]bool{}
	err = tx.InsertReturning(in, rows, func(r *db.Rows) error {
		var id string
		err := r.Scan(&id)
		fresh[id] = true
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("tell sales of their period: %w", err)
	}
	for _, s := range sales {
		if fresh[s.id] && s.succeeded {
			events = append(events, updated(s, 1)...)
		}
	}
	return events, nil
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

// fillIDs completes the stored row of a gathered sale: the authority's ids are
// those of its period's document, once there are some.
func fillIDs(r db.Reader, id string, row *Row) error {
	waits := false
	for _, f := range row.Errors {
		waits = waits || f.Code == fault.WaitsForPeriod
	}
	if !waits || row.AuthorityID1 != nil || row.Status != Success {
		return nil
	}
	found, err := db.Collect(r, func(scan func(...any) error) (ids [2]*string, err error) { return ids, scan(&ids[0], &ids[1]) },
		"SELECT authority_id_1, authority_id_2 FROM period_entries WHERE operation_id = $1", id)
	if err != nil {
		return fmt.Errorf("read the ids of %s: %w", id, err)
	}
	for _, ids := range found {
		row.AuthorityID1, row.AuthorityID2 = ids[0], ids[1]
	}
	return nil
}
