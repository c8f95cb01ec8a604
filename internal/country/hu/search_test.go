package hu_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"

	"tributary/internal/country"
	"tributary/internal/country/hu"
)

// changed lets answers of NAV pass through a change.
type changed struct {
	next   http.RoundTripper
	change func([]byte) []byte
}

func (c changed) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	body = c.change(body)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// absent is a filing that NAV never got, sought among so many that it did.
func (o *office) absent(others int) country.Filing {
	o.t.Helper()
	for i := range others {
		o.settle(o.prepare(invoice(fmt.Sprintf("O-%d", i))))
	}
	return o.prepare(invoice("NEVER-SENT"))
}

// What NAV lists and does not show, or a list that does not say whether it is
// whole, is not known: nothing may be sent again on the strength of it.
func TestAnAnswerThatLacksSomethingProvesNothing(t *testing.T) {
	for name, pattern := range map[string]string{
		"original request": `<originalRequest>[^<]*</originalRequest>`, "pages": `<availablePage>[^<]*</availablePage>`,
		"the list": `<transactionListResult>.*</transactionListResult>`, "index": `<index>1</index>`,
	} {
		o := open(t)
		f := o.absent(1)
		lacking := regexp.MustCompile("(?s)" + pattern)
		with := ""
		if name == "index" {
			with = "<index>0</index>"
		}
		client := *o.at.HTTP
		client.Transport = changed{client.Transport, func(b []byte) []byte { return lacking.ReplaceAll(b, []byte(with)) }}
		at := o.at
		at.HTTP = &client
		ch, err := pack().Connect(at)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // nor is it remembered
			if r, err := ch.Find(t.Context(), f, credentials()); err == nil {
				t.Errorf("without %s: %+v", name, r)
			}
		}
		if r, err := o.channel.Find(t.Context(), f, credentials()); err != nil || r.Outcome != country.Absent {
			t.Errorf("with it: %+v %v", r, err)
		}
	}
}

// A search ends at its limits: at them everything is known, past them nothing.
func TestASearchIsBounded(t *testing.T) {
	o := open(t)
	f := o.absent(101) // two pages of the double's
	for _, c := range []struct {
		pages, transactions int
		known               bool
	}{{2, 101, true}, {1, 101, false}, {2, 100, false}} {
		hu.Bound(o.channel, c.pages, c.transactions)
		r, err := o.channel.Find(t.Context(), f, credentials())
		if known := err == nil && r.Outcome == country.Absent; known != c.known {
			t.Errorf("%d pages, %d transactions: %+v %v", c.pages, c.transactions, r, err)
		}
	}
}

// A call takes a hundred invoices; the next one waits for the next.
func TestACallTakesAHundred(t *testing.T) {
	o := open(t)
	var filings []country.Filing
	for i := range 101 {
		filings = append(filings, o.prepare(invoice(fmt.Sprintf("H-%d", i))))
	}
	receipts, err := o.channel.Send(t.Context(), filings, credentials())
	if err != nil || receipts[99].Outcome != country.Pending || receipts[100].Outcome != country.NotTaken {
		t.Fatalf("%v %+v", err, receipts[99:])
	}
}
