package ledger

import (
	"errors"
	"fmt"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
)

// Why an operation is not settled. What clients are told as well has the name of
// its published code.
type Why string

// The reasons.
const (
	WhyQueued     Why = "queued"          // due; its lane has not come to it yet
	WhyInWork     Why = "in_work"         // its lane is being worked right now
	WhyAnswer     Why = "awaiting_answer" // the authority has it and has not decided
	WhyPutOff     Why = "put_off"         // it could not be prepared or was not taken; tried again later
	WhyQuarantine Why = "quarantined"     // set aside; a person must look. Clients read "held"

	WhyUnconfigured = Why(fault.AuthorityNotConfigured) // the authority has no address
	WhyUnreachable  = Why(fault.AuthorityUnreachable)   // the authority does not answer; the lane rests
	WhyError        = Why(fault.AuthorityError)         // the authority answers with an error of its own
	WhyAsked        = Why(fault.AuthorityWait)          // the authority asked for a pause
	WhyCredential   = Why(fault.CredentialsInvalid)     // the supplier's credentials do not work
	WhyChain        = Why(fault.ChainStopped)           // the authority refused a link of the chain; a person decides
	WhyAcceptance   = Why(fault.AwaitingAcceptance)     // somebody else must agree first
	WhyUnknown      = Why(fault.OutcomeUnknown)         // it may be registered; nobody knows
	WhyDocuments    = Why(fault.DocumentsUnavailable)   // the document cannot be stored
	WhyBehind       = Why(fault.BehindAnother)          // an earlier attempt, its original or another correction of that is on its way
	WhyHeld         = Why(fault.Held)                   // a backup was restored, or a link before it is set aside
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
}

// laneNow is a lane as it stands.
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
		Scan(db.NullInstant(&l.dueAt), db.NullInstant(&l.leaseUntil), &l.failures, &l.reason, &l.trouble, db.NullInstant(&l.troubleAt), db.NullInstant(&l.askedUntil))
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
	switch {
	case l.Stage == filing.Waiting:
		l.Wait.Behind = l.openAttempt()
	case l.Stage == filing.Blocked && l.Original != nil:
		l.Wait.Behind = l.Original.OperationID
	}
	return nil
}

// waitOf says why an operation is not settled.
func waitOf(r db.Reader, s Summary) (*Wait, error) {
	lane, err := readLane(r, s.Lane)
	if err != nil {
		return nil, fmt.Errorf("read the lane: %w", err)
	}
	w := &Wait{Failures: lane.failures, Trouble: lane.trouble, Since: s.AcceptedAt, NextAt: s.DueAt, InWork: lane.leaseUntil.After(r.Now())}
	switch s.Stage {
	case filing.Waiting:
		w.Why, w.NextAt, w.Text = WhyBehind, time.Time{}, "waits for an earlier attempt of the same transaction"
	case filing.Blocked:
		w.Why, w.NextAt, w.Text = WhyBehind, time.Time{}, "corrects a transaction that is not settled yet, or that another correction is on its way for"
	default:
		w.CanRetry = true
		w.explain(s, lane, r.Now())
	}
	return w, nil
}

// explain says why an operation that its lane should move has not moved. The
// order matters: what a person can fix comes first.
func (w *Wait) explain(s Summary, lane laneNow, now time.Time) {
	if lane.dueAt.After(now) && !w.InWork && lane.dueAt.After(w.NextAt) && !s.DueAt.IsZero() {
		w.NextAt = lane.dueAt
	}
	switch {
	case s.SetAside():
		w.Why, w.Text = WhyQuarantine, "was in work each time the process ended; it is set aside until somebody releases it"
	case lane.reason == fault.ChainStopped:
		w.Why, w.CanRetry, w.Text = WhyChain, false, "the authority refused a link that does not follow the last one it holds; nothing is filed for the supplier until somebody resumes the chain"
	case lane.reason == fault.Held:
		w.Why, w.CanRetry, w.Text = WhyHeld, false, "nothing is filed for the supplier: "+lane.trouble
	case lane.failures > 0 && w.troubled(lane):
	case w.InWork && !s.DueAt.After(now):
		w.Why, w.CanRetry, w.NextAt = WhyInWork, false, time.Time{}
		w.Text = "its lane is being worked at this moment"
	default:
		w.explainCalm(s, lane, now)
	}
}

// troubled explains a lane in trouble; false: it goes on at once.
func (w *Wait) troubled(lane laneNow) bool {
	w.Since = lane.troubleAt
	switch lane.reason {
	case fault.CredentialsInvalid:
		w.Why, w.Text = WhyCredential, "the authority refuses the supplier's credentials; filing goes on with new ones"
	case fault.AuthorityNotConfigured:
		w.Why, w.Text = WhyUnconfigured, "the country's authority has no address for this kind of key, or asks for an identity of ours that is not set; filing goes on with it"
	case fault.DocumentsUnavailable:
		w.Why, w.Text = WhyDocuments, "the document store takes nothing; the document is made again when it does"
	case fault.AuthorityError:
		w.Why, w.Text = WhyError, "the authority answered the last call with an error of its own"
	case fault.AuthorityUnreachable:
		w.Why, w.Text = WhyUnreachable, "the authority did not answer the last call"
		if lane.failures > 1 {
			w.Text = fmt.Sprintf("the authority did not answer the last %d calls", lane.failures)
		}
	default:
		w.Why, w.Text = WhyPutOff, "something went wrong here; it is tried again"
	}
	return true
}

// explainCalm explains an operation of a lane that is well.
func (w *Wait) explainCalm(s Summary, lane laneNow, now time.Time) {
	switch {
	case s.Doubt == string(fault.OutcomeUnknown) || s.Stage == filing.Sent:
		w.Why, w.Since, w.Text = WhyUnknown, s.SentAt, "was sent, and the authority has not said whether it holds it; it is asked before anything is sent again"
	case s.Doubt == string(fault.AwaitingAcceptance):
		w.Why, w.Since, w.Text = WhyAcceptance, s.SentAt, "the authority waits for somebody else's acceptance"
	case s.Stage == filing.Pending:
		w.Why, w.Since, w.Text = WhyAnswer, s.SentAt, "the authority has it and has not decided; it is asked again"
	case lane.askedUntil.After(now):
		w.Why, w.CanRetry, w.Text = WhyAsked, false, "the authority asked for a pause between calls, which is obeyed"
	case s.DueAt.After(now):
		w.Why, w.Text = WhyPutOff, "could not be prepared or was not taken; it is tried again"
	default:
		w.Why, w.Text = WhyQueued, "is due and waits for its turn"
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
