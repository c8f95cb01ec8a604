package api_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tributary/internal/api"
	"tributary/internal/site"
)

var (
	linked = regexp.MustCompile(`(?:src|href|action)="([^"]*)"`)
	named  = regexp.MustCompile(` id="([^"]*)"`)
)

// anchors are the ids of a page, each once.
func anchors(t *testing.T, name, page string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, m := range named.FindAllStringSubmatch(page, -1) {
		if all[m[1]] {
			t.Errorf("%s has the id %s twice", name, m[1])
		}
		all[m[1]] = true
	}
	return all
}

// TestTheDocumentationLoadsNothingFromOutside walks all pages as a browser
// would: every link within the site has its page and its place on it, whatever
// is loaded is ours, and the policy allows nothing else.
func TestTheDocumentationLoadsNothingFromOutside(t *testing.T) {
	t.Parallel()
	a := bare(t, nil)
	start := ask(a, http.MethodGet, "/docs")
	if start.Code != http.StatusSeeOther || start.Header().Get("Location") != "docs/index.html" {
		t.Fatalf("/docs answers %d to %q", start.Code, start.Header().Get("Location"))
	}
	if slash := ask(a, http.MethodGet, "/docs/"); slash.Code != http.StatusSeeOther ||
		slash.Header().Get("Location") != "index.html" {
		t.Errorf("/docs/ answers %d to %q", slash.Code, slash.Header().Get("Location"))
	}
	pages := map[string]string{}
	queue := []string{"index.html"}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if _, known := pages[name]; known {
			continue
		}
		w := ask(a, http.MethodGet, "/docs/"+name)
		if w.Code != http.StatusOK || w.Header().Get("Content-Security-Policy") != site.Policy {
			t.Fatalf("%s answers %d with the policy %q", name, w.Code, w.Header().Get("Content-Security-Policy"))
		}
		page := w.Body.String()
		pages[name] = page
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			continue
		}
		for _, m := range linked.FindAllStringSubmatch(page, -1) {
			u, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s links to %q: %v", name, m[1], err)
				continue
			}
			if u.Host != "" {
				if !strings.Contains(m[0], "href") {
					t.Errorf("%s loads %s", name, m[1])
				}
				continue
			}
			if u.Path != "" && u.Path != "../openapi.json" {
				queue = append(queue, u.Path)
			}
		}
	}
	if len(pages) < 100 {
		t.Errorf("only %d pages are linked", len(pages))
	}
	wholeSite(t, pages)
	for _, word := range []string{"unsafe", "http:", "https:", "data:", "*"} {
		if strings.Contains(site.Policy, word) {
			t.Errorf("the policy has %s: %s", word, site.Policy)
		}
	}
}

// wholeSite checks pages among themselves: places that are linked exist, and
// nothing stands in a page that its policy would stop.
func wholeSite(t *testing.T, pages map[string]string) {
	t.Helper()
	inline := regexp.MustCompile(`<style|<script>|<script [^>]*>[^<]| style="| on[a-z]+="`)
	ids := map[string]map[string]bool{}
	for name, page := range pages {
		if strings.HasSuffix(name, ".html") {
			ids[name] = anchors(t, name, page)
		}
	}
	for name, page := range pages {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		if found := inline.FindString(page); found != "" {
			t.Errorf("%s has %s", name, found)
		}
		if strings.Count(page, "<h1") != 1 {
			t.Errorf("%s has %d titles", name, strings.Count(page, "<h1"))
		}
		for _, m := range linked.FindAllStringSubmatch(page, -1) {
			u, err := url.Parse(m[1])
			if err != nil || u.Host != "" || strings.HasPrefix(m[1], "../") {
				continue
			}
			to := u.Path
			if to == "" {
				to = name
			}
			if _, ok := pages[to]; !ok {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
			} else if u.Fragment != "" && !ids[to][u.Fragment] {
				t.Errorf("%s links to %s, and the page has no such place", name, m[1])
			}
		}
	}
}

func TestTheDocumentationAsAFolderIsWhole(t *testing.T) {
	t.Parallel()
	files, err := bare(t, nil).Pages()
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, f := range files {
		if f.Name != filepath.Base(f.Name) || pages[f.Name] != "" || len(f.Content) == 0 || f.Media == "" {
			t.Errorf("file %q of %d bytes, %q", f.Name, len(f.Content), f.Media)
		}
		pages[f.Name] = string(f.Content)
	}
	wholeSite(t, pages)
	if page := pages["postV1Transactions.html"]; strings.Contains(page, "tryform") ||
		!strings.Contains(page, "YOUR_API_KEY") {
		t.Error("a page that is a file offers a call nobody answers, or has no placeholder of the key")
	}
	if !strings.Contains(pages["search.html"], `src="index.js"`) ||
		!strings.Contains(pages["index.js"], "authority_not_configured") {
		t.Error("the files cannot be searched")
	}
}

// Every operation has a page with its own errors and examples in four languages.
func TestEveryOperationHasItsPage(t *testing.T) {
	t.Parallel()
	a := bare(t, nil)
	doc, _ := published(t)
	count := 0
	for path, methods := range at(t, doc, "paths") {
		for method, op := range methods.(object) {
			count++
			o := op.(object)
			page := ask(a, http.MethodGet, "/docs/"+o["operationId"].(string)+".html").Body.String()
			for _, wanted := range []string{o["summary"].(string), strings.ToUpper(method), path, `data-language="curl"`,
				`data-language="Go"`, `data-language="TypeScript"`, `data-language="Python"`, "https://api.example.com/"} {
				if !strings.Contains(page, wanted) {
					t.Errorf("%s %s: its page lacks %q", method, path, wanted)
				}
			}
			for status, answer := range at(t, o, "responses") {
				codes, _ := answer.(object)["x-codes"].([]any)
				if status >= "400" && len(codes) == 0 {
					t.Errorf("%s %s: %s has no codes", method, path, status)
				}
				for _, c := range codes {
					if !strings.Contains(page, "<td>"+status+"</td><td><code>"+c.(string)+"</code></td>") {
						t.Errorf("%s %s: its page lacks %s %s", method, path, status, c)
					}
				}
			}
		}
	}
	if count < 34 {
		t.Errorf("only %d operations", count)
	}
}

func TestADemosDocumentationIsFilledIn(t *testing.T) {
	t.Parallel()
	a, err := api.New(api.Config{BaseURL: "http://127.0.0.1:8080", Version: "1", Ready: func(context.Context) error {
		return nil
	}, Log: slog.New(slog.DiscardHandler),
		Demo: func() *site.Demo {
			return &site.Demo{Key: "trb_test_demo_secret",
				Suppliers: map[string]string{"XX": "0123456789abcdef", "ES": "fedcba"}}
		}})
	if err != nil {
		t.Fatal(err)
	}
	page := ask(a, http.MethodGet, "http://127.0.0.1:8080/docs/postV1Transactions.html").Body.String()
	if strings.Contains(page, "SUPPLIER_ID") || strings.Contains(page, "YOUR_API_KEY") ||
		strings.Count(page, "0123456789abcdef") < 6 || strings.Count(page, "trb_test_demo_secret") < 5 {
		t.Error("the demo's key or supplier is not filled in")
	}
	if strings.Contains(ask(bare(t, nil), http.MethodGet, "/docs/postV1Transactions.html").Body.String(),
		"trb_test_demo_secret") {
		t.Error("another service shows the demo's key")
	}
}

// What people look for stands first, by whatever name they know it; why the product is made as it is they do not look
// for.
func TestASearchFindsWhereAThingIsExplainedFirst(t *testing.T) {
	t.Parallel()
	a := bare(t, nil)
	first := regexp.MustCompile(`<li><a href="([^"]*)"`)
	for words, wanted := range map[string]string{
		"pagination": "specification.html#lists", "sandbox": "testing.html", "refund": "corrections.html",
		"rate limit": "specification.html#14-limits", "SDK": "guide.html#client-libraries",
	} {
		page := ask(a, http.MethodGet, "/docs/search.html?q="+url.QueryEscape(words)).Body.String()
		if found := first.FindStringSubmatch(page); found == nil || found[1] != wanted {
			t.Errorf("%q finds %q first, not %s", words, found, wanted)
		}
	}
	if page := ask(a, http.MethodGet, "/docs/search.html?q=decision").Body.String(); strings.Contains(page,
		`href="decision-`) {
		t.Error("decision records are found")
	}
}

func TestTextsForLanguageModels(t *testing.T) {
	t.Parallel()
	a := bare(t, nil)
	for _, name := range site.Texts {
		if w := ask(a, http.MethodGet, "/"+name); w.Code != http.StatusSeeOther ||
			w.Header().Get("Location") != "docs/"+name {
			t.Errorf("/%s answers %d to %q", name, w.Code, w.Header().Get("Location"))
		}
		w := ask(a, http.MethodGet, "/docs/"+name)
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			t.Fatalf("%s answers %d, %s", name, w.Code, w.Header().Get("Content-Type"))
		}
		text := w.Body.String()
		for _, m := range regexp.MustCompile(`\]\(([a-z0-9-]+\.html)`).FindAllStringSubmatch(text, -1) {
			if page := ask(a, http.MethodGet, "/docs/"+m[1]); page.Code != http.StatusOK {
				t.Errorf("%s links to %s, which answers %d", name, m[1], page.Code)
			}
		}
		if !strings.Contains(text, "](concepts.html)") {
			t.Errorf("%s does not lead to the pages", name)
		}
	}
	full := ask(a, http.MethodGet, "/docs/llms-full.txt").Body.String()
	for _, wanted := range []string{"# Specification", "# Webhooks", "# Errors", "VERI*FACTU", "# Changelog"} {
		if !strings.Contains(full, wanted) {
			t.Errorf("the whole text lacks %q", wanted)
		}
	}
}

func TestTheDocumentationCanBeSearched(t *testing.T) {
	t.Parallel()
	a := bare(t, nil)
	search := func(words string) string {
		w := ask(a, http.MethodGet, "/docs/search.html?q="+url.QueryEscape(words))
		if w.Code != http.StatusOK {
			t.Fatalf("%q answers %d", words, w.Code)
		}
		return w.Body.String()
	}
	for words, wanted := range map[string]string{
		"authority_not_configured": `href="errors.html#all-codes"`, "SUBMIT a transaction": `href="postV1Transactions.html"`,
		"x-service-hmac": "receiving-webhooks.html", "leitweg": "concepts.html",
		"no xyzzy here": "Nothing has all words", "": "Type a word", `"><script>alert(1)</script>`: "&lt;script&gt;",
	} {
		if page := search(words); !strings.Contains(page, wanted) {
			t.Errorf("%q does not find %q:\n%s", words, wanted, page)
		}
	}
	if page := search(strings.Repeat("ä", 200) + "x"); !strings.Contains(page, strings.Repeat("ä", 200)) ||
		strings.Contains(page, "äx") {
		t.Error("a search past 200 characters is not cut there")
	}
	if strings.Count(search("the"), "<li><a href=") < 40 {
		t.Error("fewer than 40 places have a common word")
	}
	eight := strings.Repeat("transaction ", 8)
	if !strings.Contains(search(eight), "places for") || !strings.Contains(search(eight+"nosuchword"), "places for") ||
		strings.Contains(search(strings.Repeat("transaction ", 7)+"nosuchword"), "places for") {
		t.Error("not exactly eight words are looked at")
	}
}
