package console

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

// tally is what happened in one interval.
type tally struct {
	Accepted, Succeeded, Failed int64
}

func (t tally) plus(o tally) tally {
	return tally{t.Accepted + o.Accepted, t.Succeeded + o.Succeeded, t.Failed + o.Failed}
}

// series are tallies of equal intervals that follow one another.
type series struct {
	From  time.Time
	Step  time.Duration
	Tally []tally
}

func (s series) sum() (all tally) {
	for _, t := range s.Tally {
		all = all.plus(t)
	}
	return all
}

// max is the highest of what is drawn: what ended, stacked, or what was accepted.
func (s series) max() int64 {
	var top int64
	for _, t := range s.Tally {
		top = max(top, t.Succeeded+t.Failed, t.Accepted)
	}
	return top
}

// The drawing's own units. Colours are the stylesheet's, by class, so that a
// plot follows light, dark and print like text.
const (
	plotWidth   = 960
	plotHeight  = 190
	plotLeft    = 44
	plotBottom  = 22
	plotTop     = 10
	sparkWidth  = 192
	sparkHeight = 28
)

// plot draws a series with axes: bars for what ended, a tick for what was accepted.
func plot(s series, title string) template.HTML {
	var b strings.Builder
	sum := s.sum()
	fmt.Fprintf(&b, `<svg class="plot" viewBox="0 0 %d %d" role="img" aria-label="%s">`, plotWidth, plotHeight,
		template.HTMLEscapeString(fmt.Sprintf("%s: %s accepted, %s succeeded, %s failed", title, count(sum.Accepted),
			count(sum.Succeeded), count(sum.Failed))))
	top := niceMax(s.max())
	const height = plotHeight - plotTop - plotBottom
	for i := range 3 { // 0, half, top
		y := plotTop + height - height*i/2
		class := "grid"
		if i == 0 {
			class = "axis"
		}
		fmt.Fprintf(&b, `<line class="%s" x1="%d" x2="%d" y1="%d" y2="%d"/>`, class, plotLeft, plotWidth, y, y)
		if value := top * int64(i) / 2; i != 1 || top%2 == 0 {
			fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, plotLeft-8, y+4, count(value))
		}
	}
	s.draw(&b, box{x: plotLeft, y: plotTop, w: plotWidth - plotLeft, h: height}, top)
	s.label(&b)
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// spark draws a series as a word among others. The table around it has the figures.
func spark(s series) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot spark" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true">`,
		sparkWidth, sparkHeight)
	fmt.Fprintf(&b, `<line class="axis" x1="0" x2="%d" y1="%d" y2="%d"/>`, sparkWidth, sparkHeight, sparkHeight)
	s.bars(&b, box{w: sparkWidth, h: sparkHeight}, s.max())
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

type box struct{ x, y, w, h float64 }

func (s series) draw(b *strings.Builder, in box, top int64) {
	if len(s.Tally) == 0 || top == 0 {
		return
	}
	s.bars(b, in, top)
	slot := in.w / float64(len(s.Tally))
	var ticks strings.Builder
	for i, t := range s.Tally {
		if t.Accepted > 0 {
			fmt.Fprintf(&ticks, "M%s %sh%s", at(in.x+slot*float64(i)), at(in.y+in.h-in.h*float64(t.Accepted)/float64(top)), at(slot))
		}
	}
	fmt.Fprintf(b, `<path class="accepted" d="%s"/>`, ticks.String())
}

// bars stacks what failed on what succeeded.
func (s series) bars(b *strings.Builder, in box, top int64) {
	slot := in.w / float64(max(len(s.Tally), 1))
	bar := math.Max(slot*0.78, 0.6)
	for i, t := range s.Tally {
		base := in.y + in.h
		for _, part := range []struct {
			class string
			n     int64
		}{{"done", t.Succeeded}, {"failed", t.Failed}} {
			if part.n == 0 {
				continue
			}
			h := math.Max(in.h*float64(part.n)/float64(top), 1) // one failure among thousands is still seen
			base -= h
			fmt.Fprintf(b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, part.class,
				at(in.x+slot*float64(i)+(slot-bar)/2), at(base), at(bar), at(h))
		}
	}
}

// label writes a handful of times below the axis.
func (s series) label(b *strings.Builder) {
	const labels = 6
	span := s.Step * time.Duration(len(s.Tally))
	layout := "15:04"
	if span > 48*time.Hour {
		layout = "2 Jan"
	}
	every := max(len(s.Tally)/labels, 1)
	slot := float64(plotWidth-plotLeft) / float64(max(len(s.Tally), 1))
	for i := 0; i < len(s.Tally); i += every {
		fmt.Fprintf(b, `<text class="x" x="%s" y="%d">%s</text>`, at(plotLeft+slot*float64(i)), plotHeight-6,
			s.From.Add(s.Step*time.Duration(i)).UTC().Format(layout))
	}
}

func at(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// niceMax rounds up to 1, 2 or 5 times a power of ten, so that the axis reads well.
func niceMax(n int64) int64 {
	if n <= 1 {
		return 1
	}
	for unit := int64(1); ; unit *= 10 {
		for _, f := range []int64{1, 2, 5} {
			if f*unit >= n {
				return f * unit
			}
		}
		if unit > math.MaxInt64/100 {
			return n
		}
	}
}
