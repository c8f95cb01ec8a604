package xx_test

import (
	"testing"

	"tributary/internal/country"
	"tributary/internal/country/world"
)

// An outage that befalls one link of a call befalls those behind it: otherwise
// the authority would refuse them for a gap that it made itself.
func TestNothingIsTakenBehindALinkThatWasNot(t *testing.T) {
	ch, desk, _ := open(t, world.Reference("XC", country.ByChain))
	first := prepare(t, ch, draft("A-1"))
	next := draft("A-2-OUTAGE")
	next.Previous = first.Link
	second := prepare(t, ch, next)
	last := draft("A-3")
	last.Previous = second.Link
	third := prepare(t, ch, last)
	for range 3 {
		receipts := send(t, ch, first, second, third)
		if receipts[0].Outcome != country.Accepted || receipts[1].Outcome != country.NotTaken ||
			receipts[2].Outcome != country.NotTaken {
			t.Fatalf("%+v", receipts)
		}
	}
	for i, r := range send(t, ch, second, third) {
		if r.Outcome != country.Accepted {
			t.Errorf("link %d after the outage: %+v", i+2, r)
		}
	}
	if n := count(t, desk); n != 3 {
		t.Errorf("%d registered", n)
	}
}
