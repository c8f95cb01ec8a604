package country

import (
	"cmp"
	"sync"
)

const memoryMax = 4096

// Memory is what a channel remembers between calls: the latest of so many values.
// It lives in the process alone; what is forgotten is asked for again. The zero
// value remembers nothing yet, and is safe for concurrent use.
type Memory[K comparable, V any] struct {
	Max int // values; 0: 4,096

	mu    sync.Mutex
	known map[K]V
	order []K
}

// Get answers what was put under a key.
func (m *Memory[K, V]) Get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.known[key]
	return value, ok
}

// Put remembers a value, and reports whether its key is new.
func (m *Memory[K, V]) Put(key K, value V) (fresh bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[K]V{}
	}
	if _, known := m.known[key]; !known {
		fresh = true
		if len(m.order) >= cmp.Or(m.Max, memoryMax) {
			delete(m.known, m.order[0])
			m.order = m.order[1:]
		}
		m.order = append(m.order, key)
	}
	m.known[key] = value
	return fresh
}
