package filing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/db"
)

// Some authorities want every filing of an endpoint to carry a number that was
// never used there before ([country.Pack].Sequence), whoever files it.
//
// Failure policy: numbers are drawn in a commit of their own, before the bytes
// that carry them are made, so that a number is on disk as drawn before anybody
// can see it; signing does not belong into a write. A process that dies in between,
// a filing that is made anew, and a draft that the law refuses leave gaps. No
// number is ever given twice: not by two nodes, because a draw holds the row, and
// not after a restored backup, see LeapSequences.

// The bounds of draws. They are what a restored backup counts with.
const (
	sequenceRate  = 500  // numbers a second in the long run
	sequenceBurst = 5000 // at once
)

// Slack of LeapSequences: how far clocks may have been set, and how far back a
// backup without any transaction is taken to reach.
const (
	leapSlack   = time.Hour
	leapUnknown = 10 * 365 * 24 * time.Hour
)

// numbers are drawn and not given out yet.
type numbers struct{ next, end int64 }

// sequence is the number of the next draft; 0 where the country has none. Not
// ready: too many were drawn, and the lane rests until there is room.
func (b *batch) sequence(ctx context.Context) (number int64, ready bool, err error) {
	if !b.pack.Sequence {
		return 0, true, nil
	}
	if b.numbers.next == b.numbers.end {
		want := int64(0)
		for _, o := range b.ops {
			if o.stage == Received && o.filing.Report == nil {
				want++
			}
		}
		if err := b.draw(ctx, min(max(want, 1), sequenceBurst)); err != nil || b.numbers.next == b.numbers.end {
			return 0, false, err
		}
	}
	b.numbers.next++
	return b.numbers.next - 1, true, nil
}

// draw takes numbers of the endpoint's sequence, at least one of those that are
// wanted, or lets the lane rest.
func (b *batch) draw(ctx context.Context, want int64) error {
	var drawn numbers
	var wait time.Duration
	err := b.db.Write(ctx, func(tx *db.Tx) error {
		drawn, wait = numbers{}, 0
		if err := b.lease.Guard(tx); err != nil {
			return err
		}
		at, now := db.Micros(b.db.Wall()), numbers{}
		err := tx.Exec(`INSERT INTO sequences (country, live, next, room, at) VALUES ($1, $2, 1, $3, $4)
			ON CONFLICT (country, live) DO UPDATE SET next = sequences.next`, b.at.Code, bool(b.at.Live), sequenceBurst, at) // holds the row
		if err != nil {
			return err
		}
		var room, last int64
		if err := tx.Row("SELECT next, room, at FROM sequences WHERE country = $1 AND live = $2", b.at.Code, bool(b.at.Live)).Scan(&now.next, &room, &last); err != nil {
			return err
		}
		at = max(at, last)
		room = min(sequenceBurst, room+(at-last)*sequenceRate/int64(time.Second/time.Microsecond))
		take := min(want, room)
		if take < 1 {
			wait = time.Second / sequenceRate
			return nil // the row keeps its time: room grows from there
		}
		drawn = numbers{now.next, now.next + take}
		return tx.ExecOne("UPDATE sequences SET next = $3, room = $4, at = $5 WHERE country = $1 AND live = $2", b.at.Code, bool(b.at.Live), drawn.end, room-take, at)
	})
	if err != nil {
		return fmt.Errorf("draw %d numbers: %w", want, err)
	}
	if wait > 0 {
		b.rest = maxTime(b.rest, b.db.Now().Add(wait))
	}
	b.numbers = drawn
	return nil
}

// LeapSequences moves every sequence past whatever can have been drawn since a
// backup was made: the backup knows when numbers were drawn last, and nobody
// draws more than sequenceBurst and sequenceRate allow. So after a restoration
// numbers are left out and none is given twice.
func (s *Service) LeapSequences(tx *db.Tx) error {
	known := s.db.Wall().Add(-leapUnknown)
	var last int64
	err := tx.Row("SELECT accepted_at FROM operations ORDER BY accepted_at DESC LIMIT 1").Scan(&last)
	if err != nil && !errors.Is(err, db.ErrNoRows) {
		return fmt.Errorf("look for the backup's last transaction: %w", err)
	}
	if err == nil {
		known = db.FromMicros(last)
	}
	for _, code := range s.cfg.Atlas.Codes() {
		pack, _ := s.cfg.Atlas.Pack(code)
		if !pack.Sequence {
			continue
		}
		for _, live := range []bool{false, true} {
			// One that the backup does not know began after it.
			if err := tx.Exec(`INSERT INTO sequences (country, live, next, room, at) VALUES ($1, $2, 1, 0, $3) ON CONFLICT (country, live) DO NOTHING`, pack.Code, live, db.Micros(known)); err != nil {
				return err
			}
		}
	}
	now := db.Micros(s.db.Wall())
	return tx.Exec(`UPDATE sequences SET next = next + $1 + (CASE WHEN at < $2 THEN $2 - at ELSE 0 END + $3) / 1000000 * $4 + $4, room = $1, at = $2`,
		sequenceBurst, now, leapSlack.Microseconds(), sequenceRate)
}
