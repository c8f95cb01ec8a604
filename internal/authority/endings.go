package authority

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Endings are what numbers ask of a double by how they end, each so many times. It is
// safe for concurrent use.
type Endings struct {
	mu    sync.Mutex
	asked map[string]int // number and ending → how often it has been obeyed
}

// Obey reports whether an ending of a number asks for something now, which it does so
// many times.
func (e *Endings) Obey(number, ending string, times int) bool {
	if !strings.HasSuffix(number, ending) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked[number+ending] >= times {
		return false
	}
	if e.asked == nil {
		e.asked = map[string]int{}
	}
	e.asked[number+ending]++
	return true
}

// Text is the value of a key; "" where it has none.
func (b *Book) Text(key string) string {
	text, _ := b.Get(key)
	return text
}

// Words are the value of a key as a list.
func (b *Book) Words(key string) []string { return strings.Fields(b.Text(key)) }

// AddWord puts a word behind those of a key.
func (b *Book) AddWord(key, word string) { b.Put(key, strings.TrimSpace(b.Text(key)+" "+word)) }

// KeepWords leaves of the words of a key those that are still wanted.
func (b *Book) KeepWords(key string, wanted func(word string) bool) {
	all := b.Words(key)
	left := slices.DeleteFunc(slices.Clone(all), func(word string) bool { return !wanted(word) })
	if len(left) != len(all) {
		b.Put(key, strings.Join(left, " "))
	}
}

// WriteJSON answers in JSON.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a caller that left is nobody to tell
}
