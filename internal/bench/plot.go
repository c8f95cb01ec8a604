package bench

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// goal is what a figure should reach, on SQLite and on PostgreSQL, or stay below.
type goal struct {
	sqlite, postgres float64
	below            bool
}

// goals are the targets of docs/operations.md.
var goals = map[string]goal{
	"submits_to_decode_only":          {sqlite: 0.5, postgres: 0.45},
	"burst_submits_per_second":        {sqlite: 8000, postgres: 8000},
	"burst_submit_p99":                {sqlite: 50, postgres: 50, below: true},
	"submit_p99_half_load":            {sqlite: 15, postgres: 15, below: true},
	"settled_per_second":              {sqlite: 4000, postgres: 3500},
	"submit_to_webhook_per_second":    {sqlite: 1600, postgres: 1200},
	"webhook_first_try_p99_half_load": {sqlite: 5000, postgres: 5000, below: true},
	"webhook_first_try_p99_burst":     {sqlite: 30000, postgres: 30000, below: true},
	"submits_stored_to_empty":         {sqlite: 0.95, postgres: 0.95},
	"list_p99_stored":                 {sqlite: 50, postgres: 50, below: true},
	"search_p99_stored":               {sqlite: 50, postgres: 50, below: true},
	"settled_stored_to_empty":         {sqlite: 0.93, postgres: 0.93},
	"resident_memory_full_load":       {sqlite: 200, postgres: 200, below: true},
	"resident_memory_large_documents": {sqlite: 400, postgres: 400, below: true},
	"settled_nodes_to_one":            {postgres: 1.8},
}

// at is the target on an engine; 0: none.
func (g goal) at(engine string) float64 {
	if engine == "postgres" {
		return g.postgres
	}
	return g.sqlite
}

func (g goal) met(value float64, engine string) bool {
	if g.below {
		return value <= g.at(engine)
	}
	return value >= g.at(engine)
}

// Measures of the picture, in its own units.
const (
	plotRow, plotLeft, plotWide, plotRight = 26, 330, 420, 170
	plotHead                               = 34 // of a group
)

// plot draws the figures as bars, those of one unit together on one scale, with
// the targets as lines across them.
func plot(path string, r *Report) error {
	var units []string
	groups := map[string][]Figure{}
	for _, f := range r.Figures {
		if !slices.Contains(units, f.Unit) {
			units = append(units, f.Unit)
		}
		groups[f.Unit] = append(groups[f.Unit], f)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">`,
		plotLeft+plotWide+plotRight, plotRow*len(r.Figures)+plotHead*len(units)+60)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="10" y="24" font-size="15">Tributary on %s, %d CPUs, %s</text>`,
		r.Engine, r.CPUs, r.StartedAt)
	fmt.Fprintf(&b, `<text x="10" y="44" fill="#555">A line is a target; a figure that misses it is red.</text>`)
	y := 56
	for _, unit := range units {
		y = drawGroup(&b, y, r.Engine, groups[unit])
	}
	b.WriteString("</svg>\n")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	return nil
}

// drawGroup draws figures of one unit below y, and answers where it ends.
func drawGroup(b *strings.Builder, y int, engine string, figures []Figure) int {
	top := 0.0
	for _, f := range figures {
		top = max(top, f.Value, goals[f.Name].at(engine))
	}
	long := func(value float64) float64 {
		if top == 0 {
			return 0
		}
		return value / top * plotWide
	}
	name := figures[0].Unit
	if name == "" {
		name = "ratio"
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="bold">%s</text>`, plotLeft, y+22, name)
	y += plotHead
	for _, f := range figures {
		g, colour, note := goals[f.Name], "#2f6f8f", ""
		if target := g.at(engine); target > 0 {
			if note = ", target " + number(target); !g.met(f.Value, engine) {
				colour = "#b3372f"
			}
		}
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.1f" height="16" fill="%s"/>`,
			plotLeft-8, y+13, f.Name, plotLeft, y, long(f.Value), colour)
		if at := plotLeft + long(g.at(engine)); note != "" {
			fmt.Fprintf(b, `<line class="target" x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="black" stroke-width="2"/>`, at, at, y-3, y+19)
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%d">%s%s</text>`, plotLeft+max(long(f.Value), long(g.at(engine)))+6, y+13, number(f.Value), note)
		y += plotRow
	}
	return y
}

// number is short: two decimals of what is small, none of what is large.
func number(value float64) string {
	if value >= 100 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'f', 2, 64)
}
