package lease

import (
	"errors"
	"time"

	"tributary/internal/db"
)

const (
	keysFirst = 16 // keys that a claim asks for first
	keysMore  = 4  // times as many it asks for next
	// scanShare: looking for keys behind those that have no room takes one of so
	// many parts of the time.
	scanShare = 50
	freshFor  = 2 * time.Second
)

// keyScan remembers of a pump when it last looked for keys behind those that have no
// room. Where a thousand keys wait for the slots of one class, each claim
// would walk over all of them to find that no other class has anything to do.
//
// Failure policy: what becomes due behind them is found at once, as long as it is
// among the newest; the rest by the next long look, scanShare times as much later
// as the last one took. A thousand keys take a few milliseconds.
type keyScan struct {
	elapsed func() time.Duration // the clock that nobody sets
	next    time.Duration        // when it may look as far again
	short   bool                 // the last look was a short one: something may be further away
}

func (s *keyScan) begin() {
	if s != nil {
		s.short = false
	}
}

func (s *keyScan) wasShort() bool { return s != nil && s.short }

// again is how long the next long look is away, where one is wanted.
func (s *keyScan) again() (wait time.Duration, wanted bool) {
	return max(s.next-s.elapsed(), time.Millisecond), s.short
}

// walk is one claim's way from key to key.
type walk struct {
	r      db.Reader
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

// scanKeys goes over the keys behind c.From and, at their end, over those
// before, until it has enough.
func scanKeys(r db.Reader, c Claim, at look, text string) (foundKeys, error) {
	w, scan := walk{r: r, c: c, at: at, text: text, enough: min(keysPerClaim, c.Max), full: map[string]int{},
		found: foundKeys{next: c.From}}, c.memory.scan
	if scan == nil {
		w.long = true
		err := w.round()
		return w.found, err
	}
	began := scan.elapsed()
	w.long = scan.next <= began
	if err := w.round(); err != nil {
		return w.found, err
	}
	if now := scan.elapsed(); w.long && w.looked > keysFirst {
		scan.next = now + (now-began)*scanShare
	}
	scan.short = !w.long
	if !w.long && len(w.found.keys) == 0 {
		w.found.next = c.From // it begins here again when it may look further
	}
	return w.found, nil
}

func (w *walk) round() error {
	ended, err := w.over(w.c.From, "")
	if err != nil || !ended {
		return err
	}
	w.found.seen = endOfRound
	if w.c.From == "" {
		w.found.seen = wholeRound
		return nil
	}
	if ended, err = w.over("", w.c.From); ended && err == nil {
		w.found.seen = wholeRound
	}
	return err
}

// over goes over the keys behind one, up to another; ended: there are no more. It
// asks for few of them first, and for more while they have room.
func (w *walk) over(from, to string) (ended bool, err error) {
	for step := keysFirst; w.looked < keysLook; step *= keysMore {
		limit := min(step, keysLook-w.looked)
		n, err := w.look(from, to, limit)
		w.looked += n
		if err != nil || len(w.found.keys) == w.enough {
			return false, err
		}
		if n < limit {
			return true, nil
		}
		if !w.long && w.refused {
			return false, nil
		}
		from = w.found.next
	}
	return false, nil
}

func (w *walk) look(from, to string, limit int) (looked int, err error) {
	rows, err := w.r.Query(w.text, w.at.days.after(db.Micros(w.r.Now()), from, limit, to)...)
	if err != nil {
		return 0, err
	}
	for len(w.found.keys) < w.enough && rows.Next() {
		var key string
		var due bool
		if err := rows.Scan(&key, &due); err != nil {
			return 0, errors.Join(err, rows.Close())
		}
		looked++
		switch w.found.next = key; {
		case !due:
		case w.c.hasRoom(key) && w.c.classes.another(key, w.full):
			w.found.keys = append(w.found.keys, key)
		default:
			w.refused = true
			if len(w.found.unclaimed) < readyMost {
				w.found.unclaimed = append(w.found.unclaimed, key)
			}
		}
	}
	return looked, rows.Close()
}

// lately is a look at what was made due in the last seconds. The time is bounded
// because of rows that are gone and still stand in the index: see lowWater.
func (l look) lately(now time.Time) look {
	return look{from: db.Micros(now.Add(-freshFor)), days: l.days}
}
