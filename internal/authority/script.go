package authority

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"tributary/internal/fault"
)

// Behaviour is how a simulated authority treats a call or a document.
type Behaviour string

// The behaviours of a script. Unavailable, DropAnswer, Slow and Garbage befall
// a whole call; the others one document.
const (
	Accept      Behaviour = "accept"
	Reject      Behaviour = "reject"
	Suspend     Behaviour = "pending"     // decided at a later poll
	Unavailable Behaviour = "unavailable" // nothing is taken, the authority says so
	DropAnswer  Behaviour = "drop_answer" // registered and on disk; the connection closes without an answer
	Slow        Behaviour = "slow"        // registered, answered late
	Garbage     Behaviour = "garbage"     // nothing is taken; a page in HTML with status 200
	Duplicate   Behaviour = "duplicate"   // the number is already taken
)

// slowDelay is how slow "slow" is when nobody says.
const slowDelay = 5 * time.Second

// outageTimes is how often a number ending in -OUTAGE finds nobody.
const outageTimes = 3

// Limits of a script, so that a mistake in a test is told at once.
const (
	scriptStepsMax = 1000
	scriptTimesMax = 1_000_000
	scriptDelayMax = 24 * time.Hour
)

// Step is one line of a script.
type Step struct {
	Outcome Behaviour
	Times   int           // how often; 0 is read as once
	Delay   time.Duration // before the answer leaves; of a pending document: before it is decided
	Wait    time.Duration // flow control that the answer states
	On      string        // "file" (the default), "query" or "any": which calls it befalls
	Of      string        // duplicates: "other" (the default) or "ours", whose document holds the number
}

// Values of Step.On and Step.Of.
const (
	OnFile  = "file"
	OnQuery = "query"
	OnAny   = "any"

	OfOther = "other"
	OfOurs  = "ours"
)

func (b Behaviour) wholeCall() bool {
	return b == Unavailable || b == DropAnswer || b == Slow || b == Garbage
}

func (b Behaviour) known() bool {
	switch b {
	case Accept, Reject, Suspend, Duplicate:
		return true
	}
	return b.wholeCall()
}

// faults finds what is wrong with a step, with paths below at.
func (s Step) faults(at string) []fault.Fault {
	var found []fault.Fault
	if !s.Outcome.known() {
		found = append(found, fault.At(at+".outcome", fault.FieldNotValid,
			"must be accept, reject, pending, unavailable, drop_answer, slow, garbage or duplicate"))
	}
	if s.Times < 0 || s.Times > scriptTimesMax {
		found = append(found, fault.At(at+".times", fault.FieldNotValid, "must be from 1 to %d", scriptTimesMax))
	}
	if s.Delay < 0 || s.Delay > scriptDelayMax {
		found = append(found, fault.At(at+".delay", fault.FieldNotValid, "must be from 0s to %s", scriptDelayMax))
	}
	if s.Wait < 0 || s.Wait > scriptDelayMax {
		found = append(found, fault.At(at+".wait", fault.FieldNotValid, "must be from 0s to %s", scriptDelayMax))
	}
	switch s.On {
	case "", OnFile:
	case OnQuery, OnAny:
		if !s.Outcome.wholeCall() && s.Outcome != Accept {
			found = append(found, fault.At(at+".on", fault.ValidationMatchInvalid,
				"can be %s only for accept, unavailable, drop_answer, slow and garbage", s.On))
		}
	default:
		found = append(found, fault.At(at+".on", fault.FieldNotValid, "must be file, query or any"))
	}
	if s.Of != "" && (s.Outcome != Duplicate || s.Of != OfOther && s.Of != OfOurs) {
		found = append(found, fault.At(at+".of", fault.FieldNotValid, "must be other or ours, and belongs to a duplicate"))
	}
	return found
}

// scriptState is the rest of a script and what the magic numbers have seen.
type scriptState struct {
	mu    sync.Mutex
	steps []Step
	asked map[string]int // supplier and number → calls that a magic ending has spoiled
}

// SetScript replaces the script. After its steps everything is accepted.
func (d *Desk) SetScript(steps []Step) error {
	var found []fault.Fault
	if len(steps) > scriptStepsMax {
		found = append(found, fault.At("steps", fault.FieldNotValid, "must be at most %d", scriptStepsMax))
	}
	kept := make([]Step, 0, len(steps))
	for i, s := range steps {
		found = append(found, s.faults(fmt.Sprintf("steps.%d", i))...)
		if s.Times == 0 {
			s.Times = 1
		}
		kept = append(kept, s)
	}
	if len(found) > 0 {
		return fault.New(fault.Invalid, "the script is not valid").With(found...)
	}
	d.script.mu.Lock()
	defer d.script.mu.Unlock()
	d.script.steps = kept
	return nil
}

// Script answers what is left of the script.
func (d *Desk) Script() []Step {
	d.script.mu.Lock()
	defer d.script.mu.Unlock()
	return append([]Step(nil), d.script.steps...)
}

// next takes the first step that befalls calls of a kind, if fit agrees with it.
func (s *scriptState) next(on string, fit func(Step) bool) (Step, bool) {
	for i := range s.steps {
		step := &s.steps[i]
		if step.On != on && step.On != OnAny && (step.On != "" || on != OnFile) {
			continue
		}
		if !fit(*step) {
			return Step{}, false
		}
		taken := *step
		if step.Times--; step.Times == 0 {
			s.steps = append(s.steps[:i:i], s.steps[i+1:]...)
		}
		return taken, true
	}
	return Step{}, false
}

// Arrival names a document of a call.
type Arrival struct {
	Supplier string
	Number   string
}

// Turn is what a script, or a magic number, has decided about one call. A
// simulator authenticates and reads the call, takes its turn, asks Begin,
// does its work by Steps, and asks End before it answers:
//
//	turn := desk.Turn(arrivals...)
//	if !turn.Begin(w, busy) { return }
//	err := desk.Write(…)
//	if !turn.End(w, r) { return }
type Turn struct {
	Steps []Step        // one per document: accept, reject, pending or duplicate; TurnEach also unavailable
	Wait  time.Duration // flow control to state in the answer

	call  Behaviour
	delay time.Duration
}

// Turn decides about a filing call as a whole: when one document meets an
// outage, the call does.
func (d *Desk) Turn(docs ...Arrival) Turn {
	t := d.TurnEach(docs...)
	for i := range t.Steps {
		if t.Steps[i].Outcome == Unavailable {
			t.call = Unavailable
		}
	}
	return t
}

// TurnEach is Turn for an authority that can say of each document whether it
// took it: an outage that a magic number asks for is that document's alone.
//
// A step that befalls a whole call is used up by one call, in which every
// document is accepted if the call takes any; other steps are used up by one
// document each. When such a step follows in the middle of a call, it waits
// for the next call and the rest of this one is accepted.
func (d *Desk) TurnEach(docs ...Arrival) Turn {
	d.script.mu.Lock()
	defer d.script.mu.Unlock()
	t := Turn{Steps: make([]Step, len(docs)), call: Accept}
	if step, ok := d.script.next(OnFile, func(s Step) bool { return s.Outcome.wholeCall() }); ok {
		t.befall(step)
	}
	single := func(s Step) bool { return !s.Outcome.wholeCall() }
	for i, doc := range docs {
		step := Step{Outcome: Accept}
		if magic, ok := d.script.magic(doc); ok {
			step = magic
		} else if t.call == Accept && t.delay == 0 {
			if scripted, ok := d.script.next(OnFile, single); ok {
				step = scripted
			}
		}
		t.add(i, step)
	}
	return t
}

func (t *Turn) befall(step Step) {
	t.Wait = max(t.Wait, step.Wait)
	t.delay = max(t.delay, step.Delay)
	if step.Outcome == Slow {
		if step.Delay == 0 {
			t.delay = max(t.delay, slowDelay)
		}
		return
	}
	t.call = step.Outcome
}

func (t *Turn) add(i int, step Step) {
	t.Steps[i] = step
	t.Wait = max(t.Wait, step.Wait)
	if step.Outcome == DropAnswer || step.Outcome == Slow {
		t.Steps[i].Outcome = Accept
		if step.Outcome == DropAnswer && t.call == Accept {
			t.call = DropAnswer
		}
	}
	if step.Outcome != Suspend {
		t.delay = max(t.delay, step.Delay)
	}
}

// AsksForOutcome reports whether a number has one of the endings that [Desk]s obey.
func AsksForOutcome(number string) bool {
	for _, ending := range []string{"-REJECT", "-SLOW", "-OUTAGE", "-LOST"} {
		if strings.HasSuffix(number, ending) {
			return true
		}
	}
	return false
}

// magic reads the endings by which a client asks for an outcome.
func (s *scriptState) magic(doc Arrival) (Step, bool) {
	name := doc.Supplier + "\x00" + doc.Number
	switch {
	case strings.HasSuffix(doc.Number, "-REJECT"):
		return Step{Outcome: Reject}, true
	case strings.HasSuffix(doc.Number, "-SLOW"):
		return Step{Outcome: Slow, Delay: slowDelay}, true
	case strings.HasSuffix(doc.Number, "-OUTAGE") && s.asked[name] < outageTimes:
		s.asked[name]++
		return Step{Outcome: Unavailable}, true
	case strings.HasSuffix(doc.Number, "-LOST") && s.asked[name] < 1:
		s.asked[name]++
		return Step{Outcome: DropAnswer}, true
	}
	return Step{}, false
}

// QueryTurn decides about a call that asks and files nothing.
func (d *Desk) QueryTurn() Turn {
	d.script.mu.Lock()
	defer d.script.mu.Unlock()
	t := Turn{call: Accept}
	if step, ok := d.script.next(OnQuery, func(Step) bool { return true }); ok {
		t.befall(step)
	}
	return t
}

// Decide takes the step that decides a pending document when it is asked for:
// the next accept, reject or pending of the script, else accept.
func (d *Desk) Decide() Step {
	d.script.mu.Lock()
	defer d.script.mu.Unlock()
	decisive := func(s Step) bool { return s.Outcome == Accept || s.Outcome == Reject || s.Outcome == Suspend }
	if step, ok := d.script.next(OnFile, decisive); ok {
		return step
	}
	return Step{Outcome: Accept}
}

// Begin reports whether the call is to be worked on. Otherwise it has been
// answered: by busy when the authority is unavailable (nil: a plain page with
// status 503), or with garbage.
func (t Turn) Begin(w http.ResponseWriter, busy func(http.ResponseWriter)) bool {
	switch t.call {
	case Unavailable:
		if busy != nil {
			busy(w)
		} else {
			page(w, http.StatusServiceUnavailable, "Service Unavailable")
		}
		return false
	case Garbage:
		page(w, http.StatusOK, "Scheduled maintenance")
		return false
	}
	return true
}

// End waits as the script says and reports whether an answer may be written.
// Otherwise the connection is cut, or the caller has left.
func (t Turn) End(w http.ResponseWriter, r *http.Request) bool {
	if !Pause(r.Context(), t.delay) {
		return false
	}
	if t.call == DropAnswer {
		cut(w)
		return false
	}
	return true
}

// Pause waits, and reports whether the caller is still there.
func Pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func page(w http.ResponseWriter, status int, title string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!DOCTYPE html>\n<html><head><title>%[1]s</title></head><body><h1>%[1]s</h1></body></html>\n", title)
}

// cut closes the connection without a byte of an answer.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 has no connection to take over; this resets the stream
	}
	_ = conn.Close() // nothing was written, so nothing can be lost
}
