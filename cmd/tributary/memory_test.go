package main

import "testing"

// Garbage takes the same room beside a small heap and beside that of full load; only a heap that is larger than that
// gets more.
func TestGarbageHasRoomWhateverIsAlive(t *testing.T) {
	for live := uint64(4 << 20); live < 2<<30; live = live*5/4 + 1000 {
		percent := heapPercent(live)
		if percent < percentMin || percent > percentMost {
			t.Fatalf("%d live bytes: %d %%, want between %d and %d", live, percent, percentMin, percentMost)
		}
		garbage := live * uint64(percent) / 100
		if live <= 100<<20 && (garbage > garbageRoom || garbage < garbageRoom/2) || live > 100<<20 && percent != percentMin {
			t.Errorf("beside %d live bytes there may be %d of garbage (%d %%), want up to %d", live, garbage, percent,
				garbageRoom)
		}
	}
	if percent := heapPercent(0); percent != percentMost {
		t.Errorf("an empty heap: %d %%", percent)
	}
}
