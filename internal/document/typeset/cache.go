package typeset

import (
	"container/list"
	"sync"
)

// Sized is a value that knows what it occupies.
type Sized interface{ Size() int }

// Cache keeps the values last used, up to a number of bytes. What made a value
// is repeatable, so forgetting one costs time and nothing else.
type Cache[K comparable, V Sized] struct {
	bytesMax int

	mu    sync.Mutex
	bytes int
	order *list.List // of *cached[K, V], the last used first
	items map[K]*list.Element
}

type cached[K comparable, V Sized] struct {
	key   K
	value V
}

// NewCache returns an empty cache.
func NewCache[K comparable, V Sized](bytesMax int) *Cache[K, V] {
	return &Cache[K, V]{bytesMax: bytesMax, order: list.New(), items: make(map[K]*list.Element)}
}

// Get returns the value of key, made now if it is not kept. Two callers may
// make the same value at the same time; neither waits for the other.
func (c *Cache[K, V]) Get(key K, make func() (V, error)) (V, error) {
	return c.GetOwn(key, func() (K, V, error) {
		value, err := make()
		return key, value, err
	})
}

// GetOwn is Get where the key is part of something larger: make answers an
// equal key to be kept, which must hold nothing else in memory.
func (c *Cache[K, V]) GetOwn(key K, make func() (K, V, error)) (V, error) {
	c.mu.Lock()
	if e, ok := c.items[key]; ok {
		c.order.MoveToFront(e)
		value := e.Value.(*cached[K, V]).value
		c.mu.Unlock()
		return value, nil
	}
	c.mu.Unlock()
	own, value, err := make()
	if err != nil {
		return value, err
	}
	c.put(own, value)
	return value, nil
}

func (c *Cache[K, V]) put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.items[key]; ok || value.Size() > c.bytesMax {
		return
	}
	c.items[key] = c.order.PushFront(&cached[K, V]{key, value})
	c.bytes += value.Size()
	for c.bytes > c.bytesMax {
		oldest := c.order.Back()
		entry := c.order.Remove(oldest).(*cached[K, V])
		delete(c.items, entry.key)
		c.bytes -= entry.value.Size()
	}
}
