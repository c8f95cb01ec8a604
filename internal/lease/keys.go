package lease

import (
	"slices"

	"tributary/internal/db"
)

// foundKeys are keys with due rows and room, in the order in which they have their turn.
type foundKeys struct {
	keys []string
	ring int    // so many of them stand in the order of the round, others have only the oldest rows
	next string // where the next claim should begin when all of them had their turn
	seen round
	all  bool // there are no others

	unclaimed []string // due, and without room: see readyKeys

	turned bool // the order is that of turns, not of the round
}

// share gives each key an equal part of what may be claimed.
func (f *foundKeys) share(c Claim, single bool) (keys []string, rooms []int64) {
	part := max(1, c.Max/max(1, len(f.keys)))
	if single {
		part = 1 // a lane is one row
	}
	left := c.Max
	for i, key := range f.keys {
		if left == 0 {
			f.leave(i, c.From)
			break
		}
		if !c.classes.take(key) {
			f.unclaimed = append(f.unclaimed, key)
			continue // it has its turn when its class has room
		}
		n := min(part, left, c.room(key))
		keys, rooms, left = append(keys, key), append(rooms, int64(n)), left-n
		c.memory.turns.had(key)
	}
	return keys, rooms
}

// leave notes that the keys from a place on have no share in this claim, which began at from.
func (f *foundKeys) leave(at int, from string) {
	f.seen = partOfRound
	f.unclaimed = append(f.unclaimed, f.keys[at:]...)
	switch {
	case f.turned:
		f.next = from
	case at <= f.ring:
		f.next = f.keys[at-1]
	}
}

// add appends keys that are not among them, as far as one claim goes.
func (f *foundKeys) add(keys []string) {
	for _, key := range keys {
		if len(f.keys) < keysPerClaim && !slices.Contains(f.keys, key) {
			f.keys = append(f.keys, key)
		}
	}
}

// dueKeys finds keys with due rows. With few due rows it reads them. With a
// backlog it also goes through the index from key to key, which costs the
// number of keys and not of rows: behind the longest backlog of one key the
// others are found, and however many keys only wait for later, the next claim
// goes on where this one stopped.
func (q *Queue[T]) dueKeys(r db.Reader, c Claim, look look) (foundKeys, error) {
	oldest, err := oldestKeys(r, c, look, q.keysText(oldestKeysSQL, look.days, 3))
	if err != nil {
		return foundKeys{}, err
	}
	if oldest.all {
		oldest.keys = behind(slices.Sorted(slices.Values(oldest.keys)), c.From)
		oldest.ring, oldest.next, oldest.seen = len(oldest.keys), c.From, wholeRound
		return oldest, nil
	}
	found, err := scanKeys(r, c, look, q.keysText(keyScanSQL, look.days, 4))
	if err != nil {
		return foundKeys{}, err
	}
	found.ring = len(found.keys)
	found.add(oldest.keys)
	found.unclaimed = append(found.unclaimed, oldest.unclaimed...)
	if c.memory.scan.wasShort() {
		// It did not look behind the keys without room. What was made due a moment
		// ago, of another class, does not wait until it does.
		fresh, err := oldestKeys(r, c, look.lately(r.Now()), q.keysText(newestKeysSQL, look.days, 3))
		if err != nil {
			return foundKeys{}, err
		}
		found.add(fresh.keys)
		found.unclaimed = append(found.unclaimed, fresh.unclaimed...)
	}
	return found, nil
}

// room is how many rows of a key may be taken.
func (c Claim) room(key string) int {
	if c.Room == nil {
		return c.Max
	}
	return c.Room(key)
}

// hasRoom: nobody needs to look at a key that may not take anything.
func (c Claim) hasRoom(key string) bool { return c.classes.left(key) && c.room(key) > 0 }

// oldestKeys reads the keys of the oldest due rows; all: there are no other due rows.
func oldestKeys(r db.Reader, c Claim, look look, text string) (found foundKeys, err error) {
	rows, err := r.Query(text, look.days.after(db.Micros(r.Now()), oldestLook, look.from)...)
	if err != nil {
		return found, err
	}
	total, oldest := 0, db.Micros(r.Now())
	err = rows.Each(func(scan func(...any) error) error {
		var key string
		var many int
		var free bool
		var first int64
		err := scan(&key, &many, &free, &first)
		oldest = min(oldest, first)
		switch total += many; {
		case free && c.hasRoom(key):
			found.keys = append(found.keys, key)
		case free:
			found.unclaimed = append(found.unclaimed, key)
		}
		return err
	})
	if err == nil {
		look.nothingBefore(oldest)
	}
	found.all = total < oldestLook
	return found, err
}
