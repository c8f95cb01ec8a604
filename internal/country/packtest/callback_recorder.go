package packtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"tributary/internal/country"
)

// callbackRecorder takes the calls of an authority that reports its decisions,
// as the inbox does: each message once, by its name.
type callbackRecorder struct {
	mu    sync.Mutex
	said  []country.Message
	known map[string]bool
	more  chan struct{} // closed, and made anew, with every message
}

// listens configures an address at which the authority is heard.
func (s suite) listens(t *testing.T, atlas *country.Atlas) *callbackRecorder {
	t.Helper()
	if s.pack.Callbacks == nil {
		configure(atlas, s.pack, s.o.Identity)
		return nil
	}
	e := &callbackRecorder{known: map[string]bool{}, more: make(chan struct{})}
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		at, absent := atlas.Endpoint(s.pack.Code, false)
		if err != nil || absent != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		list, reply, err := s.pack.Callbacks.Read(at,
			country.Call{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(), Body: body,
				At: time.Now()})
		if err != nil {
			t.Errorf("the authority says what the pack does not understand: %v", err)
		}
		e.take(list)
		w.WriteHeader(reply.Status)
	}))
	t.Cleanup(listener.Close)
	atlas.Configure(map[country.Environment]country.Setup{
		{Code: s.pack.Code}: {Version: 1 + int64(len(s.o.Identity.Secrets)), Identity: s.o.Identity, Callback: listener.URL}})
	return e
}

func (e *callbackRecorder) take(list []country.Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range list {
		if !e.known[m.Key] {
			e.known[m.Key] = true
			e.said = append(e.said, m)
		}
	}
	close(e.more)
	e.more = make(chan struct{})
}

const hearsWithin = 2 * time.Minute

// decision waits for what the authority decides of a filing. The refusal of a
// name as used is an echo where the authority had the filing before, and then
// something else is said, too; otherwise it is the decision.
func (e *callbackRecorder) decision(t *testing.T, f country.Filing, had func() bool) country.Receipt {
	t.Helper()
	until := time.After(hearsWithin)
	for {
		e.mu.Lock()
		more := e.more
		for i := range e.said {
			r := e.said[i].Receipt
			switch {
			case r.SHA256 != "" && r.SHA256 != f.SHA256: // of somebody else's, under the same name
			case e.said[i].Handle != f.DedupeKey || r.Outcome != country.Accepted && r.Outcome != country.Rejected:
			case r.Outcome == country.Rejected && r.Duplicate && had():
			default:
				e.mu.Unlock()
				r.Duplicate = r.Duplicate && r.Outcome != country.Rejected
				return r
			}
		}
		e.mu.Unlock()
		select {
		case <-more:
		case <-until:
			t.Fatalf("the authority says nothing of %s", f.DedupeKey)
		}
	}
}
