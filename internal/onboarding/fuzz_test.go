package onboarding_test

import (
	"encoding/hex"
	"testing"

	"tributary/internal/fault"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/onboarding"
)

// A cursor names a row that there may be, in letters that both databases store,
// or it is refused.
func FuzzCursor(f *testing.F) {
	needs.NotRaced(f, "inputs one after another")
	f.Add(onboarding.WriteCursor(1775124000000000, "00112233445566778899aabbccddeeff"))
	f.Add("")
	f.Add("MTIzLmFiYw")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		before, id, err := onboarding.ReadCursor(text)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatal(err)
			}
			return
		}
		if text == "" {
			return
		}
		if raw, err := hex.DecodeString(id); err != nil || len(raw) != 16 {
			t.Fatalf("%q names %q", text, id)
		}
		if b, i, err := onboarding.ReadCursor(onboarding.WriteCursor(before, id)); err != nil || b != before || i != id {
			t.Fatalf("%q is %d %q, then %d %q, %v", text, before, id, b, i, err)
		}
	})
}
