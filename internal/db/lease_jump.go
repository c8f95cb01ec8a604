package db

import (
	"errors"
	"time"
)

const (
	keysFirst = 16 // keys that a claim asks for first
	keysMore  = 4  // times as many it asks for next
	// jumpShare: looking for keys behind those that have no room takes one of so
	// many parts of the time.
	jumpShare = 50
	freshFor  = 2 * time.Second
)

// jumps remembers of a pump when it last looked for keys behind those that have no
// room. Where a thousand keys wait for the slots of one class, each claim
// would walk over all of them to find that no other class has anything to do.
//
// Failure policy: what becomes due behind them is found at once, as long as it is
// among the newest; the rest by the next long look, jumpShare times as much later
// as the last one took. A thousand keys take a few milliseconds.
type jumps struct {
	elapsed func() time.Duration // the clock that nobody sets
	next    time.Duration        // when it may look as far again
	short   bool                 // the last look was a short one: something may be further away
}

func (j *jumps) begin() {
	if j != nil {
		j.short = false
	}
}

// again is how long the next long look is away, where one is wanted.
func (j *jumps) again() (wait time.Duration, wanted bool) {
	return max(j.next-j.elapsed(), time.Millisecond), j.short
}

// jump is one claim's way from key to key.
type jump struct {
	r      Reader
	c      Claim
	at     look
	text   string
	enough int
	looked int
	full   map[string]int // keys found, by class
	long   bool           // it goes on behind keys that have no room
	found  foundKeys

	refused bool // a key is due and has no room
}

// jumpKeys goes over the keys behind c.From and, at their end, over those
// before, until it has enough.
func jumpKeys(r Reader, c Claim, at look, text string) (foundKeys, error) {
	j := jump{r: r, c: c, at: at, text: text, enough: min(keysPerClaim, c.Max), full: map[string]int{}, found: foundKeys{next: c.From}}
	if c.jumps == nil {
		j.long = true
		err := j.round()
		return j.found, err
	}
	began := c.jumps.elapsed()
	j.long = c.jumps.next <= began
	if err := j.round(); err != nil {
		return j.found, err
	}
	if now := c.jumps.elapsed(); j.long && j.looked > keysFirst {
		c.jumps.next = now + (now-began)*jumpShare
	}
	c.jumps.short = !j.long
	if !j.long && len(j.found.keys) == 0 {
		j.found.next = c.From // it begins here again when it may look further
	}
	return j.found, nil
}

func (j *jump) round() error {
	ended, err := j.over(j.c.From, "")
	if err != nil || !ended {
		return err
	}
	j.found.seen = endOfRound
	if j.c.From == "" {
		j.found.seen = wholeRound
		return nil
	}
	if ended, err = j.over("", j.c.From); ended && err == nil {
		j.found.seen = wholeRound
	}
	return err
}

// over goes over the keys behind one, up to another; ended: there are no more. It
// asks for few of them first, and for more while they have room.
func (j *jump) over(from, to string) (ended bool, err error) {
	for step := keysFirst; j.looked < keysLook; step *= keysMore {
		limit := min(step, keysLook-j.looked)
		n, err := j.look(from, to, limit)
		j.looked += n
		if err != nil || len(j.found.keys) == j.enough {
			return false, err
		}
		if n < limit {
			return true, nil
		}
		if !j.long && j.refused {
			return false, nil
		}
		from = j.found.next
	}
	return false, nil
}

func (j *jump) look(from, to string, limit int) (looked int, err error) {
	rows, err := j.r.Query(j.text, j.at.days.after(Micros(j.r.Now()), from, limit, to)...)
	if err != nil {
		return 0, err
	}
	for len(j.found.keys) < j.enough && rows.Next() {
		var key string
		var due bool
		if err := rows.Scan(&key, &due); err != nil {
			return 0, errors.Join(err, rows.Close())
		}
		looked++
		switch j.found.next = key; {
		case !due:
		case j.c.hasRoom(key) && j.c.classes.another(key, j.full):
			j.found.keys = append(j.found.keys, key)
		default:
			j.refused = true
			if len(j.found.spare) < sparesMost {
				j.found.spare = append(j.found.spare, key)
			}
		}
	}
	return looked, rows.Close()
}

// lately is a look at what was made due in the last seconds. The time is bounded
// because of rows that are gone and still stand in the index: see floor.
func (l look) lately(now time.Time) look {
	return look{from: Micros(now.Add(-freshFor)), days: l.days}
}
