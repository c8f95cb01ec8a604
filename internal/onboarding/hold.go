package onboarding

import (
	"fmt"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// Hold sets whether a company's records are kept whatever their age: a lawsuit
// or an audit under way forbids to destroy them. The company may be any
// client's; its client is answered. Unknown: fault.NotFound.
func Hold(tx *db.Tx, companyID string, hold bool) (clientID string, err error) {
	found, err := db.Collect(tx, func(scan func(...any) error) (id string, err error) { return id, scan(&id) },
		"UPDATE companies SET legal_hold = $1 WHERE company_id = $2 RETURNING client_id", hold, companyID)
	if err != nil {
		return "", fmt.Errorf("hold company %s: %w", companyID, err)
	}
	if len(found) == 0 {
		return "", fault.New(fault.NotFound, "unknown company %q", companyID).
			With(fault.Fault{Code: fault.CodeNotFound, Type: fault.General, Message: "unknown company"})
	}
	return found[0], nil
}

// Held lists the companies of a client that are under a legal hold.
func Held(r db.Reader, clientID string) ([]string, error) {
	ids, err := db.Collect(r, func(scan func(...any) error) (id string, err error) { return id, scan(&id) },
		"SELECT company_id FROM companies WHERE client_id = $1 AND legal_hold ORDER BY company_id", clientID)
	if err != nil {
		return nil, fmt.Errorf("list the companies of %s on legal hold: %w", clientID, err)
	}
	return ids, nil
}
