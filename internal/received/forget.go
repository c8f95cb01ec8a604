package received

import (
	"fmt"
	"time"

	"tributary/internal/db"
	"tributary/internal/operation"
)

// What one step of retiring looks at, and destroys in one write.
const (
	agingLook = 1000
	agingMost = 100
)

// Expiry says which records of a client have expired.
type Expiry struct {
	Before map[string]time.Time // by country: older ones have
	Newest time.Time            // from here on nothing has
	Held   map[string]bool      // companies whose records are kept whatever their age
}

// Aged are the documents of a client behind an id whose years are over, and where to go on; "" at the end. A record is
// as old as the later of its document's day and its arrival. What could not be read has no country: it goes when the
// last country's years are over.
func Aged(r db.Reader, scope string, e Expiry, after string) (ids []string, next string, err error) {
	oldest := e.Newest
	for _, before := range e.Before {
		if before.Before(oldest) {
			oldest = before
		}
	}
	looked := 0
	rows, err := r.Query(`SELECT operation_id, country, company_id, status, dated_at, accepted_at, result IS NULL FROM received
		WHERE client_id = $1 AND operation_id > $2 AND operation_id < $3 ORDER BY operation_id LIMIT $4`, scope, after,
		operation.IDAt(e.Newest), agingLook)
	if err != nil {
		return nil, "", fmt.Errorf("look for old received documents: %w", err)
	}
	err = rows.Each(func(scan func(...any) error) error {
		var id, code, company string
		var status operation.Status
		var dated, accepted int64
		var gone bool
		if err := scan(&id, &code, &company, &status, &dated, &accepted, &gone); err != nil || len(ids) == agingMost {
			return err
		}
		looked, next = looked+1, id
		before, known := e.Before[code]
		if !known {
			before = oldest
		}
		if !gone && status != operation.Processing && !e.Held[company] && max(dated, accepted) < db.Micros(before) {
			ids = append(ids, id)
		}
		return nil
	})
	if looked < agingLook && len(ids) < agingMost {
		next = ""
	}
	return ids, next, err
}

// Retire destroys what documents say, in the caller's write. Ids, hashes and names stay: a repetition is still nothing.
func Retire(tx *db.Tx, d *db.DB, scope string, ids []string) error {
	for _, text := range []string{
		"UPDATE received SET result = NULL, number = '', sender_key = '' WHERE client_id = $1 AND ",
		"DELETE FROM received_references WHERE client_id = $1 AND ",
	} {
		if err := tx.Exec(text+d.In("operation_id", "$2"), scope, db.Strings(ids)); err != nil {
			return fmt.Errorf("destroy received documents: %w", err)
		}
	}
	return nil
}
