package packtest

import (
	"fmt"
	"net/url"
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

	// Mailbox ends the number of a document whose decision goes into the
	// supplier's mailbox: a pack that looks there must find it.
	Mailbox string
	// MailboxNews says that a mailbox has news of documents alone: decisions are polled for.
	MailboxNews bool

	// Visitor is the supplier of the first case, for whom a person must agree at
	// the authority; nil: the pack never sends anybody there. Agree is that
	// person's browser: it goes to the address, agrees or does not, and answers
	// what it would bring back to us.
	Visitor *country.Supplier
	Agree   func(t *testing.T, address string, agree bool) url.Values

	// Gathers are sales of one period that a pack with [country.Periods] gathers.
	Gathers []country.Draft
}

// abilities asks about what the pack declares beyond what every pack does.
func (s suite) abilities(t *testing.T) {
	limits := s.wired(t).channel.Limits()
	if limits.Listen != (country.Listening{}) {
		ask(t, "news after success", s.news)
	}
	if s.pack.Fetch != nil {
		ask(t, "what waits in a mailbox", s.mailbox)
	}
	if s.o.Abilities.Visitor != nil {
		ask(t, "a person's visit", s.visit)
	}
	if s.pack.Sequence {
		ask(t, "numbers of a sequence", s.sequences)
	}
	if s.pack.Periods != nil {
		ask(t, "sales of a period", s.periods)
	}
	if limits.InSuccession {
		ask(t, "corrections in succession", s.succession)
	}
	switch {
	case !limits.Chain:
	case limits.Refusal == country.StopsChain:
		ask(t, "refused link stops the chain", s.refusedStops)
	default:
		ask(t, "refused link keeps its place", s.refusedKeeps)
	}
	if limits.Chain && limits.AnyOrder {
		ask(t, "links in any order", s.anyOrder)
	}
}

// sequenceFrom is where the suite's own numbers begin: behind those of the cases.
const sequenceFrom = 1000

// another is the first case under another number.
func (s suite) another(n int) country.Draft {
	d := s.o.Cases[0].Draft
	d.OperationID = fmt.Sprintf("%s-%d", d.OperationID, n)
	d.Transaction.Number = fmt.Sprintf("%s%d", d.Transaction.Number, n)
	d.UniqueNumber = fmt.Sprintf("%s%d", d.UniqueNumber, n)
	return d
}

// sequences asks a pack that wants numbers: they are in its documents, it makes
// none without, and its authority refuses one that was used.
func (s suite) sequences(t *testing.T) {
	w := s.wired(t)
	d := s.another(1)
	if d.Sequence = 0; prepares(w, d) {
		t.Error("a document was made without a number of the sequence")
	}
	d.Sequence = 7
	first, err := w.channel.Prepare(d)
	if err != nil {
		t.Fatal(err)
	}
	if e := w.file(t, first); e.verdict != accepted {
		t.Fatalf("%s %v", e.verdict, e.receipt.Faults)
	}
	d = s.another(2)
	d.Sequence = 7
	used, err := w.channel.Prepare(d)
	if err != nil {
		t.Fatal(err)
	}
	if e := w.file(t, used); e.verdict != refused || len(w.registrations(t)) != 1 {
		t.Errorf("a number that was used: %s", e.verdict)
	}
	d.Sequence = 8
	next, err := w.channel.Prepare(d)
	if err != nil {
		t.Fatal(err)
	}
	if e := w.file(t, next); e.verdict != accepted {
		t.Errorf("the next number: %s %v", e.verdict, e.receipt.Faults)
	}
}

func prepares(w *wiring, d country.Draft) bool {
	_, err := w.channel.Prepare(d)
	return err == nil
}

// succession asks a pack that must know the corrections before: the second one
// is accepted with the first in its draft and refused without. The first two
// cases are an invoice and a correction of it.
func (s suite) succession(t *testing.T) {
	w := s.wired(t)
	for i := range 2 {
		if e := w.file(t, s.prepare(t, w, s.o.Cases[i].Draft)); e.verdict != accepted {
			t.Fatalf("%s: %s %v", s.o.Cases[i].Name, e.verdict, e.receipt.Faults)
		}
	}
	first := s.o.Cases[1].Draft
	d := first
	d.OperationID += "-2"
	d.Transaction.Number += "2"
	d.UniqueNumber += "2"
	if e := w.file(t, s.prepare(t, w, d)); e.verdict != refused {
		t.Errorf("a second correction that does not know the first: %s", e.verdict)
	}
	original := *first.Original
	original.Corrections = []country.Earlier{{Transaction: first.Transaction, Totals: first.Totals,
		Number: w.registrations(t)[1].Number}}
	d.Original = &original
	if e := w.file(t, s.prepare(t, w, d)); e.verdict != accepted {
		t.Errorf("a second correction: %s %v", e.verdict, e.receipt.Faults)
	}
}

// links prepares links one behind another.
func (s suite) links(t *testing.T, w *wiring, n int) (list []country.Filing) {
	t.Helper()
	var last country.Link
	for i := range n {
		d := s.another(i + 1)
		d.Previous = last
		list = append(list, s.prepare(t, w, d))
		last = list[i].Link
	}
	return list
}

// refusedFirst files the first of three links and has the second refused.
func (s suite) refusedFirst(t *testing.T, w *wiring) []country.Filing {
	t.Helper()
	links := s.links(t, w, 3)
	if e := w.file(t, links[0]); e.verdict != accepted {
		t.Fatalf("%s %v", e.verdict, e.receipt.Faults)
	}
	w.script(t, `[{"outcome":"reject"}]`)
	if e := w.file(t, links[1]); e.verdict != refused || e.receipt.ChainBroken {
		t.Fatalf("%s %+v", e.verdict, e.receipt)
	}
	return links
}

// refusedStops: what hangs on a refused link does not fit; what is made anew
// behind the one before it does.
func (s suite) refusedStops(t *testing.T) {
	w := s.wired(t)
	links := s.refusedFirst(t, w)
	if e := w.file(t, links[2]); e.verdict != refused || !e.receipt.ChainBroken {
		t.Errorf("behind a refused link: %s %+v", e.verdict, e.receipt)
	}
	d := s.another(4)
	d.Previous = links[0].Link
	if e := w.file(t, s.prepare(t, w, d)); e.verdict != accepted {
		t.Errorf("made anew: %s %v", e.verdict, e.receipt.Faults)
	}
}

// refusedKeeps: a refused link is one that others hang on.
func (s suite) refusedKeeps(t *testing.T) {
	w := s.wired(t)
	links := s.refusedFirst(t, w)
	if e := w.file(t, links[2]); e.verdict != accepted || e.receipt.ChainBroken {
		t.Errorf("behind a refused link: %s %+v", e.verdict, e.receipt)
	}
}

// anyOrder: links arrive as they come; one that contradicts another does not fit.
func (s suite) anyOrder(t *testing.T) {
	w := s.wired(t)
	links := s.links(t, w, 4)
	for _, i := range []int{2, 0, 3, 1} {
		if e := w.file(t, links[i]); e.verdict != accepted || e.receipt.ChainBroken {
			t.Fatalf("link %d: %s %+v", i+1, e.verdict, e.receipt)
		}
	}
	fork := s.another(9)
	fork.Previous = links[1].Link
	if e := w.file(t, s.prepare(t, w, fork)); !e.receipt.ChainBroken {
		t.Errorf("a fork: %s %+v", e.verdict, e.receipt)
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
		if !slices.Contains([]country.Source{country.FromAuthority, country.FromPlatform, country.FromAccessPoint,
			country.FromBuyer}, n.Source) ||
			!slices.Contains([]country.Severity{country.Info, country.Caution, country.Problem}, n.Severity) {
			t.Errorf("source %q, severity %q", n.Source, n.Severity)
		}
	}
	if again := s.listen(t, w, f, e.receipt); !slices.EqualFunc(first, again, func(a, b country.News) bool {
		return a.Key == b.Key && a.At.Equal(b.At)
	}) {
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
