// Package hold keeps which suppliers nothing is filed for, and why.
//
// It owns the table supplier_holds. A hold is a row that every holder of a lane
// reads before it works, so it outlives crashes and binds every node. A holder
// that read before the hold was stored finishes its visit.
package hold

import (
	"errors"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operation"
)

// Hold is why nothing of a supplier is filed.
type Hold struct {
	operation.Place
	Reason fault.Code // Held or ChainStopped
	Why    string     // for people
	Since  time.Time
}

// Store lets nothing of the supplier be filed until it is lifted.
func (h Hold) Store(tx *db.Tx) error {
	return tx.Exec(`INSERT INTO supplier_holds (client_id, supplier_id, country, live, reason, why, since) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (client_id, supplier_id) DO UPDATE SET reason = excluded.reason, why = excluded.why, since = excluded.since, released_at = NULL`,
		h.Scope, h.SupplierID, h.Code, bool(h.Live), string(h.Reason), h.Why, db.Micros(tx.Now()))
}

// Lift ends a hold. A supplier that was never held is noted as looked into: it is
// not held as a newcomer either.
func Lift(tx *db.Tx, p operation.Place) error {
	return tx.Exec(`INSERT INTO supplier_holds (client_id, supplier_id, country, live, reason, why, since, released_at) VALUES ($1, $2, $3, $4, $5, '', $6, $6)
		ON CONFLICT (client_id, supplier_id) DO UPDATE SET released_at = excluded.released_at`,
		p.Scope, p.SupplierID, p.Code, bool(p.Live), string(fault.Held), db.Micros(tx.Now()))
}

// List lists the suppliers that are held.
func List(r db.Reader) ([]Hold, error) {
	list, err := db.Collect(r, scanHold,
		"SELECT "+columns+" FROM supplier_holds WHERE released_at IS NULL ORDER BY client_id, supplier_id")
	if err != nil {
		return nil, fmt.Errorf("list holds: %w", err)
	}
	return list, nil
}

const columns = "client_id, supplier_id, country, live, reason, why, since"

func scanHold(scan func(...any) error) (h Hold, err error) {
	var live bool
	var since int64
	err = scan(&h.Scope, &h.SupplierID, &h.Code, &live, &h.Reason, &h.Why, &since)
	h.Live, h.Since = country.Live(live), db.FromMicros(since)
	return h, err
}

// Of is why a supplier is held; false: it is not.
func Of(r db.Reader, clientID, supplierID string) (Hold, bool, error) {
	h, err := scanHold(r.Row("SELECT "+columns+" FROM supplier_holds WHERE client_id = $1 AND supplier_id = $2 AND released_at IS NULL",
		clientID, supplierID).Scan)
	if errors.Is(err, db.ErrNoRows) {
		return Hold{}, false, nil
	}
	return h, err == nil, err
}
