package audit

import "testing"

// What is listed of a log in which nothing holds is bounded: at the limit the last
// one is listed, past it the list stays and a row of entries still grows.
func TestUnprovenEntriesAreListedUpToALimit(t *testing.T) {
	t.Parallel()
	var v Verdict
	for n := range unprovenMax {
		v.doubt(int64(2 * n))
	}
	if len(v.Unproven) != unprovenMax || v.Unproven[unprovenMax-1].From != 2*(unprovenMax-1) {
		t.Fatalf("%d listed, the last %v", len(v.Unproven), v.Unproven[len(v.Unproven)-1])
	}
	v.doubt(2*unprovenMax + 7)
	v.doubt(2*unprovenMax - 1)
	if last := v.Unproven[unprovenMax-1]; len(v.Unproven) != unprovenMax || last != (Span{2 * (unprovenMax - 1), 2*unprovenMax - 1}) {
		t.Errorf("past the limit %d are listed, the last %v", len(v.Unproven), last)
	}
}
