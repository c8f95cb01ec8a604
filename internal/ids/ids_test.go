package ids_test

import (
	"testing"

	"tributary/internal/fault"
	"tributary/internal/ids"
	"tributary/internal/leaks"
	"tributary/internal/mutate"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestIdsAreValidAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		one := ids.New()
		if !ids.Valid(one) || seen[one] {
			t.Fatalf("%q is not a fresh id", one)
		}
		seen[one] = true
	}
	for _, text := range []string{"", "0", ids.New() + "0", ids.New()[1:], "G0112233445566778899aabbccddeeff",
		"00112233445566778899AABBCCDDEEFF"} {
		if ids.Valid(text) {
			t.Errorf("%q is taken for an id", text)
		}
	}
}

// A cursor names a row that there may be, in letters that both databases store,
// or it is refused.
func FuzzCursor(f *testing.F) {
	f.Add(ids.Cursor{At: 1775124000000000, ID: "00112233445566778899aabbccddeeff"}.String())
	f.Add("")
	f.Add("MTIzLmFiYw")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ids.ReadCursor(text)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatal(err)
			}
			return
		}
		if text == "" {
			return
		}
		if !ids.Valid(c.ID) {
			t.Fatalf("%q names %q", text, c.ID)
		}
		if again, err := ids.ReadCursor(c.String()); err != nil || again != c {
			t.Fatalf("%q is %v, then %v, %v", text, c, again, err)
		}
	})
}
