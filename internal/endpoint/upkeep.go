package endpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/lease"
	"tributary/internal/secret"
)

const expiryEvery = time.Hour

// Tasks are what is done again and again.
func (e *Endpoints) Tasks() []lease.Task {
	return []lease.Task{lease.Every("endpoint_expiry", expiryEvery, func(ctx context.Context) error {
		_, err := e.RaiseExpiryAlarms(ctx)
		return err
	})}
}

// RaiseExpiryAlarms raises the alarms of certificates that end soon, each once
// per certificate, in one commit with the mark that it was raised.
func (e *Endpoints) RaiseExpiryAlarms(ctx context.Context) (raised int, err error) {
	err = e.db.Write(ctx, func(tx *db.Tx) error {
		raised = 0
		for _, stage := range alert.Expiring() {
			n, err := e.raiseStage(tx, stage)
			if err != nil {
				return err
			}
			raised += n
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("raise alarms of the operator's certificates: %w", err)
	}
	return raised, nil
}

type ending struct {
	at   country.Environment
	ends int64
}

func (e *Endpoints) raiseStage(tx *db.Tx, stage alert.Expiry) (int, error) {
	limit := db.Micros(tx.Wall().AddDate(0, 0, stage.Days))
	due, err := db.Collect(tx, func(scan func(...any) error) (x ending, err error) {
		return x, scan(&x.at.Code, (*bool)(&x.at.Live), &x.ends)
	}, endingSQL, limit, stage.Days)
	if err != nil {
		return 0, err
	}
	for _, x := range due {
		if err := tx.Exec(alarmedSQL, stage.Days, x.at.Code, bool(x.at.Live)); err != nil {
			return 0, err
		}
		message := fmt.Sprintf("the operator's certificate at the authority of %s expires at %s", x.at,
			db.FromMicros(x.ends).Format(time.RFC3339))
		if e.cfg.Alerts == nil {
			tx.OnCommit(func() { e.log.Error(message, "alert", string(stage.Name), "subject", x.at.String()) })
			continue
		}
		if err := e.cfg.Alerts.RaiseIn(tx, stage.Name, x.at.String(), message); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

// Rewrap moves every data key of ours to the current master key and returns how
// many it moved.
func (e *Endpoints) Rewrap(ctx context.Context) (moved int, err error) {
	if e.cfg.Master == nil {
		return 0, fmt.Errorf("re-wrap the authorities' data keys: %w", errNoMaster)
	}
	current, err := e.cfg.Master.KeyID()
	if err != nil {
		return 0, fmt.Errorf("re-wrap the authorities' data keys: %w", err)
	}
	var all []row
	if err := e.db.Read(ctx, func(r db.Reader) (err error) { all, err = readRows(r); return err }); err != nil {
		return 0, fmt.Errorf("re-wrap the authorities' data keys: %w", err)
	}
	for _, one := range all {
		if id, err := secret.KeyID(one.wrapped); one.wrapped == nil || err == nil && id == current {
			continue
		}
		again, err := e.cfg.Master.Rewrap(one.wrapped, about(one.at))
		if err != nil {
			return moved, fmt.Errorf("re-wrap the data key of %s: %w", one.at, err)
		}
		err = e.db.Write(ctx, func(tx *db.Tx) error {
			return tx.ExecOne(rewrapSQL, again, one.at.Code, bool(one.at.Live), one.wrapped)
		})
		switch {
		case errors.Is(err, db.ErrStale): // set anew, or moved by another run, meanwhile
		case err != nil:
			return moved, fmt.Errorf("re-wrap the data key of %s: %w", one.at, err)
		default:
			moved++
		}
	}
	return moved, nil
}
