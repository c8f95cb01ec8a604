package server_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/server"
)

// visitor is a person's browser: it agrees and follows where it is sent.
func visitor() *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
}

// page reads what a browser was answered.
func page(t *testing.T) func(*http.Response, error) (int, string) {
	return func(resp *http.Response, err error) (int, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
}

// visitOf waits until a job has an address to visit.
func (c *caller) visitOf(t *testing.T, job string) string {
	t.Helper()
	for late := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		got := c.want(t, http.StatusOK, "GET", c.p.path(t, job), nil).json(t)
		if data, _ := got["data"].(object); data != nil {
			if visit, _ := data["visit"].(object); visit != nil {
				return visit["url"].(string)
			}
		}
		if time.Now().After(late) || got["status"] == "failed" {
			t.Fatalf("%v", got)
		}
	}
}

// ended waits for the end of a job.
func (c *caller) jobEnd(t *testing.T, job string) object {
	t.Helper()
	for late := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		got := c.want(t, http.StatusOK, "GET", c.p.path(t, job), nil).json(t)
		if got["status"] == "success" || got["status"] == "failed" {
			return got
		}
		if time.Now().After(late) {
			t.Fatalf("%v", got)
		}
	}
}

// A company whose authority wants a person's word is onboarded by a visit: the
// job says where to go, the browser brings the grant back, once, and what it
// bought is used when the company files.
func TestACompanyIsOnboardedByAPersonsVisit(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, database string) {
		p := demoAt(t, database, func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
		c := p.as(demoKey)
		begin := func(external, number string) string {
			t.Helper()
			body := example(t, "company", object{"settings": object{"grant": true}, "tax_credentials": nil})
			body["meta"].(object)["country_code"], body["meta"].(object)["external_id"] = "XX", external
			body["tax_information"].(object)["tax_number"] = number
			got := c.want(t, http.StatusAccepted, "POST", "/onboarding/v2/companies", body).json(t)
			return got["data"].(object)["job_status_location"].(string)
		}
		job := begin("visited", "XX777000111")
		address := c.visitOf(t, job)
		status, text := page(t)(visitor().Get(address))
		if status != http.StatusOK || !strings.Contains(text, "XX777000111") {
			t.Fatalf("the authority's page: %d %s", status, text)
		}
		r, err := visitor().PostForm(address, url.Values{"agree": {"yes"}})
		if err != nil {
			t.Fatal(err)
		}
		back := r.Request.URL.String()
		if status, text := page(t)(r, nil); status != http.StatusOK || !strings.Contains(text, "Thank you") ||
			!strings.HasPrefix(back, p.CallbacksURL()+"/authorities/xx/test/oauth?") {
			t.Fatalf("returned to %s: %d %s", back, status, text)
		}
		done := c.jobEnd(t, job)
		if done["status"] != "success" {
			t.Fatalf("%v", done)
		}
		company := done["data"].(object)["id"].(string)
		if status, text := page(t)(visitor().Get(back)); status != http.StatusConflict ||
			!strings.Contains(text, "already used") {
			t.Errorf("used again: %d %s", status, text)
		}
		if status, text := page(t)(visitor().Get(
			p.CallbacksURL() + "/authorities/xx/test/oauth?state=guessed&code=x")); status != http.StatusBadRequest ||
			!strings.Contains(text, "Unknown link") {
			t.Errorf("a guess: %d %s", status, text)
		}
		sold := p.sale(t, "VISIT-1", object{"supplier": object{"id": company}})
		if got := c.outcome(t, c.submit(t, "/v1/transactions", sold)); got["status"] != "SUCCESS" {
			t.Errorf("the grant is not used: %v", got["errors"])
		}
		p.refusesAndExpires(t, c, begin)
	})
}

// refusesAndExpires sees a person who does not agree, and a link that is too old.
func (p *program) refusesAndExpires(t *testing.T, c *caller, begin func(external, number string) string) {
	t.Helper()
	job := begin("refused", "XX777000222")
	if status, _ := page(t)(visitor().PostForm(c.visitOf(t, job), url.Values{"agree": {"no"}})); status != http.StatusOK {
		t.Errorf("a refusal is answered %d", status)
	}
	if done := c.jobEnd(t, job); done["status"] != "failed" || !strings.Contains(text(t, done["errors"]),
		"did not agree") {
		t.Errorf("%v", done)
	}
	job = begin("late", "XX777000333")
	address, err := url.Parse(c.visitOf(t, job))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.DB().Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec("UPDATE onboarding_visits SET expires_at = $1 WHERE used_at IS NULL", db.Micros(tx.Now()))
	}); err != nil {
		t.Fatal(err)
	}
	state := address.Query().Get("state")
	if status, text := page(t)(visitor().Get(
		p.CallbacksURL() + "/authorities/xx/test/oauth?code=x&state=" + url.QueryEscape(state))); status !=
		http.StatusGone || !strings.Contains(text, "expired") {
		t.Errorf("too late: %d %s", status, text)
	}
	var kept int
	if err := p.DB().Read(t.Context(), func(r db.Reader) error {
		return r.Row("SELECT count(*) FROM onboarding_visits WHERE brought IS NOT NULL OR state = '" + state + "'").Scan(
			&kept)
	}); err != nil || kept != 0 {
		t.Errorf("%d grants or states are kept: %v", kept, err)
	}
}
