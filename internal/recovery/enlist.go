package recovery

import (
	"context"
	"fmt"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/hold"
)

// A company that was onboarded after the backup is lost together with its
// sales. Onboarded again it gets a new id, which no restoration has on its
// list; filing holds it at its first sale, and its authority is asked here.

// reonboardedWithin is how long after a restoration a new company may be one of
// those that were lost.
const reonboardedWithin = 90 * 24 * time.Hour

// restoredAt is when the latest restoration began; zero when there was none,
// or it is so long ago that it no longer concerns new companies.
func restoredAt(r db.Reader) (began time.Time, err error) {
	var us *int64
	if err := r.Row("SELECT max(started_at) FROM restorations").Scan(&us); err != nil {
		return began, fmt.Errorf("find a restore: %w", err)
	}
	if us == nil || r.Now().Sub(db.FromMicros(*us)) > reonboardedWithin {
		return began, nil
	}
	return db.FromMicros(*us), nil
}

// enlist puts suppliers that filing holds as newcomers on the list of those whose
// authority is asked. The intake does not wait for them.
func (s *Recovery) enlist(ctx context.Context, worker bool) error {
	if !worker {
		return nil
	}
	var missing []hold.Hold
	err := s.db.Read(ctx, func(r db.Reader) error {
		holds, err := hold.List(r)
		if err != nil {
			return err
		}
		for _, h := range holds {
			var listed bool
			if err := r.Row("SELECT count(*) > 0 FROM restored_suppliers WHERE supplier_id = $1",
				h.SupplierID).Scan(&listed); err != nil {
				return err
			}
			if !listed && h.Reason == fault.Held {
				missing = append(missing, h)
			}
		}
		return nil
	})
	for _, h := range missing {
		if err == nil {
			err = s.enlistOne(ctx, h)
		}
	}
	if err != nil {
		return fmt.Errorf("query new companies after a restored backup: %w", err)
	}
	return nil
}

func (s *Recovery) enlistOne(ctx context.Context, h hold.Hold) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		first, err := firstDay(tx, h.Scope)
		if err != nil {
			return err
		}
		tx.Wake(askQueue.Table)
		return tx.Exec(`INSERT INTO restored_suppliers (supplier_id, client_id, country, live, state, first_day, next_day, ahead, due_at)
			VALUES ($1, $2, $3, $4, 'unasked', $5, $5, 1, $6) ON CONFLICT (supplier_id) DO NOTHING`,
			h.SupplierID, h.Scope, h.Code, bool(h.Live), first, db.Micros(tx.Now()))
	})
}

// firstDay is as early as for the client's other suppliers, or anybody's.
func firstDay(r db.Reader, clientID string) (string, error) {
	var first *string
	var known, started int64
	err := r.Row(`SELECT coalesce((SELECT min(first_day) FROM restored_suppliers WHERE client_id = $1), (SELECT min(first_day) FROM restored_suppliers)), known_to, started_at
		FROM restorations`, clientID).Scan(&first, &known, &started)
	if err != nil {
		return "", err
	}
	if first != nil {
		return *first, nil
	}
	day, earliest := db.FromMicros(known).AddDate(0, 0, -marginDays), db.FromMicros(started).Add(-reonboardedWithin)
	if day.Before(earliest) {
		day = earliest // the backup knew no sale at all
	}
	return day.Format(time.DateOnly), nil
}
