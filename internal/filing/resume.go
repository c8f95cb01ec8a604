package filing

import (
	"fmt"

	"tributary/internal/db"
)

// ResumeLanes lets a supplier's lanes go on at once after its credentials were
// replaced. What was prepared but never sent is built and signed again, except
// in a chain, whose positions are fixed; what may have been sent keeps its bytes.
//
// It finds the operations through their lanes: a supplier has a handful of
// lanes and may have a million operations.
func ResumeLanes(tx *db.Tx, clientID, companyID string) error {
	lanes, err := lanesOfSupplier(tx, clientID, companyID)
	if err != nil {
		return fmt.Errorf("find the lanes of %s: %w", companyID, err)
	}
	var rows [][]any
	for _, lane := range lanes {
		rows = append(rows, []any{lane})
	}
	const unsent = " WHERE lane = $1 AND due_at IS NOT NULL AND stage = 'prepared' AND tries = 0 AND lane NOT IN (SELECT lane FROM chains)"
	for _, statement := range []string{
		"DELETE FROM filings WHERE operation_id IN (SELECT operation_id FROM operations" + unsent + ")",
		"UPDATE operations SET stage = 'received'" + unsent,
		"UPDATE lanes SET due_at = NULL, failures = 0, trouble = '', trouble_at = NULL WHERE lane = $1 AND lease_until IS NULL",
	} {
		if err := tx.ExecEach(statement, rows); err != nil {
			return err
		}
	}
	// An authority that refused the old ones may say now what it holds.
	if err := tx.Exec("UPDATE restored_suppliers SET due_at = $1 WHERE supplier_id = $2 AND state = 'unasked' AND lease_until IS NULL", db.Micros(tx.Now()), companyID); err != nil {
		return err
	}
	tx.Wake(askQueue.Table)
	tx.Wake(laneQueue.Table)
	return nil
}

func lanesOfSupplier(r db.Reader, clientID, companyID string) (lanes []string, err error) {
	all, err := db.Collect(r, func(scan func(...any) error) (lane string, err error) { return lane, scan(&lane) },
		"SELECT lane FROM lanes WHERE lane LIKE $1", "%|"+companyID)
	if err != nil {
		return nil, err
	}
	for _, lane := range all {
		if at, err := ParseLane(lane); err == nil && at.Scope == clientID && at.SupplierID == companyID {
			lanes = append(lanes, lane)
		}
	}
	return lanes, nil
}
