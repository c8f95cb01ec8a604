package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// The demo prints who may sign in to the console; it must be true.
func TestTheDemosOperatorSignsInToTheConsole(t *testing.T) {
	t.Parallel()
	demo := commonDemo(t)
	printed := regexp.MustCompile(`console +(\S+)/ \(operator (\S+), password (\S+)\)`).FindStringSubmatch(demo.output())
	if printed == nil {
		t.Fatalf("no console in\n%s", demo.output())
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	overview := func(password string) string {
		answer, err := browser.PostForm(printed[1]+"/sign-in", url.Values{"name": {printed[2]}, "password": {password}})
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.Request.URL.Path
	}
	if at := overview("wrong"); !strings.HasSuffix(at, "/sign-in") {
		t.Errorf("a wrong password leads to %s", at)
	}
	if at := overview(printed[3]); at != "/console/" {
		t.Errorf("the printed password leads to %s", at)
	}
}

// With --operator-mfa required a password alone opens nothing, and passkeys have
// the domain of the printed address.
func TestOperatorMFAIsAskedForByTheProgram(t *testing.T) {
	t.Parallel()
	demo := start(t, append(demoArgs(t, t.TempDir()), "--operator-mfa", "required")...)
	demo.waitReady()
	printed := regexp.MustCompile(
		`console +(http://localhost:\d+/console)/ \(operator (\S+), password (\S+)\)`).FindStringSubmatch(demo.output())
	if printed == nil {
		t.Fatalf("no console at localhost in\n%s", demo.output())
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Jar: jar}).PostForm(printed[1]+"/sign-in",
		url.Values{"name": {printed[2]}, "password": {printed[3]}})
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.Request.URL.Path != "/console/sign-in/second" ||
		!strings.Contains(string(page), "Add a second factor") ||
		!strings.Contains(string(page), "&#34;domain&#34;:&#34;localhost&#34;") {
		t.Errorf("%v after the password: %s\n%s", err, answer.Request.URL, page)
	}
}
