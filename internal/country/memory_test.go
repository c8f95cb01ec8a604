package country_test

import (
	"testing"

	"tributary/internal/country"
)

func TestAMemoryForgetsTheOldestFirst(t *testing.T) {
	m := country.Memory[string, int]{Max: 2}
	if !m.Put("a", 1) || !m.Put("b", 2) || m.Put("a", 3) || !m.Put("c", 4) {
		t.Error("what is new is not told from what is known")
	}
	if _, known := m.Get("a"); known {
		t.Error("the oldest is remembered past the limit")
	}
	if b, _ := m.Get("b"); b != 2 {
		t.Errorf("b is %d", b)
	}
	var usual country.Memory[int, bool]
	for i := range 5000 {
		usual.Put(i, true)
	}
	if _, first := usual.Get(5000 - 4096); !first {
		t.Error("what is within the limit is forgotten")
	}
	if _, last := usual.Get(5000 - 4097); last {
		t.Error("what is past the limit is remembered")
	}
}
