package packtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
)

// callbacks asks of a pack whose authority calls back: a document that waits for
// its decision is told of by calls that the pack believes, each with a name that
// a repetition shares; a stranger's call and garbage are refused.
func (s suite) callbacks(t *testing.T) {
	if s.pack.Callbacks == nil || s.o.CallsBack == "" {
		t.Skip("the authority never calls")
	}
	w := s.wired(t)
	calls := s.recordCallbacks(t, w)
	at, err := w.atlas.Endpoint(s.pack.Code, false)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := w.atlas.Channel(s.pack.Code, false)
	if err != nil {
		t.Fatal(err)
	}
	draft := s.o.Cases[0].Draft
	draft.Transaction.Number += s.o.CallsBack
	filing, err := ch.Prepare(draft)
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := ch.Send(t.Context(), []country.Filing{filing}, w.creds)
	if err != nil || receipts[0].Outcome != country.Pending {
		t.Fatalf("sent: %+v %v", receipts, err)
	}
	s.hears(t, at, calls, []string{filing.DedupeKey, receipts[0].Handle})
	if n := len(w.registrations(t)); n != 1 {
		t.Errorf("%d registered", n)
	}
}

// recordCallbacks takes the place of the inbox: the authority's calls as they come.
func (s suite) recordCallbacks(t *testing.T, w *wiring) <-chan country.Call {
	t.Helper()
	calls := make(chan country.Call, 100)
	listener := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a call that broke off is repeated
		calls <- country.Call{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(), Body: body,
			At: time.Now()}
	}))
	t.Cleanup(listener.Close)
	w.atlas.Configure(map[country.Environment]country.Setup{{Code: s.pack.Code}: {Version: 77, Identity: s.o.Identity,
		Callback: listener.URL}})
	return calls
}

// Callbacks files documents with a pack's double and answers the first call that
// it makes about each.
func Callbacks(t *testing.T, pack country.Pack, drafts ...country.Draft) (calls []country.Call) {
	t.Helper()
	s := suite{pack: pack, sequence: new(atomic.Int64)}
	w := s.wired(t)
	heard := s.recordCallbacks(t, w)
	ch, err := w.atlas.Channel(pack.Code, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range drafts {
		f, err := ch.Prepare(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ch.Send(t.Context(), []country.Filing{f}, w.creds); err != nil {
			t.Fatal(err)
		}
		select {
		case c := <-heard:
			calls = append(calls, c)
		case <-time.After(hearsWithin):
			t.Fatal("the authority does not call")
		}
	}
	return calls
}

// hears reads the authority's calls about a document of these handles until the
// decision came twice.
func (s suite) hears(t *testing.T, at country.Endpoint, calls <-chan country.Call, handles []string) {
	t.Helper()
	decisions := map[string]int{}
	for late := time.After(hearsWithin); ; {
		var c country.Call
		select {
		case c = <-calls:
		case <-late:
			t.Fatalf("the authority does not call: %v", decisions)
		}
		messages, reply, err := s.pack.Callbacks.Read(at, c)
		if err != nil || len(messages) == 0 || reply.Status/100 != 2 {
			t.Fatalf("%s %s: %v %+v %v", c.Method, c.Path, messages, reply, err)
		}
		s.strangers(t, at, c)
		for _, m := range messages {
			if !slices.Contains(handles, m.Handle) || m.Key == "" || len(m.Raw) == 0 {
				t.Errorf("it speaks of %q: %+v", m.Handle, m)
			}
			if m.Receipt.Outcome == country.Accepted {
				if decisions[m.Key]++; decisions[m.Key] == 2 {
					if len(decisions) != 1 {
						t.Errorf("one decision has the names %v", decisions)
					}
					return
				}
			}
		}
	}
}

// strangers sends a believed call once more without what made it believed.
func (s suite) strangers(t *testing.T, at country.Endpoint, c country.Call) {
	t.Helper()
	bare := c
	bare.Header, bare.Client = http.Header{"Content-Type": c.Header["Content-Type"]}, nil
	if list, _, err := s.pack.Callbacks.Read(at, bare); len(list) > 0 ||
		fault.KindOf(err) != fault.Unauthenticated && fault.KindOf(err) != fault.Forbidden {
		t.Errorf("a stranger is believed: %v %v", list, err)
	}
	changed := c
	changed.Body = append([]byte("x"), c.Body...)
	if list, _, err := s.pack.Callbacks.Read(at, changed); len(list) > 0 || err == nil {
		t.Errorf("a changed call is believed: %v", list)
	}
}
