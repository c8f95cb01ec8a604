package document

import (
	"container/list"
	"sync"
)

// sized is a value that knows what it occupies.
type sized interface{ size() int }

// cache keeps the values last used, up to a number of bytes. What made a value
// is repeatable, so forgetting one costs time and nothing else.
type cache[K comparable, V sized] struct {
	bytesMax int

	mu    sync.Mutex
	bytes int
	order *list.List // of *cached[K, V], the last used first
	items map[K]*list.Element
}

type cached[K comparable, V sized] struct {
	key   K
	value V
}

func newCache[K comparable, V sized](bytesMax int) *cache[K, V] {
	return &cache[K, V]{bytesMax: bytesMax, order: list.New(), items: make(map[K]*list.Element)}
}

// get returns the value of key, made now if it is not kept. Two callers may
// make the same value at the same time; neither waits for the other.
func (c *cache[K, V]) get(key K, make func() (V, error)) (V, error) {
	c.mu.Lock()
	if e, ok := c.items[key]; ok {
		c.order.MoveToFront(e)
		value := e.Value.(*cached[K, V]).value
		c.mu.Unlock()
		return value, nil
	}
	c.mu.Unlock()
	value, err := make()
	if err != nil {
		return value, err
	}
	c.put(key, value)
	return value, nil
}

func (c *cache[K, V]) put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.items[key]; ok || value.size() > c.bytesMax {
		return
	}
	c.items[key] = c.order.PushFront(&cached[K, V]{key, value})
	c.bytes += value.size()
	for c.bytes > c.bytesMax {
		oldest := c.order.Back()
		entry := c.order.Remove(oldest).(*cached[K, V])
		delete(c.items, entry.key)
		c.bytes -= entry.value.size()
	}
}
