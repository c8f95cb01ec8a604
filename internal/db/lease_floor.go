package db

import (
	"context"
	"sync/atomic"
	"time"
)

// floor remembers below which instant nothing is due any more. PostgreSQL keeps
// what a row was for as long as anybody has an older snapshot, in the index,
// too: while a backup or a forgotten session is open, a claim that looks for the
// oldest due row would step over everything that was ever due since, half a
// million rows in a busy hour. SQLite keeps nothing of the kind.
//
// Failure policy: what becomes due is due about now, at the earliest as long ago
// as a commit takes; floorMargin covers that. Whatever is due earlier all the
// same (somebody set it back by hand) is found by the next look at everything,
// at most floorWhole later. It is memory of one pump: losing it costs one slow claim.
type floor struct {
	at    int64         // nothing is due before it; 0: not known
	whole time.Duration // when everything was last looked at
	days  atomic.Pointer[spans]
}

// open says in which days something is open, as far as is known.
func (f *floor) open() *spans {
	if f == nil {
		return nil
	}
	return f.days.Load()
}

// forget has the next claim look at everything.
func (f *floor) forget() { f.at = 0 }

const (
	floorMargin = Patience + 18*time.Second
	floorWhole  = 15 * time.Second
)

// look is one look at what is due, from an instant on.
type look struct {
	from  int64
	days  *spans
	floor *floor
}

// begin says from where a claim looks, and in which days, which find looks for.
func (f *floor) begin(ctx context.Context, d *DB, find func(context.Context, *DB) (*spans, error)) (look, error) {
	if f == nil || !d.eng.claimSQL().sets {
		return look{}, nil
	}
	if now := d.clock.elapsed(); f.at == 0 || now-f.whole > floorWhole {
		days, err := find(ctx, d)
		if err != nil {
			return look{}, err
		}
		f.whole = now
		f.days.Store(days)
		return look{days: days, floor: f}, nil
	}
	return look{from: f.at, days: f.open(), floor: f}, nil
}

// nothingBefore notes that this look found nothing due before an instant.
func (l look) nothingBefore(at int64) {
	if l.floor != nil {
		l.floor.at = max(at-floorMargin.Microseconds(), l.from)
	}
}
