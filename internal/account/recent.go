package account

// recent is a bounded memory of what was used lately: two generations of at
// most max entries each. When the younger is full, the older is forgotten. It
// costs no clock, no list and no goroutine, and an attacker who fills it only
// makes it forget.
type recent[V any] struct {
	max        int
	young, old map[string]V
}

func newRecent[V any](max int) recent[V] { return recent[V]{max: max, young: map[string]V{}} }

func (r *recent[V]) get(key string) (V, bool) {
	if v, ok := r.young[key]; ok {
		return v, true
	}
	v, ok := r.old[key]
	if ok {
		r.put(key, v)
	}
	return v, ok
}

func (r *recent[V]) put(key string, v V) {
	if _, there := r.young[key]; !there && len(r.young) >= r.max {
		r.old, r.young = r.young, make(map[string]V, r.max)
	}
	r.young[key] = v
}
