package lease

import (
	"slices"
	"strings"

	"tributary/internal/db"
)

// turns remembers whose turn it was, so that a pump that has fewer slots than
// there is work goes round the owners of the keys, and round the keys of each.
// It is memory of one process: losing it costs somebody a place in a round.
type turns struct {
	group string
	last  string            // owner that had the last turn
	keys  map[string]string // by owner: its key that had the last turn
}

const (
	ownersPerClaim  = 32   // owners one claim looks for keys of; the next goes on behind them
	ownersKnownMost = 4096 // owners whose place is remembered
)

func newTurns(group string) *turns {
	if group == "" {
		return nil
	}
	return &turns{group: group, keys: map[string]string{}}
}

func (t *turns) owner(key string) string {
	owner, _, _ := strings.Cut(key, t.group)
	return owner
}

// had notes a turn.
func (t *turns) had(key string) {
	if t == nil {
		return
	}
	if len(t.keys) >= ownersKnownMost {
		clear(t.keys)
	}
	t.last = t.owner(key)
	t.keys[t.last] = key
}

// noteUnclaimed remembers whose keys had no slot at the last look.
func (p *Pump[T]) noteUnclaimed(keys []string) {
	t := p.memory.turns
	if t == nil {
		return
	}
	owners := make(map[string]bool, len(keys))
	for _, key := range keys {
		owners[t.owner(key)] = true
	}
	p.mu.Lock()
	p.unclaimed = owners
	p.mu.Unlock()
}

// Beside says of a row in work how many rows of other owners are in work as well, and
// whether keys of others were due without a slot at the last look.
func (p *Pump[T]) Beside(key string) (working int, waiting bool) {
	t := p.memory.turns
	if t == nil {
		return 0, false
	}
	own := t.owner(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.held {
		if t.owner(l.Key) != own {
			working++
		}
	}
	for owner := range p.unclaimed {
		waiting = waiting || owner != own
	}
	return working, waiting
}

// order puts keys into the order of their turns: one of each owner, beginning
// behind the owner and the keys that had the last ones, then another of each.
func (t *turns) order(keys []string) []string {
	byOwner := map[string][]string{}
	var owners []string
	for _, key := range slices.Sorted(slices.Values(keys)) {
		owner := t.owner(key)
		if byOwner[owner] == nil {
			owners = append(owners, owner)
		}
		byOwner[owner] = append(byOwner[owner], key)
	}
	owners = behind(owners, t.last)
	for owner, own := range byOwner {
		byOwner[owner] = behind(own, t.keys[owner])
	}
	ordered := make([]string, 0, len(keys))
	for n := 0; len(ordered) < len(keys); n++ {
		for _, owner := range owners {
			if own := byOwner[owner]; n < len(own) {
				ordered = append(ordered, own[n])
			}
		}
	}
	return ordered
}

// behind turns a sorted list so that it begins behind one of its members.
func behind(list []string, last string) []string {
	at, found := slices.BinarySearch(list, last)
	if found {
		at++
	}
	return slices.Concat(list[at:], list[:at])
}

// takeTurns gives every owner a share of a claim. Behind an owner with
// thousands of keys, each with work, the others would wait for all of them.
func (q *Queue[T]) takeTurns(r db.Reader, by dialect, c Claim, found *foundKeys) error {
	if c.memory.turns == nil {
		return nil
	}
	if !found.all {
		owners, err := q.waitingOwners(r, by, c.memory.turns)
		if err != nil || len(owners) < 2 {
			return err
		}
		share := max(1, min(keysPerClaim, c.Max)/len(owners))
		for _, owner := range owners {
			own, unclaimed, err := q.keysOf(r, c, owner, share)
			if err != nil {
				return err
			}
			found.unclaimed = append(found.unclaimed, unclaimed...)
			for _, key := range own { // beside the bound of one claim: nobody's share is cut off
				if !slices.Contains(found.keys, key) {
					found.keys = append(found.keys, key)
				}
			}
		}
	}
	found.keys, found.turned = c.memory.turns.order(found.keys), true
	return nil
}

// waitingOwners jumps from owner to owner, beginning behind the one that had the last turn.
func (q *Queue[T]) waitingOwners(r db.Reader, by dialect, t *turns) (owners []string, err error) {
	text := strings.NewReplacer("{find}", by.find, "{group}", t.group, "{past}",
		t.pastGroup()).Replace(q.keysText(ownersSQL, nil, 0))
	for _, from := range []string{t.last + t.pastGroup(), ""} {
		rows, err := r.Query(text, from, ownersPerClaim)
		if err != nil {
			return nil, err
		}
		err = rows.Each(func(scan func(...any) error) error {
			var key string
			err := scan(&key)
			if owner := t.owner(key); len(owners) < ownersPerClaim && !slices.Contains(owners, owner) {
				owners = append(owners, owner)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return owners, nil
}

// pastGroup is what follows the group's character: every key of an owner is less than the owner with it.
func (t *turns) pastGroup() string { return string(t.group[0] + 1) }

// keysOf finds due keys of one owner, beginning behind the one that had the last turn.
func (q *Queue[T]) keysOf(r db.Reader, c Claim, owner string, limit int) (keys, unclaimed []string, err error) {
	turns := c.memory.turns
	first, end := owner+turns.group, owner+turns.pastGroup()
	spans := [][2]string{{first, end}}
	if last := turns.keys[owner]; last != "" {
		spans = [][2]string{{last, end}, {first, last}}
	}
	text := q.keysText(keyScanSQL, nil, 0)
	look, looked, key := keysLook/ownersPerClaim+limit, 0, ""
	for _, span := range spans {
		rows, err := r.Query(text, db.Micros(r.Now()), span[0], look, span[1])
		if err != nil {
			return nil, nil, err
		}
		err = rows.Each(func(scan func(...any) error) error {
			var due bool
			err := scan(&key, &due)
			looked++
			switch {
			case !due:
			case c.hasRoom(key) && len(keys) < limit:
				keys = append(keys, key)
			case len(unclaimed) < limit:
				unclaimed = append(unclaimed, key)
			}
			return err
		})
		if err != nil || len(keys) > 0 {
			return keys, unclaimed, err
		}
		if looked >= look {
			turns.keys[owner] = key // all of these wait for later: the next look begins behind them
			return nil, unclaimed, nil
		}
	}
	return nil, unclaimed, nil
}
