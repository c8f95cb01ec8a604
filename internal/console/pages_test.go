package console_test

import (
	"bufio"
	"bytes"
	"html"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/operator"
)

func TestEveryPageIsThereOnBothEngines(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		h := build(t, d)
		h.run()
		id := h.submit("INV-1")
		b := h.as(operator.Admin)
		b.await("/transactions/"+id, "Succeeded after")
		_, err := h.lookups.CreateBatch(t.Context(), clientID,
			[]byte(`{"batch_name":"spring","validations":[{"country_iso_code":"IE","tax_identification_number":"IE6388047V"}]}`))
		must(t, err)
		must(t, h.alerts.Raise(t.Context(), alert.ChainMismatch, "acme/XX", "<b>trouble</b>"))
		for path, want := range map[string]string{
			"/": "Activity", "/?over=week": "Countries and their authorities", "/transactions": "INV-1",
			"/transactions?status=SUCCESS&country=XX&client=acme": "INV-1",
			"/deliveries": "one line per URL", "/clients": "Acme &amp; &lt;Sons&gt;", "/clients/" + clientID: "Preview",
			"/suppliers":               "Reference Trading Ltd",
			"/suppliers?q=XX123456789": "Reference Trading Ltd", "/lookups": "spring", "/queues": "Operations by stage",
			"/periods": "No sales yet", "/alerts": "Chain stopped: heads differ", "/alerts?all=1": "Chain stopped: heads differ",
			"/audit": "signin", "/audit?verify=1": "is intact", "/audit?client=acme&verify=1": "The log of acme is intact",
			"/operators": "New operator", "/account": "Change your password",
			"/simulators": "1 registered", "/authorities": "simulated</span>",
			"/deliveries/replay": "Nothing is sent before you have seen how many there are",
		} {
			page := b.get(path)
			if !strings.Contains(page, want) {
				t.Errorf("%s has no %q:\n%s", path, want, gist(page))
			}
			if strings.Contains(page, "<b>trouble</b>") || strings.Contains(page, "<Sons>") {
				t.Errorf("%s is not escaped", path)
			}
		}
	})
}

func TestTransactionsAreFoundByWhatIsKnownOfThem(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	id := h.submit("INV-77")
	b := h.as(operator.Viewer)
	b.await("/transactions/"+id, "Succeeded after")
	b.await("/transactions?amount=227.10", id) // numbers and amounts are indexed a moment later
	searches := map[string]bool{               // address → the invoice is found
		"q=INV-77": true, "q=order-INV-77": true, "q=inv 77": true, "q=INV-78": false, "status=SUCCESS": true,
		"status=FAILURE": false, "country=XX": true, "country=IE": false,
		"client=acme": true, "client=nobody": false, "kind=INVOICE": true, "kind=CREDIT": false, "amount=227.10": true,
		"amount=227.11": false, "from=2020-01-01": true, "to=2020-01-01": false, "from=2999-01-01": false,
	}
	searches["q="+id] = true
	for query, found := range searches {
		page := b.get("/transactions?" + strings.ReplaceAll(query, " ", "+"))
		if strings.Contains(page, "/console/transactions/"+id) != found {
			t.Errorf("%s: found %t, want %t", query, !found, found)
		}
	}
	for query, want := range map[string]string{"amount=lots": "amount must be a number",
		"from=yesterday": "from must be a date", "to=tomorrow": "to must be a date"} {
		if page := b.get("/transactions?" + query); !strings.Contains(page, want) {
			t.Errorf("%s: no %q", query, want)
		}
	}
}

func TestWhatStrangersWroteIsShownAsText(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.refuse.Store(true)
	h.run()
	id := h.submit("INV-<i>1</i>")
	b := h.as(operator.Viewer)
	page := b.await("/transactions/"+id, `<span class="state bad">500</span>`)
	for _, raw := range []string{"<script>alert", "<img src=x>", "<b>Doe</b>", "<i>1</i>", "<Sons>"} {
		if strings.Contains(page, raw) {
			t.Errorf("the page has %s", raw)
		}
	}
	for _, escaped := range []string{"Jane &lt;b&gt;Doe", "INV-&lt;i&gt;1"} {
		if !strings.Contains(page, escaped) {
			t.Errorf("the page lacks %s", escaped)
		}
	}
	event := regexp.MustCompile(`/console/deliveries/events/[0-9a-f]{40}`).FindString(page)
	page = b.get(strings.TrimPrefix(event, "/console"))
	if strings.Contains(page, "<script>alert") || !strings.Contains(page, "not today") {
		t.Errorf("what the receiver answered is not shown as text:\n%s", gist(page))
	}
}

func TestAStuckTransactionSaysWhyAndIsRetried(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.script(authority.Step{Outcome: authority.Unavailable, Times: 100_000, On: authority.OnAny})
	h.run()
	id := h.submit("INV-9")
	b := h.as(operator.Acting)
	b.await("/transactions/"+id, "PROCESSING", "The reference authority is unavailable. Retrying at ", "Last error",
		"1 failed call", "Next attempt", "Retry now")
	if page := h.as(operator.Viewer).get("/transactions/" + id); strings.Contains(page, "Retry now") {
		t.Error("a viewer is offered what a viewer may not do")
	}
	h.script()
	b.noticed(b.post("/transactions/"+id+"/retry", nil), "retried")
	b.await("/transactions/"+id, "Succeeded after")
	list := h.audited("transaction.retried")
	if len(list) != 1 || list[0].Actor.Name != "operator" || list[0].Subject != id || list[0].Before == "" ||
		list[0].After == "" || list[0].Actor.IP == "" {
		t.Errorf("the log has %+v", list)
	}
	if resp := b.post("/transactions/"+id+"/retry", nil); resp.StatusCode != http.StatusConflict {
		t.Errorf("retry what has ended: %d", resp.StatusCode)
	}
	if got := len(h.audited("transaction.retried")); got != 1 {
		t.Errorf("%d entries after a retry that was refused", got)
	}
}

func TestDocumentsAreFetchedAndItIsRecorded(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	id := h.submit("INV-3")
	b := h.as(operator.Viewer)
	page := b.await("/transactions/"+id, "VISUAL")
	links := regexp.MustCompile(`/transactions/`+id+`/documents/[0-9a-f]{32}`).FindAllString(page, -1)
	if len(links) < 2 {
		t.Fatalf("documents: %v", links)
	}
	resp := b.do(http.MethodGet, links[0], nil)
	if text := read(t, resp); !strings.HasPrefix(text, "%PDF") ||
		!strings.HasPrefix(resp.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("%v %.20q", resp.Header, text)
	}
	if list := h.audited("document.fetched"); len(list) != 1 || list[0].Subject != id || list[0].Actor.Name != "viewer" {
		t.Errorf("the log has %+v", list)
	}
	for _, path := range []string{"/transactions/" + id + "/documents/" + strings.Repeat("0", 32),
		"/transactions/" + strings.Repeat("0", 8) + "/documents/x"} {
		if resp := b.do(http.MethodGet, path, nil); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

func TestAReplayIsCountedBeforeItStarts(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	id := h.submit("INV-4")
	b := h.as(operator.Acting)
	b.await("/transactions/"+id, "delivered")
	sent := h.got.Load()
	now := time.Now().UTC()
	form := url.Values{"client": {clientID}, "from": {now.Add(-time.Hour).Format("2006-01-02T15:04")},
		"to": {now.Add(time.Hour).Format("2006-01-02T15:04")}}
	if page := b.get("/deliveries/replay?" + form.Encode()); !strings.Contains(page, ">1 event<") ||
		!strings.Contains(page, ">Replay</button>") {
		t.Errorf("the count is missing:\n%s", gist(page))
	}
	if got := h.got.Load(); got != sent {
		t.Errorf("counting sent %d events", got-sent)
	}
	b.noticed(b.post("/deliveries/replay", form), "replaying")
	for late := time.Now().Add(patience); h.got.Load() == sent; {
		if time.Now().After(late) {
			t.Fatal("nothing was sent again")
		}
		b.get("/deliveries")
	}
	if list := h.audited("events.replayed"); len(list) != 1 || !strings.Contains(list[0].After, `"count":1`) {
		t.Errorf("the log has %+v", list)
	}
	for name, change := range map[string]url.Values{"client": {"client": {""}}, "to": {"to": {form.Get("from")}},
		"from": {"from": {"soon"}}} {
		wrong := url.Values{}
		for k, v := range form {
			wrong[k] = v
		}
		for k, v := range change {
			wrong[k] = v
		}
		if resp := b.post("/deliveries/replay", wrong); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("a wrong %s: %d", name, resp.StatusCode)
		}
	}
	empty := url.Values{"client": {clientID}, "from": {"2001-01-01T00:00"}, "to": {"2001-01-02T00:00"}}
	if resp := b.post("/deliveries/replay", empty); resp.StatusCode != http.StatusConflict {
		t.Errorf("an empty window: %d", resp.StatusCode)
	}
}

func TestAnEventIsRedelivered(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.refuse.Store(true)
	h.run()
	id := h.submit("INV-5")
	b := h.as(operator.Acting)
	page := b.await("/transactions/"+id, `<span class="state bad">500</span>`)
	event := strings.TrimPrefix(regexp.MustCompile(`/console/deliveries/events/[0-9a-f]{40}`).FindString(page), "/console")
	h.refuse.Store(false)
	page = b.noticed(b.post(event+"/redeliver", url.Values{"back": {"/console/transactions/" + id}}), "redelivered")
	if !strings.Contains(page, "INV-5") {
		t.Error("it does not come back to where it was asked for")
	}
	b.await(event, "Delivered: 200")
	if list := h.audited("event.redelivered"); len(list) != 1 || list[0].ClientID != clientID ||
		!strings.Contains(list[0].Before, "pending") {
		t.Errorf("the log has %+v", list)
	}
}

func TestARotatedKeyIsShownOnceAndNowhereElse(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Admin)
	page := read(t, b.post("/clients/acme/keys/rotate", nil))
	found := regexp.MustCompile(`id="secret">(trb_test_([a-z0-9]+)_[A-Za-z0-9-]+)<`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no key was shown:\n%s", gist(page))
	}
	if resp := b.post("/clients/acme/keys/rotate", nil); resp.StatusCode != http.StatusConflict {
		t.Errorf("a second rotation in the middle of one: %d", resp.StatusCode)
	}
	for _, path := range []string{"/clients/acme", "/audit?client=acme", "/audit"} {
		if strings.Contains(b.get(path), found[1]) {
			t.Errorf("%s shows the key again", path)
		}
	}
	b.noticed(b.post("/clients/acme/keys/"+found[2]+"/promote", nil), "promoted")
	must(t, h.accounts.Refresh(t.Context()))
	key, _, err := h.accounts.SigningKeys(t.Context(), clientID)
	must(t, err)
	if key.Kid != found[2] {
		t.Errorf("webhooks are signed with %s, want %s", key.Kid, found[2])
	}
	b.noticed(b.post("/clients/acme/keys/"+found[2]+"/revoke", nil), "revoked")
	for _, action := range []string{"key.rotated", "key.promoted", "key.revoked"} {
		if list := h.audited(action); len(list) == 0 || list[len(list)-1].Before == "" ||
			list[len(list)-1].Actor.Name != "admin" {
			t.Errorf("%s: the log has %+v", action, list)
		}
	}
	if list := h.audited("key.rotated"); len(list) != 2 || list[0].Outcome == "" {
		t.Errorf("the refused rotation is not in the log: %+v", list)
	}
}

func TestTheLookIsPreviewedBeforeItIsSaved(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Admin)
	fetch := func(query string) string {
		resp := b.do(http.MethodGet, "/clients/acme/preview.pdf"+query, nil)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Frame-Options") != "SAMEORIGIN" ||
			!strings.Contains(resp.Header.Get("Content-Security-Policy"), "frame-ancestors 'self'") {
			t.Fatalf("%d %v", resp.StatusCode, resp.Header)
		}
		return read(t, resp)
	}
	before, tried := fetch(""), fetch("?accent=%23AA0000&font=serif")
	if !strings.HasPrefix(before, "%PDF") || before == tried {
		t.Fatal("the preview does not follow the query")
	}
	if fetch("") != before {
		t.Error("a preview changed what is stored")
	}
	if roll := fetch("?template=receipt"); !strings.Contains(roll, " 226.77 14000]") ||
		strings.Contains(before, " 226.77 14000]") {
		t.Error("the template of the query is not shown")
	}
	form := url.Values{"display_name": {"Acme & <Sons>"}, "accent": {"#AA0000"}, "font": {"serif"}}
	b.noticed(b.post("/clients/acme/look", form), "saved")
	if fetch("") != tried {
		t.Error("what was saved does not look like what was tried")
	}
	b.noticed(b.post("/clients/acme/look", form), "unchanged")
	if resp := b.post("/clients/acme/look", url.Values{"accent": {"red"}}); resp.StatusCode != http.StatusBadRequest ||
		!strings.Contains(read(t, resp), "accent") {
		t.Errorf("a colour that is none: %d", resp.StatusCode)
	}
	list := h.audited("client.look_changed")
	if len(list) != 3 || list[0].Outcome == "" || !strings.Contains(list[2].After, "#AA0000") {
		t.Errorf("the log has %+v", list)
	}
}

func TestTheConfigurationIsSavedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Admin)
	for name, text := range map[string]string{"no JSON": "{", "a misspelt member": `{"display_nam":"x"}`,
		"a country that is none": `{"display_name":"x","countries":{"ZZ1":"BOTH"}}`} {
		if resp := b.post("/clients/acme/configuration",
			url.Values{"configuration": {text}}); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	b.noticed(b.post("/clients/acme/configuration",
		url.Values{"configuration": {`{"display_name":"Acme","countries":{"IE":"INVOICING"},"rate":{"per_second":5,"burst":9}}`}}), "saved")
	var client account.Client
	must(t, h.db.Read(t.Context(), func(r db.Reader) (err error) {
		client, err = h.accounts.Client(r, clientID)
		return err
	}))
	if client.Config.DisplayName != "Acme" || client.Config.Rate.Burst != 9 ||
		client.Config.Countries["IE"] != country.Invoicing || len(client.Config.Countries) != 1 {
		t.Errorf("stored: %+v", client.Config)
	}
}

func TestTokensInWebhookAddressesAreForAdminsAlone(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	admin := h.as(operator.Admin)
	text := `{"display_name":"Acme","webhooks":{"by_event":{"transactions.transaction_completed":"https://hooks.example.test/in?token=canary-1"}}}`
	admin.noticed(admin.post("/clients/acme/configuration", url.Values{"configuration": {text}}), "saved")
	admin.noticed(admin.post("/clients/acme/configuration",
		url.Values{"configuration": {`{"display_name":"Acme","webhooks":{"all":"https://hooks.example.test/in?token=canary-2"}}`}}), "saved")
	if page := admin.get("/clients/acme"); !strings.Contains(page, "canary-2") {
		t.Error("an admin cannot edit what an admin cannot see")
	}
	viewer := h.as(operator.Viewer)
	for _, path := range []string{"/clients/acme", "/audit", "/deliveries"} {
		if page := viewer.get(path); strings.Contains(page, "canary") || !strings.Contains(page, "hooks.example.test/in") {
			t.Errorf("%s:\n%s", path, gist(page))
		}
	}
}

func TestALogoIsSetAndRemoved(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Admin)
	var picture bytes.Buffer
	must(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 4))))
	send := func(content []byte, fields url.Values) *http.Response {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		must(t, w.WriteField("csrf", b.token()))
		for k := range fields {
			must(t, w.WriteField(k, fields.Get(k)))
		}
		if content != nil {
			f, err := w.CreateFormFile("logo", "logo.png")
			must(t, err)
			_, err = f.Write(content)
			must(t, err)
		}
		must(t, w.Close())
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/console/clients/acme/logo", &body)
		must(t, err)
		req.Header.Set("Content-Type", w.FormDataContentType())
		resp, err := b.http.Do(req)
		must(t, err)
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	if page := b.noticed(send(picture.Bytes(), nil), "saved"); !strings.Contains(page, "8 × 4") {
		t.Error("the page does not know the logo")
	}
	if resp := b.do(http.MethodGet, "/clients/acme/logo", nil); resp.Header.Get("Content-Type") != "image/png" ||
		read(t, resp) != picture.String() {
		t.Error("the logo is not what was sent")
	}
	for name, content := range map[string][]byte{"no picture": []byte("<svg onload=alert(1)>"), "none": nil, "empty": {}} {
		if resp := send(content, nil); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	if resp := send(make([]byte, account.LogoBytesMax+200<<10), nil); resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: %d", resp.StatusCode)
	}
	b.noticed(send(nil, url.Values{"remove": {"1"}}), "saved")
	if resp := b.do(http.MethodGet, "/clients/acme/logo", nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("the removed logo: %d", resp.StatusCode)
	}
}

func TestAClientIsMadeWithItsFirstKey(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Admin)
	page := read(t, b.post("/clients", url.Values{"display_name": {"Beta"}, "client_id": {"beta"},
		"environment": {"live"}}))
	if !regexp.MustCompile(`id="secret">trb_live_`).MatchString(page) {
		t.Fatalf("no key was shown:\n%s", gist(page))
	}
	if resp := b.post("/clients", url.Values{"display_name": {"Beta"}, "client_id": {"beta"}}); resp.StatusCode !=
		http.StatusConflict {
		t.Errorf("the same id again: %d", resp.StatusCode)
	}
	if page := b.get("/clients/beta"); !strings.Contains(page, "Beta") {
		t.Error("the client has no page")
	}
	if resp := b.do(http.MethodGet, "/clients/gamma", nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a client that is none: %d", resp.StatusCode)
	}
}

func TestAListIsSavedAsAViewOfItsOperator(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b, other := h.as(operator.Viewer), h.as(operator.Acting)
	if page := b.get("/transactions"); strings.Contains(page, "saveview") {
		t.Error("the whole list is offered to be saved")
	}
	const query = "country=ES&status=FAILURE"
	if page := b.get("/transactions?" + query); !strings.Contains(page, "saveview") {
		t.Fatal("a narrowed list cannot be saved")
	}
	page := b.noticed(b.post("/views", url.Values{"query": {"status=FAILURE&country=ES"}, "name": {"Spain <failed>"}}), "view-saved")
	link := `<a href="/console/transactions?country=ES&amp;status=FAILURE" aria-current="true">Spain &lt;failed&gt;</a>`
	if !strings.Contains(page, link) || !strings.Contains(page, "removeview") {
		t.Errorf("the view is not there:\n%s", gist(page))
	}
	if strings.Contains(other.get("/transactions"), "Spain") {
		t.Error("another operator sees it")
	}
	if resp := b.post("/views", url.Values{"query": {query}, "name": {""}}); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("without a name: %d", resp.StatusCode)
	}
	if page := b.noticed(b.post("/views", url.Values{"remove": {"Spain <failed>"}}), "view-removed"); strings.Contains(page, "Spain &lt;") {
		t.Error("the view is still there")
	}
}

func TestAnAlertIsAcknowledgedOnce(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	must(t, h.alerts.Raise(t.Context(), alert.ChainMismatch, "acme/XX", "trouble"))
	b := h.as(operator.Acting)
	path := strings.TrimPrefix(regexp.MustCompile(`/console/alerts/[^"]+/acknowledge`).FindString(b.get("/alerts")),
		"/console")
	if page := b.noticed(b.post(path, nil), "acknowledged"); !strings.Contains(page, "No open alerts") {
		t.Error("the alert is still open")
	}
	if page := b.get("/alerts?all=1"); !strings.Contains(page, "by operator") {
		t.Error("the page does not say who acknowledged it")
	}
	if resp := b.post(path, nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("acknowledge again: %d", resp.StatusCode)
	}
	if list := h.audited("alert.acknowledged"); len(list) != 1 {
		t.Errorf("the log has %+v", list)
	}
}

func TestASimulatedAuthorityFollowsOneClick(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	b := h.as(operator.Acting)
	b.noticed(b.post("/simulators/XX/script", url.Values{"script": {"reject"}}), "scripted")
	id := h.submit("INV-6")
	b.await("/transactions/"+id, "Rejected: ")
	if page := b.get("/simulators"); !strings.Contains(page, "accepts") {
		t.Error("the script does not end by itself")
	}
	if resp := b.post("/simulators/XX/script",
		url.Values{"script": {"explode"}}); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a script nobody knows: %d", resp.StatusCode)
	}
	if resp := b.post("/simulators/QQ/script", url.Values{"script": {"reject"}}); resp.StatusCode != http.StatusNotFound {
		t.Errorf("an authority nobody knows: %d", resp.StatusCode)
	}
	if list := h.audited("simulator.scripted"); len(list) != 2 || list[0].Outcome == "" {
		t.Errorf("the log has %+v", list)
	}
}

func TestAPageIsToldWhatChanges(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.script(authority.Step{Outcome: authority.Unavailable, Times: 100_000, On: authority.OnAny})
	h.run()
	id := h.submit("INV-7")
	b := h.as(operator.Acting)
	page := b.await("/transactions/"+id, "1 failed call", "Retry now")
	resp := b.do(http.MethodGet, html.UnescapeString(liveAt.FindStringSubmatch(page)[1]), nil)
	if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		t.Fatalf("the updates are %s", got)
	}
	h.script()
	b.noticed(b.post("/transactions/"+id+"/retry", nil), "retried")
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "Succeeded after") {
			break
		}
	}
	must(t, lines.Err())
	b.post("/sign-out", nil)
	over := false
	for lines.Scan() {
		over = over || lines.Text() == "event: over"
	}
	if !over {
		t.Error("the updates did not end with the session")
	}
}

func TestOnlySoManyPagesFollowAtATime(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	one, other := h.as(operator.Viewer), h.as(operator.Acting)
	follow := func(b *browser) *http.Response { return b.do(http.MethodGet, "/live/alerts", nil) }
	fill := func(b *browser, n int) (last *http.Response) {
		t.Helper()
		for range n {
			if last = follow(b); last.StatusCode != http.StatusOK {
				t.Fatalf("within the limit: %d", last.StatusCode)
			}
		}
		if resp := follow(b); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("past the limit: %d", resp.StatusCode)
		}
		return last
	}
	fill(one, liveEach) // and no more for one operator, while others have room
	last := fill(other, liveMax-liveEach)
	last.Body.Close()
	for late := time.Now().Add(patience); follow(other).StatusCode != http.StatusOK; {
		if time.Now().After(late) {
			t.Fatal("a page that was left does not give its place back")
		}
	}
}

func TestLookingOnDoesNotKeepASessionAlive(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Viewer)
	seen := func() (at time.Time) {
		must(t, h.db.Read(t.Context(), func(r db.Reader) error {
			list, err := h.operators.Sessions(r)
			if len(list) == 1 {
				at = list[0].SeenAt
			}
			return err
		}))
		return at
	}
	// A session seen an hour less a bit ago, so that a touch would be stored.
	must(t, h.db.Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec("UPDATE operator_sessions SET seen_at = seen_at - $1", int64(20*time.Minute/time.Microsecond))
	}))
	before := seen()
	resp := b.do(http.MethodGet, "/live/alerts", nil)
	lines := bufio.NewScanner(resp.Body)
	told := false
	for !told && lines.Scan() {
		told = strings.HasPrefix(lines.Text(), "event: page")
	}
	if !told {
		t.Fatalf("the page was not told anything: %v", lines.Err())
	}
	resp.Body.Close()
	if got := seen(); before.IsZero() || !got.Equal(before) {
		t.Errorf("seen at %s, was %s", got, before)
	}
	b.get("/alerts")
	if got := seen(); !got.After(before) {
		t.Error("a page that was asked for does not count")
	}
}

func TestAssetsAreKeptByBrowsersUntilTheyChange(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.browser()
	page := b.get("/sign-in")
	for _, name := range []string{"console.css", "console.js", "icon.svg"} {
		link := regexp.MustCompile(`/console(/assets/[0-9a-f]+/` + regexp.QuoteMeta(name) + `)`).FindStringSubmatch(page)
		if link == nil {
			t.Fatalf("the page does not ask for %s", name)
		}
		if got := b.do(http.MethodGet, link[1], nil).Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("%s: %s", name, got)
		}
		if got := b.do(http.MethodGet, "/assets/0000/"+name, nil).Header.Get("Cache-Control"); got != "no-cache" {
			t.Errorf("%s of another version: %s", name, got)
		}
	}
	if resp := b.do(http.MethodGet, "/assets/x/console.go", nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("what is no asset: %d", resp.StatusCode)
	}
}
