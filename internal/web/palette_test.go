package web_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tributary/internal/web"
)

// TestTextCanBeReadInLightAndDark holds every colour of text against every
// ground it stands on: WCAG 2.1 asks for a contrast of 4.5.
func TestTextCanBeReadInLightAndDark(t *testing.T) {
	blocks := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(string(web.Palette), -1)
	if len(blocks) < 2 {
		t.Fatal("the colours of light and dark were not found")
	}
	colours := map[string]string{}
	for i, scheme := range []string{"light", "dark"} {
		for _, c := range regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(blocks[i][1], -1) {
			colours[c[1]] = c[2]
		}
		for _, pair := range []struct{ ink, grounds string }{
			{"ink", "paper sheet well accent-soft good-soft busy-soft bad-soft"},
			{"ink-2", "paper sheet well accent-soft good-soft busy-soft bad-soft"}, {"ink-3", "paper sheet well"},
			{"accent", "paper sheet well accent-soft"}, {"accent-ink", "accent"}, {"good", "paper well good-soft"},
			{"busy", "paper well busy-soft"}, {"bad", "paper sheet bad-soft"},
		} {
			for ground := range strings.FieldsSeq(pair.grounds) {
				if got := contrast(t, colours[pair.ink], colours[ground]); got < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f", scheme, pair.ink, ground, got)
				}
			}
		}
	}
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	luminance := func(colour string) float64 {
		if len(colour) != 7 {
			t.Fatalf("%q is no colour", colour)
		}
		n, err := strconv.ParseUint(colour[1:], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		linear := func(shift int) float64 {
			v := float64(n>>shift&0xff) / 255
			if v <= 0.03928 {
				return v / 12.92
			}
			return math.Pow((v+0.055)/1.055, 2.4)
		}
		return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0)
	}
	high, low := luminance(a), luminance(b)
	if high < low {
		high, low = low, high
	}
	return (high + 0.05) / (low + 0.05)
}
