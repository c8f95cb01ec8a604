package recovery_test

import (
	"testing"

	"tributary/internal/fault"
	"tributary/internal/mutate"
	"tributary/internal/recovery"
)

// A day is read as the standard library reads it, and printed as it was given.
func FuzzDay(f *testing.F) {
	for _, text := range []string{"2026-03-01", "2026-02-30", "0000-01-01", "9999-12-31", "2026-3-1", "",
		"\u06f2026-01-01"} {
		f.Add(text)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		day, err := recovery.Day(text)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatal(err)
			}
			return
		}
		if day.String() != text {
			t.Fatalf("%q is %s", text, day)
		}
	})
}
