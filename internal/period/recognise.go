package period

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/adoption"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/hold"
	"tributary/internal/lease"
	"tributary/internal/operation"
)

// After a restored backup a period may be closed a second time: its document is
// with the authority, and nobody here knows it. The authority's list says which
// sales it has. These are given to a document of the same number, which adopts
// the registration instead of being filed; whoever comes later with a sale that
// is in it is told so. Where the list does not say which sales a document has,
// filing holds whatever the period makes: see [adoption.Judge].

// known is a document that the authority held before a backup was restored.
type known struct {
	gap      adoption.Gap
	document string // of ours that adopted it; "" while nobody did
}

// documentsOf finds them by the names of a period's documents.
func documentsOf(r db.Reader, row Row) ([]known, error) {
	gaps, err := adoption.Under(r, row.at, prefix(row))
	list := make([]known, len(gaps))
	for i, g := range gaps {
		list[i].gap = g.Gap
		list[i].document = g.OperationID
	}
	return list, err
}

// prefix is what the numbers of a period's documents have in common.
func prefix(row Row) string { return strings.TrimSuffix(documentNumber(row, 0), "0") }

// freeNumber is the next name of a period's document: neither ours nor one that
// the authority holds already.
func freeNumber(tx *db.Tx, row Row) (string, error) {
	var earlier int64
	if err := tx.Row(`SELECT count(*) FROM period_documents d JOIN periods p ON p.period_id = d.period_id WHERE p.client_id = $1 AND p.supplier_id = $2 AND p.currency = $3
		AND p.cadence = $4 AND p.first_day = $5 AND p.report = $6 AND d.withdraws IS NULL`, row.at.Scope, row.at.SupplierID, row.currency, row.cadence, row.firstDay, row.report).Scan(&earlier); err != nil {
		return "", fmt.Errorf("count documents: %w", err)
	}
	there, err := documentsOf(tx, row)
	for _, k := range there {
		if n, err := strconv.ParseInt(strings.TrimPrefix(k.gap.Number, prefix(row)), 10, 64); err == nil && (k.gap.Sales != nil || row.replaces) {
			earlier = max(earlier, n)
		}
	}
	return documentNumber(row, earlier+1), err
}

// recognise gives sales to the documents that have them: to one of ours that
// adopted it, or to a new one that will. wait: one is on its way, and the period
// goes on when it has ended.
func (p *Periods) recognise(tx *db.Tx, lease *lease.Lease[Row]) (own *Own, wait bool, err error) {
	there, err := documentsOf(tx, lease.Row)
	if err != nil {
		return nil, false, err
	}
	for _, k := range there {
		sales, err := p.salesIn(tx, lease.ID, k.gap.Sales)
		if err != nil {
			return nil, false, err
		}
		open, err := openUnder(tx, lease.Row, k.gap.Number)
		switch {
		case err != nil:
			return nil, false, err
		case len(sales) == 0:
		case k.document != "":
			if err := p.join(tx, k, sales); err != nil {
				return nil, false, err
			}
		case open: // it adopts first; then they join
			return nil, true, nil
		default:
			own, err := p.makeDocument(tx, lease, sales, k.gap.Number)
			return own, false, err
		}
	}
	return nil, false, nil
}

// restedAfter is how long a period rests that waits for an authority's answer or a person.
const restedAfter = 2 * time.Second

// rests reports whether nothing of a period may be made now: its supplier is held,
// or a document that has sales of it is on its way. Then it was given back.
func (p *Periods) rests(tx *db.Tx, lease *lease.Lease[Row]) (own *Own, rests bool, err error) {
	at := lease.Row.at
	_, rests, err = hold.Of(tx, at.Scope, at.SupplierID)
	if err == nil && !rests {
		own, rests, err = p.recognise(tx, lease)
	}
	if err == nil && rests {
		err = lease.Finish(tx, tx.Now().Add(restedAfter))
	}
	return own, rests, err
}

// openUnder reports whether a document of this name is on its way.
func openUnder(tx *db.Tx, row Row, number string) (open bool, err error) {
	err = tx.Row(`SELECT count(*) > 0 FROM period_documents d JOIN periods p ON p.period_id = d.period_id
		WHERE p.client_id = $1 AND p.supplier_id = $2 AND d.number = $3 AND d.withdraws IS NULL AND d.state = 'open'`, row.at.Scope, row.at.SupplierID, number).Scan(&open)
	return open, err
}

// salesIn are those of a period that no document has and that are in one there.
func (p *Periods) salesIn(tx *db.Tx, period string, numbers []string) ([]sized, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	return db.Collect(tx, func(scan func(...any) error) (e sized, err error) {
		return e, scan(&e.id, &e.lines, &e.bytes, &e.gross)
	},
		"SELECT operation_id, lines, length(data), gross FROM period_entries WHERE period_id = $1 AND document_id IS NULL AND left_at IS NULL AND "+p.DB.In("number", "$2")+" ORDER BY operation_id",
		period, db.Strings(numbers))
}

// join tells sales that the document which has them is accepted.
func (p *Periods) join(tx *db.Tx, k known, sales []sized) error {
	given := make([][]any, len(sales))
	for i, e := range sales {
		given[i] = []any{e.id, k.document, db.Null(k.gap.ID1), db.Null(k.gap.ID2)}
	}
	if err := tx.ExecEachOne(
		"UPDATE period_entries SET document_id = $2, authority_id_1 = $3, authority_id_2 = $4 WHERE operation_id = $1 AND document_id IS NULL AND left_at IS NULL", given); err != nil {
		return fmt.Errorf("give sales to a document that has them: %w", err)
	}
	about, err := subjects(tx, "e.document_id = $1 AND e.left_at IS NULL ORDER BY o.operation_id", k.document)
	if err != nil {
		return err
	}
	events, err := p.Cycle.TellAll(tx, about,
		country.News{Key: k.document, At: k.gap.At, Code: filed, Name: "The period's document is accepted", Severity: country.Info,
			Message: strings.TrimSpace("document " + k.gap.Number + " " + k.gap.ID1 + ", registered before a backup was restored")})
	if err != nil {
		return err
	}
	return p.Cycle.Hooks.Notify(tx, events...)
}

// hurryKnown closes the period of a sale at once where a document that the
// authority held before a backup was restored has it: it need not wait for the
// end of the day to be told so.
func hurryKnown(tx *db.Tx, o *operation.Operation, period, number string) error {
	row := Row{at: o.Place()}
	if err := tx.Row("SELECT currency, cadence, report, first_day FROM periods WHERE period_id = $1", period).Scan(&row.currency,
		&row.cadence, &row.report, &row.firstDay); err != nil {
		return err
	}
	there, err := documentsOf(tx, row)
	if !slices.ContainsFunc(there, func(k known) bool { return slices.Contains(k.gap.Sales, number) }) {
		return err
	}
	tx.Wake(Queue.Table)
	now := db.Micros(tx.Now())
	return tx.Exec("UPDATE periods SET due_at = $2 WHERE period_id = $1 AND lease_until IS NULL AND ends_at <= $2 AND due_at > $2", period, now)
}
