package it_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/it"
	"tributary/internal/country/packtest"
	"tributary/internal/fault"
	"tributary/internal/mutate"
	"tributary/internal/official/sdiwire"
)

// callsFile has calls that the double made, each with its own way to carry the
// file: what the fuzzer begins with.
const callsFile = "testdata/calls.json"

// heardCall is a call as the file keeps it.
type heardCall struct {
	Type, Action, Client string
	Body                 []byte
}

func (c heardCall) call() country.Call {
	return country.Call{Method: http.MethodPost, Path: "/TrasmissioneFatture", Body: c.Body,
		At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Header: http.Header{"Content-Type": {c.Type}, "Soapaction": {c.Action},
			http.CanonicalHeaderKey(sdiwire.HeaderClient): {c.Client}}}
}

func keptCalls(t testing.TB) (list []heardCall) {
	t.Helper()
	text, err := os.ReadFile(callsFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// simulated is an endpoint behind which the double stands: its CA is believed.
var simulated = country.Endpoint{Simulated: true}

// The kept calls are what the double says today, plainly and in parts.
func TestTheKeptCallsAreBelieved(t *testing.T) {
	if flag.Lookup("update").Value.String() == "true" {
		var list []heardCall
		for _, c := range packtest.Callbacks(t, pack(), with(sale("CALL-1"), func(d *country.Draft) {
			d.Sequence = 7001
		}), with(sale("CALL-2"), func(d *country.Draft) { d.Sequence = 7002 }),
			with(sale("CALL-3-MC"), func(d *country.Draft) { d.Sequence = 7003 })) {
			list = append(list, heardCall{Type: c.Header.Get("Content-Type"), Action: c.Header.Get("SOAPAction"),
				Client: c.Header.Get(sdiwire.HeaderClient), Body: c.Body})
		}
		text, err := json.MarshalIndent(list, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(callsFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kinds := map[string]bool{}
	for _, c := range keptCalls(t) {
		list, reply, err := it.Pack().Callbacks.Read(simulated, c.call())
		if err != nil || len(list) != 1 || reply.Status != http.StatusOK {
			t.Fatalf("%v %+v %v", list, reply, err)
		}
		kinds[c.Type[:8]] = true
	}
	if len(kinds) != 2 {
		t.Errorf("calls are kept of %v: they come plainly and in parts", kinds)
	}
}

// An invoice that SdI could not deliver is issued, and its seller has to tell the buyer.
func TestAnUndeliveredInvoiceAsksTheSellerToTellTheBuyer(t *testing.T) {
	told := 0
	for _, c := range keptCalls(t) {
		list, _, err := it.Pack().Callbacks.Read(simulated, c.call())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list[0].Receipt.Faults {
			if list[0].Receipt.Outcome != country.Accepted || f.Code != fault.BuyerMustBeTold || f.Type != fault.Warning {
				t.Errorf("%s: %+v", list[0].Receipt.Outcome, f)
			}
			told++
		}
	}
	if told != 1 {
		t.Errorf("%d calls ask for it", told)
	}
}

// Whatever comes to the address is read without harm, and nothing is believed
// but what SdI signed: a change of one byte changes no decision.
func FuzzCallsOfSdI(f *testing.F) {
	type decision struct {
		key, handle, id string
		outcome         country.Outcome
	}
	kept := keptCalls(f)
	var said []decision
	decided := func(m country.Message) decision {
		return decision{m.Key, m.Handle, m.Receipt.AuthorityID1, m.Receipt.Outcome}
	}
	for _, c := range kept {
		list, _, err := it.Pack().Callbacks.Read(simulated, c.call())
		if err != nil {
			f.Fatal(err)
		}
		said = append(said, decided(list[0]))
		f.Add(c.Type, c.Action, c.Body)
		f.Add(c.Type, `"http://www.fatturapa.it/TrasmissioneFatture/NotificaScarto"`, c.Body)
	}
	f.Add("multipart/related", "", []byte("--"))
	f.Add(`multipart/related; boundary=x; start="<a>"`, kept[0].Action,
		[]byte("--x\r\nContent-ID: <a>\r\n\r\n<a/>\r\n--x--\r\n"))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, kind, action string, body []byte) {
		c := heardCall{Type: kind, Action: action, Client: kept[0].Client, Body: body}
		list, reply, err := it.Pack().Callbacks.Read(simulated, c.call())
		switch {
		case err != nil && len(list) > 0:
			t.Fatalf("refused, and %d messages", len(list))
		case err != nil:
			return
		case len(list) != 1 || reply.Status != http.StatusOK:
			t.Fatalf("%d messages are answered %d", len(list), reply.Status)
		}
		if got := decided(list[0]); !slices.Contains(said, got) {
			t.Fatalf("believed, and never said: %+v", got)
		}
		c.Client = ""
		if list, _, err := it.Pack().Callbacks.Read(simulated, c.call()); err == nil || len(list) > 0 {
			t.Fatal("a stranger is believed")
		}
	})
}
