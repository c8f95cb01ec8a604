package ksefwire_test

import (
	"strings"
	"testing"

	"tributary/internal/mutate"
	"tributary/internal/official/ksefwire"
)

func TestChecksumOfKSeFNumbersIsTheOfficialOne(t *testing.T) {
	for _, number := range []string{"5265877635-20250826-0100001AF629-AF", "5265877635-20250916-0200A0D6723E-C2"} {
		if made := ksefwire.Number(number[:10], number[11:19], number[20:32]); made != number {
			t.Errorf("%s comes out as %s", number, made)
		}
		if !ksefwire.ValidNumber(number) {
			t.Errorf("%s is refused", number)
		}
		other := number[:31] + "0" + number[32:]
		if number[31] == '0' {
			other = number[:31] + "1" + number[32:]
		}
		if ksefwire.ValidNumber(other) {
			t.Errorf("%s is taken with the checksum of another", other)
		}
	}
	if !ksefwire.ValidNumber("5265877635-20220826-0100AB-1AF629-11") {
		t.Error("a number of KSeF 1.0 is refused")
	}
	for _, wrong := range []string{"", "5265877635", "5265877635-20251326-0100001AF629-AF",
		"0265877635-20250826-0100001AF629-AF", "5265877635-20250826-0100001af629-AF"} {
		if ksefwire.ValidNumber(wrong) {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// A number is valid only with the checksum of its parts, and can be taken apart.
func FuzzKSeFNumber(f *testing.F) {
	f.Add("5265877635-20250826-0100001AF629-AF")
	f.Add("5265877635-20250826-010000-1AF629-AF")
	f.Add("5265877635-20250826-0100001AF629-AE\n")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		if !ksefwire.ValidNumber(text) {
			return
		}
		parts := strings.Split(text, "-")
		if len(text) != 35 && len(text) != 36 || len(parts[0]) != 10 || len(parts[1]) != 8 {
			t.Fatalf("%q is valid", text)
		}
		if len(text) == 35 && ksefwire.Number(parts[0], parts[1], parts[2]) != text {
			t.Errorf("%q is valid, its checksum is not", text)
		}
	})
}
