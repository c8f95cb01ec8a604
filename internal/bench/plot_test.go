package bench

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The picture has the figures of one unit together and the targets across them.
func TestThePlotGroupsByUnitAndDrawsTargets(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "figures.svg")
	err := plot(path, &Report{Engine: "sqlite", Figures: []Figure{{"settled_per_second", 3000, "1/s"},
		{"submit_p99_half_load", 12, "ms"}, {"pdf_per_second", 40, "1/s"}, {"submits_to_decode_only", 0.6, ""}}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var picture struct {
		Texts []string `xml:"text"`
		Lines []struct {
			Class string `xml:"class,attr"`
		} `xml:"line"`
	}
	if err := xml.Unmarshal(text, &picture); err != nil {
		t.Fatal(err)
	}
	var order []int
	for _, want := range []string{"1/s", "settled_per_second", "3000, target 4000", "pdf_per_second", "ms",
		"submit_p99_half_load", "12.00, target 15.00", "ratio", "submits_to_decode_only"} {
		order = append(order, slices.Index(picture.Texts, want))
	}
	if slices.Contains(order, -1) || !slices.IsSorted(order) {
		t.Errorf("%v in %q", order, picture.Texts)
	}
	if len(picture.Lines) != 3 || strings.Count(string(text), "#b3372f") != 1 {
		t.Errorf("%d lines of targets; one figure misses its own:\n%s", len(picture.Lines), text)
	}
}
