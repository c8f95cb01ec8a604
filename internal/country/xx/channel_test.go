package xx_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/fault"
	"tributary/internal/mutate"
	"tributary/internal/transaction"
)

func prepare(tb testing.TB, ch country.Channel, d country.Draft) country.Filing {
	tb.Helper()
	f, err := ch.Prepare(d)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func send(tb testing.TB, ch country.Channel, filings ...country.Filing) []country.Receipt {
	tb.Helper()
	receipts, err := ch.Send(tb.Context(), filings, country.Credentials{})
	if err != nil || len(receipts) != len(filings) {
		tb.Fatalf("%d receipts, %v", len(receipts), err)
	}
	return receipts
}

func count(tb testing.TB, d *authority.Desk) int {
	tb.Helper()
	all, err := d.Registrations()
	if err != nil {
		tb.Fatal(err)
	}
	return len(all)
}

func rejected(r country.Receipt, code string) bool {
	return r.Outcome == country.Rejected && len(r.Faults) == 1 && r.Faults[0].Code == fault.AuthorityRejected &&
		r.Faults[0].Type == fault.TaxAuthority && strings.HasPrefix(r.Faults[0].Message, code+": ")
}

func TestABatchAtItsLimitGoesAndOnePastItDoesNot(t *testing.T) {
	ch, desk, _ := open(t, world.Reference(transaction.ReferenceCode, country.ByNumber))
	filings := make([]country.Filing, 201)
	for i := range filings {
		filings[i] = prepare(t, ch, draft("A-"+strconv.Itoa(i)))
	}
	if _, err := ch.Send(t.Context(), filings, country.Credentials{}); err == nil || count(t, desk) != 0 {
		t.Errorf("201 documents: %v, %d registered", err, count(t, desk))
	}
	for i, r := range send(t, ch, filings[:200]...) {
		if r.Outcome != country.Accepted || r.AuthorityID1 == "" || r.SHA256 != filings[i].SHA256 || r.At.IsZero() {
			t.Fatalf("document %d: %+v", i, r)
		}
	}
	if n := count(t, desk); n != 200 {
		t.Errorf("%d registered", n)
	}
}

func TestWhatDoesNotFitIntoOneCallIsNotTaken(t *testing.T) {
	ch, desk, _ := open(t, world.Reference(transaction.ReferenceCode, country.ByNumber))
	filings := make([]country.Filing, 3)
	for i := range filings {
		d := draft("A-" + strconv.Itoa(i))
		d.Transaction.Items[0].Name = strings.Repeat("x", 5<<20)
		filings[i] = prepare(t, ch, d)
	}
	receipts := send(t, ch, filings...)
	if receipts[0].Outcome != country.Accepted || receipts[1].Outcome != country.NotTaken ||
		receipts[2].Outcome != country.NotTaken || count(t, desk) != 1 {
		t.Errorf("%s %s %s, %d registered", receipts[0].Outcome, receipts[1].Outcome, receipts[2].Outcome, count(t, desk))
	}
}

func TestOneOutageInABatchIsThatDocumentsAlone(t *testing.T) {
	ch, desk, _ := open(t, world.Reference(transaction.ReferenceCode, country.ByNumber))
	good, bad := prepare(t, ch, draft("A-1")), prepare(t, ch, draft("A-2-OUTAGE"))
	receipts := send(t, ch, good, bad)
	if receipts[0].Outcome != country.Accepted || receipts[1].Outcome != country.NotTaken || count(t, desk) != 1 {
		t.Errorf("%+v", receipts)
	}
}

func TestAReceiptHoldsOneDocumentAndIsSigned(t *testing.T) {
	ch, _, _ := open(t, world.Reference(transaction.ReferenceCode, country.ByNumber))
	receipts := send(t, ch, prepare(t, ch, draft("A-1")), prepare(t, ch, draft("A-2")))
	for i, r := range receipts {
		other := "A-" + strconv.Itoa(2-i)
		if r.Format != "JSON" || !strings.HasPrefix(string(r.Document), `{"mac":"`) ||
			strings.Contains(string(r.Document), other) {
			t.Errorf("receipt %d: %s", i, r.Document)
		}
	}
}

func TestTheStatedWaitIsPassedOn(t *testing.T) {
	ch, desk, _ := open(t, world.Reference(transaction.ReferenceCode, country.ByNumber))
	if err := desk.SetScript([]authority.Step{{Outcome: authority.Accept, Wait: 1500 * time.Millisecond}}); err != nil {
		t.Fatal(err)
	}
	if r := send(t, ch, prepare(t, ch, draft("A-1")))[0]; r.Wait != 2*time.Second {
		t.Errorf("wait %s: whole seconds, and never less than asked for", r.Wait)
	}
	if r := send(t, ch, prepare(t, ch, draft("A-2")))[0]; r.Wait != 0 {
		t.Errorf("wait %s without one", r.Wait)
	}
}

func TestADocumentWithAFlawIsRejectedByTheAuthority(t *testing.T) {
	ch, desk, _ := open(t, world.Reference(transaction.ReferenceCode, country.ByNumber))
	for code, spoil := range map[string]func(*country.Draft){
		"sums":              func(d *country.Draft) { d.Totals.Net++ },
		"structure":         func(d *country.Draft) { d.Transaction.CurrencyCode = "EURO" },
		"reference_unknown": func(d *country.Draft) { *d = correction(transaction.Credit, "C-1", draft("NEVER-FILED")) },
		"refused":           func(d *country.Draft) { d.Transaction.Number = "A-1-REJECT" },
	} {
		d := draft("A-1")
		spoil(&d)
		if r := send(t, ch, prepare(t, ch, d))[0]; !rejected(r, code) {
			t.Errorf("%s: %+v", code, r)
		}
	}
	f := prepare(t, ch, draft("A-1"))
	f.Report = []byte(`{"number":`)
	if _, err := ch.Send(t.Context(), []country.Filing{f}, country.Credentials{}); err == nil {
		t.Error("a receipt about no number was believed")
	}
	if n := count(t, desk); n != 0 {
		t.Errorf("%d registered", n)
	}
}

func TestANumberThatAnotherDocumentHoldsIsTold(t *testing.T) {
	ch, desk, _ := open(t, world.Reference(transaction.ReferenceCode, country.ByNumber))
	first := prepare(t, ch, draft("A-1"))
	changed := draft("A-1")
	changed.Transaction.Items[0].Name = "Coffee"
	second := prepare(t, ch, changed)
	send(t, ch, first)
	if r := send(t, ch, second)[0]; !r.Duplicate || r.SHA256 != first.SHA256 {
		t.Errorf("sent: %+v", r)
	}
	if r, err := ch.Find(t.Context(), second, country.Credentials{}); err != nil || r.SHA256 != first.SHA256 {
		t.Errorf("found: %+v %v", r, err)
	}
	if n := count(t, desk); n != 1 {
		t.Errorf("%d registered", n)
	}
}

func TestFindKnowsWhatWasNeverSent(t *testing.T) {
	ch, _, _ := open(t, world.Reference(transaction.ReferenceCode, country.ByNumber))
	for _, number := range []string{"A-1", "..", "a/b?c#d", "%2F", "naïve ☕"} {
		f := prepare(t, ch, draft(number))
		if r, err := ch.Find(t.Context(), f, country.Credentials{}); err != nil || r.Outcome != country.Absent {
			t.Errorf("%q before: %+v %v", number, r, err)
		}
		send(t, ch, f)
		if r, err := ch.Find(t.Context(), f, country.Credentials{}); err != nil || r.Outcome != country.Accepted ||
			r.SHA256 != f.SHA256 {
			t.Errorf("%q after: %+v %v", number, r, err)
		}
	}
}

func TestACompanysClassDecidesWhatASecondSendingDoes(t *testing.T) {
	for class, want := range map[country.Class]int{country.ByNumber: 1, country.ByHash: 1, country.ByKey: 1,
		country.ByNothing: 2} {
		ch, desk, _ := open(t, world.Reference(transaction.ReferenceCode, country.ByNumber))
		d := draft("A-1")
		d.Supplier.Settings = country.Settings{"class": string(class)}
		f := prepare(t, ch, d)
		send(t, ch, f)
		again := send(t, ch, f)[0]
		if n := count(t, desk); n != want || again.Duplicate != (want == 1) {
			t.Errorf("class %s: %d registrations, %+v", class, n, again)
		}
	}
}

func TestACancellationWaitsForAcceptance(t *testing.T) {
	ch, desk, _ := open(t, world.Reference(transaction.ReferenceCode, country.ByNumber))
	send(t, ch, prepare(t, ch, draft("A-1")))
	d := correction(transaction.Cancellation, "A-2", draft("A-1"))
	d.Supplier.Settings = country.Settings{"acceptance": true}
	f := prepare(t, ch, d)
	if err := desk.SetScript([]authority.Step{{Outcome: authority.Accept}, {Outcome: authority.Suspend},
		{Outcome: authority.Reject}}); err != nil {
		t.Fatal(err)
	}
	last := send(t, ch, f)[0]
	for _, want := range []country.Outcome{country.Pending, country.Rejected, country.Rejected} {
		if last.Outcome != country.Pending || !last.Awaiting || last.Handle == "" {
			t.Fatalf("%+v", last)
		}
		if found, err := ch.Find(t.Context(), f, country.Credentials{}); err != nil || found.Outcome != country.Pending {
			t.Errorf("found %+v %v", found, err)
		}
		next, err := ch.Poll(t.Context(), f, last, country.Credentials{})
		if err != nil || next.Outcome != want {
			t.Fatalf("polled %+v %v instead of %s", next, err, want)
		}
		if want == country.Rejected {
			break
		}
		last = next
	}
	if found, err := ch.Find(t.Context(), f, country.Credentials{}); err != nil || found.Outcome != country.Rejected {
		t.Errorf("after the refusal: %+v %v", found, err)
	}
	if n := count(t, desk); n != 1 {
		t.Errorf("%d registered: the refused cancellation must not be", n)
	}
}

func TestAChainTakesOneLinkAfterAnother(t *testing.T) {
	ch, desk, _ := open(t, world.Reference("XC", country.ByChain))
	first := prepare(t, ch, draft("A-1"))
	next := draft("A-2-REJECT")
	next.Previous = first.Link
	second := prepare(t, ch, next)
	fork := draft("A-3")
	fork.Previous = first.Link
	gap := draft("A-4")
	gap.Previous = country.Link{Position: 7, Hash: second.SHA256}
	after := draft("A-5")
	after.Previous = second.Link
	send(t, ch, first)
	if r := send(t, ch, second)[0]; !rejected(r, "refused") {
		t.Errorf("a rejected link: %+v", r)
	}
	if r := send(t, ch, prepare(t, ch, fork))[0]; !rejected(r, "chain_broken") {
		t.Errorf("a second link on one predecessor: %+v", r)
	}
	if r := send(t, ch, prepare(t, ch, gap))[0]; !rejected(r, "chain_broken") {
		t.Errorf("a gap: %+v", r)
	}
	if r := send(t, ch, prepare(t, ch, after))[0]; r.Outcome != country.Accepted {
		t.Errorf("after a rejected link, which keeps its place: %+v", r)
	}
	if r := send(t, ch, first)[0]; !r.Duplicate || r.SHA256 != first.SHA256 {
		t.Errorf("the first link again: %+v", r)
	}
	if n := count(t, desk); n != 2 {
		t.Errorf("%d registered", n)
	}
}

func TestAnotherKeyIsRefusedUntilItIsEnrolled(t *testing.T) {
	pack := world.Reference(transaction.ReferenceCode, country.ByNumber)
	ch, desk, atlas := open(t, pack)
	old, fresh := country.Credentials{Secret: "old"}, country.Credentials{Secret: "new"}
	f := prepare(t, ch, draft("A-1"))
	if _, err := ch.Send(t.Context(), []country.Filing{f}, old); err != nil {
		t.Fatalf("an unknown supplier is enrolled on the way: %v", err)
	}
	_, err := ch.Find(t.Context(), f, fresh)
	if !errors.Is(err, country.ErrCredentials) || !errors.Is(err, country.ErrNotTaken) {
		t.Errorf("another key: %v", err)
	}
	at, err := atlas.Endpoint("XX", false)
	if err != nil {
		t.Fatal(err)
	}
	if faults := pack.Enrol(t.Context(), country.Enrolment{At: at, Supplier: draft("A-1").Supplier,
		Credentials: fresh}).Faults; len(faults) != 0 {
		t.Fatal(faults)
	}
	if r, err := ch.Find(t.Context(), f, fresh); err != nil || r.Outcome != country.Accepted {
		t.Errorf("after enrolment: %+v %v", r, err)
	}
	if _, err := ch.Find(t.Context(), f, old); !errors.Is(err, country.ErrCredentials) {
		t.Errorf("the old key: %v", err)
	}
	if n := count(t, desk); n != 1 {
		t.Errorf("%d registered", n)
	}
}

// fake is a channel to an authority that answers whatever it is told.
func fake(t testing.TB, answer http.HandlerFunc) country.Channel {
	t.Helper()
	server := httptest.NewServer(answer)
	ch, err := world.Reference(transaction.ReferenceCode,
		country.ByNumber).Connect(country.Endpoint{BaseURL: server.URL, HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return ch
}

func TestOnlyTheProtocolsOwnWordSaysThatNothingWasTaken(t *testing.T) {
	for name, c := range map[string]struct {
		status   int
		kind     string
		body     string
		notTaken bool
	}{
		"the protocol's 503": {503, "application/json", `{"error":"unavailable","message":"closed","taken":false}`,
			true},
		"a 503 that does not say": {503, "application/json", `{"error":"unavailable","message":"closed"}`, false},
		"a proxy's 503":           {503, "text/html", "<html>busy</html>", false},
		"a page with status 200":  {200, "text/html", "<html>maintenance</html>", false},
		"an empty 200":            {200, "application/x-ndjson", "", false},
		"a truncated line":        {200, "application/x-ndjson", `{"mac":"`, false},
		"an unsigned receipt": {200, "application/x-ndjson",
			`{"mac":"` + strings.Repeat("0", 64) + `","receipt":{"number":"A-1","outcome":"rejected"}}` + "\n", false},
		"a gateway's 504":           {504, "text/plain", "timeout", false},
		"a redirect to a login":     {302, "text/html", "", false},
		"JSON that says nothing":    {503, "application/json", `{}`, false},
		"a body that claims JSON":   {503, "application/json", `<html>`, false},
		"the protocol's 500 answer": {500, "text/plain", "the book cannot be written", false},
	} {
		ch := fake(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		f := prepare(t, ch, draft("A-1"))
		receipts, err := ch.Send(t.Context(), []country.Filing{f}, country.Credentials{})
		if err == nil || receipts != nil || errors.Is(err, country.ErrNotTaken) != c.notTaken ||
			errors.Is(err, country.ErrCredentials) {
			t.Errorf("%s: %v, %v", name, receipts, err)
		}
	}
}

func TestTheAuthorityChecksWhoSpeaks(t *testing.T) {
	simulators, err := country.NewSimulators(t.TempDir(), world.Reference(transaction.ReferenceCode, country.ByNumber))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = simulators.Close() }()
	// A recorder between the channel and the authority changes one thing each time.
	for name, tamper := range map[string]func(*http.Request){
		"another body":     func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("{}\n")) },
		"another supplier": func(r *http.Request) { r.Header.Set("XX-Supplier", "XX999") },
		"another time": func(r *http.Request) {
			r.Header.Set("XX-Date", time.Now().UTC().Add(time.Second).Format(time.RFC3339))
		},
		"an old time":       func(r *http.Request) { r.Header.Set("XX-Date", "2020-01-01T00:00:00Z") },
		"another query":     func(r *http.Request) { r.URL.RawQuery = "x=1" },
		"another signature": func(r *http.Request) { r.Header.Set("XX-Signature", strings.Repeat("0", 64)) },
		"no signature":      func(r *http.Request) { r.Header.Del("XX-Signature") },
	} {
		ch := fake(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				tamper(r)
			}
			r.URL.Path = "/xx" + r.URL.Path
			simulators.ServeHTTP(w, r)
		})
		f := prepare(t, ch, draft("A-1"))
		if receipts, err := ch.Send(t.Context(), []country.Filing{f}, country.Credentials{}); err == nil {
			t.Errorf("%s: %+v", name, receipts)
		}
	}
	desk, _ := simulators.Desk("XX")
	if n := count(t, desk); n != 0 {
		t.Errorf("%d registered", n)
	}
}

func TestXXIsNeverLive(t *testing.T) {
	if _, err := world.Reference(transaction.ReferenceCode,
		country.ByNumber).Connect(country.Endpoint{BaseURL: "https://authority.example", Live: true,
		HTTP: http.DefaultClient}); !errors.Is(err, country.ErrTestOnly) {
		t.Errorf("%v", err)
	}
}

func TestABackfillIsNotFiled(t *testing.T) {
	ch, _, _ := open(t, world.Reference(transaction.ReferenceCode, country.ByNumber))
	d := draft("A-1")
	d.Transaction.Kind = transaction.Backfill
	if _, err := ch.Prepare(d); fault.KindOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
}

// Whatever is filed, the authority answers and holds at most what it accepted.
func FuzzDocument(f *testing.F) {
	ch, desk, _ := open(f, world.Reference(transaction.ReferenceCode, country.ByNumber))
	f.Add(string(prepare(f, ch, draft("A-1")).Report))
	f.Add(`{"number":"A-1","lines":[{}]}`)
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, report string) {
		filing := prepare(t, ch, draft("A-1"))
		filing.Report = []byte(report)
		before := count(t, desk)
		receipts, err := ch.Send(t.Context(), []country.Filing{filing}, country.Credentials{})
		if errors.Is(err, country.ErrCredentials) || err == nil && receipts[0].Outcome == "" {
			t.Errorf("%+v %v", receipts, err)
		}
		if after := count(t, desk); after > before+strings.Count(report, "\n")+1 {
			t.Errorf("%d registrations out of one call", after-before)
		}
	})
}

// Whatever an authority answers, nothing unsigned becomes an outcome.
func FuzzAnswer(f *testing.F) {
	var answer string
	ch := fake(f, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = io.WriteString(w, answer)
	})
	f.Add(`{"mac":"` + strings.Repeat("0", 64) + `","receipt":{"number":"A-1","outcome":"accepted"}}` + "\n")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		answer = text
		filing := prepare(t, ch, draft("A-1"))
		if receipts, err := ch.Send(t.Context(), []country.Filing{filing}, country.Credentials{}); err == nil {
			t.Errorf("%q gave %+v", text, receipts)
		}
	})
}
