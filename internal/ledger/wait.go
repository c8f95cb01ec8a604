package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/adoption"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/hold"
)

// Why an operation is not settled. One that waits for something has the name of
// its published code, the same for everybody.
type Why string

// The reasons. The first three are no waits: the operation moves by itself.
const (
	WhyQueued Why = "queued"          // due; its lane has not come to it yet
	WhyInWork Why = "in_work"         // its lane is being worked right now
	WhyAnswer Why = "awaiting_answer" // the authority has it and has not decided

	WhyUnconfigured = Why(fault.AuthorityNotConfigured) // the authority has no address
	WhyUnreachable  = Why(fault.AuthorityUnreachable)   // the authority does not answer; the lane rests
	WhyError        = Why(fault.AuthorityError)         // the authority answers with an error of its own
	WhyAsked        = Why(fault.AuthorityWait)          // the authority asked for a pause
	WhyCredential   = Why(fault.CredentialsInvalid)     // the supplier's credentials do not work
	WhyChain        = Why(fault.ChainStopped)           // the authority refused a link of the chain; a person decides
	WhyAcceptance   = Why(fault.AwaitingAcceptance)     // somebody else must agree first
	WhyUnknown      = Why(fault.OutcomeUnknown)         // it may be registered; nobody knows
	WhyDocuments    = Why(fault.DocumentsUnavailable)   // the document cannot be stored
	// an earlier attempt, its original or another correction of that is on its way
	WhyBehind   = Why(fault.BehindAnother)
	WhyHeld     = Why(fault.Held)          // a person must act: it is set aside, a link before it is, or a backup was restored
	WhyInternal = Why(fault.InternalError) // trouble of our own; retried
)

// Wait says why an operation is not settled, and what happens next.
type Wait struct {
	Why      Why
	Text     string    // one sentence for a person
	NextAt   time.Time // zero: nothing is planned
	Since    time.Time // of the trouble, or of the stage
	Failures int64     // of the lane, in a row
	Trouble  string    // what the lane met last
	Behind   string    // operation it waits for
	InWork   bool      // its lane is held right now
	CanRetry bool      // Retry would change something
	Release  bool      // it is set aside: Retry releases it
	Decide   bool      // a person says whether the authority holds it already
	Aside    bool      // of these: it waits for nothing else; otherwise its supplier is held, too
	Document string    // number of the authority's document that may be its own; "" where it has no list
	Do       string    // what a person can do about it; "": nothing
	Calls    int       // about this operation that failed, in a row until now
}

// laneNow is the state of a lane.
type laneNow struct {
	dueAt, leaseUntil time.Time
	failures          int64
	reason            fault.Code
	trouble           string
	troubleAt         time.Time
	askedUntil        time.Time
}

func readLane(r db.Reader, name string) (l laneNow, err error) {
	err = r.Row("SELECT due_at, lease_until, failures, reason, trouble, trouble_at, asked_until FROM lanes WHERE lane = $1", name).
		Scan(db.NullInstant(&l.dueAt), db.NullInstant(&l.leaseUntil), &l.failures, &l.reason, &l.trouble,
			db.NullInstant(&l.troubleAt), db.NullInstant(&l.askedUntil))
	if errors.Is(err, db.ErrNoRows) {
		return laneNow{}, nil
	}
	return l, err
}

func (s *Ledger) lifeWait(r db.Reader, l *Life) (err error) {
	if l.Status != filing.Processing {
		return nil
	}
	if l.Wait, err = waitOf(r, l.Summary); err != nil {
		return err
	}
	if text := s.wording(l, r.Now()); text != "" {
		l.Wait.Text = text
	}
	l.Wait.Calls = l.failedCalls()
	l.Wait.Do = l.Wait.Why.AdviceAt(s.cfg.Atlas, country.Environment{Code: l.Country, Live: country.Live(l.Live)})
	switch {
	case l.Stage == filing.Waiting:
		l.Wait.Behind = l.openAttempt()
	case l.Stage == filing.Blocked && l.Original != nil:
		l.Wait.Behind = l.Original.OperationID
	}
	return nil
}

// wording names who keeps an operation from moving, what they said and when it
// is retried; "" where the reason says it all.
func (s *Ledger) wording(l *Life, now time.Time) string {
	w, what := l.Wait, ""
	pack, _ := s.cfg.Atlas.Pack(l.Country)
	who := "the authority"
	if pack.Facts.Authority != nil {
		who = pack.Facts.Authority.Name
	}
	switch w.Why {
	case WhyUnconfigured:
		at := country.Environment{Code: l.Country, Live: country.Live(l.Live)}
		return s.unconfigured(at)
	case WhyUnreachable:
		what = who + " does not respond"
	case WhyError:
		what = cmp.Or(l.saidOf(pack), meaningOf(pack, w.Trouble), who+" returned an error")
	default:
		return ""
	}
	if !w.NextAt.After(now) {
		return what + ". Retrying"
	}
	return what + ". Retrying at " + w.NextAt.UTC().Format("15:04")
}

// saidOf is what the authority said of this document, while it takes others.
func (l *Life) saidOf(pack country.Pack) string {
	if len(l.Summary.Said) == 0 {
		return ""
	}
	said := l.Summary.Said[0].Message
	return cmp.Or(meaningOf(pack, said), strings.TrimSuffix(said, "."))
}

// failedCalls is how many of the last calls about the operation brought nothing.
func (l *Life) failedCalls() (n int) {
	for _, x := range slices.Backward(l.Exchanges) {
		if x.Answered && x.Decision != string(country.NotTaken) {
			break
		}
		if x.Counted { // nobody was called otherwise
			n++
		}
	}
	return n
}

// meaningOf is what the first of the authority's codes in a text means; "" without one.
func meaningOf(pack country.Pack, text string) string {
	codes := pack.Explain(text)
	if len(codes) == 0 {
		return ""
	}
	text = strings.TrimSuffix(codes[0].Meaning, ".")
	if strings.Contains(text, codes[0].Code) {
		return text
	}
	return text + " (" + codes[0].Code + ")"
}

// unconfigured says what an authority's environment lacks.
func (s *Ledger) unconfigured(at country.Environment) string {
	switch _, err := s.cfg.Atlas.Endpoint(at.Code, at.Live); {
	case errors.Is(err, country.ErrTestOnly):
		return "nothing was sent: " + at.Code + " is available with test keys only"
	case err != nil:
		return "nothing was sent: no address is set for " + at.String() + ". Filing resumes as soon as one is"
	}
	return "nothing was sent: the settings of " + at.String() + " are incomplete. Filing resumes as soon as they are complete"
}

// waitOf says why an operation is not settled.
func waitOf(r db.Reader, s Summary) (*Wait, error) {
	lane, err := readLane(r, s.Lane)
	if err != nil {
		return nil, fmt.Errorf("read the lane: %w", err)
	}
	w := &Wait{Failures: lane.failures, Trouble: lane.trouble, Since: s.AcceptedAt, NextAt: s.DueAt,
		InWork: lane.leaseUntil.After(r.Now())}
	switch s.Stage {
	case filing.Waiting:
		w.Why, w.NextAt, w.Text = WhyBehind, time.Time{}, "waiting for an earlier attempt of the same transaction"
	case filing.Blocked:
		w.Why, w.NextAt, w.Text = WhyBehind, time.Time{}, "waiting for the transaction it corrects, or for another correction of it"
	default:
		w.CanRetry = true
		w.explain(s, lane, r.Now())
	}
	return w, w.findDecision(r, s)
}

// findDecision finds out whether a person has to say what became of an operation
// when a backup was restored.
func (w *Wait) findDecision(r db.Reader, s Summary) error {
	switch s.Stage {
	case filing.Quarantined:
		held, waits, err := adoption.HeldOf(r, s.OperationID)
		if err != nil {
			return fmt.Errorf("look for a decision: %w", err)
		}
		if waits {
			w.CanRetry, w.Release, w.Text = false, false, "waiting for an operator's decision: "+held.Why
			w.Decide, w.Aside, w.Document = true, true, held.Number
		}
	case filing.Received, filing.Blocked:
		at, held, err := hold.Of(r, s.ClientID, s.SupplierID)
		if err != nil {
			return fmt.Errorf("look for a hold: %w", err)
		}
		w.Decide = held && at.Reason == fault.Held
	}
	return nil
}

// explain says why an operation that its lane should move has not moved. The
// order matters: what a person can fix comes first.
func (w *Wait) explain(s Summary, lane laneNow, now time.Time) {
	if lane.dueAt.After(now) && !w.InWork && lane.dueAt.After(w.NextAt) && !s.DueAt.IsZero() {
		w.NextAt = lane.dueAt
	}
	switch {
	case s.SetAside():
		w.hold("quarantined: the service crashed repeatedly while processing this. Release it when the cause is fixed")
		w.CanRetry, w.Release = true, true
	case s.DueAt.IsZero() && s.Doubt == "" && s.Stage != filing.Pending:
		w.hold("on hold: its stored document is missing. Release it when that is restored")
		w.CanRetry, w.Release = true, true
	case lane.reason == fault.ChainStopped:
		w.hold("the authority rejected a link that does not follow its last one. Filing for the supplier resumes when an operator resumes the chain")
		w.Why = WhyChain
	case lane.reason == fault.Held:
		w.hold("filing for the supplier is on hold until an operator releases it: " + lane.trouble)
	case lane.reason != "":
		w.Since = lane.troubleAt
		w.be(lane.reason)
	case w.InWork && s.unanswered(now):
		w.Since, w.CanRetry = s.SentAt, false
		w.be(fault.AuthorityUnreachable)
	case s.Doubt != "": // also while it is tried again
		w.Since = cmp.Or(s.SentAt, s.AcceptedAt)
		w.be(fault.Code(s.Doubt))
	case w.InWork && !s.DueAt.After(now):
		w.Why, w.CanRetry, w.NextAt = WhyInWork, false, time.Time{}
		w.Text = "being processed right now"
	default:
		w.explainCalm(s, lane, now)
	}
}

// unansweredAfter is how long a call may take before whoever waits is told: long
// before it times out, and longer than answers take.
const unansweredAfter = 8 * time.Second

// unanswered reports whether the call that carries an operation takes too long; its lane is held.
func (s *Summary) unanswered(now time.Time) bool {
	return s.Stage == filing.Sent && !s.SentAt.IsZero() && now.Sub(s.SentAt) >= unansweredAfter &&
		!s.DueAt.IsZero() && !s.DueAt.After(now)
}

// hold says that nothing happens before a person acts: no time is planned for it.
func (w *Wait) hold(text string) {
	w.Why, w.CanRetry, w.NextAt, w.Text = WhyHeld, false, time.Time{}, text
}

// be takes a published reason.
func (w *Wait) be(code fault.Code) {
	w.Why, w.Text = Why(code), cmp.Or(reasonTexts[code], string(code))
}

// reasonTexts says what each reason is that lanes and operations stand still for;
// where who and when are known, wording says more.
var reasonTexts = map[fault.Code]string{
	fault.CredentialsInvalid:     "the authority rejected the supplier's credentials. Filing resumes when new ones are uploaded",
	fault.AuthorityNotConfigured: "nothing was sent: the authority is not configured",
	fault.DocumentsUnavailable:   "document storage is unavailable. The PDF is created when it is back",
	fault.AuthorityError:         "the authority returned an error",
	fault.AuthorityUnreachable:   "the authority does not respond",
	fault.InternalError:          "an internal error occurred. Retrying",
	fault.OutcomeUnknown:         "sent, but the authority has not confirmed it. It is queried before anything is sent again",
	fault.AwaitingAcceptance:     "the authority is waiting for acceptance by another party",
}

// explainCalm explains an operation of a lane that is well.
func (w *Wait) explainCalm(s Summary, lane laneNow, now time.Time) {
	switch {
	case s.Stage == filing.Sent:
		w.Since = s.SentAt
		w.be(fault.OutcomeUnknown)
	case s.Stage == filing.Pending:
		w.Why, w.Since, w.Text = WhyAnswer, s.SentAt, "received by the authority, which has not decided yet. It is queried again"
	case lane.askedUntil.After(now):
		w.Why, w.CanRetry, w.Text = WhyAsked, false, "the authority asked for a pause between calls"
	default:
		w.Why, w.Text = WhyQueued, "queued"
	}
}

// openAttempt is the attempt of the same transaction that others wait for.
func (l *Life) openAttempt() string {
	for _, a := range l.Attempts {
		if a.Status == filing.Processing && a.Stage != filing.Waiting {
			return a.OperationID
		}
	}
	return ""
}
