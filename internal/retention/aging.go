package retention

import (
	"fmt"
	"time"

	"tributary/internal/db"
	"tributary/internal/operation"
)

// What one step of retiring looks at, and what it destroys in one write.
const (
	retireLook  = 1000
	retireMost  = 100
	retireBytes = 4 << 20 // of bodies, results, reports and documents; one operation may be more
)

// expiry says which records of a client have expired.
type expiry struct {
	Before map[string]time.Time // by country: records older than this have
	Held   map[string]bool      // suppliers whose records are kept whatever their age
}

// newest is the instant from which on nothing has expired.
func (e expiry) newest() (at time.Time) {
	for _, before := range e.Before {
		if before.After(at) {
			at = before
		}
	}
	return at
}

// aged is a stretch of a client's operations, oldest first.
type aged struct {
	Expired []string // ids of those whose record is to be destroyed
	Last    string   // where to go on; "" at the end
	Kept    bool     // some are settled, old enough to be looked at, and not expired
}

// aging looks at the operations of a client behind an id. A record is as old as
// the later of its document's date and its acceptance: what a client brought
// yesterday is not destroyed today because the document is an old one. Only
// what is settled expires.
func aging(r db.Reader, scope string, e expiry, after string) (a aged, err error) {
	rows, err := r.Query(agingSQL, scope, after, operation.IDAt(e.newest()), retireLook)
	if err != nil {
		return a, fmt.Errorf("look for old operations: %w", err)
	}
	looked, size, full := 0, int64(0), false
	err = rows.Each(func(scan func(...any) error) error {
		var id, code, supplier string
		var stage operation.Stage
		var dated, accepted, bytes int64
		var retired bool
		if err := scan(&id, &code, &supplier, &stage, &dated, &accepted, &retired, &bytes); err != nil {
			return err
		}
		before, known := e.Before[code]
		expired := !retired && known && stage == operation.Settled && !e.Held[supplier] && max(dated, accepted) < db.Micros(before)
		if full = full || expired && len(a.Expired) > 0 && (len(a.Expired) == retireMost || size+bytes > retireBytes); full {
			return nil // the next step's
		}
		looked, a.Last = looked+1, id
		switch {
		case expired:
			a.Expired, size = append(a.Expired, id), size+bytes
		case !retired:
			a.Kept = true
		}
		return nil
	})
	if looked < retireLook && !full {
		a.Last = ""
	}
	if err != nil {
		return aged{}, fmt.Errorf("look for old operations: %w", err)
	}
	return a, nil
}

const agingSQL = `SELECT o.operation_id, o.country, o.supplier_id, o.stage, o.dated_at, o.accepted_at, x.operation_id IS NOT NULL,
		coalesce(octet_length(o.result), 0) + coalesce(octet_length(b.body), 0) + coalesce(octet_length(f.report), 0) + coalesce(octet_length(f.document), 0)
	FROM operations o LEFT JOIN retired_operations x ON x.operation_id = o.operation_id
		LEFT JOIN bodies b ON b.operation_id = o.operation_id LEFT JOIN filings f ON f.operation_id = o.operation_id
	WHERE o.client_id = $1 AND o.operation_id > $2 AND o.operation_id < $3 ORDER BY o.operation_id LIMIT $4`
