package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"tributary/internal/console"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/mutate"
	"tributary/internal/operator"
)

// marked is what no page may repeat as markup, wherever it stood in a request.
const marked = "<zz>"

// desk is a console with an administrator's cookie and the token of its forms.
type desk struct {
	console *console.Console
	cookies []*http.Cookie
	csrf    string
	get     []string
	post    []string
}

func sitDown(t testing.TB, h *house) *desk {
	t.Helper()
	b := h.as(operator.Admin)
	at, err := url.Parse(h.url + console.Root + "/")
	must(t, err)
	d := &desk{console: h.console, cookies: b.http.Jar.Cookies(at), csrf: b.token()}
	for _, rt := range h.console.Routes() {
		switch {
		case rt.Method == http.MethodGet:
			d.get = append(d.get, rt.Path)
		case rt.Path != "/sign-out" && rt.Path != "/operators/{name}/{change}" && rt.Path != "/sessions/{session}/end" &&
			rt.Path != "/account/password":
			d.post = append(d.post, rt.Path) // the others may end the session that goes on asking
		}
	}
	slices.Sort(d.get)
	slices.Sort(d.post)
	return d
}

// ask sends a request to a route with id in place of its parameters.
func (d *desk) ask(t testing.TB, method, path, id, query, media, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, console.Root+"/", strings.NewReader(body))
	r.URL.Path, r.URL.RawQuery = console.Root+parameter.ReplaceAllLiteralString(strings.Replace(path, "{$}", "", 1), id),
		query
	r.Header.Set("Content-Type", media)
	for _, c := range d.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	d.console.ServeHTTP(w, r)
	if w.Code >= 500 {
		t.Fatalf("%s %s of %q ? %q with %q: %d\n%s", method, path, id, query, body, w.Code, gist(w.Body.String()))
	}
	if strings.Contains(w.Body.String(), marked) && strings.Contains(w.Header().Get("Content-Type"), "html") {
		t.Fatalf("%s %s of %q ? %q with %q shows markup:\n%s", method, path, id, query, body, gist(w.Body.String()))
	}
	return w
}

// Whatever an address says, a page is shown or refused in words, and what the
// address said stands on it as text.
func FuzzPages(f *testing.F) {
	d := sitDown(f, build(f, dbtest.SQLite(f)))
	for i := range d.get {
		f.Add(uint8(i), clientID,
			"q=1&client=acme&status=SUCCESS&from=2026-01-01&to=2026-01-31T10:00&amount=227.10&cursor=AAAA&before=1&over=week&ending=30&notice=saved")
		f.Add(uint8(i), "%00"+marked,
			"q="+marked+"&q=%00&cursor=%ff&from=9999-99-99&before=-1&limit=99999999999999999999&client=%ff%00&"+marked+"=x")
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, which uint8, id, query string) {
		if strings.Contains(id, "/") {
			t.Skip("another route")
		}
		d.ask(t, http.MethodGet, d.get[int(which)%len(d.get)], id, query, "", "")
	})
}

// Whatever a form says, it changes something, or is refused in words.
func FuzzForms(f *testing.F) {
	d := sitDown(f, build(f, dbtest.SQLite(f)))
	for i := range d.post {
		f.Add(uint8(i), clientID, false,
			"name="+marked+"&role=admin&configuration={\"a\":1,\"a\":2}&script=x&client=acme&from=2026-01-01T00:00&to=2026-01-02T00:00&id=new&live=1&back=//evil")
		f.Add(uint8(i), "\x00", false, "name=%00%ff&remove=1&configuration=%ff&accent=%23GGGGGG&%zz")
		f.Add(uint8(i), clientID, true,
			"Content-Disposition: form-data; name=\"logo\"; filename=\"../x\"\r\n\r\n\x89PNG\r\n\x1a\n"+marked)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, which uint8, id string, parts bool, form string) {
		if strings.Contains(id, "/") {
			t.Skip("another route")
		}
		media, body := "application/x-www-form-urlencoded", "csrf="+url.QueryEscape(d.csrf)+"&"+form
		if parts {
			const edge = "--------edge"
			media = "multipart/form-data; boundary=" + edge
			body = "--" + edge + "\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\n" + d.csrf + "\r\n--" + edge +
				"\r\n" + form + "\r\n--" + edge + "--\r\n"
		}
		w := d.ask(t, http.MethodPost, d.post[int(which)%len(d.post)], id, "", media, body)
		if to := w.Header().Get("Location"); to != "" && !strings.HasPrefix(to, console.Root+"/") {
			t.Fatalf("a form leads to %q", to)
		}
		if strings.HasPrefix(w.Header().Get("Location"), console.Root+"/sign-in") {
			t.Fatal("the session ended: what follows would prove nothing")
		}
	})
}

// What SQLite would look for, PostgreSQL refuses to read: text with NUL or in no
// encoding. Neither is our defect, so neither is answered as one.
func TestAddressesWithTextThatCannotBeStoredAreNoDefect(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		desk := sitDown(t, build(t, d))
		for _, bad := range []string{"\x00", "\xff", "a\x00b"} {
			text := url.QueryEscape(bad)
			for _, path := range desk.get {
				desk.ask(t, http.MethodGet, path, bad, "", "", "")
				for _, name := range []string{"q", "client", "status", "stage", "country", "kind", "event", "actor", "subject",
					"action", "after"} {
					desk.ask(t, http.MethodGet, path, clientID, name+"="+text, "", "")
				}
			}
			for _, path := range desk.post {
				desk.ask(t, http.MethodPost, path, bad, "", "application/x-www-form-urlencoded",
					"csrf="+url.QueryEscape(desk.csrf)+"&name="+text+"&client="+text+"&role=admin&id="+text+"&event="+text)
			}
		}
	})
}
