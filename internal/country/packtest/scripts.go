package packtest

import (
	"encoding/json"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"tributary/internal/country"
)

// script is what an authority is told to do and what must come of it.
type script struct {
	name    string
	steps   string
	want    verdict
	held    int  // registrations in the end
	ours    bool // those are our document
	nothing verdict
	check   func(t *testing.T, s suite, e ending)
}

// agreed are the outcomes that every channel gives. "nothing" is what an
// authority without any memory (class N) leaves instead, where it differs.
func agreed() []script {
	return []script{
		{name: "accept", steps: `[{"outcome":"accept"}]`, want: accepted, held: 1, ours: true, check: noErrors},
		{name: "reject", steps: `[{"outcome":"reject"}]`, want: refused, check: rejectedWithReasons},
		{name: "pending then accept", steps: `[{"outcome":"pending"}]`, want: accepted, held: 1, ours: true, check: wasPending},
		{name: "unavailable", steps: `[{"outcome":"unavailable","times":2}]`, want: accepted, held: 1, ours: true,
			check: twoErrors},
		{name: "answer lost after receipt", steps: `[{"outcome":"drop_answer"}]`, want: accepted, nothing: unknown, held: 1,
			ours: true, check: ambiguous},
		{name: "duplicate of ours", steps: `[{"outcome":"duplicate","of":"ours"}]`, want: accepted, nothing: unknown,
			held: 1, ours: true},
		{name: "duplicate of another's", steps: `[{"outcome":"duplicate"}]`, want: numberUsed, nothing: unknown, held: 1},
		{name: "garbage", steps: `[{"outcome":"garbage"}]`, want: accepted, nothing: unknown, held: 1, ours: true,
			check: ambiguous},
	}
}

func (s suite) scripts(t *testing.T) {
	for _, sc := range agreed() {
		ask(t, sc.name, func(t *testing.T) {
			w := s.wired(t)
			f := s.prepare(t, w, s.o.Cases[0].Draft)
			w.script(t, sc.steps)
			e := w.file(t, f)
			want, held := sc.want, sc.held
			if w.channel.Limits().Class == country.ByNothing && sc.nothing != "" {
				want = sc.nothing
				if sc.name == "garbage" {
					held = 0 // nothing was taken, and nobody may send it again
				}
			}
			if e.verdict != want {
				t.Fatalf("%s instead of %s; receipt %+v, errors %v", e.verdict, want, e.receipt, e.errors)
			}
			all := w.registrations(t)
			if len(all) != held {
				t.Fatalf("%d registrations instead of %d: %+v", len(all), held, all)
			}
			if held == 1 && (all[0].SHA256 == f.SHA256) != sc.ours {
				t.Errorf("registered %s, filed %s", all[0].SHA256, f.SHA256)
			}
			if sc.check != nil {
				sc.check(t, s, e)
			}
		})
	}
}

func noErrors(t *testing.T, _ suite, e ending) {
	if len(e.errors) > 0 {
		t.Errorf("errors on the way: %v", e.errors)
	}
}

func rejectedWithReasons(t *testing.T, s suite, e ending) {
	if len(e.receipt.Faults) == 0 || e.receipt.Faults[0].Message == "" {
		t.Fatalf("a rejection without a reason: %+v", e.receipt)
	}
	if said := e.receipt.Faults[0].Message; s.pack.Reports() && len(s.pack.Codes) > 0 && len(s.pack.Explain(said)) == 0 {
		t.Errorf("nobody explains %q", said)
	}
	if e.receipt.ChainBroken {
		t.Errorf("a rejection of the document speaks of its link: %+v", e.receipt)
	}
	noErrors(t, suite{}, e)
}

func wasPending(t *testing.T, s suite, e ending) {
	if !s.o.Immediate && e.pendings == 0 {
		t.Error("the authority never said pending")
	}
}

func twoErrors(t *testing.T, _ suite, e ending) {
	if seen := len(e.errors) + e.notTaken; seen < 2 {
		t.Errorf("the authority was unavailable twice and seen so %d times", seen)
	}
	if e.unexplained > 0 {
		t.Errorf("%d times nothing was taken, and the receipt has no published reason", e.unexplained)
	}
}

// ambiguous asserts that what may have been registered was not called "not taken".
func ambiguous(t *testing.T, _ suite, e ending) {
	if len(e.errors) == 0 {
		t.Fatal("no error on the way")
	}
	if errors.Is(e.errors[0], country.ErrNotTaken) {
		t.Errorf("an unclear answer was taken for %v", e.errors[0])
	}
}

// mishaps plays random runs of outages, lost answers, garbage and delays of
// the decision. However they follow each other, the authority ends with
// exactly one document; without any memory (class N) with at most one.
func (s suite) mishaps(t *testing.T) {
	w := s.wired(t)
	limits := w.channel.Limits()
	run, last := 0, country.Link{}
	rapid.Check(t, func(rt *rapid.T) {
		outcomes := []string{"unavailable", "drop_answer", "garbage", "accept"}
		if !s.o.Immediate {
			outcomes = append(outcomes, "pending")
		}
		type step struct {
			Outcome string `json:"outcome"`
			On      string `json:"on,omitempty"`
		}
		steps := []step{}
		for range rapid.IntRange(0, 5).Draw(rt, "steps") {
			next := step{Outcome: rapid.SampledFrom(outcomes).Draw(rt, "outcome")}
			if next.Outcome != "pending" {
				next.On = rapid.SampledFrom([]string{"file", "query", "any"}).Draw(rt, "on")
			}
			steps = append(steps, next)
		}
		text, err := json.Marshal(steps)
		if err != nil {
			rt.Fatal(err)
		}
		run++
		d := s.another(run)
		if limits.Chain {
			d.Previous = last
		}
		f := s.prepare(t, w, d)
		last = f.Link
		w.script(t, string(text))
		before := len(w.registrations(t))
		e := w.file(t, f)
		w.script(t, "[]")
		held := w.registrations(t)[before:]
		if limits.Class == country.ByNothing && e.verdict == unknown && len(held) <= 1 {
			return
		}
		if e.verdict != accepted || len(held) != 1 || held[0].SHA256 != f.SHA256 {
			rt.Fatalf("script %s: %s, %d registrations, receipt %+v, errors %v", text, e.verdict, len(held), e.receipt, e.errors)
		}
	})
}
