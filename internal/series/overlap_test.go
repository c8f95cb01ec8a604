package series

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestPatternsThatCouldGiveOneNumber(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		one, other string
		want       bool
	}{
		{"F{N:6}", "F{N:6}", true}, {"F{N:6}", "f{N:4}", true}, {"F{N:6}", "G{N:6}", false},
		{"F{N:1}", "F1{N:1}", true}, {"F{N:6}-A", "F{N:6}-B", false}, {"F{YYYY}{N:4}", "F{N:8}", true},
		{"F{YYYY}-{N:4}", "F{N:8}", false}, {"F{YYYY}-{N:4}", "F{YY}-{N:4}", false}, {"{YY}{N:4}", "{YYYY}{N:2}", true},
		{"F{YYYY}/{N:4}", "F3{N:3}/{N:4}", false}, {"F{N:12}", "F{N:12}0", false}, {"{N:1}É", "{N:1}é", true},
	} {
		if got := overlap(c.one, c.other); got != c.want || overlap(c.other, c.one) != c.want {
			t.Errorf("%s and %s: %v", c.one, c.other, got)
		}
	}
}

// Whatever two patterns are told to be apart, no two of their numbers are one.
func TestPatternsThatAreApartGiveNoNumberTwice(t *testing.T) {
	t.Parallel()
	pattern := rapid.Custom(func(t *rapid.T) string {
		part := rapid.SampledFrom([]string{"", "1", "2", "20", "F", "-", "{YY}", "{YYYY}"})
		return part.Draw(t, "before") + part.Draw(t, "and") + fmt.Sprintf("{N:%d}", rapid.IntRange(1, 4).Draw(t, "width")) +
			part.Draw(t, "behind")
	})
	rapid.Check(t, func(t *rapid.T) {
		one, other := pattern.Draw(t, "one"), pattern.Draw(t, "other")
		if overlap(one, other) {
			return
		}
		given := map[string]bool{}
		for year := int64(2019); year < 2023; year++ {
			for count := int64(1); count < 2300; count += 7 {
				given[(&Series{Pattern: one}).number(count, year)] = true
			}
		}
		for year := int64(2019); year < 2023; year++ {
			for count := int64(1); count < 2300; count += 7 {
				if n := (&Series{Pattern: other}).number(count, year); given[n] {
					t.Fatalf("%s and %s both give %s", one, other, n)
				}
			}
		}
	})
}
