package series

import (
	"errors"
	"fmt"
	"time"

	"tributary/internal/country"
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
// not after a restored backup, see Leap.

// The bounds of draws. They are what a restored backup counts with.
const (
	Rate  = 500  // numbers a second in the long run
	Burst = 5000 // at once
)

// Slack of Leap: how far clocks may have been set, and how far back a
// backup without any transaction is taken to reach.
const (
	leapSlack   = time.Hour
	leapUnknown = 10 * 365 * 24 * time.Hour
)

// Span are numbers that are drawn and not given out yet.
type Span struct{ Next, End int64 }

// Empty reports whether none is left.
func (s Span) Empty() bool { return s.Next == s.End }

// Sequence takes numbers of an endpoint's sequence: at least one of those that
// are wanted, or none and how long to wait until there is room.
func Sequence(tx *db.Tx, of country.Environment, wall time.Time, want int64) (drawn Span, wait time.Duration, err error) {
	at := db.Micros(wall)
	err = tx.Exec(`INSERT INTO sequences (country, live, next, room, at) VALUES ($1, $2, 1, $3, $4)
		ON CONFLICT (country, live) DO UPDATE SET next = sequences.next`, of.Code, bool(of.Live), Burst, at) // holds the row
	if err != nil {
		return drawn, 0, err
	}
	var next, room, last int64
	if err := tx.Row("SELECT next, room, at FROM sequences WHERE country = $1 AND live = $2", of.Code,
		bool(of.Live)).Scan(&next, &room, &last); err != nil {
		return drawn, 0, err
	}
	at = max(at, last)
	room = min(Burst, room+(at-last)*Rate/int64(time.Second/time.Microsecond))
	take := min(want, Burst, room)
	if take < 1 {
		return drawn, time.Second / Rate, nil // the row keeps its time: room grows from there
	}
	drawn = Span{next, next + take}
	return drawn, 0, tx.ExecOne("UPDATE sequences SET next = $3, room = $4, at = $5 WHERE country = $1 AND live = $2",
		of.Code, bool(of.Live), drawn.End, room-take, at)
}

// Leap moves every sequence and every series past whatever can have been drawn since a
// backup was made: the backup knows when numbers were drawn last, and nobody
// draws more than Burst and Rate allow. So after a restoration
// numbers are left out and none is given twice.
func Leap(tx *db.Tx, atlas *country.Atlas, wall time.Time) error {
	known := wall.Add(-leapUnknown)
	var last int64
	err := tx.Row("SELECT accepted_at FROM operations ORDER BY accepted_at DESC LIMIT 1").Scan(&last)
	if err != nil && !errors.Is(err, db.ErrNoRows) {
		return fmt.Errorf("look for the backup's last transaction: %w", err)
	}
	if err == nil {
		known = db.FromMicros(last)
	}
	for _, code := range atlas.Codes() {
		pack, _ := atlas.Pack(code)
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
	now := db.Micros(wall)
	err = tx.Exec(`UPDATE sequences SET next = next + $1 + (CASE WHEN at < $2 THEN $2 - at ELSE 0 END + $3) / 1000000 * $4 + $4, room = $1, at = $2`,
		Burst, now, leapSlack.Microseconds(), Rate)
	if err != nil {
		return err
	}
	return leapSeries(tx, wall)
}
