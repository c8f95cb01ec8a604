package period

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/transaction"
)

// Assemble loads what is in a period's document, and what it amounts to.
func Assemble(r db.Reader, rules *country.Periods, operationID, number string) (*country.Period, transaction.Totals, error) {
	p := &country.Period{Number: number}
	var id, last, zone string
	var row Row
	err := r.Row(`SELECT p.period_id, p.client_id, p.supplier_id, p.currency, p.cadence, p.report, p.first_day, p.last_day, p.zone, p.replaces,
			coalesce((SELECT max(a.number) FROM period_documents a WHERE a.period_id = p.period_id AND a.state = 'accepted' AND p.replaces), '')
		FROM period_documents d JOIN periods p ON p.period_id = d.period_id WHERE d.operation_id = $1`, operationID).
		Scan(&id, &row.at.Scope, &row.at.SupplierID, &row.currency, &row.cadence, &row.report, &row.firstDay, &last, &zone, &row.replaces, &p.Replaces)
	p.Cadence, p.Report = country.Cadence(row.cadence), row.report
	if err == nil {
		p.First, p.Next, err = spanOf(row.firstDay, last, zone)
	}
	if err == nil && row.replaces && p.Replaces == "" {
		p.Replaces, err = replacedThere(r, row)
	}
	if err == nil && row.replaces {
		err = r.Row(refusedSQL, id).Scan(&p.Refused)
	}
	if err != nil {
		return nil, transaction.Totals{}, fmt.Errorf("read the period of %s: %w", operationID, err)
	}
	a := assembling{r: r, p: p, rules: rules}
	if !row.replaces {
		err = a.take(salesSQL+"e.document_id = $1 AND e.left_at IS NULL ORDER BY e.operation_id", operationID)
	} else {
		// What came while the document was made has none yet, and is in the next.
		err = a.take(salesSQL+"e.period_id = $1 AND e.document_id IS NOT NULL AND e.left_at IS NULL ORDER BY e.operation_id", id)
		if err == nil && p.Count == 0 && p.Replaces != "" {
			a.left = true
			err = a.take(salesSQL+`e.period_id = $1 AND e.left_at IS NOT NULL AND e.document_id IN (SELECT d.operation_id FROM period_documents d
				WHERE d.period_id = $1 AND d.state IN ('accepted', 'replaced')) ORDER BY e.operation_id`, id)
		}
	}
	if err != nil {
		return nil, transaction.Totals{}, fmt.Errorf("read the sales of %s: %w", operationID, err)
	}
	return p, a.totals, nil
}

// replacedThere is the document that the authority has held since before a backup was
// restored; "": none.
func replacedThere(r db.Reader, row Row) (number string, err error) {
	there, err := documentsOf(r, row)
	for _, k := range there {
		number = k.gap.Number
	}
	return number, err
}

// refusedSQL is what was said last of a document of a period that was refused behind its acceptance.
const refusedSQL = `SELECT coalesce((SELECT l.code || ' ' || l.message FROM period_documents d JOIN lifecycle l ON l.operation_id = d.operation_id
	WHERE d.period_id = $1 AND d.state = 'failed' AND l.severity = 'PROBLEM' ORDER BY d.operation_id DESC, l.learned_at DESC LIMIT 1), '')`

const salesSQL = "SELECT e.transaction_id, e.number, e.data, e.gross, e.net, e.tax FROM period_entries e WHERE "

// assembling is the reading of a document's sales.
type assembling struct {
	r      db.Reader
	p      *country.Period
	rules  *country.Periods
	totals transaction.Totals
	left   bool
}

// take reads the sales of a statement, or has the pack add them up one by one.
func (a *assembling) take(text string, args ...any) (err error) {
	if a.rules.Sum != nil {
		a.p.Sum, err = a.rules.Sum(a.each(text, args))
		return err
	}
	for sale, err := range a.each(text, args) {
		if err != nil {
			return err
		}
		a.p.Sales = append(a.p.Sales, sale)
	}
	return nil
}

// errEnough ends a reading.
var errEnough = errors.New("that is enough")

// each hands the sales over one after another; the last may be an error.
func (a *assembling) each(text string, args []any) iter.Seq2[country.PeriodSale, error] {
	return func(yield func(country.PeriodSale, error) bool) {
		rows, err := a.r.Query(text, args...)
		if err == nil {
			err = rows.Each(func(scan func(...any) error) error {
				s := country.PeriodSale{Left: a.left}
				if err := scan(&s.TransactionID, &s.Number, &s.Data, &s.Gross, &s.Net, &s.Tax); err != nil {
					return err
				}
				if !a.left {
					a.totals.Gross, a.totals.Net, a.totals.Tax = a.totals.Gross+s.Gross, a.totals.Net+s.Net, a.totals.Tax+s.Tax
				}
				a.p.Count++
				if !yield(s, nil) {
					return errEnough
				}
				return nil
			})
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(country.PeriodSale{}, err)
		}
	}
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
