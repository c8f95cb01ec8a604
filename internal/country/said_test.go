package country_test

import (
	"errors"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/fault"
)

func TestWhatAnAuthoritySaysIsCutAtItsBounds(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	faults := func(n, bytes int) []fault.Fault {
		out := make([]fault.Fault, n)
		for i := range out {
			out[i].Message = text(bytes)
		}
		return out
	}
	for _, past := range []int{0, 1} { // at the bounds and past them
		got := country.Receipt{AuthorityID1: text(country.AuthorityIDBytesMax + past),
			AuthorityID2: text(country.AuthorityIDBytesMax + past),
			Faults:       faults(country.FaultsMax+past, country.FaultBytesMax+past)}.Bounded()
		said := country.Annulled{ID: text(country.AuthorityIDBytesMax + past),
			State:  text(country.AuthorityIDBytesMax + past),
			Faults: faults(country.FaultsMax+past, country.FaultBytesMax+past)}.Bounded()
		for what, length := range map[string][2]int{
			"first number":       {len(got.AuthorityID1), country.AuthorityIDBytesMax},
			"second number":      {len(got.AuthorityID2), country.AuthorityIDBytesMax},
			"number of faults":   {len(got.Faults), country.FaultsMax},
			"fault":              {len(got.Faults[country.FaultsMax-1].Message), country.FaultBytesMax},
			"annulment's number": {len(said.ID), country.AuthorityIDBytesMax},
			"state":              {len(said.State), country.AuthorityIDBytesMax},
			"annulment's faults": {len(said.Faults), country.FaultsMax},
		} {
			if length[0] != length[1] {
				t.Errorf("%d past: %s: %d, want %d", past, what, length[0], length[1])
			}
		}
		whole := errors.Join(errors.New(text(country.FaultBytesMax+past-len("\n")-len(country.ErrNotTaken.Error()))),
			country.ErrNotTaken)
		err := country.BoundedError(whole)
		if len(err.Error()) != country.FaultBytesMax || !errors.Is(err, country.ErrNotTaken) {
			t.Errorf("%d past: the error has %d bytes and is not taken: %v", past, len(err.Error()),
				errors.Is(err, country.ErrNotTaken))
		}
	}
	if country.BoundedError(nil) != nil {
		t.Error("no error became one")
	}
}
