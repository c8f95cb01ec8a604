package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"tributary/internal/authority"
	"tributary/internal/console"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/operator"
)

// ordered checks that a page has some texts one after the other.
func ordered(t *testing.T, page string, texts ...string) {
	t.Helper()
	rest := page
	for _, text := range texts {
		at := strings.Index(rest, text)
		if at < 0 {
			t.Errorf("%q does not come in the order %q:\n%s", text, texts, gist(page))
			return
		}
		rest = rest[at+len(text):]
	}
}

// Every list can be sorted by its columns, up, down and as it was; the address
// has all of it.
func TestListsAreSortedByTheirColumns(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	b := h.as(operator.Viewer)
	for _, number := range []string{"INV-2", "inv-3", "INV-1"} {
		b.await("/transactions/"+h.submit(number), "delivered")
	}
	ordered(t, b.get("/transactions"), ">INV-1<", ">inv-3<", ">INV-2<")
	up := b.get("/transactions?status=SUCCESS&sort=number")
	ordered(t, up, `aria-sort="ascending"`, ">INV-1<", ">INV-2<", ">inv-3<")
	if !strings.Contains(up, `href="/console/transactions?sort=-number&amp;status=SUCCESS"`) ||
		!strings.Contains(up, `name="sort" value="number"`) {
		t.Errorf("the column does not lead on, or a search forgets it:\n%s", gist(up))
	}
	down := b.get("/transactions?sort=-number")
	ordered(t, down, `aria-sort="descending"`, ">inv-3<", ">INV-2<", ">INV-1<")
	if !strings.Contains(down, `class="sort" href="/console/transactions?"`) {
		t.Errorf("a third press does not lead back:\n%s", gist(down))
	}
	ordered(t, b.get("/transactions?sort=colour"), ">INV-1<", ">inv-3<", ">INV-2<")
	for list, columns := range map[string]string{
		"transactions": "number status total customer supplier client dated accepted",
		"deliveries":   "event status attempts response created next",
		"suppliers":    "name country tax client status changed",
	} {
		for name := range strings.FieldsSeq(columns) {
			if page := b.get("/" + list + "?sort=-" + name); strings.Count(page, "aria-sort=") != 1 {
				t.Errorf("%s is not sorted by %s:\n%s", list, name, gist(page))
			}
		}
	}
	if page := b.get("/deliveries?from=2001-01-01&to=2001-12-31"); !strings.Contains(page, "No events.") {
		t.Errorf("events of another year:\n%s", gist(page))
	}
	if page := b.get("/deliveries?from=yesterday"); !strings.Contains(page, "from must be a date") {
		t.Errorf("a date that is none:\n%s", gist(page))
	}
}

// The newest rows are sorted, and it is told where there are more.
func TestOnlyTheNewestRowsAreSorted(t *testing.T) {
	t.Parallel()
	page, on, more := console.Sorted("-number", "", console.SortedMax)
	if page[0] != console.SortedMax-1 || len(page) != 50 || on != "50" || more {
		t.Errorf("at the limit: %v, on to %q, more %v", page, on, more)
	}
	page, _, more = console.Sorted("-number", "450", console.SortedMax+1)
	if len(page) != 50 || page[49] != 0 || !more {
		t.Errorf("one past it: %v, more %v", page, more)
	}
	if page, on, _ := console.Sorted("number", "500", console.SortedMax); len(page) != 0 || on != "" {
		t.Errorf("behind the end: %v, on to %q", page, on)
	}
	if page, _, _ := console.Sorted("number", "-7", 3); len(page) != 3 {
		t.Errorf("at a place that is none: %v", page)
	}
}

// The form narrows by supplier, number, the document's day and the code of an error.
func TestTheListIsNarrowedByEveryField(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	b := h.as(operator.Viewer)
	id, other := h.submit("INV-1"), h.submit("CN-1")
	b.await("/transactions/"+id, "delivered")
	b.await("/transactions/"+other, "delivered")
	h.script(authority.Step{Outcome: authority.Reject, Times: 1000})
	failed := h.submit("INV-2")
	b.await("/transactions/"+failed, "Rejected")
	for query, shown := range map[string][2]string{
		"number=inv-":                               {id, other},
		"supplier=" + h.supplier:                    {id, ""},
		"supplier=nobody":                           {"Nothing found.", id},
		"error=" + string(fault.AuthorityRejected):  {failed, id},
		"dated_from=2026-04-02&dated_to=2026-04-02": {id, ""},
		"dated_from=2026-04-03":                     {"Nothing found.", id},
		"dated_to=soon":                             {"dated_to must be a date", id},
	} {
		page := b.await("/transactions?"+query, shown[0])
		if shown[1] != "" && strings.Contains(page, shown[1]) {
			t.Errorf("%s is not narrowed:\n%s", query, gist(page))
		}
		if folded := !strings.Contains(page, `class="more" open`); folded != strings.HasPrefix(query, "supplier") {
			t.Errorf("%s: the fields are folded away: %v", query, folded)
		}
	}
}

// "All that match" selects the rows of every page of a list, as it is narrowed.
func TestAllThatMatchAreSelected(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	var ids []string
	for i := range 201 {
		ids = append(ids, h.submit(fmt.Sprintf("INV-%03d", i)))
	}
	b := h.as(operator.Acting)
	choose := func(back string) string {
		return b.get("/chosen?" + url.Values{"act": {"retry"}, "all": {"1"}, "o": {"ticked"}, "back": {back}}.Encode())
	}
	page := choose("/console/transactions?status=PROCESSING")
	if !strings.Contains(page, "of 200 selected") || !strings.Contains(page, "More match: these are the newest 200.") ||
		strings.Contains(page, ids[0]) || !strings.Contains(page, ids[1]) || strings.Contains(page, "ticked") {
		t.Errorf("all of 201:\n%s", gist(page))
	}
	page = choose("/console/transactions?from=2001-01-01&to=2001-01-02")
	if !strings.Contains(page, "of 0 selected") {
		t.Errorf("none match:\n%s", gist(page))
	}
	page = choose("/console/deliveries?status=delivered")
	if !strings.Contains(page, "of 0 selected") {
		t.Errorf("no event matches:\n%s", gist(page))
	}
	for _, back := range []string{"/console/operators", "/console/transactions?from=soon", "/console/deliveries?to=soon"} {
		resp := b.do(http.MethodGet, "/chosen?"+url.Values{"act": {"retry"}, "all": {"1"}, "back": {back}}.Encode(), nil)
		if _ = read(t, resp); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", back, resp.StatusCode)
		}
	}
}

// What is ticked stays ticked on the other pages of a list, and goes with the act.
func TestTicksStayAcrossPages(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	oldest := h.submit("INV-000")
	for i := range 50 {
		h.submit(fmt.Sprintf("INV-%03d", i+1))
	}
	newest := h.submit("INV-051")
	h.as(operator.Acting)
	c := h.chromium()
	c.signIn("admin")
	c.open("/transactions")
	c.click("#c-" + newest)
	c.click("a.next, a[rel=next]")
	c.sees("1 more selected on other pages")
	c.click("#c-" + oldest)
	c.do(chromedp.EmulateViewport(390, 900))
	c.tidy("the second page on a phone")
	c.shot("ticks-390")
	c.do(chromedp.EmulateViewport(1440, 900))
	c.shot("ticks-1440")
	c.open("/transactions?sort=number")
	c.sees("1 more selected on other pages") // the oldest is on this page now
	c.click(`#choose button[value="retry"]`)
	c.sees("of 2 selected")
	c.shows(`a[href="/console/transactions/` + oldest + `"]`)
	c.shows(`a[href="/console/transactions/` + newest + `"]`)
	c.open("/transactions")
	c.waits(`document.getElementById("c-` + newest + `").checked`) // nothing was done yet
	c.click("#elsewhere button")
	c.waits(`!document.getElementById("c-` + newest + `").checked && document.getElementById("elsewhere").hidden`)
	c.content()
}
