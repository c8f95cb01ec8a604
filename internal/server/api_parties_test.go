package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// eventually asks again until a condition holds: for what no event tells.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not after %s", what, patience)
		}
	}
}

// path cuts the base address off a location.
func (p *program) path(t testing.TB, location any) string {
	t.Helper()
	path, ok := strings.CutPrefix(location.(string), p.URL())
	if !ok {
		t.Fatalf("%v is not below %s", location, p.URL())
	}
	return path
}

// onboard brings a company in and returns its id and its job's.
func (c *caller) onboard(t testing.TB, body object) (id, job string) {
	t.Helper()
	envelope := c.want(t, 202, "POST", "/onboarding/v2/companies", body).json(t)
	data := envelope["data"].(object)
	if envelope["status"] != "success" || envelope["errors"] != nil || envelope["message"] == nil {
		t.Errorf("envelope %v", envelope)
	}
	var done object
	eventually(t, "the onboarding job", func() bool {
		done = c.want(t, 200, "GET", c.p.path(t, data["job_status_location"]), nil).json(t)
		return done["status"] == "success" || done["status"] == "failed"
	})
	if done["status"] != "success" || done["message"] != nil || done["errors"] != nil {
		t.Fatalf("the job ended %v", done)
	}
	company := c.want(t, 200, "GET", c.p.path(t, done["data"].(object)["location"]), nil).json(t)
	return company["id"].(string), data["job_id"].(string)
}

// A newcomer posts the shipped example to the demo as it is.
func TestTheShippedCompanyIsNewToTheDemo(t *testing.T) {
	t.Parallel()
	p := busy(t)
	p.as(demoKey).onboard(t, example(t, "company", nil))
}

func TestACompanyIsOnboardedPatchedAndListed(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(p.stranger)
	body := example(t, "company", object{"meta": object{"country_code": "ie", "language_code": "en",
		"external_id": "seller/42 %"}, "tax_credentials": nil})
	id, job := c.onboard(t, body)
	if again := c.want(t, 202, "POST", "/onboarding/v2/companies", body).json(t)["data"].(object)["job_id"]; again != job {
		t.Errorf("the same body gives job %v, want %s", again, job)
	}
	body["legal_name"] = "Somebody else"
	if got := c.want(t, 409, "POST", "/onboarding/v2/companies", body); got.code(t) != "conflict" {
		t.Errorf("another body: %s", got.body)
	}
	own := c.want(t, 200, "GET", "/onboarding/v2/companies/"+url.PathEscape("seller/42 %")+"?external-id=true",
		nil).json(t)
	if own["id"] != id || own["tax_credentials"] != nil || own["meta"].(object)["country_code"] != "ie" {
		t.Errorf("company %v", own)
	}
	patched := c.want(t, 202, "PATCH", "/onboarding/v2/companies/"+id,
		example(t, "company-patch", nil)).json(t)["data"].(object)
	eventually(t, "the patch", func() bool {
		return c.want(t, 200, "GET", p.path(t, patched["job_status_location"]), nil).json(t)["status"] == "success"
	})
	now := c.want(t, 200, "GET", "/onboarding/v2/companies/"+id, nil).json(t)
	if now["legal_name"] != "Seller 42 International Limited" ||
		now["address"].(object)["address_line_1"] != "2 Example Street" || now["address"].(object)["city"] != "Dublin" {
		t.Errorf("after the patch %v", now)
	}
	second := example(t, "company", object{"meta": object{"country_code": "IE", "external_id": "seller-43"}})
	twin := c.want(t, 202, "POST", "/onboarding/v2/companies", second).json(t)["data"].(object)
	var failed object
	eventually(t, "the twin's job", func() bool {
		failed = c.want(t, 200, "GET", p.path(t, twin["job_status_location"]), nil).json(t)
		return failed["status"] == "failed"
	})
	if f := failed["errors"].([]any)[0].(object); f["code"] != "already_onboarded" ||
		!strings.Contains(f["message"].(string), "seller/42 %") || failed["data"] != nil {
		t.Errorf("the twin's job %v", failed)
	}
	list := c.want(t, 200, "GET", "/onboarding/v2/companies?limit=100", nil).json(t)["data"].([]any)
	// Other tests onboard companies of the same client at the same time.
	if !slices.ContainsFunc(list, func(one any) bool { return one.(object)["id"] == id }) {
		t.Errorf("list %v", list)
	}
	c.want(t, 400, "GET", "/onboarding/v2/companies/"+id+"?external-id=maybe", nil)
}

func TestABatchEndsInAVerifiedWebhook(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	entries := []any{}
	for i := range 45 { // more than two pages, duplicates among them
		entries = append(entries, object{"country_iso_code": []string{"IE", "DE", "qq"}[i%3],
			"tax_identification_number": []string{"IE6388047V", "DE111111125", "1"}[i%3]})
	}
	made := c.want(t, 202, "POST", "/lookup/v2/batch-validations",
		object{"batch_name": "many", "validations": entries}).json(t)
	id := made["batch_id"].(string)
	if made["status"] != "running" || len(made["validations"].([]any)) != 45 || made["batch_name"] != "many" {
		t.Errorf("accepted as %v", made)
	}
	event := p.inbox.await(t, id, 1)[0]
	if event.EventType != "lookup.batch_validation_completed" || event.ResourceURL != made["batch_validation_result_url"] {
		t.Errorf("event %+v", event)
	}
	seen, query := []any{}, "?limit=20"
	for {
		page := c.want(t, 200, "GET", p.path(t, event.ResourceURL)+query, nil).json(t)
		seen = append(seen, page["validations"].([]any)...)
		if page["status"] != "completed" {
			t.Errorf("status %v after the event", page["status"])
		}
		if page["next_cursor"] == nil {
			break
		}
		query = "?limit=20&cursor=" + page["next_cursor"].(string)
	}
	if len(seen) != 45 {
		t.Fatalf("%d entries on all pages", len(seen))
	}
	for i, e := range seen {
		e := e.(object)
		want := []string{"registered", "registered", "invalid"}[i%3]
		if e["country_iso_code"] != entries[i].(object)["country_iso_code"] || e["status"] != want {
			t.Errorf("entry %d is %v, want %s", i, e, want)
		}
	}
	c.want(t, 400, "GET", "/lookup/v2/batch-validations/"+id+"?cursor=v999", nil)
	c.want(t, 400, "GET", "/lookup/v2/batch-validations/"+id+"?limit=0", nil)
	c.want(t, 400, "GET", "/lookup/v2/batch-validations/"+id+"?limit=101", nil)
	if got := c.want(t, 409, "DELETE", "/lookup/v2/batch-validations/"+id, nil); got.code(t) != "conflict" {
		t.Errorf("cancelling what is done: %s", got.body)
	}
	single := c.want(t, 202, "POST", "/lookup/v2/single-validations", example(t, "single", nil)).json(t)
	event = p.inbox.await(t, single["validation_id"].(string), 1)[0]
	done := c.want(t, 200, "GET", p.path(t, event.ResourceURL), nil).json(t)
	if event.EventType != "lookup.single_validation_completed" || done["status"] != "registered" ||
		done["is_business"] != "yes" {
		t.Errorf("event %+v, result %v", event, done)
	}
}

func TestABatchCanBeCancelledBeforeItsTurn(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	c := p.as(p.stranger)
	id := c.want(t, 202, "POST", "/lookup/v2/batch-validations", example(t, "batch", nil)).json(t)["batch_id"].(string)
	for range 2 { // again changes nothing
		if got := c.want(t, 204, "DELETE", "/lookup/v2/batch-validations/"+id, nil); len(got.body) != 0 {
			t.Errorf("204 with %q", got.body)
		}
	}
	if got := c.want(t, 200, "GET", "/lookup/v2/batch-validations/"+id, nil).json(t); got["status"] != "canceled" ||
		got["validations"].([]any)[0].(object)["status"] != "canceled" {
		t.Errorf("after the cancel %v", got)
	}
}

func TestDocumentsOpenByKeyOrByAFreshAddress(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c, nobody, stranger := p.as(demoKey), p.as(""), p.as(p.stranger)
	op := c.submit(t, "/v1/transactions", p.sale(t, "documents", nil))
	attachments := func() []any { return c.outcome(t, op)["attachments"].([]any) }
	old := attachments()
	kinds := map[string]bool{}
	for i := range old {
		a := old[i].(object)
		kinds[a["kind"].(string)+"/"+a["type"].(string)] = true
		location := p.path(t, a["resource_url"])
		path, query, _ := strings.Cut(location, "?")
		if want := "/invoicing/v1/invoices/" + a["resource_id"].(string) + "/" + strings.ToLower(a["type"].(string)); path !=
			want {
			t.Errorf("address %s, want %s", path, want)
		}
		byKey := c.want(t, 200, "GET", path, nil)
		checkDocument(t, a["type"].(string), byKey)
		var signed answer
		eventually(t, "a fresh address", func() bool { // they live for a second in this test
			signed = nobody.do(t, "GET", p.path(t, attachments()[i].(object)["resource_url"]), nil)
			return signed.status == 200
		})
		if !bytes.Equal(signed.body, byKey.body) {
			t.Errorf("%s: the signed address gives other bytes than the key", a["kind"])
		}
		head := c.want(t, 200, "HEAD", path, nil)
		if head.header.Get("Content-Length") != fmt.Sprint(len(byKey.body)) || len(head.body) != 0 {
			t.Errorf("HEAD announces %s bytes, sends %d", head.header.Get("Content-Length"), len(head.body))
		}
		for _, forged := range []string{"", strings.Replace(query, "exp=", "exp=9", 1), query + "x", query + "&x=1",
			strings.Replace(query, "sig=", "sig=A", 1), "exp=1&kid=x&sig=y"} {
			if got := nobody.want(t, 403, "GET", path+"?"+forged, nil); got.code(t) != "forbidden" {
				t.Errorf("forged %s: %s", forged, got.body)
			}
		}
		nobody.want(t, 403, "GET", path[:strings.LastIndex(path, "/")]+"/csv?"+query, nil)
		if got := stranger.want(t, 404, "GET", path, nil); got.code(t) != "not_found" {
			t.Errorf("another client: %s", got.body)
		}
		stranger.want(t, 404, "GET", location, nil) // a key decides alone
		p.as("trb_test_x_nonsense").want(t, 401, "GET", location, nil)
	}
	if len(kinds) != 3 || !kinds["VISUAL/PDF"] || !kinds["REPORT/JSON"] || !kinds["RECEIPT/JSON"] {
		t.Errorf("attachments %v", kinds)
	}
	location := p.path(t, old[0].(object)["resource_url"])
	var got answer
	eventually(t, "the expiry of an address", func() bool {
		got = nobody.do(t, "GET", location, nil)
		return got.status == 410
	})
	if got.code(t) != "expired" {
		t.Errorf("expired: %s", got.body)
	}
	c.want(t, 200, "GET", location, nil) // with the owner's key always
}

func checkDocument(t *testing.T, typ string, got answer) {
	t.Helper()
	media := map[string]string{"PDF": "application/pdf", "JSON": "application/json"}[typ]
	for name, want := range map[string]string{"Content-Type": media, "Cache-Control": "private, no-store",
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Content-Security-Policy": "sandbox"} {
		if got.header.Get(name) != want {
			t.Errorf("%s: %s is %q, want %q", typ, name, got.header.Get(name), want)
		}
	}
	if !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment; filename=") ||
		typ == "PDF" && !bytes.HasPrefix(got.body, []byte("%PDF-")) {
		t.Errorf("%s: %v, begins %.20q", typ, got.header, got.body)
	}
}

func TestEventsAreListedAndSentAgain(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	op := c.submit(t, "/v1/transactions", p.sale(t, "events", nil))
	first := p.inbox.await(t, op, 1)[0]
	find := func() object {
		for _, status := range []string{"delivered", "pending"} {
			query := "?limit=100&status=" + status + "&from=" + time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)
			for _, row := range c.want(t, 200, "GET", "/v1/webhooks/events"+query, nil).json(t)["data"].([]any) {
				if row := row.(object); row["webhook_id"] == first.WebhookID {
					return row
				}
			}
		}
		return nil
	}
	var row object
	eventually(t, "the record of the delivery", func() bool {
		row = find()
		return row != nil && row["status"] == "delivered"
	})
	if row["resource_id"] != op || row["event_type"] != "transactions.transaction_completed" ||
		fmt.Sprint(row["tries"]) != "1" || fmt.Sprint(row["last_status"]) != "200" || row["next_try_at"] != nil ||
		row["resource_url"] != first.ResourceURL {
		t.Errorf("row %v", row)
	}
	if got := c.want(t, 202, "POST", "/v1/webhooks/events/"+first.WebhookID+"/redeliver",
		nil).json(t); got["webhook_id"] != first.WebhookID {
		t.Errorf("redelivery of %v", got)
	}
	if again := p.inbox.await(t, op, 2)[1]; again.WebhookID != first.WebhookID {
		t.Errorf("sent again as %s, want the same webhook_id %s", again.WebhookID, first.WebhookID)
	}
	c.want(t, 400, "GET", "/v1/webhooks/events?status=lost", nil)
	for _, id := range []string{"x", strings.Repeat("0", 40)} {
		c.want(t, 404, "POST", "/v1/webhooks/events/"+id+"/redeliver", nil)
	}
}

func TestHEADWorksWhereGETDoes(t *testing.T) {
	t.Parallel()
	c := quiet(t).as(demoKey)
	for _, path := range []string{"/v1/countries", "/v1/transactions", "/onboarding/v2/companies", "/v1/webhooks/events"} {
		head := c.want(t, 200, http.MethodHead, path, nil)
		got := c.want(t, 200, http.MethodGet, path, nil)
		if len(head.body) != 0 || path == "/v1/countries" && head.header.Get("Content-Length") != fmt.Sprint(len(got.body)) {
			t.Errorf("HEAD %s announces %s bytes, GET has %d", path, head.header.Get("Content-Length"), len(got.body))
		}
	}
}
