package lease

// classes bounds the rows of a queue that are in work at the same time by the
// class of their keys: what one class waits for must not hold up the others.
type classes struct {
	of   func(key string) string
	most int
	busy map[string]int

	refused bool // a key had no room
}

// left is how many rows of a key's class may still be taken.
func (c *classes) left(key string) bool { return c == nil || c.busy[c.of(key)] < c.most }

// take notes that a row of a key is taken; false: its class has no room.
func (c *classes) take(key string) bool {
	if c == nil {
		return true
	}
	class := c.of(key)
	if c.busy[class] >= c.most {
		c.refused = true
		return false
	}
	c.busy[class]++
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
	if c.busy[class]+found[class] >= c.most {
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
	c := &classes{of: p.Class, most: p.ClassMost, busy: map[string]int{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.held {
		c.busy[p.Class(l.Key)]++
	}
	return c
}
