package packtest

import (
	"slices"
	"testing"

	"tributary/internal/country"
)

// Abilities is what a pack brings for the questions about optional abilities.
// An ability that the pack declares and nobody can ask about fails the suite.
type Abilities struct {
	// Say lets somebody speak of a registered document at the double whose
	// address is given: a pack that listens after SUCCESS must hear it.
	Say func(t *testing.T, address string, f country.Filing)
}

// abilities asks about what the pack declares beyond what every pack does.
func (s suite) abilities(t *testing.T) {
	limits := s.wired(t).channel.Limits()
	if limits.Listen != (country.Listening{}) {
		t.Run("news after success", s.news)
	}
}

// news asks a pack that listens: what is said after the outcome comes with the
// next poll, with names of its own, again each time, and the outcome stays.
func (s suite) news(t *testing.T) {
	w := s.wired(t)
	l := w.channel.Limits().Listen
	if l.First <= 0 || l.Most < l.First || l.For <= l.First {
		t.Errorf("a schedule that leads nowhere: %+v", l)
	}
	if s.o.Abilities.Say == nil {
		t.Fatal("the pack listens, and the suite is not told how its double speaks")
	}
	f := s.prepare(t, w, s.o.Cases[0].Draft)
	e := w.file(t, f)
	if e.verdict != accepted || len(e.receipt.News) > 0 {
		t.Fatalf("%s with %+v", e.verdict, e.receipt.News)
	}
	if quiet := s.listen(t, w, f, e.receipt); len(quiet) > 0 {
		t.Fatalf("nobody spoke, and the pack heard %+v", quiet)
	}
	s.o.Abilities.Say(t, w.address(), f)
	first := s.listen(t, w, f, e.receipt)
	if len(first) == 0 {
		t.Fatal("somebody spoke, and the pack heard nothing")
	}
	keys := map[string]bool{}
	for _, n := range first {
		if n.Key == "" || keys[n.Key] || n.Code == "" || n.At.IsZero() {
			t.Errorf("an entry has a key of its own, a code and a time: %+v", n)
		}
		keys[n.Key] = true
		if !slices.Contains([]country.Source{country.FromAuthority, country.FromPlatform, country.FromAccessPoint, country.FromBuyer}, n.Source) ||
			!slices.Contains([]country.Severity{country.Info, country.Caution, country.Problem}, n.Severity) {
			t.Errorf("source %q, severity %q", n.Source, n.Severity)
		}
	}
	if again := s.listen(t, w, f, e.receipt); !slices.EqualFunc(first, again, func(a, b country.News) bool { return a.Key == b.Key && a.At.Equal(b.At) }) {
		t.Errorf("asked again it says %+v instead of %+v", again, first)
	}
	if held := w.registrations(t); len(held) != 1 {
		t.Errorf("%d registrations after listening", len(held))
	}
}

// listen polls a document that was accepted. What has ended stays ended.
func (s suite) listen(t *testing.T, w *wiring, f country.Filing, last country.Receipt) []country.News {
	t.Helper()
	r, err := w.channel.Poll(t.Context(), f, last, w.creds)
	if err != nil {
		t.Fatal(err)
	}
	if r.Outcome == country.Rejected {
		t.Errorf("an accepted document is polled as %s", r.Outcome)
	}
	return r.News
}

// address is that of the pack's double.
func (w *wiring) address() string {
	at, err := w.atlas.Endpoint(w.pack.Code, false)
	if err != nil {
		return ""
	}
	return at.BaseURL
}
