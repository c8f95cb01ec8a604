package document

import "strconv"

// rgb is an sRGB colour.
type rgb [3]uint8

// The house colours of a document without branding.
const (
	defaultAccent = "#1D4E5F"
	defaultInk    = "#1B1F26"
)

// contrastMin is what WCAG 2.1 (1.4.3) asks of text on its ground.
const contrastMin = 450 // hundredths

// palette is the document's colours: text in ink, labels in a lighter shade of
// it, rules lighter still, and one accent.
type palette struct{ accent, ink, muted, hair, tint rgb }

func newPalette(b Branding) palette {
	ink, accent := readable(parseColor(b.Ink, defaultInk)), readable(parseColor(b.Accent, defaultAccent))
	return palette{accent: accent, ink: ink, muted: readable(ink.towardsWhite(42)), hair: ink.towardsWhite(84), tint: accent.towardsWhite(92)}
}

// parseColor reads #RRGGBB, or the default where a text is none.
func parseColor(s, fallback string) rgb {
	if len(s) == 7 && s[0] == '#' {
		if v, err := strconv.ParseUint(s[1:], 16, 24); err == nil {
			return rgb{uint8(v >> 16), uint8(v >> 8), uint8(v)}
		}
	}
	if s == fallback {
		return rgb{}
	}
	return parseColor(fallback, fallback)
}

func (c rgb) towardsWhite(percent int) rgb {
	for i, v := range c {
		c[i] = uint8(int(v) + (255-int(v))*percent/100)
	}
	return c
}

// readable darkens a colour until it can be read on white.
func readable(c rgb) rgb {
	for c.contrastOnWhite() < contrastMin {
		for i, v := range c {
			c[i] = uint8(int(v) * 94 / 100)
		}
	}
	return c
}

// contrastOnWhite is the contrast ratio of WCAG 2.1 in hundredths. The square
// stands in for the exponent 2.4 of sRGB: it errs towards darker text.
func (c rgb) contrastOnWhite() int {
	luminance := (2126*int(c[0])*int(c[0]) + 7152*int(c[1])*int(c[1]) + 722*int(c[2])*int(c[2])) / (255 * 255) // of 10,000
	return 105 * 10000 / (luminance + 500)
}
