package lease

import (
	"context"
	"sync/atomic"
	"time"

	"tributary/internal/db"
)

// lowWater remembers below which instant nothing is due any more. PostgreSQL keeps
// what a row was for as long as anybody has an older snapshot, in the index,
// too: while a backup or a forgotten session is open, a claim that looks for the
// oldest due row would step over everything that was ever due since, half a
// million rows in a busy hour. SQLite keeps nothing of the kind.
//
// Failure policy: what becomes due is due about now, at the earliest as long ago
// as a commit takes; lowWaterMargin covers that. Whatever is due earlier all the
// same (somebody set it back by hand) is found by the next look at everything,
// at most lowWaterWhole later. It is memory of one pump: losing it costs one slow claim.
type lowWater struct {
	at    int64         // nothing is due before it; 0: not known
	whole time.Duration // when everything was last looked at
	days  atomic.Pointer[spans]
}

// open says in which days something is open, as far as is known.
func (w *lowWater) open() *spans {
	if w == nil {
		return nil
	}
	return w.days.Load()
}

// forget has the next claim look at everything.
func (w *lowWater) forget() { w.at = 0 }

const (
	lowWaterMargin = db.WriteTimeout + 18*time.Second
	lowWaterWhole  = 15 * time.Second
)

// look is one look at what is due, from an instant on.
type look struct {
	from int64
	days *spans
	low  *lowWater
}

// begin says from where a claim looks, and in which days, which find looks for.
func (w *lowWater) begin(ctx context.Context, d *db.DB, find func(context.Context, *db.DB) (*spans, error)) (look, error) {
	if w == nil || !dialectOf(d).sets {
		return look{}, nil
	}
	if now := d.Elapsed(); w.at == 0 || now-w.whole > lowWaterWhole {
		days, err := find(ctx, d)
		if err != nil {
			return look{}, err
		}
		w.whole = now
		w.days.Store(days)
		return look{days: days, low: w}, nil
	}
	return look{from: w.at, days: w.open(), low: w}, nil
}

// nothingBefore notes that this look found nothing due before an instant.
func (l look) nothingBefore(at int64) {
	if l.low != nil {
		l.low.at = max(at-lowWaterMargin.Microseconds(), l.from)
	}
}
