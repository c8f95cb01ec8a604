package transaction

import (
	"tributary/internal/db"
)

// ResumeLanes lets a supplier's lanes go on at once after its credentials were
// replaced. What was prepared but never sent is built and signed again, except
// in a chain, whose positions are fixed; what may have been sent keeps its bytes.
func ResumeLanes(tx *db.Tx, clientID, companyID string) error {
	of := "client_id = $1 AND supplier_id = $2 AND stage = 'prepared' AND tries = 0 AND lane NOT IN (SELECT lane FROM chains)"
	if err := tx.Exec("DELETE FROM filings WHERE operation_id IN (SELECT operation_id FROM operations WHERE "+of+")", clientID, companyID); err != nil {
		return err
	}
	if err := tx.Exec("UPDATE operations SET stage = 'received' WHERE "+of, clientID, companyID); err != nil {
		return err
	}
	tx.Wake(laneQueue.Table)
	return tx.Exec(`UPDATE lanes SET due_at = NULL, failures = 0 WHERE lease_until IS NULL AND due_at IS NOT NULL
		AND lane IN (SELECT DISTINCT lane FROM operations WHERE client_id = $1 AND supplier_id = $2 AND due_at IS NOT NULL)`, clientID, companyID)
}
