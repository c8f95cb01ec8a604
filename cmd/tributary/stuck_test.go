package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/db"
	"tributary/internal/doctor"
	"tributary/internal/fault"
	"tributary/internal/webhook"
)

// stuck is a demo in which things get stuck, and all who tell of it: the API,
// the console, the metrics with the open alerts, and doctor.
type stuck struct {
	t                     *testing.T
	dir, url, admin, sims string
	key                   string
	packs                 map[string]country.Pack
	suppliers             map[string]string
	console               *http.Client
	pages                 string             // address of the console
	raised                map[alert.Name]int // before the case
}

func newStuck(t *testing.T, more ...string) *stuck {
	t.Helper()
	dir := t.TempDir()
	args := demoArgs(t, dir, more...)
	p := start(t, args...)
	s := &stuck{t: t, dir: dir, url: p.waitReady(), admin: "http://" + flagOf(args, "--admin"), key: testKey,
		sims: "http://" + flagOf(args, "--simulators"), packs: map[string]country.Pack{}, suppliers: map[string]string{}}
	packs, err := world.Packs()
	if err != nil {
		t.Fatal(err)
	}
	for _, pack := range packs {
		s.packs[pack.Code] = pack
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.console = &http.Client{Jar: jar}
	printed := regexp.MustCompile(`console +(\S+)/ \(operator (\S+), password (\S+)\)`).FindStringSubmatch(p.output())
	s.pages = printed[1]
	answer, err := s.console.PostForm(s.pages+"/sign-in", url.Values{"name": {printed[2]}, "password": {printed[3]}})
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return s
}

func (s *stuck) ask(method, address, body string) (int, []byte) {
	s.t.Helper()
	req, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, text
}

func (s *stuck) must(want int, method, address, body string) []byte {
	s.t.Helper()
	status, text := s.ask(method, address, body)
	if status != want {
		s.t.Fatalf("%s %s: %d\n%s", method, address, status, text)
	}
	return text
}

// script tells a country's simulated authority how to misbehave; "" ends that.
func (s *stuck) script(code, steps string) {
	s.t.Helper()
	s.must(http.StatusOK, http.MethodPut, s.sims+"/_control/"+strings.ToLower(code)+"/script", `{"steps":[`+steps+`]}`)
}

const outage = `{"outcome":"unavailable","times":1000000,"on":"any"}`

// supplier is the demo's company in a country.
func (s *stuck) supplier(code string) string {
	s.t.Helper()
	if s.suppliers[code] == "" {
		var company struct{ ID string }
		text := s.must(http.StatusOK, http.MethodGet, s.url+"/onboarding/v2/companies/demo-"+code+"?external-id=true", "")
		if err := json.Unmarshal(text, &company); err != nil {
			s.t.Fatal(err)
		}
		s.suppliers[code] = company.ID
	}
	return s.suppliers[code]
}

// sell submits the example of a country and answers the operation.
func (s *stuck) sell(code, id string) string {
	s.t.Helper()
	body, err := s.packs[code].ExampleSale(country.SaleID{Transaction: id, Number: strings.ToUpper(id),
		Supplier: s.supplier(code), Date: time.Now()})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.submit("", string(body))
}

// submit sends a transaction, or a correction of a kind.
func (s *stuck) submit(kind, body string) string {
	s.t.Helper()
	var accepted struct {
		ID string `json:"operation_id"`
	}
	text := s.must(http.StatusAccepted, http.MethodPost, s.url+"/v1/transactions"+kind, body)
	if err := json.Unmarshal(text, &accepted); err != nil {
		s.t.Fatal(err)
	}
	return accepted.ID
}

type told struct {
	Status string
	Errors []fault.Fault
}

func (s *stuck) result(operation string) (r told) {
	s.t.Helper()
	if err := json.Unmarshal(s.must(http.StatusOK, http.MethodGet, s.url+"/v1/transactions/"+operation, ""),
		&r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// page reads a page of the console as an operator sees it.
func (s *stuck) page(path string) string {
	s.t.Helper()
	answer, err := s.console.Get(s.pages + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %d %v", path, answer.StatusCode, err)
	}
	return html.UnescapeString(string(text))
}

func (s *stuck) metrics() string {
	s.t.Helper()
	return string(s.must(http.StatusOK, http.MethodGet, s.admin+"/metrics", ""))
}

// alerts are those that are open, by name.
func (s *stuck) alerts() map[alert.Name]int {
	s.t.Helper()
	open := map[alert.Name]int{}
	for _, m := range regexp.MustCompile(`tributary_alerts_open\{name="([a-z0-9_]+)"\} ([1-9]\d*)`).
		FindAllStringSubmatch(s.metrics(), -1) {
		n, _ := strconv.Atoi(m[2]) // digits
		open[alert.Name(m[1])] = n
	}
	return open
}

// set stores an address of an authority, as an operator does.
func (s *stuck) set(environment, address string) {
	s.t.Helper()
	succeeds(s.t, "authority", "set", environment, "--url", address, "--data", s.dir)
	s.eventually("the program knows of it", func() (bool, string) {
		page := s.page("/authorities")
		return strings.Contains(page, address), page
	})
}

func (s *stuck) unset(environment string) {
	s.t.Helper()
	succeeds(s.t, "authority", "unset", environment, "--data", s.dir)
}

// exec changes the database as no part of the program does.
func (s *stuck) exec(statement string, args ...any) {
	s.t.Helper()
	d, err := db.Open(context.Background(), db.Config{URL: "sqlite:" + filepath.Join(s.dir, "tributary.db"),
		NoWorkers: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = d.Close() }() // it has written
	if err := d.Write(context.Background(), func(tx *db.Tx) error { return tx.Exec(statement, args...) }); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stuck) eventually(what string, done func() (bool, string)) {
	s.t.Helper()
	said := ""
	for late := time.Now().Add(patience); time.Now().Before(late); {
		var ok bool
		if ok, said = done(); ok {
			return
		}
		time.Sleep(20 * time.Millisecond) // another program; it has no signal to give
	}
	s.t.Fatalf("%s: never, but\n%s", what, said)
}

// sight is what everybody must see of an operation.
type sight struct {
	operation string
	status    string     // "": PROCESSING
	code      fault.Code // in the result
	at        string     // environment in which it waits; "": it does not
	says      []string   // on its page
	never     []string   // on its page
	alert     alert.Name // "": none is raised
	doctor    []string   // check and texts of a finding; nil: that of waiting
}

// agree waits until the result names the reason, and then expects it from all others.
func (s *stuck) agree(want sight) {
	s.t.Helper()
	if want.status == "" {
		want.status = "PROCESSING"
	}
	s.eventually(fmt.Sprintf("%s with %s", want.status, want.code), func() (bool, string) {
		r := s.result(want.operation)
		named := want.code == "" || slices.ContainsFunc(r.Errors, func(f fault.Fault) bool { return f.Code == want.code })
		return r.Status == want.status && named, fmt.Sprintf("%+v\n%s", r, s.page("/transactions/"+want.operation))
	})
	says := want.says
	if want.code != "" {
		says = append(says, "<code>"+string(want.code)+"</code>")
	}
	s.eventually("the page", func() (bool, string) {
		page := s.page("/transactions/" + want.operation)
		for _, text := range says {
			if !strings.Contains(page, text) {
				return false, fmt.Sprintf("no %q in\n%s", text, page)
			}
		}
		return true, ""
	})
	page := s.page("/transactions/" + want.operation)
	for _, text := range want.never {
		if strings.Contains(page, text) {
			s.t.Errorf("the page says %q:\n%s", text, page)
		}
	}
	s.agreeOnWait(want)
	s.agreeOnAlerts(want)
}

// agreeOnWait looks at what counts by reason: metrics, doctor, lists and health.
func (s *stuck) agreeOnWait(want sight) {
	s.t.Helper()
	if want.at == "" {
		if m := regexp.MustCompile(`tributary_operations_waiting\{.*`).FindString(s.metrics()); m != "" {
			s.t.Errorf("nothing waits, but %s", m)
		}
	} else {
		code, environment, _ := strings.Cut(want.at, ".")
		line := fmt.Sprintf(`tributary_operations_waiting{country="%s",environment="%s",reason="%s"}`, code, environment, want.code)
		s.eventually(line, func() (bool, string) {
			text := s.metrics()
			all := regexp.MustCompile(`tributary_operations_waiting\{.*`).FindAllString(text, -1)
			return strings.Contains(text, line), fmt.Sprint(all)
		})
		s.eventually("the list of what waits", func() (bool, string) {
			list := s.page("/transactions?reason=" + string(want.code) + "&country=" + code)
			return strings.Contains(list, want.operation), list
		})
		s.healthOf(want)
	}
	check := want.doctor
	if check == nil && want.at != "" {
		check = []string{"waiting", want.at + " " + string(want.code)}
	}
	if check != nil {
		_, findings := diagnose(s.t, "--data", s.dir)
		if v := verdictOf(findings, check[0], check[1:]...); v != doctor.Warn && v != doctor.Fail {
			s.t.Errorf("doctor says %q of %q:\n%+v", v, check, findings)
		}
	}
}

// healthOf expects the reason, and nothing green, in every place that shows how an authority is.
func (s *stuck) healthOf(want sight) {
	s.t.Helper()
	words := strings.ReplaceAll(string(want.code), "_", " ")
	for _, path := range []string{"/", "/queues", "/authorities"} {
		cell := regexp.MustCompile(`(?s)<td[^>]*data-health="` + want.at + `".*?</td>`)
		s.eventually(fmt.Sprintf("%s tells of %s that it waits for %s", path, want.at, words), func() (bool, string) {
			row := cell.FindString(s.page(path))
			return strings.Contains(row, words) && !strings.Contains(row, `class="state good"`), row
		})
	}
}

func (s *stuck) agreeOnAlerts(want sight) {
	s.t.Helper()
	news := func() (list []alert.Name) {
		for name, n := range s.alerts() {
			if n > s.raised[name] {
				list = append(list, name)
			}
		}
		return list
	}
	if want.alert == "" {
		if list := news(); len(list) > 0 {
			s.t.Errorf("raised: %v", list)
		}
		return
	}
	s.eventually("the alert "+string(want.alert), func() (bool, string) {
		list := news()
		return len(list) == 1 && list[0] == want.alert, fmt.Sprint(list)
	})
	page := s.page("/alerts")
	if !strings.Contains(page, want.alert.Title()) {
		s.t.Errorf("the page of alerts has no %q:\n%s", want.alert.Title(), page)
	}
	s.raised = s.alerts()
}

// ends waits for the end of what was stuck: nothing is left for the next case.
func (s *stuck) ends(operation, status string) {
	s.t.Helper()
	s.eventually("the end", func() (bool, string) {
		r := s.result(operation)
		if r.Status != status {
			s.retry(operation)
		}
		return r.Status == status, fmt.Sprintf("%+v\n%s", r, s.page("/transactions/"+operation))
	})
}

// retry presses the button of the page, where it has one.
func (s *stuck) retry(operation string) {
	s.t.Helper()
	page := s.page("/transactions/" + operation)
	token := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(page)
	if !strings.Contains(page, `id="retry"`) || token == nil {
		return
	}
	answer, err := s.console.PostForm(s.pages+"/transactions/"+operation+"/retry", url.Values{"csrf": {token[1]}})
	if err != nil {
		s.t.Fatal(err)
	}
	answer.Body.Close()
}

// TestEveryWayToBeStuckIsToldAlikeByAll is the running program: what a client
// reads, what an operator sees, what monitoring counts and what doctor finds
// have one name for a reason.
func TestEveryWayToBeStuckIsToldAlikeByAll(t *testing.T) {
	t.Parallel()
	s := newStuck(t)
	for _, way := range []struct {
		name string
		try  func(*stuck)
	}{
		{"the authority answers 503", stuckByError}, {"nobody listens at its port", stuckByClosedPort},
		{"rejected", stuckByRejection}, {"document store gone", stuckByDocuments}, {"behind another", stuckBehind},
		{"credentials refused at the sale", stuckByCredentials}, {"credentials refused at the poll", stuckByPoll},
		{"quarantined", stuckByCrashes}, {"not configured", stuckUnconfigured}, {"accepted with errors", stuckNot},
	} {
		t.Run(way.name, func(t *testing.T) {
			s.t, s.raised = t, nil
			s.exec("DELETE FROM alerts") // one of the same name and subject would only be counted up
			way.try(s)
		})
	}
}

func stuckByError(s *stuck) {
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "busy", http.StatusServiceUnavailable)
	}))
	defer busy.Close()
	s.set("XX.test", busy.URL)
	id := s.sell("XX", "stuck-503")
	s.agree(sight{operation: id, code: fault.AuthorityError, at: "XX.test", says: []string{"failed call", "Retrying"},
		never: []string{"does not respond"}})
	s.eventually("the share of failed calls", func() (bool, string) {
		page := s.page("/authorities?over=day")
		return regexp.MustCompile(`[1-9]\d* calls?, 100\.0 % failed, .* on average`).MatchString(page), page
	})
	s.unset("XX.test")
	s.ends(id, "SUCCESS")
}

func stuckByClosedPort(s *stuck) {
	s.set("XX.test", "http://"+freeAddress(s.t))
	id := s.sell("XX", "stuck-closed")
	s.agree(sight{operation: id, code: fault.AuthorityUnreachable, at: "XX.test", says: []string{"does not respond. Retrying"}})
	s.unset("XX.test")
	s.ends(id, "SUCCESS")
}

func stuckByRejection(s *stuck) {
	s.script("XX", `{"outcome":"reject"}`)
	id := s.sell("XX", "stuck-rejected")
	s.agree(sight{operation: id, status: "FAILURE", code: fault.AuthorityRejected, says: []string{"<strong>Rejected: "}})
}

func stuckByDocuments(s *stuck) {
	folder := filepath.Join(s.dir, "documents")
	if err := os.Rename(folder, folder+"-away"); err != nil {
		s.t.Fatal(err)
	}
	write(s.t, folder, "no folder")
	id := s.sell("XX", "stuck-documents")
	s.agree(sight{operation: id, code: fault.DocumentsUnavailable, at: "XX.test", alert: alert.DocumentsUnavailable,
		says: []string{"Document storage is unavailable"}, never: []string{"failed call"}})
	if err := os.Remove(folder); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(folder+"-away", folder); err != nil {
		s.t.Fatal(err)
	}
	s.ends(id, "SUCCESS")
}

func stuckBehind(s *stuck) {
	s.script("XX", outage)
	original := s.sell("XX", "stuck-original")
	s.agree(sight{operation: original, code: fault.AuthorityError, at: "XX.test"})
	id := s.submit("/credit", fmt.Sprintf(`{"country_code":"XX","transaction_date":%q,"transaction_number":"STUCK-CREDIT",
		"transaction_id":"stuck-credit","reference_transaction_id":"stuck-original","note":"returned"}`,
		time.Now().UTC().Format(time.RFC3339)))
	s.agree(sight{operation: id, code: fault.BehindAnother, at: "XX.test", says: []string{"Waits for <a "},
		never: []string{"Next attempt", "Retry now"}})
	s.script("XX", "")
	s.ends(original, "SUCCESS")
	s.ends(id, "SUCCESS")
}

// newPassword gives the company in Hungary another one, while nobody can try it.
func (s *stuck) newPassword(word string) {
	s.t.Helper()
	of := s.packs["HU"].Example.Credentials
	credentials := map[string]any{"username": of.Username, "password": word}
	for name, value := range of.Named {
		credentials[name] = value
	}
	body, err := json.Marshal(map[string]any{"tax_credentials": credentials})
	if err != nil {
		s.t.Fatal(err)
	}
	nobody := "http://" + freeAddress(s.t)
	s.set("HU.test", nobody)
	var job struct {
		Data struct {
			At string `json:"job_status_location"`
		}
	}
	answer := s.must(http.StatusAccepted, http.MethodPatch, s.url+"/onboarding/v2/companies/"+s.supplier("HU"), string(body))
	if err := json.Unmarshal(answer, &job); err != nil {
		s.t.Fatal(err)
	}
	at, err := url.Parse(job.Data.At)
	if err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the credentials are taken", func() (bool, string) {
		text := s.must(http.StatusOK, http.MethodGet, s.url+at.RequestURI(), "")
		return strings.Contains(string(text), `"success"`), string(text)
	})
	s.unset("HU.test")
	s.eventually("the program knows of it", func() (bool, string) {
		page := s.page("/authorities")
		return strings.Contains(page, s.sims+"/hu"), page
	})
}

func stuckByCredentials(s *stuck) {
	s.newPassword("wrong")
	id := s.sell("HU", "stuck-refused")
	s.agree(sight{operation: id, code: fault.CredentialsInvalid, at: "HU.test", alert: alert.LanePausedCredentials,
		says: []string{"rejected the supplier's credentials"}})
	s.newPassword(s.packs["HU"].Example.Credentials.Secret)
	s.ends(id, "SUCCESS")
}

func stuckByPoll(s *stuck) {
	s.script("HU", `{"outcome":"pending","delay":"1h"}`)
	id := s.sell("HU", "stuck-polled")
	s.eventually("pending", func() (bool, string) {
		page := s.page("/transactions/" + id)
		return strings.Contains(page, "PROCESSING · pending"), page
	})
	s.newPassword("wrong")
	s.agree(sight{operation: id, code: fault.CredentialsInvalid, at: "HU.test", alert: alert.LanePausedCredentials,
		says: []string{"rejected the supplier's credentials"}})
	s.newPassword(s.packs["HU"].Example.Credentials.Secret)
}

func stuckByCrashes(s *stuck) {
	s.script("XX", outage)
	id := s.sell("XX", "stuck-crashed")
	s.agree(sight{operation: id, code: fault.AuthorityError, at: "XX.test"})
	s.eventually("quarantined", func() (bool, string) {
		s.exec("UPDATE operations SET crashes = 99 WHERE operation_id = $1", id) // as if the process had died with it; an attempt that ends writes its own
		page := s.page("/transactions/" + id)
		return strings.Contains(page, "Quarantined: "), page
	})
	s.agree(sight{operation: id, code: fault.Held, at: "XX.test", alert: alert.OperationQuarantined,
		says: []string{"Quarantined: ", ">Release<"}, never: []string{"Next attempt", "<code>quarantined</code>"}})
	s.script("XX", "") // not before: an attempt that began earlier would succeed
	if view := s.page("/transactions?reason=held"); !strings.Contains(view, `aria-current="true">Held`) {
		s.t.Errorf("the view of what is held is not chosen:\n%s", view)
	}
	s.ends(id, "SUCCESS") // by its button
}

// stuckNot is taken with a remark: nothing waits, and nobody is told to do it again.
func stuckNot(s *stuck) {
	id := s.sell("HU", "stuck-not-WARN")
	s.agree(sight{operation: id, status: "SUCCESS", code: fault.AuthorityRemark, says: []string{"Registered, with a remark"},
		never: []string{"Rejected"}})
}

// stuckUnconfigured is a live client whose authority has no address.
func stuckUnconfigured(s *stuck) {
	var made struct {
		Key string `json:"api_key"`
	}
	out := succeeds(s.t, "client", "create", "stuck-live", "--live", "--name", "Live one", "--country", "ES=BOTH", "--json", "--data", s.dir)
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	test := s.key
	s.key = made.Key
	defer func() { s.key = test }()
	pack := s.packs["ES"]
	s.must(http.StatusAccepted, http.MethodPost, s.url+"/onboarding/v2/companies", string(exampleCompany(s.t, pack, "live-ES", nil)))
	var company struct{ ID string }
	s.eventually("the company", func() (bool, string) {
		status, text := s.ask(http.MethodGet, s.url+"/onboarding/v2/companies/live-ES?external-id=true", "")
		return status == http.StatusOK && json.Unmarshal(text, &company) == nil, string(text)
	})
	body, err := pack.ExampleSale(country.SaleID{Transaction: "stuck-live", Number: "STUCK-LIVE", Supplier: company.ID, Date: time.Now()})
	if err != nil {
		s.t.Fatal(err)
	}
	id := s.submit("", string(body))
	s.agree(sight{operation: id, code: fault.AuthorityNotConfigured, at: "ES.live", alert: alert.AuthorityNotConfigured,
		says:  []string{"Nothing was sent: no address is set for ES.live", "tributary authority set ES.live --url", "Not sent yet"},
		never: []string{"CC.live", "failed call"}})
	if _, findings := diagnose(s.t, "--data", s.dir); verdictOf(findings, "waiting", "authority set ES.live --url") != doctor.Warn {
		s.t.Errorf("doctor does not print the command:\n%+v", findings)
	}
	list := succeeds(s.t, "authority", "list", "--data", s.dir)
	if line := regexp.MustCompile(`(?m)^ES\.live.*$`).FindString(list); !strings.Contains(line, "authority set ES.live --url") {
		s.t.Errorf("the list does not name what is missing: %q in\n%s", line, list)
	}
	sims := s.sims + "/es"
	s.set("ES.live", sims)
	s.ends(id, "SUCCESS")
}

// exampleCompany is the company of a pack's example as a client onboards it.
func exampleCompany(t testing.TB, pack country.Pack, externalID string, settings country.Settings) []byte {
	t.Helper()
	of := pack.Example.Company
	body := map[string]any{
		"meta": map[string]any{"country_code": pack.Code, "external_id": externalID}, "legal_name": of.LegalName,
		"address":         of.Address,
		"tax_information": map[string]any{"tax_number": of.TaxNumber}, "settings": of.Settings,
	}
	if len(settings) > 0 {
		body["settings"] = settings
	}
	opened, err := pack.Example.Open(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	credentials := map[string]any{}
	for name, value := range opened.Named {
		credentials[name] = value
	}
	if len(opened.PKCS12) > 0 {
		credentials["certificate_base64"], credentials["certificate_password"] = base64.StdEncoding.EncodeToString(
			opened.PKCS12), opened.Password
	}
	if opened.Username != "" || opened.Secret != "" {
		credentials["username"], credentials["password"] = opened.Username, opened.Secret
	}
	body["tax_credentials"] = credentials
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestEveryPacksOutageHasItsReason walks every country with a simulated
// authority: while that is unavailable, all tell so.
func TestEveryPacksOutageHasItsReason(t *testing.T) {
	t.Parallel()
	s := newStuck(t)
	for _, code := range slices.Sorted(keysOf(s.packs)) {
		if pack := s.packs[code]; pack.Simulator == nil || pack.Example == nil || pack.Chosen() {
			continue
		}
		t.Run(code, func(t *testing.T) {
			s.t = t
			s.raised = s.alerts()
			s.script(code, outage)
			id := s.sell(code, "outage-1-"+strings.ToLower(code))
			s.agree(sight{operation: id, code: fault.AuthorityError, at: code + ".test", says: []string{"Retrying"},
				never: []string{"put_off", "put off"}})
			s.script(code, "")
			s.ends(id, "SUCCESS")
		})
	}
}

// A receiver that is down keeps no document back: the sale has ended, and its
// webhook is what waits.
func TestAReceiverThatIsDownIsToldByAll(t *testing.T) {
	t.Parallel()
	down := freeAddress(t)
	s := newStuck(t, "--webhook-url", "http://"+down+"/", "--webhook-retry-base", "1ms")
	s.raised = s.alerts()
	id := ""
	for i := range webhook.EventsToOpen {
		id = s.sell("XX", fmt.Sprint("receiver-down-", i))
		s.ends(id, "SUCCESS")
	}
	s.agree(sight{operation: id, status: "SUCCESS", says: []string{"connection failed"}, alert: alert.WebhookBreakerOpen,
		doctor: []string{"webhooks", down}})
	s.eventually("the metric", func() (bool, string) {
		line := regexp.MustCompile(`(?m)^tributary_webhooks_open .*$`).FindString(s.metrics())
		return line == fmt.Sprint("tributary_webhooks_open ", webhook.EventsToOpen), line
	})
	for _, path := range []string{"/", "/deliveries"} {
		if page := s.page(path); !strings.Contains(page, "paused: failing") || !strings.Contains(page, down) {
			t.Errorf("%s does not tell of %s:\n%s", path, down, page)
		}
	}
}
