package taxid_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"tributary/internal/country/taxid"
)

func TestQuickYesToANIFIsTheLibrarysYes(t *testing.T) {
	sure := 0
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.SampledFrom([]rune("0123456789XYZKLMABCDEFGHJNPQRSUVWIÑ")).Draw(t, "first")
		middle := rapid.IntRange(0, 9_999_999).Draw(t, "middle")
		for _, last := range "0123456789ABCDEFGHIJKLMNPQRSTVWXYZ" {
			number := fmt.Sprintf("%c%07d%c", first, middle, last)
			if !taxid.SurelyNIF(number) {
				continue
			}
			sure++
			if v := taxid.Check("ES", number); !v.Valid || v.Number != number {
				t.Fatalf("%s: %+v", number, v)
			}
		}
	})
	if sure == 0 {
		t.Error("it is never sure")
	}
	for _, number := range []string{"89890001K", "A28015865", "B12345674"} {
		if !taxid.SurelyNIF(number) {
			t.Errorf("%s is not recognised", number)
		}
	}
}
