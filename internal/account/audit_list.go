package account

import (
	"fmt"
	"math"

	"tributary/internal/db"
)

// AuditLatest reads a client's log from its end, newest first; beforeSeq is the
// last entry seen, 0 to begin.
func (a *Accounts) AuditLatest(r db.Reader, clientID string, beforeSeq int64, limit int) ([]Entry, error) {
	if beforeSeq <= 0 {
		beforeSeq = math.MaxInt64
	}
	all, err := db.Collect(r, scanEntry,
		"SELECT "+auditColumns+" FROM account_audit WHERE client_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3",
		clientID, beforeSeq, limit)
	if err != nil {
		return nil, fmt.Errorf("read the audit log of client %s: %w", clientID, err)
	}
	return all, nil
}
