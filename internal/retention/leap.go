package retention

import (
	"context"
	"fmt"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/files"
)

// A clock that leaps is believed after a week. Rounds are a day apart: where one
// comes much later than the one before, the service was off for long, or its
// clock is wrong, and years that are over by a wrong clock are not over.
//
// Failure policy: what is destroyed cannot be had back, so everything waits,
// the legal record and diagnostics, and somebody is told.
const (
	leapMin  = 30 * 24 * time.Hour // between two rounds
	leapWait = 7 * 24 * time.Hour
)

// doubted is until when the clock is not believed; zero when it is.
func doubted(started []time.Time, now time.Time) (until time.Time) {
	next := now
	for _, at := range started { // newest first
		if at.After(now) {
			continue // of a clock that was ahead and was put back
		}
		if now.Sub(next) >= leapWait {
			return time.Time{}
		}
		if next.Sub(at) > leapMin {
			return next.Add(leapWait)
		}
		next = at
	}
	return time.Time{}
}

// waits reports whether nothing is forgotten in this round, and tells somebody.
func (r *Retention) waits(ctx context.Context, now time.Time) (bool, error) {
	var started []time.Time
	err := r.cfg.DB.Read(ctx, func(reader db.Reader) (err error) {
		started, err = db.Collect(reader, func(scan func(...any) error) (time.Time, error) {
			var at int64
			err := scan(&at)
			return db.FromMicros(at), err
		}, startedSQL, roundsKept)
		return err
	})
	if err != nil {
		return true, fmt.Errorf("read earlier runs: %w", err)
	}
	until := doubted(started, now)
	if until.IsZero() {
		return false, nil
	}
	return true, r.cfg.Alerts.Raise(ctx, alert.RetentionFailed, "clock", fmt.Sprintf(
		"the clock says %s, over a month after the previous run: nothing is deleted before %s; correct the clock if it is wrong",
		now.UTC().Format(time.DateOnly), until.UTC().Format(time.DateOnly)))
}

// certain reports whether this database is the one whose documents the store holds, and no restoration is under way: a
// copy destroys nothing.
func (r *Retention) certain(ctx context.Context) (certain bool, err error) {
	err = r.cfg.DB.Read(ctx, func(reader db.Reader) error {
		own, err := files.OwnershipOf(reader)
		certain = own.Certain()
		return err
	})
	return certain, err
}
