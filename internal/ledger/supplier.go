package ledger

import (
	"context"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operation"
)

// SupplierLane is how things stand with one queue of a supplier's filings.
type SupplierLane struct {
	Lane      string
	At        country.Environment
	Open      int // operations on their way, at most [queueScanMax]
	DueAt     time.Time
	Held      bool // it is being worked on
	Failures  int64
	Reason    fault.Code
	Trouble   string
	TroubleAt time.Time
	Head      int64 // position of the chain's last link; 0: it has none
}

// SupplierLanes answers the lanes of one supplier: it has a handful.
func (s *Ledger) SupplierLanes(ctx context.Context, clientID, supplierID string) (list []SupplierLane, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		list, err = db.Collect(r, func(scan func(...any) error) (l SupplierLane, err error) {
			var held time.Time
			var at operation.Lane
			at, err = operation.ScanLane(scan, &l.Lane, db.NullInstant(&l.DueAt), db.NullInstant(&held), &l.Failures,
				&l.Reason, &l.Trouble, db.NullInstant(&l.TroubleAt), &l.Head, &l.Open)
			l.At = at.Environment()
			l.Held = held.After(r.Now())
			return l, err
		}, supplierLanesSQL, clientID, supplierID, queueScanMax)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the lanes of %s: %w", supplierID, err)
	}
	return list, nil
}

const supplierLanesSQL = `SELECT l.client_id, l.country, l.environment, l.shard, l.supplier_id, l.lane,
	l.due_at, l.lease_until, l.failures, l.reason, l.trouble, l.trouble_at, coalesce(c.position, 0),
	(SELECT count(*) FROM (SELECT 1 FROM operations o WHERE o.lane = l.lane AND o.due_at IS NOT NULL LIMIT $3) AS q)
	FROM lanes l LEFT JOIN chains c ON c.lane = l.lane WHERE l.client_id = $1 AND l.supplier_id = $2 ORDER BY l.lane`
