package console

import (
	"html/template"
	"strconv"
	"time"

	"tributary/internal/operator"
)

// Route is a line of the table, for tests that go through all of it.
type Route struct {
	Method, Path string
	Role         operator.Role
	Live         bool
}

// SortedMax is how many rows a list sorts.
const SortedMax = sortedMax

// Sorted sorts a list of so many numbers, of which the newest is 0, and answers a page.
func Sorted(by, after string, count int) (page []int, on string, more bool) {
	o := order{By: by}
	page, on, _ = inOrder(&o, after, columns[int]{"number": func(a, b int) int { return a - b }},
		func(after string, limit int) (some []int, next string, err error) {
			from, _ := strconv.Atoi(after)
			for i := from; i < min(from+limit, count); i++ {
				some = append(some, i)
			}
			if from+limit < count {
				next = strconv.Itoa(from + limit)
			}
			return some, next, nil
		})
	return page, on, o.More
}

// Routes lists the table.
func (c *Console) Routes() (all []Route) {
	for _, rt := range c.routes() {
		all = append(all, Route{rt.method, rt.path, rt.role, rt.live})
	}
	return all
}

// What pages print and read.
var (
	Span       = span
	Money      = money
	MinorUnits = minorUnits
	ReadMoment = readMoment
	Local      = local
	Readable   = readable
	Short      = short
	NiceMax    = niceMax
)

// Plot draws tallies of accepted, succeeded and failed.
func Plot(title string, rows ...[3]int64) template.HTML {
	s := series{From: time.Date(2026, 4, 2, 10, 0, 0, 0, time.UTC), Step: time.Minute}
	for _, r := range rows {
		s.Tally = append(s.Tally, tally{r[0], r[1], r[2]})
	}
	return plot(s, title)
}

// IndentXML is how XML is printed.
func IndentXML(text string) string { return indentXML(text) }
