package ledger

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/lifecycle"
	"tributary/internal/operation"
	"tributary/internal/result"
	"tributary/internal/turnstile"
)

// Result answers an operation's result in whatever state it is.
func (s *Ledger) Result(ctx context.Context, scope, operationID string) (result *result.Result, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		result, err = s.read(r, scope, operationID)
		return err
	})
	return result, err
}

func (s *Ledger) read(r db.Reader, scope, id string) (*result.Result, error) {
	at, err := outcomeOf(r, scope, id)
	if err != nil {
		return nil, err
	}
	if !at.settled {
		return s.unsettled(r, scope, id)
	}
	result, err := at.whole(r)
	if err != nil {
		return nil, err
	}
	if err := s.attach(r, scope, at.winner, result); err != nil {
		return nil, err
	}
	return result, at.complete(r, scope, id, &result.Row)
}

// What reads of one client take from the others is bounded by the stored size of what
// they read, known before it is read.
const (
	readSmall   = 512 << 10 // up to it nobody waits for anybody
	readsMax    = 4 << 20   // of what is read at the same time, for every two processors
	answersMax  = 64 << 20  // of answers that are being written; of one client a quarter
	readsWait   = 64        // of one client; more are told to come back
	decodeTimes = 8         // what a byte of a body costs that is decoded, in bytes that are passed on
)

// newReads leaves a client half of the room: what is read computes, and the other half
// of the processors is everybody's.
func newReads() *turnstile.Gate {
	most := readsMax * int64(max(1, runtime.GOMAXPROCS(0)/2))
	return turnstile.New(most, readsWait).Sharing(most / 2)
}

func newAnswers() *turnstile.Gate {
	return turnstile.New(answersMax, readsWait).Sharing(answersMax / 4)
}

// Answer is an operation's result as it is answered, in pieces of JSON. Of a settled
// one the lines go through as they are stored. done is called when it is written:
// clients take turns at large ones.
func (s *Ledger) Answer(ctx context.Context, scope, id string) (text [][]byte, done func(), err error) {
	var at outcome
	err = s.db.Read(ctx, func(r db.Reader) (err error) {
		if at, err = outcomeOf(r, scope, id); err == nil && at.weight() <= readSmall {
			text, err = s.answer(r, scope, at)
		}
		return err
	})
	if err != nil || text != nil {
		return text, func() {}, err
	}
	if done, err = s.answers.Enter(ctx, scope, at.weight()); err != nil {
		return nil, nil, err
	}
	leave, err := s.reads.Enter(ctx, scope, at.weight())
	if err == nil {
		err = s.db.Read(ctx, func(r db.Reader) (err error) {
			text, err = s.answer(r, scope, at)
			return err
		})
		leave()
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return text, done, nil
}

// answer is the answer of an outcome that was found: what is settled stays so.
func (s *Ledger) answer(r db.Reader, scope string, at outcome) (text [][]byte, err error) {
	if at.settled {
		text, err = s.passOn(r, scope, at)
	}
	if !at.settled || errors.Is(err, result.ErrCut) {
		var whole *result.Result
		if whole, err = s.read(r, scope, at.id); err == nil {
			text = [][]byte{[]byte(whole.Encode())}
		}
	}
	return text, err
}

// passOn is the answer of a settled operation around its stored lines.
func (s *Ledger) passOn(r db.Reader, scope string, at outcome) (text [][]byte, err error) {
	if at.stored == nil {
		if at.text, err = at.kept(r); err != nil {
			return nil, err
		}
	}
	row, lines, err := at.text.Row()
	if err != nil {
		return nil, err
	}
	whole := &result.Result{Row: *row, Attachments: []result.Attachment{}}
	if err := s.attach(r, scope, at.winner, whole); err != nil {
		return nil, err
	}
	if err := at.complete(r, scope, at.id, &whole.Row); err != nil {
		return nil, err
	}
	return whole.Answer(lines)
}

// outcome is where an operation's result is found.
type outcome struct {
	id      string
	settled bool
	size    int64         // of the body
	winner  string        // the operation that was registered, or itself
	extra   []fault.Fault // what this attempt adds to the winner's
	length  int64         // of the stored result
	stored  *string       // the stored result, where it was asked for and is small
	text    result.Kept

	received bool // what others sent: it has no winner but itself
}

// weight is what reading the result costs.
func (at *outcome) weight() int64 {
	if !at.settled {
		return at.size * decodeTimes
	}
	return at.length
}

// outcomeSQL reads outcomes with {text} of their stored results.
const outcomeSQL = `SELECT o.operation_id, o.stage, o.settled_by, CASE WHEN o.settled_by IS NOT NULL THEN o.result END, o.bytes,
	coalesce(octet_length(w.result), 0), {text}, e.authority_id_1, e.authority_id_2
	FROM operations o JOIN operations w ON w.operation_id = coalesce(o.settled_by, o.operation_id)
	LEFT JOIN period_entries e ON e.operation_id = w.operation_id WHERE o.client_id = $1 AND `

var (
	oneOutcomeSQL = strings.Replace(outcomeSQL, "{text}",
		fmt.Sprintf("CASE WHEN octet_length(w.result) <= %d THEN w.result END", readSmall), 1) + "o.operation_id = $2"
	outcomesSQL = strings.Replace(outcomeSQL, "{text}", "CAST(NULL AS TEXT)", 1)
)

func scanOutcome(scan func(...any) error) (at outcome, err error) {
	var stage filing.Stage
	var added, settledBy *string
	err = scan(&at.id, &stage, &settledBy, &added, &at.size, &at.length, &at.stored, &at.text.ID1, &at.text.ID2)
	at.settled, at.winner = stage == filing.Settled, at.id
	if at.stored != nil {
		at.text.Text = *at.stored
	}
	if settledBy != nil {
		at.winner, at.extra = *settledBy, operation.ReadFaults(added)
	}
	return at, err
}

func outcomeOf(r db.Reader, scope, id string) (at outcome, err error) {
	at, err = scanOutcome(r.Row(oneOutcomeSQL, scope, id).Scan)
	if errors.Is(err, db.ErrNoRows) {
		return receivedOf(r, scope, id)
	}
	return at, err
}

// complete adds what belongs to this attempt, and what is read fresh.
func (at outcome) complete(r db.Reader, scope, id string, row *result.Row) error {
	row.OperationID = id
	row.Errors = append(row.Errors, at.extra...)
	if at.received {
		return nil
	}
	list, err := correctionsOf(r, scope, string(row.TransactionID))
	row.Corrections = append(row.Corrections, list...)
	return err
}

// unsettled describes an operation on its way, and why it waits.
func (s *Ledger) unsettled(r db.Reader, scope, id string) (*result.Result, error) {
	result, err := s.cfg.Filing.Outline(r, scope, id)
	if err != nil {
		return nil, err
	}
	one, err := summaryOf(r, id)
	if err != nil {
		return nil, err
	}
	wait, err := waitOf(r, one)
	if err != nil {
		return nil, err
	}
	result.Errors = append(result.Errors, wait.warnings(one, r.Now())...)
	return result, nil
}

// warnings are what a client reads of a wait.
func (w *Wait) warnings(s Summary, now time.Time) (list []fault.Fault) {
	add := func(code fault.Code) {
		if len(s.Said) > 0 && s.Said[0].Code == code {
			list = append(list, s.Said...)
		} else if text, published := waits[code]; published {
			list = append(list, fault.Warn("", code, "%s", text))
		}
	}
	code := fault.Code(w.Why)
	if doubt := fault.Code(s.Doubt); doubt != code {
		add(doubt)
	}
	add(code)
	late := !s.StartedAt.IsZero() && now.Sub(s.StartedAt) >= filing.DoubtfulAfter
	switch code {
	case fault.AuthorityUnreachable, fault.AuthorityError, fault.AuthorityNotConfigured:
		if late {
			add(fault.AuthorityUnavailable)
		}
	}
	return list
}

// waits says to a client why a transaction waits.
var waits = map[fault.Code]string{
	fault.AuthorityNotConfigured: "the tax authority is not configured; the document will be filed once it is",
	fault.AuthorityUnreachable:   "the tax authority does not respond; the document will be filed once it does",
	fault.AuthorityError:         "the tax authority returned an error; it will be filed once the authority recovers",
	fault.AuthorityWait:          "the tax authority asked for a pause between calls",
	fault.AuthorityUnavailable:   "the tax authority could not be reached for more than 24 hours",
	fault.CredentialsInvalid:     "the tax authority rejected the supplier's credentials; the document will be filed once new ones are uploaded",
	fault.ChainStopped:           "the supplier's chain of documents is stopped until the operator resumes it",
	fault.AwaitingAcceptance:     "the tax authority is waiting for acceptance by another party",
	fault.OutcomeUnknown:         "the tax authority may have the document; it has not answered yet",
	fault.DocumentsUnavailable:   "document storage is unavailable; the document will be created once it is back",
	fault.BehindAnother:          "an earlier attempt, or the transaction this one corrects, is still in progress",
	fault.Held:                   "the transaction is on hold until the operator releases it",
	fault.InternalError:          "the service could not process the transaction yet; it is tried again",
}

// attach adds the documents, whose addresses are made fresh for every answer.
func (s *Ledger) attach(r db.Reader, scope, id string, to *result.Result) error {
	list, err := s.cfg.Documents.Of(r, scope, id)
	if err != nil {
		return err
	}
	for _, a := range list {
		to.Attachments = append(to.Attachments,
			result.Attachment{Kind: a.Kind, ResourceID: a.ResourceID, ResourceURL: s.cfg.Documents.URL(a), Type: a.Type,
				Name: a.Name})
	}
	if err := relate(r, scope, to); err != nil {
		return err
	}
	to.Lifecycle = []result.LifecycleEntry{}
	if to.Status == filing.Success {
		to.Lifecycle, err = lifecycle.Read(r, id)
	}
	return err
}

func correctionsOf(r db.Reader, scope, transactionID string) ([]result.CorrectionEntry, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (c result.CorrectionEntry, err error) {
		return c, scan(new(string), &c.TransactionID, &c.OperationID, &c.Kind, &c.Status)
	}, correctingSQL+"c.original_id = $2 ORDER BY c.operation_id", scope, transactionID)
	if err != nil {
		return nil, fmt.Errorf("read corrections: %w", err)
	}
	return list, nil
}

// correctionsOfAll are the same of many, by original.
func (s *Ledger) correctionsOfAll(r db.Reader, scope string, ids []string) (map[string][]result.CorrectionEntry, error) {
	all := map[string][]result.CorrectionEntry{}
	if len(ids) == 0 {
		return all, nil
	}
	rows, err := r.Query(correctingSQL+s.db.In("c.original_id", "$2")+" ORDER BY c.operation_id", scope, db.Strings(ids))
	if err != nil {
		return nil, fmt.Errorf("read corrections: %w", err)
	}
	return all, rows.Each(func(scan func(...any) error) error {
		var original string
		var c result.CorrectionEntry
		err := scan(&original, &c.TransactionID, &c.OperationID, &c.Kind, &c.Status)
		all[original] = append(all[original], c)
		return err
	})
}

const correctingSQL = `SELECT c.original_id, c.transaction_id, c.operation_id, c.kind, o.status FROM corrections c
	JOIN operations o ON o.operation_id = c.operation_id WHERE c.client_id = $1 AND `
