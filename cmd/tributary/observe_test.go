package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/needs"
)

// TestEverySettingIsSeenSomewhere walks the command line's own model: each setting
// has an entry in sights, or a test elsewhere that shows what it does.
func TestEverySettingIsSeenSomewhere(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, f := range everyFlag(t) {
		setting := settingOf(f.flag)
		if setting == "" || named[setting] {
			continue
		}
		named[setting] = true
		if sights[setting] == nil && elsewhere[setting] == "" {
			t.Errorf("%s: nothing shows that it does something: add it to sights", f)
		}
	}
	for setting := range sights {
		if !named[setting] {
			t.Errorf("%s is among the sights and no flag", setting)
		}
	}
	for setting, test := range elsewhere {
		folder, name, _ := strings.Cut(test, " ")
		if !named[setting] || !hasTest(t, folder, name) {
			t.Errorf("%s is said to be shown by %s", setting, test)
		}
	}
}

// TestEverySettingChangesTheRunningProgram looks at the program from outside
// without each setting and with it. A flag that is read and never used shows the
// same twice.
func TestEverySettingChangesTheRunningProgram(t *testing.T) {
	needs.Long(t, "it starts the program dozens of times to look at every setting")
	t.Parallel()
	o := newObservatory(t)
	for _, setting := range slices.Sorted(keysOf(sights)) {
		t.Run(setting, func(t *testing.T) {
			o.t = t
			if without, with := sights[setting](o); without == with {
				t.Errorf("without and with it: %s", clipped(with))
			}
		})
	}
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func clipped(text string) string { return text[:min(len(text), 600)] }

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("func "+name+"(")) {
			return true
		}
	}
	return false
}

// observatory is what sights look at: demos with nothing said, with everything
// said, and with what contradicts that; and services on the first one's data.
type observatory struct {
	t      *testing.T // of the sight under way
	root   *testing.T
	dir    string
	hook   *httptest.Server // a receiver with a certificate of its own
	open   *httptest.Server // the same without
	heard  sync.Map         // when a path of it was called, first and second time
	issuer *httptest.Server // an identity provider as far as we need one
	gotten atomic.Value     // the secret that its token endpoint was given
	vies   *httptest.Server
	asked  atomic.Int64 // at vies
	ca     string       // file with the receiver's certificate

	plain, full, other func() *service
	book               func() []string
}

// service is a running program.
type service struct {
	o                   *observatory
	p                   *process
	dir                 string
	listen, admin, sims string
	key, url            string
	client              *http.Client
	operation           string // of a sale that has ended
}

func newObservatory(t *testing.T) *observatory {
	t.Helper()
	o := &observatory{t: t, root: t, dir: t.TempDir()}
	receive := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		times, _ := o.heard.LoadOrStore(r.URL.Path, new(sync.Map))
		n := 0
		times.(*sync.Map).Range(func(any, any) bool { n++; return true })
		times.(*sync.Map).Store(n, time.Now())
		if n == 0 {
			http.Error(w, "once more", http.StatusInternalServerError)
		}
	})
	o.hook, o.open = httptest.NewTLSServer(receive), httptest.NewServer(receive)
	o.hook.Config.ErrorLog = log.New(io.Discard, "", 0) // who does not trust it says so
	t.Cleanup(func() { o.hook.Close(); o.open.Close() })
	o.ca = write(t, filepath.Join(o.dir, "ca.pem"),
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.hook.Certificate().Raw})))
	o.issuer = o.newIssuer()
	o.vies = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		o.asked.Add(1)
		http.Error(w, "closed", http.StatusServiceUnavailable)
	}))
	t.Cleanup(o.vies.Close)
	o.plain = sync.OnceValue(func() *service {
		return o.demo("plain", []string{"--webhook-url", o.open.URL + "/plain"}, nil, nil)
	})
	o.full = sync.OnceValue(o.newFull)
	o.other = sync.OnceValue(o.newOther)
	o.book = sync.OnceValue(func() []string {
		flags := book(t, "sqlite:"+filepath.Join(o.dir, "book.db"))
		o.must(append([]string{"client", "create", "acme", "--name", "Acme"}, flags...)...)
		return flags
	})
	return o
}

// newIssuer knows nobody, but remembers what it was told.
func (o *observatory) newIssuer() *httptest.Server {
	mux := http.NewServeMux()
	var s *httptest.Server
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"jwks_uri":%q}`, s.URL,
			s.URL+"/authorize", s.URL+"/token", s.URL+"/keys")
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_, secret, _ := r.BasicAuth()
		o.gotten.Store(secret + r.FormValue("client_secret"))
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
	})
	s = httptest.NewServer(mux)
	o.root.Cleanup(s.Close)
	return s
}

// demo starts a demo on ports and in a folder of its own, with flags, variables
// and a file, and makes one sale with it.
func (o *observatory) demo(name string, flags []string, env []string, file map[string]any) *service {
	o.root.Helper()
	s := &service{o: o, dir: filepath.Join(o.dir, name), listen: freeAddress(o.root), admin: freeAddress(o.root),
		sims: freeAddress(o.root)}
	args := append([]string{"demo", "--data", s.dir, "--listen", s.listen, "--admin", s.admin, "--simulators", s.sims,
		"--callbacks", "127.0.0.1:0"}, flags...)
	if file != nil {
		args = append(args, "--config", configFile(o.root, file))
	}
	if len(env) == 0 {
		s.run(start(o.root, args...))
	} else {
		cmd := child(fastBinary(o.root), args...)
		cmd.Env = append(cmd.Env, env...)
		s.run(begin(o.root, cmd))
	}
	s.key = regexp.MustCompile(`API key +(\S+)`).FindStringSubmatch(s.p.output())[1]
	s.sell("sale-" + name)
	s.settled()
	return s
}

// common is the demo that tests share, with a sale of its own.
func (o *observatory) common(name string) *service {
	o.root.Helper()
	demo := commonDemo(o.root)
	s := &service{o: o, p: demo.process, dir: demo.dir, sims: strings.TrimPrefix(demo.sims, "http://"), key: testKey,
		url: demo.url, client: newObserver()}
	s.sell("sale-" + name)
	s.settled()
	return s
}

func (s *service) run(p *process) {
	s.p = p
	s.p.waitReady()
	s.client = newObserver()
	s.url = s.scheme() + "://" + s.listen
}

func newObserver() *http.Client {
	return &http.Client{Timeout: patience,
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// sell submits the sale that the service is looked at by.
func (s *service) sell(id string) { s.operation = s.submit(id) }

func (s *service) submit(id string) (operation string) {
	s.o.t.Helper()
	var company struct{ ID string }
	s.json(http.MethodGet, "/onboarding/v2/companies/demo-XX?external-id=true", "", &company)
	var accepted struct {
		OperationID string `json:"operation_id"`
	}
	if status := s.json(http.MethodPost, "/v1/transactions", sale(company.ID, id, strings.ToUpper(id)),
		&accepted); status != http.StatusAccepted {
		s.o.t.Fatalf("a sale is answered %d", status)
	}
	return accepted.OperationID
}

// settled waits for the end of the sale and answers its result.
func (s *service) settled() (result struct {
	Status      string
	Attachments []struct {
		URL string `json:"resource_url"`
	}
}) {
	s.o.eventually("the sale ends", func() bool {
		s.json(http.MethodGet, "/v1/transactions/"+s.operation, "", &result)
		return result.Status != "PROCESSING"
	})
	return result
}

func (s *service) json(method, path, body string, into any) int {
	s.o.t.Helper()
	status, text, _ := patiently(func() (int, []byte, error) {
		status, text := s.ask(method, s.url+path, body, "Authorization", "Bearer "+s.key, "Content-Type", "application/json")
		return status, []byte(text), nil
	})
	if err := json.Unmarshal(text, into); err != nil {
		s.o.t.Fatalf("%s %s: %d %v\n%s", method, path, status, err, text)
	}
	return status
}

// ask makes a request; "Host" among the headers is the host.
func (s *service) ask(method, url, body string, headers ...string) (int, string) {
	s.o.t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		s.o.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	answer, err := s.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.o.t.Fatal(err)
	}
	return answer.StatusCode,
		string(text) + " " + answer.Header.Get("Location") + " " + strings.Join(answer.Header.Values("Set-Cookie"), "; ")
}

// scheme is how the public listener speaks.
func (s *service) scheme() string {
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true},
		NetDialer: &net.Dialer{Timeout: 5 * time.Second}}).Dial("tcp", s.listen)
	if err != nil {
		return "http"
	}
	conn.Close()
	return "https"
}

// event is the notification of the sale.
func (s *service) event(enough func(tries int, status string) bool) (found struct {
	Status      string
	ResourceID  string `json:"resource_id"`
	Tries       int
	ResourceURL string `json:"resource_url"`
}) {
	var page struct {
		Data []json.RawMessage
	}
	s.o.eventually("the notification is tried", func() bool {
		s.json(http.MethodGet, "/v1/webhooks/events?limit=100", "", &page)
		for _, row := range page.Data {
			e := found
			if err := json.Unmarshal(row, &e); err != nil {
				s.o.t.Fatal(err)
			}
			if e.ResourceID == s.operation && enough(e.Tries, e.Status) {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

func (o *observatory) eventually(what string, done func() bool) {
	o.t.Helper()
	for late := time.Now().Add(patience); !done(); {
		if time.Now().After(late) {
			o.t.Fatalf("%s: not within %s", what, patience)
		}
		time.Sleep(20 * time.Millisecond) // another process; it has no signal to give
	}
}

// says is what a command prints and how it ends.
func (o *observatory) says(args ...string) string {
	o.t.Helper()
	code, out, errs := call(o.t, args...)
	return fmt.Sprint(code, " ", out, errs)
}

// must runs a command that succeeds.
func (o *observatory) must(args ...string) string {
	o.t.Helper()
	code, out, errs := call(o.t, args...)
	if code != 0 {
		o.t.Fatalf("%v: %d %s%s", args, code, out, errs)
	}
	return out
}

// configured is a client before and after one flag.
func (o *observatory) configured(flag string) (without, with string) {
	o.t.Helper()
	show := append([]string{"client", "show", "acme"}, o.book()...)
	without = o.must(show...)
	o.must(append([]string{"client", "configure", "acme", flag}, o.book()...)...)
	return without, o.must(show...)
}

// console signs in as the demo's operator and reads a page.
func (s *service) signIn(password string, headers ...string) {
	s.o.t.Helper()
	form := url.Values{"name": {"demo"}, "password": {password}}
	s.ask(http.MethodPost, "http://"+s.admin+"/console/sign-in", form.Encode(),
		append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// providers follows the way to the identity provider and back with a code that
// it does not know, and answers our id and the secret it was given.
func (s *service) provider() (id, secret string) {
	s.o.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.o.t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, CheckRedirect: s.client.CheckRedirect, Transport: s.client.Transport}
	answer, err := browser.Get("http://" + s.admin + "/console/oidc/begin")
	if err != nil {
		s.o.t.Fatal(err)
	}
	answer.Body.Close()
	to, err := url.Parse(answer.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(to.String(), s.o.issuer.URL) {
		return "", ""
	}
	s.o.gotten.Store("")
	req, err := http.NewRequest(http.MethodGet,
		"http://"+s.admin+"/console/oidc/finish?code=x&state="+url.QueryEscape(to.Query().Get("state")), nil)
	if err != nil {
		s.o.t.Fatal(err)
	}
	for _, c := range answer.Cookies() { // a jar would keep __Host- ones for HTTPS
		req.AddCookie(c)
	}
	if answer, err = browser.Do(req); err != nil {
		s.o.t.Fatal(err)
	}
	answer.Body.Close()
	got, _ := s.o.gotten.Load().(string)
	return to.Query().Get("client_id"), got
}

// row reads one value of a demo's database while it is served.
func (s *service) row(database, query string) (value int64) {
	s.o.t.Helper()
	d, err := db.Open(context.Background(), db.Config{URL: database, NoWorkers: true})
	if err != nil {
		s.o.t.Fatal(err)
	}
	defer func() { _ = d.Close() }() // only read
	err = d.Read(context.Background(), func(r db.Reader) error { return r.Row(query).Scan(&value) })
	if err != nil {
		s.o.t.Fatalf("%s: %v", query, err)
	}
	return value
}

func exists(path string) string {
	_, err := os.Stat(path)
	return fmt.Sprint(err == nil)
}
