package lease

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"tributary/internal/db"
)

const (
	readyMost = 64 // keys that are remembered
	// readyFor is how long. What becomes due meanwhile wakes the pump, which looks anew;
	// what was due and further away than a look reaches waits that much longer.
	readyFor = 100 * time.Millisecond
)

// readyKeys are keys that a pump's last look found due and had no room for. The next
// slot that is free takes one of them without looking for it again: where many
// companies wait for the slots of one authority, looking costs more than claiming.
// It is for queues with a feed, whose keys are rows.
//
// Failure policy: it is memory of one pump. What another node has taken meanwhile
// is not claimed, and the pump looks anew.
type readyKeys struct {
	elapsed func() time.Duration // the clock that nobody sets
	turns   *turns
	shared  bool // other nodes claim, too
	keys    []string
	until   time.Duration
}

// keep remembers what a look found beyond what was claimed, in the order of turns.
func (s *readyKeys) keep(found, claimed []string) {
	if s == nil {
		return
	}
	keys := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(found))), func(key string) bool {
		return slices.Contains(claimed, key)
	})
	if s.turns != nil {
		keys = s.begin(keys).order(keys)
	}
	s.keys, s.until = keys[:min(len(keys), readyMost)], s.elapsed()+readyFor
}

// begin says where the turns of each owner's keys begin. Nodes that looked at the same
// moment found the same keys, so each begins somewhere else.
func (s *readyKeys) begin(keys []string) *turns {
	if !s.shared || len(keys) == 0 {
		return s.turns
	}
	t := newTurns(s.turns.group)
	t.last = s.turns.last
	for _, at := range rand.Perm(len(keys)) {
		t.keys[t.owner(keys[at])] = keys[at]
	}
	return t
}

// left is how long keys are still remembered; 0: there are none.
func (s *readyKeys) left() time.Duration {
	if len(s.keys) == 0 {
		return 0
	}
	return max(s.until-s.elapsed(), 0)
}

// next takes out keys that have room now, as many as may be claimed.
func (s *readyKeys) next(c *classes, most int) (keys []string) {
	if s.left() == 0 {
		return nil
	}
	s.keys = slices.DeleteFunc(s.keys, func(key string) bool {
		if len(keys) == most || !c.take(key) {
			return false
		}
		keys = append(keys, key)
		return true
	})
	return keys
}

// claimReady fills free slots with keys that are remembered; false: a look is needed.
func (p *Pump[T]) claimReady(ctx context.Context, free int) (leases []*Lease[T], done bool) {
	keys := p.memory.ready.next(p.classesNow(), free)
	if len(keys) == 0 {
		return nil, false
	}
	err := p.DB.Write(ctx, func(tx *db.Tx) (err error) {
		leases, err = p.Queue.claimFed(tx, keys)
		return err
	})
	if err != nil {
		return nil, false // the look says what is wrong
	}
	for _, key := range keys {
		p.memory.turns.had(key)
	}
	p.noteUnclaimed(p.memory.ready.keys)
	return leases, len(leases) == len(keys)
}
