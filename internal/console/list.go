package console

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tributary/internal/fault"
)

// A list is sorted by a column over its newest rows: a store has millions, and
// only their age has an order that costs nothing. The page says where it ends.
const (
	sortedMax  = 500
	sortedPage = 50
	sortedRead = 100 // rows of one read
	readsMax   = 10  // a search may answer few rows of many it looks at
)

// order is how a list is sorted, as it stands in the address.
type order struct {
	By   string // a column, with - in front downwards; "": the list's own order
	More bool   // there are rows that are not among the sorted ones

	path  string
	query url.Values
}

func readOrder(v *request, path string) order {
	query := maps.Clone(v.r.URL.Query())
	for _, name := range []string{"after", "notice", "seen"} {
		query.Del(name)
	}
	return order{By: query.Get("sort"), path: path, query: query}
}

// here is the address of the list, without a place in it.
func (o order) here() string {
	if len(o.query) == 0 {
		return o.path
	}
	return o.path + "?" + o.query.Encode()
}

// next is the address of the next page; "" at the end.
func (o order) next(after string) string {
	if after == "" {
		return ""
	}
	query := maps.Clone(o.query)
	query.Set("after", after)
	return o.path + "?" + query.Encode()
}

// column is the head of a column that sorts.
type column struct{ Label, Class, Address, Sort string }

// Column leads to the list sorted upwards by it, then downwards, then as it was.
func (o order) Column(name, label, class string) column {
	c, to := column{Label: label, Class: class}, name
	switch o.By {
	case name:
		to, c.Sort = "-"+name, "ascending"
	case "-" + name:
		to, c.Sort = "", "descending"
	}
	query := maps.Clone(o.query)
	if query.Set("sort", to); to == "" {
		query.Del("sort")
	}
	c.Address = o.path + "?" + query.Encode()
	return c
}

// Max is how many rows are sorted.
func (o order) Max() int { return sortedMax }

// columns say how two rows compare.
type columns[T any] map[string]func(a, b T) int

// inOrder answers a page of a list, and where to go on. Sorted, that is a place
// among the sorted rows, otherwise the list's own cursor.
func inOrder[T any](o *order, after string, by columns[T],
	next func(after string, limit int) ([]T, string, error)) (rows []T, on string, err error) {
	name, down := strings.CutPrefix(o.By, "-")
	compare := by[name]
	if o.By = ""; compare == nil {
		return next(after, 0)
	}
	if o.By = name; down {
		o.By = "-" + name
	}
	for from, reads := "", 0; reads == 0 || from != "" && len(rows) < sortedMax && reads < readsMax; reads++ {
		some, further, err := next(from, sortedRead)
		if err != nil {
			return nil, "", err
		}
		rows, from = append(rows, some...), further
		o.More = from != ""
	}
	slices.SortStableFunc(rows, func(a, b T) int {
		if down {
			a, b = b, a
		}
		return compare(a, b)
	})
	place, err := strconv.Atoi(after)
	if place = max(place, 0); err != nil || place > len(rows) {
		place = 0
	}
	end := min(place+sortedPage, len(rows))
	if end < len(rows) {
		on = strconv.Itoa(end)
	}
	return rows[place:end], on, nil
}

// alphabetical compares without regard to case.
func alphabetical(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }

// matching are the rows of the list at an address of ours, at most [chosenMax],
// newest first: what "all that match" selects.
func (c *salesPages) matching(v *request, address string) (field string, ids []string, more bool, err error) {
	at, err := url.Parse(address)
	if err != nil {
		return "", nil, false, fault.New(fault.Invalid, "Invalid list request.")
	}
	var next func() (string, error)
	var faults []fault.Fault
	switch at.Path {
	case Root + "/transactions":
		q, wrong := readSearch(at.Query()).query()
		field, faults, q.Limit = "o", wrong, sortedRead
		next = func() (string, error) {
			page, err := c.cfg.Ledger.Search(v.ctx, q)
			for _, s := range page.List {
				ids = append(ids, s.OperationID)
			}
			q.After = page.Next
			return page.Next, err
		}
	case Root + "/deliveries":
		f := readEvents(at.Query())
		q, wrong := f.filter()
		field, faults, q.Limit = "e", wrong, sortedRead
		next = func() (string, error) {
			rows, next, err := c.cfg.Hooks.List(v.ctx, f.client(), q)
			for _, e := range rows {
				ids = append(ids, e.WebhookID)
			}
			q.After = next
			return next, err
		}
	default:
		return "", nil, false, fault.New(fault.Invalid, "Rows of this list cannot be selected.")
	}
	if len(faults) > 0 {
		return "", nil, false, fault.New(fault.Invalid, "Invalid list request.").With(faults...)
	}
	for reads, on := 0, ""; reads == 0 || on != "" && len(ids) < chosenMax && reads < readsMax; reads++ {
		if on, err = next(); err != nil {
			return "", nil, false, err
		}
		more = on != ""
	}
	return field, ids[:min(len(ids), chosenMax)], more || len(ids) > chosenMax, nil
}
