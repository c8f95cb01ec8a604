package fr_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/country/packtest"
	"tributary/internal/transaction"
)

// platform stands before the double: it answers searches with flows of its own where it has some, and files as it likes.
type platform struct {
	next http.Handler

	mu     sync.Mutex
	flows  []map[string]any // searches answer in this order
	org    string
	answer func(r *http.Request) (status int, body string) // 0: as it is
}

func (p *platform) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answer != nil {
		if status, body := p.answer(r); status != 0 {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return
		}
	}
	if p.org != "" {
		r.Header.Set("Organization-Id", p.org)
	}
	if !strings.HasSuffix(r.URL.Path, "/search") {
		p.next.ServeHTTP(w, r)
		return
	}
	var got struct {
		Results []map[string]any `json:"results"`
	}
	if p.flows != nil {
		got.Results = p.found(r)
	} else {
		rec := httptest.NewRecorder()
		p.next.ServeHTTP(rec, r)
		_ = json.Unmarshal(rec.Body.Bytes(), &got) // the double answers JSON
	}
	_ = json.NewEncoder(w).Encode(got)
}

// found is a search as XP Z12-013 has it: both ends of the time are outside, a hundred at most.
func (p *platform) found(r *http.Request) []map[string]any {
	var body struct {
		Limit int
		Where struct{ UpdatedAfter, UpdatedBefore time.Time }
	}
	text, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(text, &body)
	list := []map[string]any{}
	for _, f := range p.flows {
		if at := f["updatedAt"].(time.Time); at.After(body.Where.UpdatedAfter) && at.Before(body.Where.UpdatedBefore) && len(list) < body.Limit {
			list = append(list, f)
		}
	}
	return list
}

func (p *platform) holds(n int, at func(n int) time.Time) {
	p.set(func() {
		p.flows = []map[string]any{}
		for i := range n {
			p.flows = append(p.flows, map[string]any{"flowId": fmt.Sprintf("in-%04d", i), "updatedAt": at(i), "flowType": "SupplierInvoice",
				"flowDirection": "In", "flowSyntax": "CII"})
		}
	})
}

// serves answers every file with these bytes.
func (p *platform) serves(file []byte) {
	p.set(func() {
		p.answer = func(r *http.Request) (int, string) {
			if r.URL.Query().Get("docType") != "Original" {
				return 0, ""
			}
			return http.StatusOK, string(file)
		}
	})
}

func before(t *testing.T) (*platform, country.Channel) {
	t.Helper()
	p := &platform{}
	at := packtest.Fronted(t, pack(), func(next http.Handler) http.Handler { p.next = next; return p })
	return p, open(t, at)
}

func buyer() country.Supplier {
	b := supplier()
	b.ID, b.CompanyNumber, b.TaxNumber = "b1", "552100554", "FR96552100554"
	return b
}

func receiving(t *testing.T, ch country.Channel, cursor string, change ...func(*country.Inquiry)) (country.Fetched, error) {
	t.Helper()
	in := country.Inquiry{Channel: ch, Supplier: buyer(), Credentials: credentials(), Cursor: cursor, Limit: country.DocumentsMax,
		From: time.Now().AddDate(0, -3, 0).Truncate(24 * time.Hour)}
	for _, fn := range change {
		fn(&in)
	}
	return pack().Receive.Fetch.Look(t.Context(), in)
}

// received looks until nothing more is known.
func received(t *testing.T, ch country.Channel, cursor string, change ...func(*country.Inquiry)) (seen map[string]int, end string) {
	t.Helper()
	seen = map[string]int{}
	for looks, more := 1, true; more; looks++ {
		got, err := receiving(t, ch, cursor, change...)
		if err != nil || looks > 300 || got.More && got.Cursor == cursor {
			t.Fatalf("look %d from %q to %q: %v", looks, cursor, got.Cursor, err)
		}
		for _, d := range got.Documents {
			seen[d.AuthorityID]++
			if _, err := en16931.ReadIncoming(d.Bytes); err != nil || d.Format != "XML" {
				t.Errorf("%s is %s: %v", d.AuthorityID, d.Format, err)
			}
		}
		cursor, more = got.Cursor, got.More
	}
	return seen, cursor
}

func atOnce(n int) func(*country.Inquiry) { return func(in *country.Inquiry) { in.Limit = n } }

// recent is a look that one search answers.
func recent(in *country.Inquiry) { in.From = time.Now().AddDate(0, 0, -2).Truncate(24 * time.Hour) }

func once(t *testing.T, what string, seen map[string]int, n int) {
	t.Helper()
	if len(seen) != n {
		t.Errorf("%s: %d of %d came", what, len(seen), n)
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%s: %s came %d times", what, id, times)
		}
	}
}

// What is handed to the platform is there for its buyer, in either syntax, each once; what the buyer issues itself, what
// the platform rejects and what others get is not.
func TestWhatOthersSentIsFetched(t *testing.T) {
	t.Parallel()
	_, ch := before(t)
	for n := range 23 {
		send(t, ch, packtest.Prepared(t, ch, invoice("IN-"+strconv.Itoa(n))))
	}
	send(t, ch, packtest.Prepared(t, ch, set(invoice("IN-UBL"), "format", "UBL")))
	credit := correct(transaction.Credit, draft("IN-CREDIT", business(), item("Café", 1, 1000, vat("20"))), invoice("IN-1"))
	send(t, ch, packtest.Prepared(t, ch, credit))
	send(t, ch, packtest.Prepared(t, ch, with(invoice("OWN"), func(d *country.Draft) { d.Transaction.Issuer = business() })))
	send(t, ch, packtest.Prepared(t, ch, with(invoice("IN-1"), func(d *country.Draft) { d.OperationID = "again" }))) // DOUBLON
	seen, mark := received(t, ch, "", atOnce(4))
	once(t, "in looks of four", seen, 25)
	all, _ := received(t, ch, "")
	once(t, "at once", all, 25)
	for id := range all {
		if seen[id] != 1 {
			t.Errorf("%s has two names", id)
		}
	}
	if m, err := country.ReadMark(mark); err != nil || time.Since(m.At) < time.Minute-time.Second || m.After != "" {
		t.Errorf("the mark at the end is %q: %v", mark, err)
	}
	if seen, _ := received(t, ch, mark); len(seen) != 25 { // those of the last minute come again
		t.Errorf("%d came of the last minute", len(seen))
	}
	for name, whose := range map[string]country.Supplier{"the seller": supplier(), "another": func() country.Supplier {
		s := supplier()
		s.CompanyNumber, s.TaxNumber = "404833048", "FR83404833048"
		return s
	}()} {
		if seen, _ := received(t, ch, "", func(in *country.Inquiry) { in.Supplier = whose }); len(seen) != 0 {
			t.Errorf("%s is brought %v", name, seen)
		}
	}
}

// Whatever the crowd, and in whatever order a platform answers: each comes once. More of one instant than a page has,
// or of one second in no order, is told and not gone over.
func TestPagesOfAPlatformLoseNothing(t *testing.T) {
	t.Parallel()
	p, ch := before(t)
	p.serves(packtest.Prepared(t, ch, invoice("IN-1")).Report)
	day := time.Now().UTC().AddDate(0, 0, -20).Truncate(time.Hour)
	spread := func(each time.Duration) func(int) time.Time {
		return func(n int) time.Time { return day.Add(time.Duration(n) * each) }
	}
	jumbled := func(each time.Duration) func(int) time.Time {
		return func(n int) time.Time { return day.Add(time.Duration(n*37%450) * each) }
	}
	for name, c := range map[string]struct {
		n     int
		at    func(int) time.Time
		fails bool
	}{
		"over hours": {n: 450, at: spread(time.Hour)}, "over hours, in no order": {n: 450, at: jumbled(time.Hour)},
		"over seconds, in no order": {n: 450, at: jumbled(31 * time.Millisecond)},
		"in a second":               {n: 450, at: spread(2 * time.Millisecond)},
		"a page less one":           {n: 99, at: spread(0)},
		"a page of an instant":      {n: 100, at: spread(0), fails: true},
		"a second in no order":      {n: 450, at: jumbled(2 * time.Millisecond), fails: true},
	} {
		p.holds(c.n, c.at)
		if !c.fails {
			seen, _ := received(t, ch, "")
			once(t, name, seen, c.n)
			continue
		}
		var err error
		for cursor, more := "", true; more && err == nil; {
			var got country.Fetched
			got, err = receiving(t, ch, cursor)
			if len(got.Documents) > 0 {
				t.Errorf("%s: %d documents", name, len(got.Documents))
			}
			cursor, more = got.Cursor, got.More
		}
		if err == nil {
			t.Errorf("%s is gone over", name)
		}
	}
}

// A platform with one client for all companies may show what others get: it is gone over.
func TestWhatIsForOtherCompaniesIsGoneOver(t *testing.T) {
	t.Parallel()
	p, ch := before(t)
	to := business()
	to.EntityNumber, to.TaxNumber = "404833048", "FR83404833048"
	for n := range 5 {
		send(t, ch, packtest.Prepared(t, ch, coffee("OTHER-"+strconv.Itoa(n), to)))
	}
	p.set(func() { p.org = "404833048" })
	if seen, mark := received(t, ch, "", atOnce(2)); len(seen) != 0 || mark == "" {
		t.Errorf("%v came, until %q", seen, mark)
	}
	theirs, _ := received(t, ch, "", func(in *country.Inquiry) {
		in.Supplier.CompanyNumber, in.Supplier.TaxNumber = to.EntityNumber, to.TaxNumber
	})
	once(t, "whose they are", theirs, 5)
}

// Whatever is no answer brings nothing, and the same look is made again; limits are a pause, wrong secrets a person's.
func TestAnswersThatAreNoneBringNothing(t *testing.T) {
	t.Parallel()
	p, ch := before(t)
	send(t, ch, packtest.Prepared(t, ch, invoice("IN-1")))
	for there := false; !there && t.Context().Err() == nil; { // its platform has to decide first
		got, err := receiving(t, ch, "", recent)
		if err != nil {
			t.Fatal(err)
		}
		there = len(got.Documents) == 1
	}
	fails := func(name, path string, status int, body string) error {
		t.Helper()
		p.set(func() {
			p.answer = func(r *http.Request) (int, string) {
				if strings.Contains(r.URL.String(), path) {
					return status, body
				}
				return 0, ""
			}
		})
		got, err := receiving(t, ch, "", recent)
		if err == nil || len(got.Documents) > 0 || got.Cursor != "" {
			t.Errorf("%s: %d documents, %q, %v", name, len(got.Documents), got.Cursor, err)
		}
		return err
	}
	const search, file = "/search", "docType=Original"
	_ = fails("a page", search, 200, "<html>")
	_ = fails("no results", search, 200, `{}`)
	_ = fails("an outage", search, 503, `{"errorCode":"X","errorMessage":"Y"}`)
	_ = fails("flows of another kind", search, 200, `{"results":[{"flowId":"x","flowType":"CustomerInvoice","updatedAt":"2099-01-01T00:00:00Z"}]}`)
	_ = fails("a page in place of a file", file, 200, "<html>busy</html>")
	_ = fails("nothing in place of a file", file, 200, "")
	_ = fails("a file that is gone", file, 404, `{"errorCode":"NOT_FOUND","errorMessage":"?"}`)
	_ = fails("a file that is too large", file, 200, strings.Repeat(" ", country.DocumentBytesMax+1))
	var used *country.Exhausted
	if err := fails("a limit", search, 429, `{"errorCode":"TOO_MANY","errorMessage":"?"}`); !errors.As(err, &used) || time.Until(used.Until) < time.Minute {
		t.Errorf("a limit: %v", err)
	}
	p.set(func() { p.answer = nil })
	_, err := receiving(t, ch, "", recent, func(in *country.Inquiry) {
		in.Credentials = country.Credentials{Named: map[string]string{"client_id": "client", "client_secret": "wrong"}}
	})
	if !errors.Is(err, country.ErrCredentials) {
		t.Errorf("a wrong secret: %v", err)
	}
	if got, err := receiving(t, ch, "", recent); err != nil || len(got.Documents) != 1 {
		t.Errorf("in the end %d documents, %v", len(got.Documents), err)
	}
}

// A PDF is taken as one, and a file of another kind where it is what the platform says that it is; what the platform has
// refused is left out.
func TestFilesAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	p, ch := before(t)
	at := func(n int) time.Time { return time.Now().Add(time.Duration(n-100) * time.Minute) }
	p.holds(4, at)
	odd := []byte("<odd/>")
	p.set(func() {
		p.flows[0]["flowSyntax"] = "Factur-X"
		p.flows[1]["acknowledgement"] = map[string]any{"status": "Error"}
		p.flows[2]["flowDirection"] = "Out"
		p.flows[3]["sha256"] = country.SHA256(odd)
		p.answer = func(r *http.Request) (int, string) {
			switch {
			case strings.Contains(r.URL.Path, "in-0000"):
				return 200, "%PDF-1.7 and so on"
			case strings.Contains(r.URL.Path, "in-"):
				return 200, string(odd)
			}
			return 0, ""
		}
	})
	got, err := receiving(t, ch, "", recent)
	if err != nil || len(got.Documents) != 2 || got.Documents[0].Format != "PDF" || got.Documents[1].Format != "XML" ||
		!bytes.Equal(got.Documents[1].Bytes, odd) {
		t.Errorf("%+v %v", got, err)
	}
}
