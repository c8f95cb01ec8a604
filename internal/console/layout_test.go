package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/authority"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
	"tributary/internal/operator"
)

// lookForDisorder finds text that leaves the window, its own box or the picture it
// stands in, and texts that lie on each other. What scrolls by itself may be wide.
const lookForDisorder = `(() => {
	const wrong = [], texts = [];
	const scrolls = (e) => e && (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
	const clipped = (e) => e && (getComputedStyle(e).clipPath !== "none" || e.matches(".skip, details:not([open]) > :not(summary)") || clipped(e.parentElement));
	const name = (e) => e.tagName.toLowerCase() + (e.className?.baseVal ?? e.className ? "." + (e.className.baseVal ?? e.className) : "");
	const say = (what, t, more) => wrong.push(what + ": " + t.text.slice(0, 60) + " in " + name(t.e) + (more ?? ""));
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node = walker.nextNode(); node; node = walker.nextNode()) {
		const e = node.parentElement, text = node.data.trim();
		if (!text || !e.checkVisibility({visibilityProperty: true}) || clipped(e) || e.closest("option, pre")) continue;
		const range = document.createRange();
		range.selectNodeContents(node);
		for (const r of range.getClientRects()) if (r.width > 0.5 && r.height > 0.5) texts.push({e, text, r});
	}
	for (const t of texts) {
		if (scrolls(t.e)) continue;
		if (t.r.right > innerWidth + 1 || t.r.left < -1) say("outside of the window", t, " at " + Math.round(t.r.left) + " to " + Math.round(t.r.right));
		const box = t.e.closest("td, th, dd, dt, li, section, .why, .notice, button, .button, .field, .rail, .stage");
		const edge = box?.getBoundingClientRect();
		if (edge && !t.e.closest("svg") && (t.r.right > edge.right + 1.5 || t.r.left < edge.left - 1.5)) say("outside of its " + name(box), t, " by " + Math.round(Math.max(t.r.right - edge.right, edge.left - t.r.left)));
		const picture = t.e.closest("svg")?.parentElement.getBoundingClientRect();
		if (picture && (t.r.right > picture.right + 1.5 || t.r.left < picture.left - 1.5)) say("cut from its picture", t);
	}
	const lies = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
	texts.sort((a, b) => a.r.top - b.r.top);
	for (let i = 0; i < texts.length; i++) {
		for (let j = i + 1; j < texts.length && texts[j].r.top < texts[i].r.bottom; j++) {
			const a = texts[i], b = texts[j];
			if (a.e !== b.e && lies(a.r, b.r) && !scrolls(a.e) && !scrolls(b.e)) say("lies on " + b.text.slice(0, 40), a);
		}
	}
	return [...new Set(wrong)].slice(0, 12);
})()`

// tidy checks that nothing on the page overlaps or overflows.
func (c *chromium) tidy(where string) {
	c.t.Helper()
	for _, problem := range value(c, chromedp.Evaluate[[]string](lookForDisorder)) {
		c.t.Errorf("%s: %s", where, problem)
	}
}

// longNames fills the house with what is as long as it may be: words without a
// blank, addresses, errors of the network, names.
func (h *house) longNames() (operation string) {
	h.t.Helper()
	t, word := h.t, strings.Repeat("Donaudampfschifffahrt", 4)
	address := "https://receiver.example.test/" + strings.Repeat("very/long/path/", 12) + "hook"
	h.refuse.Store(true)
	h.run()
	viewer := h.as(operator.Viewer)
	viewer.await("/transactions/"+h.submit("INV-1"), ">500<")
	h.script(authority.Step{Outcome: authority.Unavailable, Times: 1_000_000, On: authority.OnAny})
	operation = h.submit("INV-" + strings.Repeat("2026-0815-", 4))
	viewer.await("/transactions/"+operation, "1 failed call")
	_, err := h.accounts.Configure(t.Context(), audit.Actor{Name: "test"}, clientID, func(c *account.Config) error {
		c.DisplayName = "Vereinigte " + word[:60] + " Gesellschaft"
		return nil
	})
	must(t, err)
	trouble := `Post "` + address + `": dial tcp 192.0.2.1:443: connect: connection refused: ` + word + word
	must(t, h.db.Write(t.Context(), func(tx *db.Tx) error {
		for _, statement := range []string{"UPDATE lanes SET trouble = $1", "UPDATE exchanges SET outcome = $1"} {
			if err := tx.Exec(statement, trouble); err != nil {
				return err
			}
		}
		return nil
	}))
	for i, name := range []alert.Name{alert.WebhookBreakerOpen, alert.OperationQuarantined, alert.AuthorityNotConfigured,
		alert.LanePausedCredentials, alert.DocumentDamaged} {
		subject := []string{clientID, operation, "XX test", clientID + "/" + h.supplier, word + word}[i]
		must(t, h.alerts.Raise(t.Context(), name, subject, "nothing goes through: "+trouble))
	}
	return operation
}

// TestNothingOverlapsOrOverflows looks at every page with the longest of
// everything, on a desk, on a tablet and on a phone.
func TestNothingOverlapsOrOverflows(t *testing.T) {
	needs.NotInTheGate(t, "all pages at seven widths in a browser")
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	operation := h.longNames()
	c := h.chromium()
	c.signIn("admin")
	h.keyAndSeries()
	pages := c.everyPage(operation)
	widths := []int64{1440, 400}
	if everyView() {
		widths = []int64{1920, 1440, 1280, 900, 768, 400, 320}
	}
	for _, width := range widths {
		c.do(chromedp.EmulateViewport(width, 900))
		for name, path := range pages {
			where := fmt.Sprintf("%s at %d", name, width)
			c.open(path)
			c.tidy(where)
			c.fits(where)
			c.shot(fmt.Sprintf("long-%s-%d", name, width))
		}
	}
}
