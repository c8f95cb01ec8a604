package pl_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/authority/ksef"
	"tributary/internal/country"
	"tributary/internal/country/pl"
	"tributary/internal/fault"
	"tributary/internal/official"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// ministry is a double with everything in the test's hands: its clock, which
// is the channel's too, its answers, and a count of the calls it had.
type ministry struct {
	t       testing.TB
	desk    *authority.Desk
	double  http.Handler
	server  *httptest.Server
	client  *http.Client
	channel country.Channel

	mu    sync.Mutex
	now   time.Time
	calls map[string]int
	slow  int                           // calls that the double refused for their number
	spoil map[string][]http.HandlerFunc // by method and end of path
}

func newMinistry(t testing.TB) *ministry {
	t.Helper()
	desk, err := authority.OpenDesk(t.TempDir(), "PL")
	if err != nil {
		t.Fatal(err)
	}
	if err := seed(desk, ministryKey()); err != nil {
		t.Fatal(err)
	}
	m := &ministry{t: t, desk: desk, now: time.Now(), calls: map[string]int{}, spoil: map[string][]http.HandlerFunc{}}
	m.double = ksef.Habits{Now: m.clock}.New(desk)
	m.server = httptest.NewServer(http.HandlerFunc(m.serve))
	m.client = &http.Client{Transport: &http.Transport{DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}
	t.Cleanup(func() {
		m.client.CloseIdleConnections()
		m.server.Close()
		if err := desk.Close(); err != nil {
			t.Error(err)
		}
	})
	m.reconnect()
	return m
}

// reconnect forgets everything but what is stored, as a new process does.
func (m *ministry) reconnect() {
	m.t.Helper()
	var err error
	if m.channel, err = pl.Pack().Connect(country.Endpoint{BaseURL: m.server.URL, HTTP: m.client}); err != nil {
		m.t.Fatal(err)
	}
	pl.SetClock(m.channel, m.clock, m.advance)
}

// rotateKey makes the Ministry's key another one.
func (m *ministry) rotateKey() {
	m.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err == nil {
		err = seed(m.desk, key)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.double = ksef.Habits{Now: m.clock}.New(m.desk)
}

func (m *ministry) clock() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *ministry) advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
}

// name is a call without its references.
func name(r *http.Request) string {
	path := strings.TrimPrefix(r.URL.Path, "/v2")
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if len(part) == 36 || len(part) == 35 {
			parts[i] = "*"
		}
	}
	return r.Method + " " + strings.Join(parts, "/")
}

func (m *ministry) serve(w http.ResponseWriter, r *http.Request) {
	call := name(r)
	m.mu.Lock()
	m.calls[call]++
	var next http.HandlerFunc
	if waiting := m.spoil[call]; len(waiting) > 0 {
		next, m.spoil[call] = waiting[0], waiting[1:]
	}
	m.mu.Unlock()
	if next != nil {
		next(w, r)
		return
	}
	m.double.ServeHTTP(&watched{w, m}, r)
}

// watched counts the double's own refusals for too many calls.
type watched struct {
	http.ResponseWriter
	m *ministry
}

func (w *watched) WriteHeader(status int) {
	if status == http.StatusTooManyRequests {
		w.m.mu.Lock()
		w.m.slow++
		w.m.mu.Unlock()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the double end a connection in the middle.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (m *ministry) refused() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slow
}

// answer lets the next call of a name be answered by something else.
func (m *ministry) answer(call string, with http.HandlerFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spoil[call] = append(m.spoil[call], with)
}

func (m *ministry) count(call string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls[call]
}

func (m *ministry) held() int {
	all, err := m.desk.Registrations()
	if err != nil {
		m.t.Fatal(err)
	}
	return len(all)
}

func (m *ministry) prepare(d country.Draft) country.Filing {
	m.t.Helper()
	f, err := m.channel.Prepare(d)
	if err != nil {
		m.t.Fatal(err)
	}
	return f
}

func (m *ministry) send(number string) (country.Receipt, error) {
	m.t.Helper()
	return m.sendFiling(m.prepare(invoice(number)), token())
}

func (m *ministry) sendFiling(f country.Filing, c country.Credentials) (country.Receipt, error) {
	all, err := m.channel.Send(m.t.Context(), []country.Filing{f}, c)
	if err != nil {
		return country.Receipt{}, err
	}
	return all[0], nil
}

func (m *ministry) mustSend(number string) country.Receipt {
	m.t.Helper()
	r, err := m.send(number)
	if err != nil || r.Outcome != country.Accepted {
		m.t.Fatalf("%s: %+v %v", number, r, err)
	}
	return r
}

// Names of calls.
const (
	callChallenge = "POST /auth/challenge"
	callToken     = "POST /auth/ksef-token"
	callAuth      = "GET /auth/*"
	callRedeem    = "POST /auth/token/redeem"
	callRefresh   = "POST /auth/token/refresh"
	callKeys      = "GET /security/public-key-certificates"
	callOpen      = "POST /sessions/online"
	callSend      = "POST /sessions/online/*/invoices"
	callClose     = "POST /sessions/online/*/close"
	callStatus    = "GET /sessions/*/invoices/*"
	callUPO       = "GET /sessions/*/invoices/*/upo"
	callStored    = "GET /storage/*/*"
	callQuery     = "POST /invoices/query/metadata"
)

func problem(status int, code int, retry string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		if retry != "" {
			w.Header().Set("Retry-After", retry)
		}
		w.WriteHeader(status)
		body := map[string]any{"title": http.StatusText(status), "status": status, "instance": "/", "detail": "test",
			"timestamp": time.Now(), "traceId": "x"}
		if status == http.StatusBadRequest {
			body["errors"] = []map[string]any{{"code": code, "description": "test"}}
		}
		if status == http.StatusForbidden {
			body["reasonCode"] = "missing-permissions"
		}
		_ = json.NewEncoder(w).Encode(body)
	}
}

func state(code int, extensions map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"ordinalNumber": 1, "referenceNumber": r.URL.Path[len(r.URL.Path)-36:],
			"invoiceHash":   "UtQp9Gpc51y+u3xApZjIjgkpZ01js+J8KflSPW8WzIE=",
			"invoicingDate": time.Now(), "status": map[string]any{"code": code, "description": "Opis",
				"details": []string{"Szczegół"}, "extensions": extensions},
		})
	}
}

func text(status int, media, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func TestOneAuthenticationAndOneSessionServeManyInvoices(t *testing.T) {
	m := newMinistry(t)
	var all sync.WaitGroup
	for i := range 20 {
		f := m.prepare(invoice(fmt.Sprintf("FV/%d", i)))
		all.Go(func() {
			if r, err := m.sendFiling(f, token()); err != nil || r.Outcome != country.Accepted {
				t.Errorf("%s: %+v %v", f.Number, r, err)
			}
		})
	}
	all.Wait()
	for call, want := range map[string]int{callChallenge: 1, callToken: 1, callRedeem: 1, callKeys: 1, callOpen: 1,
		callSend: 20, callRefresh: 0, callClose: 0} {
		if got := m.count(call); got != want {
			t.Errorf("%s: %d times instead of %d", call, got, want)
		}
	}
	if m.held() != 20 {
		t.Errorf("%d invoices are held", m.held())
	}
}

func TestAccessTokenIsRefreshedBeforeItEnds(t *testing.T) {
	m := newMinistry(t)
	m.mustSend("FV/1")
	m.advance(14 * time.Minute)
	m.mustSend("FV/2")
	if m.count(callRefresh) != 0 {
		t.Error("it was refreshed too early")
	}
	m.advance(40 * time.Second)
	m.mustSend("FV/3")
	if m.count(callRefresh) != 1 || m.count(callChallenge) != 1 {
		t.Errorf("%d refreshes, %d authentications", m.count(callRefresh), m.count(callChallenge))
	}
	m.advance(8 * 24 * time.Hour) // past the refresh token as well
	m.mustSend("FV/4")
	if m.count(callRefresh) != 1 || m.count(callChallenge) != 2 {
		t.Errorf("%d refreshes, %d authentications", m.count(callRefresh), m.count(callChallenge))
	}
}

func TestTokenThatKSeFForgotIsReplacedAndTheInvoiceGoesOnce(t *testing.T) {
	m := newMinistry(t)
	m.mustSend("FV/1")
	m.answer(callSend, problem(http.StatusUnauthorized, 0, ""))
	m.mustSend("FV/2")
	if m.held() != 2 || m.count(callRefresh) != 1 {
		t.Errorf("%d held, %d refreshes", m.held(), m.count(callRefresh))
	}
	m.answer(callSend, problem(http.StatusUnauthorized, 0, ""))
	m.answer(callRefresh, problem(http.StatusUnauthorized, 0, ""))
	m.mustSend("FV/3")
	if m.count(callChallenge) != 2 {
		t.Errorf("%d authentications", m.count(callChallenge))
	}
	m.answer(callSend, problem(http.StatusUnauthorized, 0, ""))
	m.answer(callSend, problem(http.StatusUnauthorized, 0, ""))
	if _, err := m.send("FV/4"); !errors.Is(err, country.ErrCredentials) || !errors.Is(err, country.ErrNotTaken) {
		t.Errorf("a fresh token refused: %v", err)
	}
}

func TestSessionIsReplacedBeforeItEndsAndWhenItIsFull(t *testing.T) {
	m := newMinistry(t)
	m.mustSend("FV/1")
	m.advance(11*time.Hour + 49*time.Minute)
	m.mustSend("FV/2")
	if m.count(callOpen) != 1 {
		t.Fatal("the session was left too early")
	}
	m.advance(2 * time.Minute)
	m.mustSend("FV/3")
	if m.count(callOpen) != 2 || m.count(callClose) != 1 {
		t.Errorf("%d opened, %d closed", m.count(callOpen), m.count(callClose))
	}
	pl.FillSession(m.channel)
	m.mustSend("FV/4")
	if m.count(callOpen) != 3 || m.count(callClose) != 2 {
		t.Errorf("full: %d opened, %d closed", m.count(callOpen), m.count(callClose))
	}
}

func TestSessionThatKSeFClosedIsOpenedAnew(t *testing.T) {
	for _, code := range []int{21155, 21173, 21180} {
		m := newMinistry(t)
		m.mustSend("FV/1")
		m.answer(callSend, problem(http.StatusBadRequest, code, ""))
		m.mustSend("FV/2")
		if m.count(callOpen) != 2 || m.held() != 2 {
			t.Errorf("%d: %d sessions, %d held", code, m.count(callOpen), m.held())
		}
	}
}

func TestKeyThatTheMinistryWithdrewIsAskedForAgain(t *testing.T) {
	m := newMinistry(t)
	m.mustSend("FV/1")
	m.rotateKey()
	m.advance(12 * time.Hour) // a new session is due; the list of keys is old too
	m.mustSend("FV/2")
	m.rotateKey()
	pl.FillSession(m.channel) // a new session under a key that is gone: 21470
	m.mustSend("FV/3")
	if m.count(callKeys) != 3 {
		t.Errorf("the keys were asked for %d times", m.count(callKeys))
	}
}

func TestTooManyRequestsTakeNothingAndAreWaitedFor(t *testing.T) {
	for _, call := range []string{callSend, callOpen, callChallenge, callKeys, callRedeem} {
		m := newMinistry(t)
		m.answer(call, problem(http.StatusTooManyRequests, 0, "42"))
		r, err := m.send("FV/1")
		if err != nil || r.Outcome != country.NotTaken || r.Wait != 42*time.Second {
			t.Errorf("%s: %+v %v", call, r, err)
		}
		if m.held() != 0 {
			t.Errorf("%s: something is held", call)
		}
	}
	m := newMinistry(t)
	m.answer(callStatus, problem(http.StatusTooManyRequests, 0, "7"))
	r, err := m.send("FV/1")
	if err != nil || r.Outcome != country.Pending {
		t.Fatalf("%+v %v", r, err)
	}
	m.answer(callStatus, problem(http.StatusTooManyRequests, 0, "7"))
	polled, err := m.channel.Poll(t.Context(), m.prepare(invoice("FV/1")), r, token())
	if err != nil || polled.Outcome != country.Pending || polled.Wait != 7*time.Second || polled.Handle != r.Handle {
		t.Errorf("%+v %v", polled, err)
	}
}

func TestUnclearAnswersToAnInvoiceAreNeverNotTaken(t *testing.T) {
	for what, with := range map[string]http.HandlerFunc{
		"503":            text(http.StatusServiceUnavailable, "text/html", "<h1>Service Unavailable</h1>"),
		"502 as JSON":    text(http.StatusBadGateway, "application/json", `{"title":"Bad Gateway"}`),
		"HTML with 200":  text(http.StatusOK, "text/html", "<h1>Przerwa techniczna</h1>"),
		"HTML with 202":  text(http.StatusAccepted, "text/html", "<h1>Przerwa techniczna</h1>"),
		"HTML with 400":  text(http.StatusBadRequest, "text/html", "<h1>Bad Request</h1>"),
		"cut short":      text(http.StatusAccepted, "application/json", `{"referenceNumber":"2025`),
		"no reference":   text(http.StatusAccepted, "application/json", `{}`),
		"a redirect":     text(http.StatusFound, "text/html", ""),
		"too long":       func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "99999999") },
		"no connection":  func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
		"empty problem":  text(http.StatusBadRequest, "application/json", `{}`),
		"a server error": problem(http.StatusInternalServerError, 0, ""),
	} {
		t.Run(what, func(t *testing.T) {
			m := newMinistry(t)
			m.mustSend("FV/0")
			m.answer(callSend, with)
			r, err := m.send("FV/1")
			if err == nil || errors.Is(err, country.ErrNotTaken) || errors.Is(err, country.ErrCredentials) {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

func TestTroubleBeforeTheInvoiceTakesNothing(t *testing.T) {
	for _, call := range []string{callChallenge, callKeys, callToken, callAuth, callRedeem, callOpen} {
		m := newMinistry(t)
		m.answer(call, text(http.StatusServiceUnavailable, "text/html", "<h1>x</h1>"))
		if _, err := m.send("FV/1"); !errors.Is(err, country.ErrNotTaken) || errors.Is(err, country.ErrCredentials) {
			t.Errorf("%s: %v", call, err)
		}
		m.mustSend("FV/1")
	}
}

func TestCredentialsThatKSeFRefusesPauseTheSupplier(t *testing.T) {
	for what, secret := range map[string]string{
		"revoked": "20251006-EC-REVOKED", "invalid": "x-INVALID", "another's": "x|nip-" + buyerNIP + "|y",
		"without powers": "x-POWERLESS",
	} {
		m := newMinistry(t)
		_, err := m.sendFiling(m.prepare(invoice("FV/1")), country.Credentials{Secret: secret})
		if !errors.Is(err, country.ErrCredentials) || m.held() != 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	m := newMinistry(t)
	for what, c := range map[string]country.Credentials{
		"none": {}, "a wrong password": {PKCS12: certificate().PKCS12, Password: "no"},
		"no certificate": {PKCS12: []byte("x")},
	} {
		if _, err := m.sendFiling(m.prepare(invoice("FV/1")), c); !errors.Is(err, country.ErrCredentials) ||
			!errors.Is(err, country.ErrNotTaken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	d := invoice("FV/1")
	d.Supplier.TaxNumber = buyerNIP // the certificate names another
	if _, err := m.sendFiling(m.prepare(d), certificate()); !errors.Is(err, country.ErrCredentials) {
		t.Errorf("a certificate of another: %v", err)
	}
	for _, call := range []string{callOpen, callSend} {
		m := newMinistry(t)
		m.answer(call, problem(http.StatusForbidden, 0, ""))
		if _, err := m.send("FV/1"); !errors.Is(err, country.ErrCredentials) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestStatusesOfInvoicesMeanWhatTheAPISays(t *testing.T) {
	for code, want := range map[int]country.Outcome{
		100: country.Pending, 150: country.Pending, 405: country.NotTaken, 435: country.NotTaken, 500: country.NotTaken,
		550: country.NotTaken,
		410: country.Rejected, 415: country.Rejected, 430: country.Rejected, 450: country.Rejected,
	} {
		m := newMinistry(t)
		m.answer(callStatus, state(code, nil))
		r, err := m.send("FV/1")
		if err != nil || r.Outcome != want {
			t.Errorf("%d: %+v %v", code, r, err)
		}
		if want == country.Rejected && (len(r.Faults) != 1 || r.Faults[0].Code != fault.AuthorityRejected ||
			!strings.Contains(r.Faults[0].Message, fmt.Sprint(code)) ||
			!strings.Contains(r.Faults[0].Message, "Opis: Szczegół")) {
			t.Errorf("%d: %+v", code, r.Faults)
		}
	}
}

func TestInvoiceThatKSeFDroppedIsSentAgainByThePoll(t *testing.T) {
	m := newMinistry(t)
	f := m.prepare(invoice("FV/1"))
	m.answer(callStatus, state(150, nil))
	m.answer(callSend, text(http.StatusAccepted, "application/json",
		`{"referenceNumber":"20251006-EE-0000000000-0000000000-00"}`))
	r, err := m.sendFiling(f, token())
	if err != nil || r.Outcome != country.Pending {
		t.Fatalf("%+v %v", r, err)
	}
	m.answer(callStatus, state(550, nil))
	again, err := m.channel.Poll(t.Context(), f, r, token())
	if err != nil || again.Outcome != country.Pending || again.Handle == r.Handle {
		t.Fatalf("%+v %v", again, err)
	}
	final, err := m.channel.Poll(t.Context(), f, again, token())
	if err != nil || final.Outcome != country.Accepted || m.held() != 1 {
		t.Errorf("%+v %v, %d held", final, err, m.held())
	}
}

func TestAcceptedInvoiceWaitsForItsConfirmation(t *testing.T) {
	m := newMinistry(t)
	for range 2 {
		m.answer(callStored, text(http.StatusForbidden, "text/plain", "the address has ended"))
	}
	m.answer(callUPO, text(http.StatusServiceUnavailable, "text/html", ""))
	f := m.prepare(invoice("FV/1"))
	r, err := m.sendFiling(f, token())
	if err != nil || r.Outcome != country.Pending {
		t.Fatalf("%+v %v", r, err)
	}
	m.answer(callUPO, text(http.StatusOK, "application/xml", "<!DOCTYPE x><Potwierdzenie/>"))
	if r, err = m.channel.Poll(t.Context(), f, r, token()); err != nil || r.Outcome != country.Pending {
		t.Fatalf("%+v %v", r, err)
	}
	r, err = m.channel.Poll(t.Context(), f, r, token())
	if doc, err := xmltree.Read(r.Document); err != nil {
		t.Error(err)
	} else if flaw := official.UPO.Schema().First(doc.Root); flaw != nil {
		t.Errorf("the UPO: %v", flaw)
	}
	if err != nil || r.Outcome != country.Accepted || r.Format != "XML" ||
		!strings.Contains(string(r.Document), r.AuthorityID1) {
		t.Fatalf("%+v %v", r, err)
	}
	if !ksefwire.ValidNumber(r.AuthorityID1) || len(r.AuthorityID2) != 36 || r.SHA256 != f.SHA256 || r.At.IsZero() {
		t.Errorf("%+v", r)
	}
}

func TestFoundInvoiceBringsItsConfirmation(t *testing.T) {
	m := newMinistry(t)
	sent := m.mustSend("FV/1")
	f := m.prepare(invoice("FV/1"))
	for what, channel := range map[string]func() country.Channel{
		"the same program": func() country.Channel { return m.channel },
		"after a restart": func() country.Channel {
			client := &http.Client{Transport: &http.Transport{}}
			t.Cleanup(client.CloseIdleConnections)
			ch, err := pl.Pack().Connect(country.Endpoint{BaseURL: m.server.URL + "/v2/", HTTP: client})
			if err != nil {
				t.Fatal(err)
			}
			return ch
		},
	} {
		r, err := channel().Find(t.Context(), f, token())
		if err != nil || r.Outcome != country.Accepted || r.AuthorityID1 != sent.AuthorityID1 || r.SHA256 != f.SHA256 ||
			len(r.AuthorityID2) != 36 {
			t.Fatalf("%s: %+v %v", what, r, err)
		}
		if !strings.Contains(string(r.Document), sent.AuthorityID1) {
			t.Errorf("%s: no UPO", what)
		}
	}
	absent, err := m.channel.Find(t.Context(), m.prepare(invoice("FV/2")), token())
	if err != nil || absent.Outcome != country.Absent {
		t.Errorf("%+v %v", absent, err)
	}
	other := invoice("FV/1")
	other.Transaction.Items[0].Name = "Kawa"
	r, err := m.channel.Find(t.Context(), m.prepare(other), token())
	if err != nil || r.SHA256 != f.SHA256 || r.AuthorityID1 != sent.AuthorityID1 {
		t.Errorf("another document under the number: %+v %v", r, err)
	}
}

func TestInvoiceAndCorrectionMayShareANumber(t *testing.T) {
	m := newMinistry(t)
	first := m.mustSend("X/1")
	kor := m.prepare(correct(transaction.Credit, invoice("X/1"), invoice("X/1")))
	r, err := m.sendFiling(kor, token())
	if err != nil || r.Outcome != country.Accepted || r.AuthorityID1 == first.AuthorityID1 || m.held() != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	found, err := m.channel.Find(t.Context(), kor, token())
	if err != nil || found.AuthorityID1 != r.AuthorityID1 {
		t.Errorf("%+v %v", found, err)
	}
}

func TestDuplicateIsResolvedByContent(t *testing.T) {
	m := newMinistry(t)
	sent := m.mustSend("FV/1")
	again, err := m.send("FV/1")
	if err != nil || again.Outcome != country.Accepted || !again.Duplicate || again.AuthorityID1 != sent.AuthorityID1 ||
		len(again.Document) == 0 {
		t.Fatalf("ours again: %+v %v", again, err)
	}
	other := invoice("FV/1")
	other.Transaction.Items[0].Name = "Kawa"
	f := m.prepare(other)
	r, err := m.sendFiling(f, token())
	if err != nil || !r.Duplicate || r.SHA256 == f.SHA256 || r.SHA256 == "" || r.AuthorityID1 != sent.AuthorityID1 {
		t.Errorf("another's: %+v %v", r, err)
	}
	m.answer(callStatus, state(440, map[string]string{}))
	if r, err := m.send("FV/1"); err != nil || r.Outcome != country.Pending {
		t.Errorf("a duplicate of nothing: %+v %v", r, err)
	}
	if m.held() != 1 {
		t.Errorf("%d are held", m.held())
	}
}

func TestLostContextEndsTheWaitForAnAuthentication(t *testing.T) {
	m := newMinistry(t)
	ctx, cancel := context.WithCancel(t.Context())
	m.answer(callAuth, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"status":{"code":100,"description":"Uwierzytelnianie w toku"}}`)
		time.AfterFunc(0, cancel)
	})
	_, err := m.channel.Send(ctx, []country.Filing{m.prepare(invoice("FV/1"))}, token())
	if !errors.Is(err, country.ErrNotTaken) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestListOfADayHasAllPages(t *testing.T) {
	m := newMinistry(t)
	const many = 253
	var all sync.WaitGroup
	gate := make(chan struct{}, 8)
	for i := range many {
		f := m.prepare(invoice(fmt.Sprintf("FV/%d", i)))
		gate <- struct{}{}
		all.Go(func() {
			defer func() { <-gate }()
			if r, err := m.sendFiling(f, token()); err != nil || r.Outcome != country.Accepted {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
	all.Wait()
	register, ok := m.channel.(country.Register)
	if !ok {
		t.Fatal("the channel cannot list")
	}
	entries, err := register.Registered(t.Context(), supplier(), country.Day{Year: 2025, Month: 10, Day: 7}, token())
	if err != nil || len(entries) != many {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if !ksefwire.ValidNumber(e.AuthorityID1) || seen[e.Number] || e.At.IsZero() {
			t.Fatalf("%+v", e)
		}
		seen[e.Number] = true
	}
	if entries, err := register.Registered(t.Context(), supplier(), country.Day{Year: 2025, Month: 10, Day: 6},
		token()); err != nil || len(entries) != 0 {
		t.Errorf("the day before: %d entries, %v", len(entries), err)
	}
	m.answer(callQuery, text(http.StatusOK, "application/json", `{"hasMore":true,"isTruncated":true,"invoices":[]}`))
	if _, err := register.Registered(t.Context(), supplier(), country.Day{Year: 2025, Month: 10, Day: 7},
		token()); err == nil {
		t.Error("a list that KSeF cut is taken for whole")
	}
}

// What comes before midnight and is numbered after it carries the next day in its
// KSeF number: it is found all the same.
func TestADuplicateNumberedAfterMidnightIsResolved(t *testing.T) {
	m := newMinistry(t)
	now := m.clock().In(warsaw())
	midnight := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, warsaw())
	m.advance(midnight.Sub(now) - 2*time.Second)
	if err := m.desk.SetScript([]authority.Step{{Outcome: authority.Suspend, Delay: 10 * time.Second}}); err != nil {
		t.Fatal(err)
	}
	d := invoice("FV/1")
	d.Transaction.Date, d.Now = m.clock(), m.clock()
	f := m.prepare(d)
	sent, err := m.sendFiling(f, token())
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if sent.Outcome != country.Pending {
			break
		}
		m.advance(2 * time.Second)
		if sent, err = m.channel.Poll(t.Context(), f, sent, token()); err != nil {
			t.Fatal(err)
		}
	}
	if day := midnight.Format("20060102"); sent.Outcome != country.Accepted || sent.AuthorityID1[11:19] != day {
		t.Fatalf("%+v is not numbered on %s", sent, day)
	}
	m.reconnect()
	again, err := m.sendFiling(f, token())
	for range 20 {
		if err != nil || again.Outcome != country.Pending {
			break
		}
		m.advance(2 * time.Second)
		again, err = m.channel.Poll(t.Context(), f, again, token())
	}
	if err != nil || again.Outcome != country.Accepted || !again.Duplicate || again.AuthorityID1 != sent.AuthorityID1 {
		t.Errorf("%+v %v", again, err)
	}
}
