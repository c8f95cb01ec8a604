package document_test

import (
	"math"
	"strings"
	"unicode/utf16"
)

func utf16Decode(units []uint16) []rune { return utf16.Decode(units) }

// wideRun is a run with its extent.
type wideRun struct {
	run
	width float64
}

// fontWidths returns the widths of a page's fonts by resource name.
func fontWidths(f *file, page dict) map[string]map[uint16]float64 {
	out := map[string]map[uint16]float64{}
	for key, v := range f.dict(f.dict(page["Resources"])["Font"]) {
		out[key] = cidWidths(f, f.dict(f.dict(v)["DescendantFonts"].(array)[0]))
	}
	return out
}

// runsWithWidth measures every run by the widths that a viewer uses.
func runsWithWidth(f *file, page dict, widths map[string]map[uint16]float64) []wideRun {
	runs := f.text(page)
	out := make([]wideRun, 0, len(runs))
	font, size, fresh := "", 0.0, true
	for _, o := range f.operators(page) {
		switch o.name {
		case "Tf":
			font, size = string(o.args[0].(name)), o.args[1].(float64)
		case "Td":
			fresh = true
		case "Tj", "TJ":
			if fresh {
				out = append(out, wideRun{run: runs[len(out)]})
				fresh = false
			}
			for _, code := range o.codes() {
				out[len(out)-1].width += widths[font][code] * size / 1000
			}
			out[len(out)-1].width += o.moved() * size / 1000
			// a blank at the end is not seen
			if last := &out[len(out)-1]; strings.HasSuffix(last.text, " ") && last.text != " " {
				codes := o.codes()
				last.width -= widths[font][codes[len(codes)-1]] * size / 1000
			}
		}
	}
	return out
}

// contrast is the contrast ratio of WCAG 2.1 with white.
func contrast(c [3]float64) float64 {
	linear := func(v float64) float64 {
		if v <= 0.03928 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 1.05 / (0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2]) + 0.05)
}
