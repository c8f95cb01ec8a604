package lease

// classes bounds the rows of a queue that are in work at the same time by the
// class of their keys: what one class waits for must not hold up the others.
type classes struct {
	of    func(key string) string
	most  int
	busy  map[string]int
	turns *turns                    // tells owners; nil: there are none
	own   map[string]map[string]int // of busy, by owner

	refused bool // a key had no room
}

// lastSlots is which part of a class's slots is kept for owners that have less than an
// equal share of them, where several are at work: a slot is given back after a batch
// at the earliest, and the others would wait for that.
const lastSlots = 8

// left reports whether a row of a key's class may still be taken.
func (c *classes) left(key string) bool { return c == nil || c.room(c.of(key), key, 0) }

// room is left beside so many more of the class.
func (c *classes) room(class, key string, more int) bool {
	busy := c.busy[class] + more
	if busy < c.most-c.most/lastSlots || c.turns == nil {
		return busy < c.most
	}
	owner, own := c.turns.owner(key), c.own[class]
	owners := len(own)
	if own[owner] == 0 {
		owners++
	}
	return busy < c.most && (owners < 2 || own[owner] < max(1, c.most/owners))
}

// note counts a row in work.
func (c *classes) note(key string) {
	class := c.of(key)
	c.busy[class]++
	if c.turns == nil {
		return
	}
	if c.own[class] == nil {
		c.own[class] = map[string]int{}
	}
	c.own[class][c.turns.owner(key)]++
}

// take notes that a row of a key is taken; false: its class has no room.
func (c *classes) take(key string) bool {
	if c == nil {
		return true
	}
	if !c.left(key) {
		c.refused = true
		return false
	}
	c.note(key)
	return true
}

// refusals reports whether a key had no room: claiming again at once would bring
// nothing of its class.
func (c *classes) refusals() bool { return c != nil && c.refused }

// another notes in found one more key of its class that may be taken; false: the
// class has no room for it beside those.
func (c *classes) another(key string, found map[string]int) bool {
	if c == nil {
		return true
	}
	class := c.of(key)
	if !c.room(class, key, found[class]) {
		return false
	}
	found[class]++
	return true
}

// classesNow counts what is in work.
func (p *Pump[T]) classesNow() *classes {
	if p.Class == nil {
		return nil
	}
	c := &classes{of: p.Class, most: p.ClassMost, busy: map[string]int{}, turns: p.memory.turns,
		own: map[string]map[string]int{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.held {
		c.note(l.Key)
	}
	return c
}
