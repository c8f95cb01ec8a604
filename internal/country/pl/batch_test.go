package pl_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"tributary/internal/authority/ksef"
	"tributary/internal/country"
	"tributary/internal/country/pl"
	"tributary/internal/country/pl/wire"
	"tributary/internal/official/ksefwire"
)

const (
	callBatch      = "POST /sessions/batch"
	callCloseBatch = "POST /sessions/batch/*/close"
	callSession    = "GET /sessions/*"
	callSessions   = "GET /sessions"
	callList       = "GET /sessions/*/invoices"
	callRates      = "GET /rate-limits"
)

// strict makes the double keep to KSeF's own limits.
func (m *ministry) strict() *ministry {
	m.double = ksef.Habits{Now: m.clock, Rates: ksefwire.ProductionRates()}.New(m.desk)
	return m
}

// queue is a number of invoices of today.
func (m *ministry) queue(name string, n int) []country.Filing {
	m.t.Helper()
	all := make([]country.Filing, n)
	for i := range all {
		d := invoice(fmt.Sprintf("%s/%d", name, i+1))
		d.Transaction.Date, d.Now = m.clock(), m.clock()
		all[i] = m.prepare(d)
	}
	return all
}

func (m *ministry) sendAll(filings []country.Filing) []country.Receipt {
	m.t.Helper()
	receipts, err := m.channel.Send(m.t.Context(), filings, token())
	if err != nil || len(receipts) != len(filings) {
		m.t.Fatalf("%d receipts for %d filings: %v", len(receipts), len(filings), err)
	}
	return receipts
}

func outcomes(receipts []country.Receipt) map[country.Outcome]int {
	all := map[country.Outcome]int{}
	for _, r := range receipts {
		all[r.Outcome]++
	}
	return all
}

func (m *ministry) want(what string, got map[country.Outcome]int, outcome country.Outcome, n int) {
	m.t.Helper()
	if got[outcome] != n {
		m.t.Fatalf("%s: %v, want %d %s", what, got, n, outcome)
	}
}

// A short queue goes one by one, a long one in one batch session, whose invoices
// come back with numbers and confirmations of their own.
func TestLongQueueGoesInABatchSession(t *testing.T) {
	m := newMinistry(t).strict()
	m.want("thirty", outcomes(m.sendAll(m.queue("A", 30))), country.Accepted, 30)
	if m.count(callSend) != 30 || m.count(callBatch) != 0 {
		t.Fatalf("%d one by one, %d batches", m.count(callSend), m.count(callBatch))
	}
	m.advance(time.Minute)
	filings := m.queue("B", 31)
	receipts := m.sendAll(filings)
	m.want("thirty-one", outcomes(receipts), country.Accepted, 31)
	if m.count(callSend) != 30 || m.count(callBatch) != 1 || m.count(callCloseBatch) != 1 || m.count(callList) != 1 ||
		m.held() != 61 {
		t.Errorf("%d one by one, %d batches, %d lists, %d held", m.count(callSend), m.count(callBatch), m.count(callList),
			m.held())
	}
	seen := map[string]bool{}
	for i, r := range receipts {
		if !ksefwire.ValidNumber(r.AuthorityID1) || seen[r.AuthorityID1] || r.SHA256 != filings[i].SHA256 ||
			wire.CheckUPO(r.Document) != nil {
			t.Errorf("%s: %+v", filings[i].Number, r)
		}
		seen[r.AuthorityID1] = true
	}
	if m.count(callUPO) != 0 {
		t.Errorf("%d confirmations were asked of the API, which counts them", m.count(callUPO))
	}
}

// A busy shop with thousands of invoices an hour stays inside every limit of
// KSeF by itself, and all of them are filed.
func TestBusyShopStaysInsideTheLimits(t *testing.T) {
	m := newMinistry(t).strict()
	waiting := []country.Filing{}
	made, filed, minutes := 0, 0, 0
	for ; minutes < 180 && (made < 1500 || len(waiting) > 0); minutes++ {
		if made < 1500 {
			waiting = append(waiting, m.queue(fmt.Sprintf("M%d", minutes), 50)...)
			made += 50
		}
		var left []country.Filing
		for i, r := range m.sendAll(waiting) {
			switch r.Outcome {
			case country.Accepted:
				filed++
			case country.NotTaken:
				if r.Wait <= 0 || r.Wait > time.Hour {
					t.Fatalf("the wait is %s", r.Wait)
				}
				left = append(left, waiting[i])
			default:
				t.Fatalf("%+v", r)
			}
		}
		waiting = left
		m.advance(time.Minute)
	}
	if filed != 1500 || m.held() != 1500 || m.refused() != 0 {
		t.Errorf("%d filed, %d held in %d minutes, %d calls were refused", filed, m.held(), minutes, m.refused())
	}
	t.Logf("1,500 invoices in %d minutes: %d one by one, %d batch sessions", minutes, m.count(callSend),
		m.count(callBatch))
}

// After a 429 nobody calls in the supplier's name before the time that KSeF said.
func TestWaitOfKSeFHoldsForEveryLane(t *testing.T) {
	m := newMinistry(t)
	m.answer(callSend, problem(http.StatusTooManyRequests, 0, "5400"))
	first := m.sendAll(m.queue("A", 1))
	calls := m.count(callSend)
	second := m.sendAll(m.queue("B", 2))
	m.want("the first", outcomes(first), country.NotTaken, 1)
	m.want("others", outcomes(second), country.NotTaken, 2)
	if first[0].Wait != 90*time.Minute || second[0].Wait != 90*time.Minute || m.count(callSend) != calls {
		t.Errorf("waits %s and %s, %d calls", first[0].Wait, second[0].Wait, m.count(callSend)-calls)
	}
	m.advance(90 * time.Minute)
	m.want("afterwards", outcomes(m.sendAll(m.queue("C", 2))), country.Accepted, 2)
}

// Packages are cut into parts, each encrypted; those that are too large for one
// session's parts are found before anything leaves.
func TestPackageIsCutIntoParts(t *testing.T) {
	m := newMinistry(t)
	pl.SetPartMax(m.channel, 10_000)
	m.want("in parts", outcomes(m.sendAll(m.queue("A", 100))), country.Accepted, 100)
	if parts := m.count("PUT /storage/*/batch-part-2"); parts != 1 {
		t.Errorf("the second part came %d times", parts)
	}
	pl.SetPartMax(m.channel, 100)
	if _, err := m.channel.Send(t.Context(), m.queue("B", 100), token()); err == nil || m.held() != 100 {
		t.Errorf("more than fifty parts: %v", err)
	}
}

// One invoice of a package that KSeF refuses does not hold up the others.
func TestRefusedInvoiceOfABatchIsAlone(t *testing.T) {
	m := newMinistry(t)
	filings := append(m.queue("A", 40), m.queue("B-REJECT", 0)...)
	d := invoice("FV-REJECT")
	d.Transaction.Date, d.Now = m.clock(), m.clock()
	filings = append(filings, m.prepare(d))
	receipts := m.sendAll(filings)
	m.want("others", outcomes(receipts), country.Accepted, 40)
	if r := receipts[40]; r.Outcome != country.Rejected || len(r.Faults) != 1 {
		t.Errorf("%+v", r)
	}
}

// Whatever fails before a package is closed took nothing.
func TestBatchThatWasNeverClosedTookNothing(t *testing.T) {
	for call, with := range map[string]http.HandlerFunc{
		callBatch:                     text(http.StatusBadGateway, "text/html", "<html>"),
		"PUT /storage/*/batch-part-1": text(http.StatusForbidden, "text/plain", "no"),
		callCloseBatch:                problem(http.StatusBadRequest, 21205, ""),
	} {
		m := newMinistry(t)
		m.answer(call, with)
		filings := m.queue("A", 40)
		if _, err := m.channel.Send(t.Context(), filings, token()); err == nil || m.held() != 0 {
			t.Errorf("%s: %v, %d held", call, err, m.held())
			continue
		}
		m.advance(20 * time.Minute) // past the pause after a session that failed
		m.want(call, outcomes(m.sendAll(filings)), country.Accepted, 40)
	}
}

// The answer to the closing of a session is lost, before or after KSeF did it:
// its invoices wait under the session, and each is registered once.
func TestLostAnswerToTheClosingOfABatch(t *testing.T) {
	for what, lose := range map[string]func(*ministry) http.HandlerFunc{
		"not done": func(*ministry) http.HandlerFunc { return text(http.StatusBadGateway, "text/html", "<html>") },
		"done": func(m *ministry) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				m.double.ServeHTTP(discarded{http.Header{}}, r)
				text(http.StatusBadGateway, "text/html", "<html>")(w, r)
			}
		},
		"too many calls": func(*ministry) http.HandlerFunc { return problem(http.StatusTooManyRequests, 0, "7") },
	} {
		m := newMinistry(t)
		m.answer(callCloseBatch, lose(m))
		filings := m.queue("A", 40)
		receipts := m.sendAll(filings)
		m.want(what, outcomes(receipts), country.Pending, 40)
		for range 4 {
			m.advance(10 * time.Second)
			for i := range filings {
				if receipts[i].Outcome != country.Pending {
					continue
				}
				r, err := m.channel.Poll(t.Context(), filings[i], receipts[i], token())
				if err != nil {
					t.Fatal(err)
				}
				receipts[i] = r
			}
		}
		m.want(what, outcomes(receipts), country.Accepted, 40)
		if m.held() != 40 || m.count(callBatch) != 1 {
			t.Errorf("%s: %d held, %d sessions", what, m.held(), m.count(callBatch))
		}
	}
}

// discarded is an answer that nobody reads.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header            { return d.header }
func (d discarded) Write(text []byte) (int, error) { return len(text), nil }
func (d discarded) WriteHeader(int)                {}

// After a crash nobody knows the session: its invoices are found in the list of
// sessions, with a handful of calls, and nothing is sent again.
func TestInvoicesOfABatchAreFoundAfterACrash(t *testing.T) {
	m := newMinistry(t).strict()
	filings := m.queue("A", 200)
	m.want("sent", outcomes(m.sendAll(filings)), country.Accepted, 200)
	m.reconnect()
	before := m.count(callQuery) + m.count(callSessions) + m.count(callSession) + m.count(callList)
	for _, f := range filings {
		r, err := m.channel.Find(t.Context(), f, token())
		if err != nil || r.Outcome != country.Accepted || r.SHA256 != f.SHA256 || len(r.Document) == 0 {
			t.Fatalf("%s: %+v %v", f.Number, r.Outcome, err)
		}
	}
	if n := m.count(callQuery) + m.count(callSessions) + m.count(callSession) + m.count(callList) - before; n > 5 {
		t.Errorf("%d questions", n)
	}
	if m.refused() != 0 {
		t.Errorf("%d calls were refused", m.refused())
	}
}

// A crash before the closing: nothing is there, KSeF says so for hundreds of
// invoices inside its limits of questions, and a second package registers each once.
func TestInvoicesOfAnUnclosedBatchAreAbsent(t *testing.T) {
	m := newMinistry(t).strict()
	m.answer(callCloseBatch, text(http.StatusBadGateway, "text/html", "<html>"))
	filings := m.queue("A", 200)
	m.want("sent", outcomes(m.sendAll(filings)), country.Pending, 200)
	m.reconnect()
	for _, f := range filings {
		if r, err := m.channel.Find(t.Context(), f, token()); err != nil || r.Outcome != country.Absent {
			t.Fatalf("%s: %+v %v", f.Number, r, err)
		}
	}
	m.want("again", outcomes(m.sendAll(filings)), country.Accepted, 200)
	if m.held() != 200 || m.refused() != 0 {
		t.Errorf("%d held, %d calls were refused", m.held(), m.refused())
	}
}

// A session that failed as a whole gives its invoices back: they go again, and
// for a while not in a batch.
func TestFailedBatchGivesItsInvoicesBack(t *testing.T) {
	m := newMinistry(t)
	m.answer(callSession, sessionState(435))
	filings := m.queue("A", 40)
	m.want("failed", outcomes(m.sendAll(filings)), country.NotTaken, 40)
	if again := outcomes(m.sendAll(m.queue("B", 20))); again[country.Accepted] != 20 || m.count(callBatch) != 1 {
		t.Errorf("%v, %d batch sessions", again, m.count(callBatch))
	}
}

func sessionState(code int) http.HandlerFunc {
	now := time.Now().UTC().Format(time.RFC3339)
	return text(http.StatusOK, "application/json",
		fmt.Sprintf(`{"status":{"code":%d,"description":"test"},"dateCreated":%q,"dateUpdated":%q}`, code, now, now))
}

// Addresses that KSeF names are called over TLS, or at the double's own host.
func TestStorageIsCalledSafely(t *testing.T) {
	m := newMinistry(t)
	m.answer(callBatch, text(http.StatusCreated, "application/json",
		`{"referenceNumber":"20250626-SB-213D593000-4DE10D80A5-E9","partUploadRequests":[{"ordinalNumber":1,"method":"PUT","url":"http://169.254.169.254/x","headers":{}}]}`))
	if _, err := m.channel.Send(t.Context(), m.queue("A", 40), token()); err == nil || m.held() != 0 {
		t.Errorf("%v", err)
	}
}
