package main

import "testing"

// A small heap may grow to the floor and a large one is left to the runtime.
func TestASmallHeapGrowsToTheFloorAndALargeOneIsLeftAlone(t *testing.T) {
	for live := uint64(0); live < 2<<30; live = live*5/4 + 1000 {
		percent := heapPercent(live)
		if percent < percentMin || percent > percentMost {
			t.Fatalf("%d live bytes: %d %%, want between %d and %d", live, percent, percentMin, percentMost)
		}
		goal := live + live*uint64(percent)/100
		if live <= heapFloor/2 && goal > heapFloor+live/100 || live > heapFloor/2 && percent != percentMin {
			t.Errorf("%d live bytes grow to %d with %d %%, the floor is %d", live, goal, percent, heapFloor)
		}
	}
}
