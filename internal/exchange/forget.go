package exchange

import (
	"context"
	"fmt"
	"time"

	"tributary/internal/db"
	"tributary/internal/operation"
)

// callLinksLook is how many links one step of forgetting looks at, and at most deletes.
const callLinksLook = 1000

// recordedWithin is how long after its beginning a call is stored, for the most
// part: only so far are old ones looked for, and one of which nothing but its mark
// was left is as old as what was stored of it.
const recordedWithin = 24 * time.Hour

// ForgetCalls deletes the record of calls to authorities that a client's lanes
// made before an instant, unless their supplier is under a legal hold, in steps that keep no
// other write waiting. It answers how many. Links to them go by ForgetLinks.
func ForgetCalls(ctx context.Context, d *db.DB, of Held, before time.Time) (forgotten int, err error) {
	at, stored := db.Micros(before), operation.IDAt(before.Add(recordedWithin))
	type lane struct{ name, supplier string }
	var lanes []lane
	err = d.Read(ctx, func(r db.Reader) (err error) {
		lanes, err = db.Collect(r, func(scan func(...any) error) (l lane, err error) {
			return l, scan(&l.name, &l.supplier)
		}, oldLanesSQL, of.Scope, at, stored)
		return err
	})
	for _, l := range lanes {
		if err != nil {
			break
		}
		if of.Suppliers[l.supplier] {
			continue
		}
		var n int
		n, err = d.Trim(ctx, db.Trim{Table: "exchanges", Key: "exchange_id", By: "at", Before: at,
			Of: "lane = $1 AND exchange_id < $2", Args: []any{l.name, stored}})
		forgotten += n
	}
	if err != nil {
		return forgotten, fmt.Errorf("forget calls of client %s: %w", of.Scope, err)
	}
	return forgotten, nil
}

const oldLanesSQL = `SELECT l.lane, l.supplier_id FROM lanes l WHERE l.client_id = $1
	AND EXISTS (SELECT 1 FROM exchanges x WHERE x.lane = l.lane AND x.at < $2 AND x.exchange_id < $3) ORDER BY l.lane`

// ForgetLinks deletes the links between operations and calls whose call is
// gone, in steps that keep no other write waiting; it answers how many. It looks
// at the links of operations that were accepted before an instant: most of
// those that are still there are of suppliers who are held.
func ForgetLinks(ctx context.Context, d *db.DB, acceptedBefore time.Time) (forgotten int, err error) {
	until := operation.IDAt(acceptedBefore)
	for operation, call := "", ""; ; {
		var gone [][]any
		looked, lastOperation, lastCall := 0, operation, call
		err := d.Read(ctx, func(r db.Reader) error {
			gone, looked = nil, 0
			rows, err := r.Query(oldLinksSQL, operation, call, until, callLinksLook)
			if err != nil {
				return err
			}
			return rows.Each(func(scan func(...any) error) error {
				var there bool
				if err := scan(&lastOperation, &lastCall, &there); err != nil {
					return err
				}
				if looked++; !there {
					gone = append(gone, []any{lastOperation, lastCall})
				}
				return nil
			})
		})
		if err == nil && len(gone) > 0 {
			err = d.Write(ctx, func(tx *db.Tx) error {
				return tx.ExecEach("DELETE FROM exchange_operations WHERE operation_id = $1 AND exchange_id = $2", gone)
			})
		}
		if err != nil {
			return forgotten, fmt.Errorf("forget links to calls: %w", err)
		}
		if forgotten, operation, call = forgotten+len(gone), lastOperation, lastCall; looked < callLinksLook {
			return forgotten, nil
		}
	}
}

const oldLinksSQL = `SELECT e.operation_id, e.exchange_id, x.exchange_id IS NOT NULL FROM exchange_operations e LEFT JOIN exchanges x ON x.exchange_id = e.exchange_id
	WHERE (e.operation_id, e.exchange_id) > ($1, $2) AND e.operation_id < $3 ORDER BY e.operation_id, e.exchange_id LIMIT $4`

// ForgetOperations deletes the links of operations to calls.
func ForgetOperations(tx *db.Tx, d *db.DB, list string) error {
	return tx.Exec("DELETE FROM exchange_operations WHERE "+d.In("operation_id", "$1"), list)
}
