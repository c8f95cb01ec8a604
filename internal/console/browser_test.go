package console_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"tributary/internal/alert"
	"tributary/internal/authority"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

// chromium is a real browser on the console. Whatever it complains about, and
// every request that leaves the console, fails the test.
type chromium struct {
	t          testing.TB
	h          *house
	ctx        context.Context
	places     []string // what it may ask for
	mu         sync.Mutex
	complaints []string
}

// shared is the one Chromium of this package: tests have a tab each, with cookies
// of its own. The first test that needs it starts it, TestMain ends it.
var shared struct {
	once sync.Once
	ctx  context.Context
	stop context.CancelFunc
	err  error
}

func startChromium(program string) (context.Context, error) {
	shared.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program),
			chromedp.WindowSize(1280, 900), chromedp.DisableGPU, chromedp.WSURLReadTimeout(patience))
		if os.Getuid() == 0 {
			options = append(options, chromedp.NoSandbox) // Chromium refuses to start as root with one
		}
		allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
		shared.ctx, shared.stop = chromedp.NewContext(allocator)
		shared.err = chromedp.Do(shared.ctx)
		cancel := shared.stop
		shared.stop = func() {
			_ = chromedp.Cancel(shared.ctx) // how a browser ends is not ours
			cancel()
			stop()
		}
	})
	return shared.ctx, shared.err
}

// chromium is a tab for the console, and for other places if they are named.
func (h *house) chromium(places ...string) *chromium {
	h.t.Helper()
	browser, err := startChromium(needs.Tool(h.t, "chromium", "chromium"))
	must(h.t, err)
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	c := &chromium{t: h.t, h: h, ctx: ctx, places: append(places, h.url+"/console/")}
	var wg sync.WaitGroup
	h.t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	must(h.t, chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900)))
	messages, requests, dialogs := chromedp.Console(ctx), chromedp.Events(ctx, network.RequestWillBeSent),
		chromedp.Events(ctx, page.JavascriptDialogOpening)
	wg.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			c.complain("%s: %s %s", m.Type, m.Text, m.URL)
		}
	})
	wg.Go(func() {
		for r, err := range requests {
			if err != nil {
				return
			}
			// data: and chrome-extension: are the browser's own pictures and PDF viewer.
			if strings.HasPrefix(r.Request.URL, "data:") || strings.HasPrefix(r.Request.URL, "chrome-extension:") {
				continue
			}
			if !slices.ContainsFunc(c.places, func(place string) bool { return strings.HasPrefix(r.Request.URL, place) }) {
				c.complain("a request to %s", r.Request.URL)
			}
		}
	})
	wg.Go(func() {
		for _, err := range dialogs { // of actions that ask first
			if err != nil {
				return
			}
			if _, err := chromedp.Call(ctx, page.HandleJavaScriptDialog,
				page.HandleJavaScriptDialogParams{Accept: true}); err != nil {
				c.complain("answer a question: %v", err)
			}
		}
	})
	return c
}

func (c *chromium) complain(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.complaints = append(c.complaints, fmt.Sprintf(format, args...))
}

// content checks that the browser has had nothing to say.
func (c *chromium) content() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range c.complaints {
		c.t.Errorf("the browser says: %s", text)
	}
	c.complaints = nil
}

// do takes one step after the other.
func (c *chromium) do(steps ...chromedp.Action[chromedp.Void]) {
	c.t.Helper()
	for _, step := range steps {
		value(c, step)
	}
}

// value runs an action that has one.
func value[T any](c *chromium, a chromedp.Action[T]) T {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

func (c *chromium) open(path string) {
	c.t.Helper()
	c.visit(c.h.url + "/console" + path)
}

// visit goes to an address and waits until the page's own scripts have run; what
// it shows inside, as a PDF, may still be on its way.
func (c *chromium) visit(url string) {
	c.t.Helper()
	value(c, chromedp.Evaluate[bool](`window.left = true`))
	if _, err := chromedp.Call(c.ctx, page.Navigate, page.NavigateParams{URL: url}); err != nil {
		c.t.Fatal(err)
	}
	c.waits(`!window.left && performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd > 0`)
}

// waits looks at the page until an expression is true. It asks the page itself,
// again and again: what a driver remembers of a page's elements is lost with the
// page, and with a PDF that loads in it.
func (c *chromium) waits(expression string) {
	c.t.Helper()
	if !c.tries(chromedp.Poll[bool](expression,
		chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(time.Second))) {
		c.shot("failed")
		c.t.Fatalf("it never came to %s:\n%s", expression, value(c, chromedp.Evaluate[string]("document.body.innerText")))
	}
}

// tries takes a step until it is done. A page that is just being left ends a try,
// and sometimes never answers it.
func (c *chromium) tries(step chromedp.Action[bool]) bool {
	for late := time.Now().Add(patience); time.Now().Before(late); {
		ctx, cancel := context.WithTimeout(c.ctx, 20*time.Second)
		done, err := chromedp.Run(ctx, step)
		cancel()
		if err == nil && done {
			return true
		}
	}
	return false
}

// sees waits until the page has a text, without reloading it.
func (c *chromium) sees(text string) {
	c.t.Helper()
	c.waits(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// shows waits until the page has an element that can be seen.
func (c *chromium) shows(selector string) {
	c.t.Helper()
	c.waits(fmt.Sprintf(`document.querySelector(%q)?.checkVisibility() === true`, selector))
}

// types puts the focus on a field and presses keys.
func (c *chromium) types(selector, keys string) {
	c.t.Helper()
	c.touch(selector, `e.focus();`)
	c.do(chromedp.KeyEvent(keys))
}

// click presses an element where a pointer would hit it: shown, enabled and
// with nothing above it. Finding and pressing are one step of the page, so
// nothing that the page does by itself comes between.
func (c *chromium) click(selector string) {
	c.t.Helper()
	c.touch(selector, `
		const box = e.getBoundingClientRect();
		const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
		if (e.disabled || !e.contains(top)) return false;
		e.click();`)
}

// fill writes into a field, as one step: keys would go elsewhere where
// something else on the page takes the focus, as a PDF does when it has loaded.
func (c *chromium) fill(selector, text string) {
	c.t.Helper()
	c.touch(selector, fmt.Sprintf(`
		e.focus();
		e.value = %q;
		e.dispatchEvent(new Event("input", {bubbles: true}));`, text))
}

// touch runs a step on an element as soon as there is one and the step does not
// return false.
func (c *chromium) touch(selector, step string) {
	c.t.Helper()
	script := fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		if (!e) return false;
		e.scrollIntoView({block: "center", behavior: "instant"});
		%s
		return true;
	})()`, selector, step)
	c.waits(fmt.Sprintf(`document.querySelector(%q) !== null`, selector))
	if !c.tries(chromedp.Evaluate[bool](script, func(p *runtime.EvaluateParams) { p.UserGesture = new(true) })) {
		c.shot("failed")
		c.t.Fatalf("%s was never there to be touched:\n%s", selector,
			value(c, chromedp.Evaluate[string]("document.body.innerText")))
	}
}

// shot keeps a picture where TRIBUTARY_SCREENSHOTS names a folder.
func (c *chromium) shot(name string) {
	dir := os.Getenv("TRIBUTARY_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(c.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		c.t.Errorf("take a picture of %s: %v", name, err)
		return
	}
	must(c.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600))
}

// fits checks that a page needs no sideways scrolling.
func (c *chromium) fits(path string) {
	c.t.Helper()
	width, room := value(c, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)),
		value(c, chromedp.Evaluate[int](`window.innerWidth`))
	if width > room {
		c.t.Errorf("%s is %d pixels wide in a window of %d", path, width, room)
	}
}

// fair checks what a screen reader and a keyboard need of a page.
func (c *chromium) fair(path string) {
	c.t.Helper()
	const look = `(() => {
		const wrong = [];
		const all = (selector) => [...document.querySelectorAll(selector)];
		if (all("h1").length !== 1) wrong.push("one h1 is needed");
		if (all("main").length !== 1 || all("nav").length === 0) wrong.push("a landmark is missing");
		if (!document.querySelector("a.skip[href='#main']")) wrong.push("the skip link is missing");
		if (document.documentElement.lang !== "en") wrong.push("the language is missing");
		for (const e of all("input:not([type=hidden]), select, textarea")) if (!e.labels?.length && !e.getAttribute("aria-label") && !e.getAttribute("aria-hidden")) wrong.push("no label: " + e.outerHTML);
		for (const e of all("button, a[href]")) if (!(e.innerText || e.textContent).trim() && !e.getAttribute("aria-label")) wrong.push("no name: " + e.outerHTML);
		for (const e of all("table")) if (!e.caption || [...e.querySelectorAll("th")].some((h) => !h.scope)) wrong.push("a table without caption or scope");
		for (const e of all("svg.plot")) if (!e.getAttribute("aria-label") && e.getAttribute("aria-hidden") !== "true") wrong.push("a plot without words");
		const ids = all("[id]").map((e) => e.id);
		for (const id of ids.filter((id, i) => ids.indexOf(id) !== i)) wrong.push("an id twice: " + id);
		for (const e of all("[aria-labelledby]")) if (!document.getElementById(e.getAttribute("aria-labelledby"))) wrong.push("labelled by nothing: " + e.outerHTML.slice(0, 80));
		return wrong;
	})()`
	for _, problem := range value(c, chromedp.Evaluate[[]string](look)) {
		c.t.Errorf("%s: %s", path, problem)
	}
}

// axe runs axe-core over the page, in make conformance: 0 violations, of any rule it has.
func (c *chromium) axe(path string) {
	c.t.Helper()
	if !needs.Conformance() {
		return
	}
	script, err := os.ReadFile(filepath.Join(needs.Npm(c.t, "axe"), "node_modules", "axe-core", "axe.min.js"))
	must(c.t, err)
	const run = `axe.run(document, {iframes: false, preload: false, selectors: false, resultTypes: ["violations"]}).then((r) => (r.passes.length ? [] : ["axe looked at nothing"]).concat(r.violations.map((v) => v.id + ": " + v.help + " " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | "))))`
	value(c, chromedp.Evaluate[bool](string(script)+"; true"))
	for _, violation := range value(c, chromedp.Evaluate[[]string](run, chromedp.EvalAwaitPromise)) {
		c.t.Errorf("%s: %s", path, violation)
	}
}

func (c *chromium) signIn(name string) {
	c.t.Helper()
	c.open("/")
	c.shows("#password")
	c.shot("sign-in-1280")
	c.types("#name", name)
	c.types("#password", password+"\r")
	c.shows("#places")
}

// TestAnOperatorsDay is the console in a real browser: sign in, find a stuck
// transaction, read why, retry it and see the page follow, replay a delivery,
// rotate a key, acknowledge an alert.
func TestAnOperatorsDay(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.script(authority.Step{Outcome: authority.Unavailable, Times: 1_000_000, On: authority.OnAny})
	h.run()
	stuck := h.submit("INV-2026-0815")
	must(t, h.alerts.Raise(t.Context(), alert.WebhookBreakerOpen, "acme", "20 tries in a row failed"))
	c := h.chromium()
	c.signIn("admin")
	c.sees("In progress now")
	c.content()

	// Find it with the keyboard alone, read why, retry, and see it happen.
	c.do(chromedp.KeyEvent("/"))
	c.waits(`document.activeElement?.id === "find"`)
	c.do(chromedp.KeyEvent("inv 2026-0815\r"))
	c.sees("1 failed call") // a single hit opens
	c.sees("Next attempt")
	c.shot("stuck-1280")
	h.script()
	c.click("#retry")
	c.sees("Succeeded after") // by itself: nothing is reloaded
	c.sees("delivered")
	if at := value(c, chromedp.Location()); strings.Contains(at, "notice") {
		t.Errorf("the notice stays in the address: %s", at)
	}
	c.content()

	c.replayWindow()
	c.rotateKey()

	c.open("/alerts")
	c.click("button[id^=a-]")
	c.sees("No open alerts")
	c.content()
	for i := range 12 { // something to look at
		h.submit(fmt.Sprintf("INV-2026-%04d", 900+i))
	}
	h.script(authority.Step{Outcome: authority.Reject, Times: 2})
	h.submit("INV-2026-1001")
	h.submit("INV-2026-1002")
	c.tour(stuck)
}

func (c *chromium) replayWindow() {
	c.t.Helper()
	sent := c.h.got.Load()
	c.open("/deliveries/replay?client=acme")
	c.fill("#client", "acme")
	c.click(".search button[type=submit]")
	c.sees("1 event")
	c.shot("replay-1280")
	c.click("#replay")
	c.sees("The replay has started")
	c.sees("completed")
	for late := time.Now().Add(patience); c.h.got.Load() == sent; {
		if time.Now().After(late) {
			c.t.Fatal("nothing was sent again")
		}
		c.sees("Deliveries")
	}
	c.content()
}

func (c *chromium) rotateKey() {
	c.t.Helper()
	c.open("/clients/acme")
	// the sample follows before anything is saved
	c.fill("#accent", "#7A1F3D")
	c.waits(`document.querySelector('#preview[data*="accent=%237A1F3D"]') !== null`)
	c.click("#rotate")
	c.shows("#secret")
	c.click("a.button")
	c.click("#promote")
	c.sees("it signs webhooks")
	c.content()
}

const lastView = "400-dark"

// views looks in light and dark, wide and narrow.
func (c *chromium) views(look func(name string)) {
	c.t.Helper()
	for _, view := range []struct {
		name, scheme string
		width        int64
	}{{"1280", "light", 1280}, {"1280-dark", "dark", 1280}, {"400", "light", 400}, {lastView, "dark", 400}} {
		_, err := chromedp.Call(c.ctx, emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
				Value: view.scheme}}})
		must(c.t, err)
		c.do(chromedp.EmulateViewport(view.width, 900))
		look(view.name)
	}
}

// everyView: make long and make conformance look at every page in every view; else
// each is seen in the last view, which is narrow and dark, and a few in all.
func everyView() bool { return needs.IsLong() || needs.Conformance() }

// tour looks at every page.
func (c *chromium) tour(operation string) {
	c.t.Helper()
	c.h.keyAndSeries()
	pages := c.everyPage(operation)
	c.views(func(view string) {
		for name, path := range pages {
			if view != lastView && !everyView() && !slices.Contains([]string{"overview", "transaction", "client"}, name) {
				continue
			}
			c.open(path)
			c.fits(path)
			c.fair(path)
			c.axe(path)
			c.shot(name + "-" + view)
		}
	})
	c.open("/transactions/" + operation)
	c.click("#show-paper")
	c.waits(`document.querySelector("object.paper") !== null`)
	c.axe("the document beside the timeline")
	c.shot("paper-" + lastView)
	c.open("/")
	c.click(".menu")
	c.shows("#places a[href='/console/queues']")
	c.shot("menu-" + lastView)
	c.click("#places a[href='/console/queues']")
	c.sees("Operations by stage")
	c.content()
}

// everyPage is the address of each page by its name; those of one thing are of an operation.
func (c *chromium) everyPage(operation string) map[string]string {
	c.t.Helper()
	pages := map[string]string{
		"overview": "/", "transactions": "/transactions", "transaction": "/transactions/" + operation,
		"deliveries": "/deliveries", "clients": "/clients", "client": "/clients/acme",
		"suppliers": "/suppliers", "lookups": "/lookups", "queues": "/queues", "periods": "/periods",
		"alerts": "/alerts?all=1", "audit": "/audit", "operators": "/operators", "account": "/account",
		"simulators": "/simulators", "authorities": "/authorities",
		"replay": "/deliveries/replay?client=acme", "retry": "/retry?reason=authority_error",
		"chosen": "/chosen?act=redeliver&o=" + operation + "&o=nothing", "nothing": "/transactions?q=nothing-like-it",
		"waiting": "/transactions?reason=authority_error",
	}
	for name, path := range map[string]string{"event": "deliveries", "supplier": "suppliers"} {
		look := `deliveries\/events\/[^"]+`
		if name == "supplier" {
			look = `suppliers\/[^"]+`
		}
		found := value(c, chromedp.Evaluate[string](fmt.Sprintf(
			`fetch("/console/%s").then((r) => r.text()).then((t) => t.match(/%s/)[0])`, path, look), chromedp.EvalAwaitPromise))
		pages[name] = "/" + found
	}
	return pages
}
