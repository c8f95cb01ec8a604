package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Comparison is the outcome of --pair, and its JSON form.
type Comparison struct {
	This      Binary             `json:"this"`
	Other     Binary             `json:"other"`
	Rounds    int                `json:"rounds"`
	CPUs      int                `json:"cpus"`
	StartedAt string             `json:"started_at"`
	Stored    int                `json:"stored,omitempty"`
	Quick     bool               `json:"quick,omitempty"`
	Engines   []EngineComparison `json:"engines"`
}

// EngineComparison is what both binaries measured on one engine.
type EngineComparison struct {
	Engine     string           `json:"engine"`
	Figures    []ComparedFigure `json:"figures"`
	OnlyThis   []string         `json:"only_this"`
	OnlyOther  []string         `json:"only_other"`
	Incomplete []string         `json:"incomplete,omitempty"` // missing in some rounds
}

// ComparedFigure has a value of each binary for each round, and their ratio
// within the round. Without a ratio, where a value is zero, its members are absent.
type ComparedFigure struct {
	Name      string    `json:"name"`
	Unit      string    `json:"unit"`
	This      []float64 `json:"this"`
	Other     []float64 `json:"other"`
	Ratios    []float64 `json:"ratios,omitempty"`
	Ratio     float64   `json:"ratio,omitzero"` // the median
	RatioLow  float64   `json:"ratio_low,omitzero"`
	RatioHigh float64   `json:"ratio_high,omitzero"`
}

// compare brings the reports of all rounds together. A figure whose unit
// differs is another figure: a ratio of seconds to milliseconds says nothing.
func compare(engine string, this, other []Report) EngineComparison {
	found := EngineComparison{Engine: engine, Figures: []ComparedFigure{}, OnlyThis: []string{}, OnlyOther: []string{}}
	seen := map[Figure]bool{}
	for _, report := range slices.Concat(this, other) {
		for _, f := range report.Figures {
			if f.Value = 0; seen[f] {
				continue
			}
			seen[f] = true
			a, b := valuesOf(f, this), valuesOf(f, other)
			switch {
			case len(a) == len(this) && len(b) == len(other):
				found.Figures = append(found.Figures, newComparedFigure(f, a, b))
			case len(a) == len(this) && len(b) == 0:
				found.OnlyThis = append(found.OnlyThis, f.Name)
			case len(b) == len(other) && len(a) == 0:
				found.OnlyOther = append(found.OnlyOther, f.Name)
			default:
				found.Incomplete = append(found.Incomplete, f.Name)
			}
		}
	}
	return found
}

// valuesOf are the values of one figure in the reports that have it.
func valuesOf(of Figure, reports []Report) (values []float64) {
	for _, report := range reports {
		at := slices.IndexFunc(report.Figures, func(f Figure) bool { return f.Name == of.Name && f.Unit == of.Unit })
		if at >= 0 {
			values = append(values, report.Figures[at].Value)
		}
	}
	return values
}

func newComparedFigure(f Figure, this, other []float64) ComparedFigure {
	c := ComparedFigure{Name: f.Name, Unit: f.Unit, This: this, Other: other}
	if slices.Min(this) <= 0 || slices.Min(other) <= 0 {
		return c
	}
	for round := range this {
		c.Ratios = append(c.Ratios, this[round]/other[round])
	}
	c.Ratio, c.RatioLow, c.RatioHigh = median(c.Ratios), slices.Min(c.Ratios), slices.Max(c.Ratios)
	return c
}

// noDifference: some rounds say more and others less, or one says equal.
func (c ComparedFigure) noDifference() bool {
	return len(c.Ratios) > 0 && c.RatioLow <= 1 && c.RatioHigh >= 1
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// table prints the comparison for a person.
func (c *Comparison) table(w io.Writer) {
	fmt.Fprintf(w, "\nthis   %s  %s  sha256 %s\nother  %s  %s  sha256 %s\n", c.This.Path, c.This.Version, c.This.SHA256,
		c.Other.Path, c.Other.Version, c.Other.SHA256)
	if c.This.SHA256 == c.Other.SHA256 {
		fmt.Fprintln(w, "Both binaries are identical: the ratios show how much this machine varies.")
	}
	if c.Quick {
		fmt.Fprintln(w, "With --quick, a fraction of the load: not a measurement of speed.")
	}
	for _, e := range c.Engines {
		fmt.Fprintf(w, "\n%s, %d CPUs, %d alternating rounds, %s\n\n", e.Engine, c.CPUs, c.Rounds, c.StartedAt)
		e.table(w)
	}
	fmt.Fprintln(w, "\nRatio: median of this / other within a round; spread: lowest–highest of the rounds. Above 1 is better for rates, worse for times and memory.")
	// Of equal binaries each round is as likely above 1 as below it.
	fmt.Fprintf(w, "For two identical binaries, the spread of %d rounds excludes 1 by chance for %.2g %% of the figures; use more --rounds for fewer.\n", c.Rounds, 100/math.Exp2(float64(c.Rounds-1)))
	if !slices.ContainsFunc(c.Engines, func(e EngineComparison) bool { return e.Engine == "postgres" }) {
		fmt.Fprintln(w, "PostgreSQL was not measured: give --database postgres://… to measure both engines.")
	}
}

func (e EngineComparison) table(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "figure\tunit\tthis\tother\tratio\tspread\t\n")
	var same []string
	for _, f := range e.Figures {
		ratio, spread := "–", "–"
		if len(f.Ratios) > 0 {
			ratio, spread = fmt.Sprintf("%.3f", f.Ratio), fmt.Sprintf("%.3f–%.3f", f.RatioLow, f.RatioHigh)
		}
		if f.noDifference() {
			same = append(same, f.Name)
		}
		fmt.Fprintf(t, "%s\t%s\t%.2f\t%.2f\t%s\t%s\t\n", f.Name, f.Unit, median(f.This), median(f.Other), ratio, spread)
	}
	_ = t.Flush() // a table on a terminal
	for _, list := range []struct {
		says  string
		names []string
	}{
		{"no difference: the spread includes 1", same},
		{"reported by this only", e.OnlyThis}, {"reported by other only", e.OnlyOther}, {"missing in some rounds", e.Incomplete},
	} {
		if len(list.names) > 0 {
			fmt.Fprintf(w, "%s: %s\n", list.says, strings.Join(list.names, ", "))
		}
	}
}
