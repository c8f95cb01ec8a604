package ledger

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
)

// Why an operation is not settled.
type Why string

// The reasons.
const (
	WhyQueued     Why = "queued"              // due; its lane has not come to it yet
	WhyInWork     Why = "in_work"             // its lane is being worked right now
	WhyFailing    Why = "authority_failing"   // the authority does not answer; the lane rests
	WhyAsked      Why = "authority_wait"      // the authority asked for a pause
	WhyCredential Why = "credentials"         // the supplier's credentials do not work
	WhyAnswer     Why = "awaiting_answer"     // the authority has it and has not decided
	WhyAcceptance Why = "awaiting_acceptance" // somebody else must agree first
	WhyUnknown    Why = "outcome_unknown"     // it may be registered; nobody knows
	WhyAttempt    Why = "earlier_attempt"     // an earlier attempt of the same transaction is on its way
	WhyOriginal   Why = "original"            // what it corrects is not settled
	WhyQuarantine Why = "quarantined"         // set aside; a person must look
	WhyPutOff     Why = "put_off"             // it could not be prepared or was not taken; tried again later
	WhyRestored   Why = "restored"            // a backup was restored; the authority has not said what it holds
	WhyChain      Why = "chain"               // the authority refused a link of the chain; a person decides
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
	trouble           string
	troubleAt         time.Time
}

func readLane(r db.Reader, name string) (l laneNow, err error) {
	err = r.Row("SELECT due_at, lease_until, failures, trouble, trouble_at FROM lanes WHERE lane = $1", name).
		Scan(db.NullInstant(&l.dueAt), db.NullInstant(&l.leaseUntil), &l.failures, &l.trouble, db.NullInstant(&l.troubleAt))
	if errors.Is(err, db.ErrNoRows) {
		return laneNow{}, nil
	}
	return l, err
}

func (s *Ledger) lifeWait(r db.Reader, l *Life) error {
	if l.Status != filing.Processing {
		return nil
	}
	lane, err := readLane(r, l.Lane)
	if err != nil {
		return fmt.Errorf("read the lane: %w", err)
	}
	w := &Wait{Failures: lane.failures, Trouble: lane.trouble, Since: l.AcceptedAt, NextAt: l.DueAt, InWork: lane.leaseUntil.After(r.Now())}
	l.Wait = w
	switch {
	case l.Stage == filing.Waiting:
		w.Why, w.NextAt = WhyAttempt, time.Time{}
		w.Behind = l.openAttempt()
		w.Text = "waits for an earlier attempt of the same transaction"
		return nil
	case l.Stage == filing.Blocked:
		w.Why, w.NextAt = WhyOriginal, time.Time{}
		if l.Original != nil {
			w.Behind = l.Original.OperationID
		}
		w.Text = "corrects a transaction that is not settled yet"
		return nil
	}
	w.CanRetry = true
	w.explain(l, lane, r.Now())
	return nil
}

// explain says why an operation that its lane should move has not moved. The
// order matters: what a person can mend comes first.
func (w *Wait) explain(l *Life, lane laneNow, now time.Time) {
	if lane.dueAt.After(now) && !w.InWork && lane.dueAt.After(w.NextAt) && !l.DueAt.IsZero() {
		w.NextAt = lane.dueAt
	}
	resting := lane.dueAt.After(now) && !w.InWork
	switch {
	case l.SetAside():
		w.Why, w.Text = WhyQuarantine, "was in work each time the process ended; it is set aside until somebody releases it"
	case strings.HasPrefix(lane.trouble, filing.StoppedTrouble):
		w.Why, w.CanRetry, w.Text = WhyChain, false, "the authority refused a link that does not follow the last one it holds; nothing is filed for the supplier until somebody resumes the chain"
	case strings.HasPrefix(lane.trouble, filing.HeldTrouble):
		w.Why, w.CanRetry, w.Text = WhyRestored, false, "a backup was restored, and nothing is filed for the supplier until its authority has said what it holds"
	case lane.failures > 0 && strings.HasPrefix(lane.trouble, filing.CredentialsTrouble):
		w.Why, w.Since, w.Text = WhyCredential, lane.troubleAt, "the authority refuses the supplier's credentials; filing goes on with new ones"
	case w.InWork && !l.DueAt.After(now):
		w.Why, w.CanRetry, w.NextAt = WhyInWork, false, time.Time{}
		w.Text = "its lane is being worked at this moment"
	case lane.failures > 0 && resting:
		w.Why, w.Since = WhyFailing, lane.troubleAt
		w.Text = "the authority did not answer the last call"
		if lane.failures > 1 {
			w.Text = fmt.Sprintf("the authority did not answer the last %d calls", lane.failures)
		}
	case l.Doubt == string(fault.OutcomeUnknown) || l.Stage == filing.Sent:
		w.Why, w.Since, w.Text = WhyUnknown, l.SentAt, "was sent, and the authority has not said whether it holds it; it is asked before anything is sent again"
	case l.Doubt == string(fault.AwaitingAcceptance):
		w.Why, w.Since, w.Text = WhyAcceptance, l.SentAt, "the authority waits for somebody else's acceptance"
	case l.Stage == filing.Pending:
		w.Why, w.Since, w.Text = WhyAnswer, l.SentAt, "the authority has it and has not decided; it is asked again"
	case resting:
		w.Why, w.CanRetry, w.Text = WhyAsked, false, "the authority asked for a pause between calls, which is obeyed"
	case l.DueAt.After(now):
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
