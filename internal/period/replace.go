package period

import (
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/hold"
	"tributary/internal/lease"
)

// Where the documents of a period take each other's place, there is one at a time,
// and it has every sale: what came late, changed or left is counted in the period's
// revision, and a document is due when that is newer than the accepted one's. While
// one is on its way nothing of the period changes but that sales come late, which
// have no document and are in none.

// nextReplacing makes the next document of such a period; nil: none is due now.
func (p *Periods) nextReplacing(tx *db.Tx, lease *lease.Lease[Row], rules *country.Periods) (*Own, error) {
	at := lease.Row.at
	_, held, err := hold.Of(tx, at.Scope, at.SupplierID)
	if err != nil {
		return nil, err
	}
	if held {
		return nil, lease.Finish(tx, tx.Now().Add(restedAfter))
	}
	var due bool
	var revision, sales, gross int64
	if err := tx.Row(`SELECT p.revision, p.sales, p.gross, NOT EXISTS (SELECT 1 FROM period_documents d WHERE d.period_id = p.period_id AND d.state = 'open')
			AND CASE WHEN EXISTS (SELECT 1 FROM period_documents d WHERE d.period_id = p.period_id AND d.state = 'accepted')
				THEN p.revision > (SELECT max(d.revision) FROM period_documents d WHERE d.period_id = p.period_id AND d.state = 'accepted') ELSE p.sales > 0 END
		FROM periods p WHERE p.period_id = $1`, lease.ID).Scan(&revision, &sales, &gross, &due); err != nil {
		return nil, fmt.Errorf("look what a period needs: %w", err)
	}
	if !due {
		return nil, lease.Finish(tx, time.Time{})
	}
	own, err := p.newDocument(tx, lease, "")
	if err != nil {
		return nil, err
	}
	if rules.Sum == nil {
		if err := tx.Row("SELECT coalesce(sum(length(data)), 0) FROM period_entries WHERE period_id = $1 AND left_at IS NULL",
			lease.ID).Scan(&own.Bytes); err != nil {
			return nil, err
		}
	}
	row := []any{own.ID, lease.ID, own.TransactionID, nil, own.Number, docOpen, revision, sales, gross, db.Micros(tx.Now())}
	return own, firstOf(
		tx.Exec(`UPDATE period_entries SET document_id = $2 WHERE period_id = $1 AND left_at IS NULL AND (document_id IS NULL
			OR document_id IN (SELECT d.operation_id FROM period_documents d WHERE d.period_id = $1 AND d.state = 'failed'))`, lease.ID, own.ID),
		tx.Exec("UPDATE periods SET retry_at = NULL WHERE period_id = $1", lease.ID),
		tx.Insert("period_documents", documentColumns, row),
	)
}

// putOff has a closed period look at what came late at the end of this day, with
// everything else that came by then; on the last day of the law at once.
func (p *Periods) putOff(tx *db.Tx, period string) error {
	var zone string
	var deadline int64
	var closed bool
	if err := tx.Row("SELECT zone, deadline_at, closed_at IS NOT NULL FROM periods WHERE period_id = $1", period).
		Scan(&zone, &deadline, &closed); err != nil || !closed {
		return err
	}
	where, err := time.LoadLocation(zone)
	if err != nil {
		return err
	}
	wall, last := p.DB.Wall(), db.FromMicros(deadline)
	end, until := country.SpanOf(country.Daily, wall.In(where)).Next, tx.Now()
	if last.After(end) || !last.After(wall) {
		until = until.Add(end.Sub(wall))
	}
	return firstOf(
		tx.Exec("UPDATE periods SET retry_at = $2 WHERE period_id = $1 AND (retry_at IS NULL OR retry_at <= $3)", period,
			db.Micros(until), db.Micros(tx.Now())),
		hurryPeriod(tx, period, until),
	)
}

// accept has a document take the place of the one that was accepted before.
func (d document) accept(tx *db.Tx) error {
	if !d.replaces {
		return nil
	}
	return firstOf(
		tx.Exec("UPDATE period_documents SET state = $2 WHERE period_id = $1 AND state = $3", d.periodID, docReplaced, docAccepted),
		tx.Exec("UPDATE periods SET failures = 0 WHERE period_id = $1", d.periodID),
	)
}

// giveBack gives the sales of a document that failed to the next one. One that is
// replaced as a whole keeps them until that is made: they are still to be told.
func (d document) giveBack(tx *db.Tx) error {
	if !d.replaces {
		return tx.Exec("UPDATE period_entries SET document_id = NULL WHERE document_id = $1", d.id)
	}
	return nil
}
