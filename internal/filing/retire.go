package filing

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// What one step of retiring looks at, and what it destroys in one write.
const (
	retireLook  = 1000
	retireMost  = 100
	retireBytes = 4 << 20 // of bodies, results, reports and documents; one operation may be more
)

// Expiry says which records of a client have expired.
type Expiry struct {
	Before map[string]time.Time // by country: records older than this have
	Held   map[string]bool      // suppliers whose records are kept whatever their age
}

// newest is the instant from which on nothing has expired.
func (e Expiry) newest() (at time.Time) {
	for _, before := range e.Before {
		if before.After(at) {
			at = before
		}
	}
	return at
}

// Aged is a stretch of a client's operations, oldest first.
type Aged struct {
	Expired []string // ids of those whose record is to be destroyed
	Last    string   // where to go on; "" at the end
	Kept    bool     // some are settled, old enough to be looked at, and not expired
}

// Aging looks at the operations of a client behind an id. A record is as old as
// the later of its document's date and its acceptance: what a client brought
// yesterday is not destroyed today because the document is an old one. Only
// what is settled expires.
func (s *Service) Aging(r db.Reader, scope string, e Expiry, after string) (a Aged, err error) {
	rows, err := r.Query(agingSQL, scope, after, IDAt(e.newest()), retireLook)
	if err != nil {
		return a, fmt.Errorf("look for old operations: %w", err)
	}
	looked, size, full := 0, int64(0), false
	err = rows.Each(func(scan func(...any) error) error {
		var id, code, supplier string
		var stage Stage
		var dated, accepted, bytes int64
		var retired bool
		if err := scan(&id, &code, &supplier, &stage, &dated, &accepted, &retired, &bytes); err != nil {
			return err
		}
		before, known := e.Before[code]
		expired := !retired && known && stage == Settled && !e.Held[supplier] && max(dated, accepted) < db.Micros(before)
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
		return Aged{}, fmt.Errorf("look for old operations: %w", err)
	}
	return a, nil
}

const agingSQL = `SELECT o.operation_id, o.country, o.supplier_id, o.stage, o.dated_at, o.accepted_at, x.operation_id IS NOT NULL,
		coalesce(octet_length(o.result), 0) + coalesce(octet_length(b.body), 0) + coalesce(octet_length(f.report), 0) + coalesce(octet_length(f.document), 0)
	FROM operations o LEFT JOIN retired_operations x ON x.operation_id = o.operation_id
		LEFT JOIN bodies b ON b.operation_id = o.operation_id LEFT JOIN filings f ON f.operation_id = o.operation_id
	WHERE o.client_id = $1 AND o.operation_id > $2 AND o.operation_id < $3 ORDER BY o.operation_id LIMIT $4`

// Retire destroys the records of operations: bodies, results, what was filed
// and what came back. What stays answers the
// same submit again with 202, keeps numbers from being used twice and chains
// from being torn: the operation with its status, hashes and links. Documents
// and the index are destroyed by their owners, in the same write.
//
// Failure policy: it may run twice, on two nodes as well; what is gone stays gone.
func (s *Service) Retire(tx *db.Tx, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	list, now := db.Strings(ids), db.Micros(tx.Now())
	marks := make([][]any, len(ids))
	for i, id := range ids {
		marks[i] = []any{id, now}
	}
	if err := tx.InsertReturning(db.Insert{Table: "retired_operations", Columns: "operation_id,retired_at", Suffix: "ON CONFLICT (operation_id) DO NOTHING"}, marks, nil); err != nil {
		return fmt.Errorf("mark retired operations: %w", err)
	}
	if err := s.reduceFilings(tx, list); err != nil {
		return err
	}
	in := s.db.In("operation_id", "$1")
	for _, statement := range []string{
		"DELETE FROM bodies WHERE " + in,
		"DELETE FROM exchange_operations WHERE " + in,
		s.forgetLifecycle(in),
		"DELETE FROM told WHERE " + in,
		"DELETE FROM listening WHERE " + in,
		"DELETE FROM period_entries WHERE " + in,
		"DELETE FROM period_changes WHERE " + in,
		// What was corrected by what stays; by how much was the record's.
		"UPDATE corrections SET amount = 0 WHERE (client_id, original_id) IN (SELECT client_id, transaction_id FROM operations WHERE status = 'SUCCESS' AND " + in + ")",
	} {
		if err := tx.Exec(statement, list); err != nil {
			return fmt.Errorf("destroy the records of retired operations: %w", err)
		}
	}
	if err := dropResults(tx, s.db, ids); err != nil {
		return fmt.Errorf("destroy the results of retired operations: %w", err)
	}
	return nil
}

// forgetLifecycle is left to the owner of the tables on PostgreSQL: the role that serves deletes nothing from a log.
func (s *Service) forgetLifecycle(in string) string {
	if s.db.Engine() == "postgres" {
		return "SELECT forget_lifecycle($1)"
	}
	return "DELETE FROM lifecycle WHERE " + in
}

// reduceFilings leaves of what was filed its place in a chain, its hash and the
// name under which the authority knows it.
func (s *Service) reduceFilings(tx *db.Tx, list string) error {
	reduced, err := db.Collect(tx, func(scan func(...any) error) (row []any, err error) {
		var id, text string
		if err := scan(&id, &text); err != nil {
			return nil, err
		}
		full, err := ReadFiling(text, nil)
		left := country.Filing{OperationID: full.OperationID, Number: full.Number, Kind: full.Kind, Format: full.Format, SHA256: full.SHA256,
			DedupeKey: full.DedupeKey, Link: full.Link, PreparedAt: full.PreparedAt}
		return []any{id, encodeFiling(left), []byte{}}, err
	}, "SELECT operation_id, filing FROM filings WHERE "+s.db.In("operation_id", "$1"), list)
	if err != nil {
		return fmt.Errorf("read the filings of retired operations: %w", err)
	}
	err = tx.ExecEach("UPDATE filings SET filing = $2, report = $3, receipt = NULL, document = NULL WHERE operation_id = $1", reduced)
	if err != nil {
		return fmt.Errorf("reduce the filings of retired operations: %w", err)
	}
	return nil
}

// retired reports whether an operation's record was destroyed.
func retired(r db.Reader, id string) (bool, error) {
	var one int
	err := r.Row("SELECT 1 FROM retired_operations WHERE operation_id = $1", id).Scan(&one)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s among the retired: %w", id, err)
	}
	return true, nil
}

// expired is the answer to who asks for a record that was destroyed.
func expired() error {
	const message = "the record was kept for the years of the law, and is destroyed"
	return fault.New(fault.Expired, message).With(fault.Fault{Code: fault.CodeExpired, Type: fault.General, Message: message})
}

// IDAt is the smallest operation id that could have been made at an instant:
// an id of version 7 begins with its milliseconds.
func IDAt(at time.Time) string {
	var id uuid.UUID
	ms := max(0, at.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id.String()[:13]
}
