package packtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/fault"
)

// roundsMax bounds how often the driver tries; more means that it never ends.
const roundsMax = 20

func hash(report []byte) string {
	sum := sha256.Sum256(report)
	return hex.EncodeToString(sum[:])
}

// wiring is a channel to a fresh simulator over real HTTP.
type wiring struct {
	dir       string
	pack      country.Pack
	server    *httptest.Server
	atlas     *country.Atlas
	channel   country.Channel
	creds     country.Credentials
	bounded   func(context.Context) context.Context // bounds a call; nil: nothing does
	callbacks *callbackRecorder                     // where the authority calls, of one that tells by itself; nil: it is asked
}

func (s suite) wired(t *testing.T) *wiring { return s.wiredAt(t, t.TempDir()) }

func (s suite) wiredAt(t *testing.T, dir string) *wiring {
	t.Helper()
	return s.wiredTo(t, dir, func(next http.Handler) http.Handler { return next })
}

// wiredBehind puts something before the simulator.
func (s suite) wiredBehind(t *testing.T, front func(http.Handler) http.Handler) *wiring {
	t.Helper()
	return s.wiredTo(t, t.TempDir(), front)
}

func (s suite) wiredTo(t *testing.T, dir string, front func(http.Handler) http.Handler) *wiring {
	t.Helper()
	simulators, err := country.NewSimulators(dir, s.pack)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(front(simulators))
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{s.pack}, Simulators: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		atlas.Close()
		server.Close()
		if err := simulators.Close(); err != nil {
			t.Errorf("closing the simulators: %v", err)
		}
	})
	heard := s.listens(t, atlas)
	channel, err := atlas.Channel(s.pack.Code, false)
	if err != nil {
		t.Fatal(err)
	}
	w := &wiring{dir: dir, pack: s.pack, server: server, atlas: atlas, channel: channel, creds: s.o.Credentials}
	if channel.Limits().Tells {
		w.callbacks = heard
	}
	if s.pack.Enrol != nil {
		at, err := atlas.Endpoint(s.pack.Code, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.pack.Enrol(t.Context(), country.Enrolment{At: at, Supplier: s.o.Cases[0].Draft.Supplier,
			Credentials: s.o.Credentials}); len(got.Faults) > 0 {
			t.Fatalf("enrolling: %v", got.Faults)
		}
	}
	return w
}

// script sends a script through the control plane.
func (w *wiring) script(t *testing.T, steps string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut,
		w.server.URL+"/_control/"+strings.ToLower(w.pack.Code)+"/script", strings.NewReader(`{"steps":`+steps+`}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("script %s: %d %s", steps, resp.StatusCode, text)
	}
}

// registrations asks the control plane what the authority holds.
func (w *wiring) registrations(t *testing.T) []authority.Registration {
	t.Helper()
	resp, err := w.server.Client().Get(w.server.URL + "/_control/" + strings.ToLower(w.pack.Code) + "/registrations")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body struct {
		Count         int                      `json:"count"`
		Registrations []authority.Registration `json:"registrations"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || body.Count != len(body.Registrations) {
		t.Fatalf("registrations: count %d of %d, %v", body.Count, len(body.Registrations), err)
	}
	return body.Registrations
}

// holds asks the control plane whether the authority has these very bytes.
func (w *wiring) holds(t *testing.T, f country.Filing) bool {
	t.Helper()
	return slices.ContainsFunc(w.registrations(t), func(r authority.Registration) bool { return r.SHA256 == f.SHA256 })
}

// verdict is how a filing ended.
type verdict string

const (
	accepted   verdict = "accepted"
	refused    verdict = "rejected"
	numberUsed verdict = "number used"
	unknown    verdict = "unknown"
)

// ending is a verdict with the way to it.
type ending struct {
	verdict  verdict
	receipt  country.Receipt
	errors   []error
	pendings int
	notTaken int
	sent     int

	unexplained int // not taken, without a published reason
}

// file drives a filing to its end by the protocol of docs/hard-cases.md: the same
// bytes after "not taken", a question after anything unclear, hashes compared
// before "already received" is believed.
func (w *wiring) file(t *testing.T, f country.Filing) ending {
	t.Helper()
	var e ending
	ask := false
	for range roundsMax {
		var r country.Receipt
		var err error
		ctx, cancel := w.call(t)
		switch {
		case e.pendings > 0 && w.callbacks != nil:
			r = w.callbacks.decision(t, f, func() bool { return e.sent > 1 || w.holds(t, f) })
		case e.pendings > 0:
			r, err = w.channel.Poll(ctx, f, e.receipt, w.creds)
		case ask:
			e.sent++
			r, err = w.channel.Find(ctx, f, w.creds)
		default:
			e.sent++
			r, err = w.sendOne(ctx, f)
		}
		cancel()
		if err != nil {
			e.errors = append(e.errors, err)
			ask = ask || !errors.Is(err, country.ErrNotTaken)
			continue
		}
		switch r.Outcome {
		case country.NotTaken:
			e.notTaken++
			if r.Wait == 0 && (len(r.Faults) == 0 || r.Faults[0].Code == "") {
				e.unexplained++
			}
			ask = false
			continue
		case country.Absent:
			ask = false
			continue
		case country.Pending:
			e.pendings++
			e.receipt = r
			continue
		}
		e.receipt = r
		e.verdict = judge(f, r)
		return e
	}
	e.verdict = unknown
	return e
}

func (w *wiring) sendOne(ctx context.Context, f country.Filing) (country.Receipt, error) {
	all, err := w.channel.Send(ctx, []country.Filing{f}, w.creds)
	if err != nil {
		return country.Receipt{}, err
	}
	if len(all) != 1 {
		return country.Receipt{}, errors.New("one filing must give one receipt")
	}
	return all[0], nil
}

func judge(f country.Filing, r country.Receipt) verdict {
	switch {
	case r.SHA256 != "" && r.SHA256 != f.SHA256:
		return numberUsed
	case r.Duplicate && r.SHA256 == "":
		return unknown
	case r.Outcome == country.Accepted:
		return accepted
	case r.Outcome == country.Rejected:
		for _, x := range r.Faults {
			if x.Code == fault.AuthorityNumberUsed {
				return numberUsed
			}
		}
		return refused
	}
	return unknown
}

func (s suite) prepare(t *testing.T, w *wiring, d country.Draft) country.Filing {
	t.Helper()
	if s.pack.Sequence {
		d.Sequence = sequenceFrom + s.sequence.Add(1)
	}
	f, err := w.channel.Prepare(d)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (s suite) limits(t *testing.T) {
	l := s.wired(t).channel.Limits()
	if l.Batch < 1 || l.Parallel < 1 || l.CallTimeout <= 0 {
		t.Errorf("batch, parallel and call time-out must be set: %+v", l)
	}
	if l.Chain && l.Parallel != 1 {
		t.Error("a chain has one writer")
	}
	switch l.Class {
	case country.ByNumber, country.ByHash, country.ByKey, country.ByChain, country.ByNothing:
	default:
		t.Errorf("class %q", l.Class)
	}
	if !s.o.Immediate && l.PollEvery <= 0 {
		t.Error("an authority that answers later must say when to poll")
	}
}

// everyCase files all cases in their order and counts.
func (s suite) everyCase(t *testing.T) {
	w := s.wired(t)
	chained := w.channel.Limits().Chain
	var last country.Link
	for i, c := range s.o.Cases {
		if chained {
			c.Draft.Previous = last
		}
		f := s.prepare(t, w, c.Draft)
		last = f.Link
		e := w.file(t, f)
		if e.verdict != accepted {
			t.Fatalf("%s: %s, %+v, %v", c.Name, e.verdict, e.receipt.Faults, e.errors)
		}
		if e.receipt.AuthorityID1 == "" && e.receipt.AuthorityID2 == "" && f.AuthorityID == "" {
			t.Errorf("%s: no id of the authority", c.Name)
		}
		if len(e.receipt.Document) == 0 || e.receipt.Format == "" {
			t.Errorf("%s: the authority's answer is no attachment", c.Name)
		}
		held := w.registrations(t)
		if len(held) != i+1 {
			t.Fatalf("%s: %d registrations after %d documents", c.Name, len(held), i+1)
		}
		if h := held[i]; h.Number != f.Number || h.Supplier != f.Supplier || h.SHA256 != f.SHA256 || h.At.IsZero() {
			t.Errorf("%s: registered as %+v, filed as %s %s %s", c.Name, h, f.Supplier, f.Number, f.SHA256)
		}
	}
}

func (s suite) batch(t *testing.T) {
	w := s.wired(t)
	limits := w.channel.Limits()
	if limits.Batch < 2 {
		return // one at a time: there is no order inside a call
	}
	draft := s.o.Cases[0].Draft
	first := s.prepare(t, w, draft)
	draft.OperationID += "-2"
	draft.Transaction.Number += "2"
	draft.UniqueNumber += "2"
	if limits.Chain {
		draft.Previous = first.Link
	}
	second := s.prepare(t, w, draft)
	receipts, err := w.channel.Send(t.Context(), []country.Filing{first, second}, w.creds)
	if err != nil || len(receipts) != 2 {
		t.Fatalf("%d receipts, %v", len(receipts), err)
	}
	held := w.registrations(t)
	if len(held) != 2 || held[0].SHA256 != first.SHA256 || held[1].SHA256 != second.SHA256 {
		t.Errorf("registered %+v", held)
	}
}

// misfit begins a chain a second time. Whatever the authority does with such a
// link, the channel marks its answer; an ordinary refusal has no mark.
func (s suite) misfit(t *testing.T) {
	w := s.wired(t)
	if !w.channel.Limits().Chain {
		return // nothing follows anything
	}
	draft := s.o.Cases[0].Draft
	if e := w.file(t, s.prepare(t, w, draft)); e.verdict != accepted {
		t.Fatalf("%s %v", e.verdict, e.errors)
	}
	draft.OperationID += "-2"
	draft.Transaction.Number += "2"
	draft.UniqueNumber += "2"
	e := w.file(t, s.prepare(t, w, draft))
	if !e.receipt.ChainBroken || e.verdict != accepted && e.verdict != refused {
		t.Errorf("a second beginning: %s, %+v", e.verdict, e.receipt)
	}
	if held := w.registrations(t); (len(held) == 2) != (e.verdict == accepted) {
		t.Errorf("%s, and the authority holds %+v", e.verdict, held)
	}
}

// unreachable closes the authority: not one byte can have left, and the
// channel must know it.
func (s suite) unreachable(t *testing.T) {
	w := s.wired(t)
	f := s.prepare(t, w, s.o.Cases[0].Draft)
	w.atlas.Close()
	w.server.Close()
	if _, err := w.sendOne(t.Context(), f); !errors.Is(err, country.ErrNotTaken) {
		t.Errorf("a refused connection gives %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.sendOne(ctx, f); err == nil {
		t.Error("a cancelled call has an outcome")
	}
}

// restart lets the authority start again on its book: it has forgotten nothing.
func (s suite) restart(t *testing.T) {
	dir := t.TempDir()
	var f country.Filing
	t.Run("before", func(t *testing.T) {
		w := s.wiredAt(t, dir)
		f = s.prepare(t, w, s.o.Cases[0].Draft)
		if e := w.file(t, f); e.verdict != accepted {
			t.Fatalf("%s %v", e.verdict, e.errors)
		}
	})
	t.Run("after", func(t *testing.T) {
		w := s.wiredAt(t, dir)
		if held := w.registrations(t); len(held) != 1 || held[0].SHA256 != f.SHA256 {
			t.Fatalf("held %+v", held)
		}
		if w.channel.Limits().Class == country.ByNothing || w.callbacks != nil {
			return // it never knew what it has, or has told it
		}
		if e := w.file(t, f); e.verdict != accepted {
			t.Errorf("the same bytes again: %s %+v", e.verdict, e.receipt)
		}
		if held := w.registrations(t); len(held) != 1 {
			t.Errorf("%d registrations", len(held))
		}
	})
}
