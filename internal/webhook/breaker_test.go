package webhook_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tributary/internal/webhook"
)

var breakerEpoch = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func admit(t *testing.T, r *webhook.Receiver, now time.Time) webhook.Permit {
	t.Helper()
	a := r.Admit(now)
	if !a.OK {
		t.Fatalf("not admitted at %s: %+v", now, r.Breaker())
	}
	return a.Permit
}

// fail makes one failed try and returns what it changed.
func fail(t *testing.T, r *webhook.Receiver, now time.Time, event int) webhook.Change {
	t.Helper()
	return r.Done(now, admit(t, r, now), webhook.Outcome{Event: fmt.Sprint(event)})
}

func openReceiver(t *testing.T, r *webhook.Receiver, now time.Time) {
	t.Helper()
	for i := range webhook.FailuresToOpen {
		if c := fail(t, r, now, i); (c == webhook.Opened) != (i == webhook.FailuresToOpen-1) {
			t.Fatalf("failure %d: change %d", i+1, c)
		}
	}
}

func TestBreakerOpensAfterTwentyFailuresFromFiveEvents(t *testing.T) {
	t.Parallel()
	r := webhook.NewReceiver(webhook.Pace{})
	for i := range 100 { // four events may fail for ever
		if c := fail(t, r, breakerEpoch, i%4); c != webhook.Unchanged {
			t.Fatalf("four events opened it at failure %d", i+1)
		}
	}
	if c := fail(t, r, breakerEpoch, 4); c != webhook.Opened {
		t.Fatal("the fifth event did not open it")
	}

	r = webhook.NewReceiver(webhook.Pace{})
	for i := range 19 {
		fail(t, r, breakerEpoch, i)
	}
	r.Done(breakerEpoch, admit(t, r, breakerEpoch), webhook.Outcome{Event: "x", Delivered: true})
	openReceiver(t, r, breakerEpoch) // counts from the beginning again
}

func TestOpenBreakerSendsOneProbeEveryThirtySeconds(t *testing.T) {
	t.Parallel()
	r := webhook.NewReceiver(webhook.Pace{})
	openReceiver(t, r, breakerEpoch)
	now := breakerEpoch
	for range 50 {
		early := now.Add(webhook.ProbeEvery - 1)
		if a := r.Admit(early); a.OK || !a.Again.Equal(now.Add(webhook.ProbeEvery)) {
			t.Fatalf("at %s: %+v", early, a)
		}
		now = now.Add(webhook.ProbeEvery)
		p := admit(t, r, now)
		if !p.Probe() {
			t.Fatal("not a probe")
		}
		if a := r.Admit(now.Add(time.Hour)); a.OK || !a.Again.IsZero() {
			t.Fatalf("a second probe beside the first: %+v", a)
		}
		if c := r.Done(now.Add(15*time.Second), p, webhook.Outcome{Event: "x"}); c != webhook.Unchanged {
			t.Fatalf("change %d", c)
		}
	}
	if s := r.Breaker(); !s.Open || !s.OpenSince.Equal(breakerEpoch) || s.Failures != 70 {
		t.Errorf("breaker %+v", s)
	}
}

func TestAbandonedProbeIsRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	r := webhook.NewReceiver(webhook.Pace{})
	openReceiver(t, r, breakerEpoch)
	now := breakerEpoch.Add(webhook.ProbeEvery)
	r.Abandon(now, admit(t, r, now))
	if p := admit(t, r, now); !p.Probe() {
		t.Error("no probe")
	}
}

func TestSlowStartDoublesUpToTheCap(t *testing.T) {
	t.Parallel()
	r := webhook.NewReceiver(webhook.Pace{TriesMax: 12})
	openReceiver(t, r, breakerEpoch)
	now := breakerEpoch.Add(webhook.ProbeEvery)
	if c := r.Done(now, admit(t, r, now), webhook.Outcome{Event: "x", Delivered: true}); c != webhook.Closed {
		t.Fatalf("change %d", c)
	}
	for _, window := range []int{1, 2, 4, 8, 12, 12} {
		var permits []webhook.Permit
		for a := r.Admit(now); a.OK; a = r.Admit(now) {
			permits = append(permits, a.Permit)
		}
		if len(permits) != window {
			t.Fatalf("window %d, want %d", len(permits), window)
		}
		for _, p := range permits {
			r.Done(now, p, webhook.Outcome{Event: "x", Delivered: true})
		}
	}
	if !r.Idle() {
		t.Errorf("breaker %+v", r.Breaker())
	}
}

func TestFailureDuringSlowStartBeginsItAgain(t *testing.T) {
	t.Parallel()
	r := webhook.NewReceiver(webhook.Pace{TriesMax: 16})
	openReceiver(t, r, breakerEpoch)
	now := breakerEpoch.Add(webhook.ProbeEvery)
	for range 4 {
		r.Done(now, admit(t, r, now), webhook.Outcome{Event: "x", Delivered: true})
	}
	if w := r.Breaker().Window; w != 4 {
		t.Fatalf("window %d", w)
	}
	fail(t, r, now, 1)
	if w := r.Breaker().Window; w != 1 {
		t.Errorf("window %d after a failure", w)
	}
}

func TestLateSuccessFromBeforeTheOpeningClosesTheBreaker(t *testing.T) {
	t.Parallel()
	r := webhook.NewReceiver(webhook.Pace{})
	slow := admit(t, r, breakerEpoch)
	openReceiver(t, r, breakerEpoch)
	if c := r.Done(breakerEpoch.Add(time.Second), slow,
		webhook.Outcome{Event: "x", Delivered: true}); c != webhook.Closed {
		t.Fatalf("change %d", c)
	}
	if s := r.Breaker(); s.Open || s.Window != 1 || s.InFlight != 0 {
		t.Errorf("breaker %+v", s)
	}
}

// breakerModel restates the law independently of the implementation.
type breakerModel struct {
	pace      webhook.Pace
	row       int
	events    map[string]bool
	open      bool
	lastProbe time.Time // or the opening
	flying    []webhook.Permit
	probe     *webhook.Permit
}

func TestBreakerKeepsItsLawUnderAnySequence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := breakerModel{events: map[string]bool{}, pace: webhook.Pace{
			TriesMax: rapid.IntRange(1, 9).Draw(t, "cap"), FailuresToOpen: rapid.IntRange(1, 6).Draw(t, "failures"),
			EventsToOpen: rapid.IntRange(1, 3).Draw(t, "events"), ProbeEvery: 30 * time.Second,
		}}
		r := webhook.NewReceiver(m.pace)
		now := breakerEpoch
		take := func(t *rapid.T) webhook.Permit {
			if len(m.flying) == 0 {
				t.Skip()
			}
			i := rapid.IntRange(0, len(m.flying)-1).Draw(t, "which")
			p := m.flying[i]
			m.flying = append(m.flying[:i:i], m.flying[i+1:]...)
			if m.probe != nil && p == *m.probe {
				m.probe = nil
			}
			return p
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(40*time.Second)).Draw(t, "wait")))
			},
			"admit": func(t *rapid.T) {
				a := r.Admit(now)
				m.admitted(t, a, now)
			},
			"deliver": func(t *rapid.T) {
				c := r.Done(now, take(t), webhook.Outcome{Event: "x", Delivered: true})
				if (c == webhook.Closed) != m.open || c == webhook.Opened {
					t.Fatalf("success changed %d, open %v", c, m.open)
				}
				m.row, m.open, m.probe = 0, false, nil
				clear(m.events)
			},
			"fail": func(t *rapid.T) {
				event := fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "event"))
				c := r.Done(now, take(t), webhook.Outcome{Event: event})
				m.failed(t, c, event, now)
			},
			"abandon": func(t *rapid.T) {
				before := m.probe
				p := take(t)
				r.Abandon(now, p)
				if before != nil && m.probe == nil {
					m.lastProbe = now.Add(-m.pace.ProbeEvery)
				}
			},
			"": func(t *rapid.T) {
				s := r.Breaker()
				if s.InFlight != len(m.flying) || s.InFlight > m.pace.TriesMax || s.Open != m.open || s.Window < 1 ||
					s.Window > m.pace.TriesMax {
					t.Fatalf("breaker %+v, model %+v", s, m)
				}
			},
		})
	})
}

func (m *breakerModel) admitted(t *rapid.T, a webhook.Admission, now time.Time) {
	due := !now.Before(m.lastProbe.Add(m.pace.ProbeEvery))
	if m.open {
		want := due && m.probe == nil && len(m.flying) < m.pace.TriesMax
		if a.OK != want {
			t.Fatalf("open: admitted %v, want %v", a.OK, want)
		}
		if a.OK {
			m.lastProbe, m.probe = now, &a.Permit
			if !a.Permit.Probe() {
				t.Fatal("open, but not a probe")
			}
		}
	} else if a.OK && a.Permit.Probe() {
		t.Fatal("a probe of a closed breaker")
	} else if !a.OK && len(m.flying) == 0 {
		t.Fatal("an idle closed receiver admits nothing: a silent disable")
	}
	if a.OK {
		m.flying = append(m.flying, a.Permit)
	} else if !a.Again.IsZero() && !a.Again.After(now) {
		t.Fatalf("ask again at %s, it is %s", a.Again, now)
	} else if a.Again.IsZero() && len(m.flying) == 0 {
		t.Fatal("told to wait for a try that does not exist")
	}
}

func (m *breakerModel) failed(t *rapid.T, c webhook.Change, event string, now time.Time) {
	if m.open {
		if c != webhook.Unchanged {
			t.Fatalf("failure while open changed %d", c)
		}
		return
	}
	m.row++
	m.events[event] = true
	want := m.row >= m.pace.FailuresToOpen && len(m.events) >= m.pace.EventsToOpen
	if (c == webhook.Opened) != want {
		t.Fatalf("%d failures of %d events: change %d", m.row, len(m.events), c)
	}
	if want {
		m.open, m.lastProbe = true, now
	}
}
