package filing

import (
	"context"
	"fmt"
	"time"

	"tributary/internal/db"
)

// A company that was onboarded after the backup is lost together with its
// sales. Onboarded again it gets a new id, which no restoration has on its
// list; its authority must be asked all the same before anything is filed.

// reonboardedWithin is how long after a restoration a new company may be one of
// those that were lost.
const reonboardedWithin = 90 * 24 * time.Hour

// restoredAt is when the latest restoration began; zero when there was none,
// or it is so long ago that it no longer concerns new companies.
func restoredAt(r db.Reader) (began time.Time, err error) {
	var us *int64
	if err := r.Row("SELECT max(started_at) FROM restorations").Scan(&us); err != nil {
		return began, fmt.Errorf("look for a restoration: %w", err)
	}
	if us == nil || r.Now().Sub(db.FromMicros(*us)) > reonboardedWithin {
		return began, nil
	}
	return db.FromMicros(*us), nil
}

// enlist puts a supplier that is younger than the restoration on its list, and
// holds it. The intake does not wait for it.
func (v *visit) enlist(ctx context.Context) error {
	company, err := v.cfg.Companies.Company(ctx, v.at.Scope, v.at.SupplierID, false)
	if err != nil {
		return fmt.Errorf("read the company: %w", err)
	}
	if time.Time(company.CreatedAt).Before(v.restoredAt) {
		return nil // onboarded by a program without authorities for its country; nothing was filed
	}
	err = v.db.Write(ctx, func(tx *db.Tx) error {
		var first *string
		var known int64
		// As early as for the client's other suppliers, or anybody's.
		err := tx.Row(`SELECT coalesce((SELECT min(first_day) FROM restored_suppliers WHERE client_id = $1), (SELECT min(first_day) FROM restored_suppliers)), known_to
			FROM restorations`, v.at.Scope).Scan(&first, &known)
		if err != nil {
			return err
		}
		if first == nil {
			day := db.FromMicros(known).AddDate(0, 0, -marginDays)
			if day.Before(v.restoredAt.Add(-reonboardedWithin)) {
				day = v.restoredAt.Add(-reonboardedWithin) // the backup knew no sale at all
			}
			text := day.Format(time.DateOnly)
			first = &text
		}
		tx.Wake(askQueue.Table)
		return tx.Exec(`INSERT INTO restored_suppliers (supplier_id, client_id, country, live, state, first_day, next_day, ahead, due_at)
			VALUES ($1, $2, $3, $4, 'unasked', $5, $5, 1, $6) ON CONFLICT (supplier_id) DO NOTHING`,
			v.at.SupplierID, v.at.Scope, v.at.Code, bool(v.at.Live), *first, db.Micros(tx.Now()))
	})
	if err != nil {
		return fmt.Errorf("ask about a new company after a restored backup: %w", err)
	}
	v.heldBack = HeldTrouble + ": the authority has not said yet what it holds (" + string(stateUnasked) + ")"
	return nil
}
