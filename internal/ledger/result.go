package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/lifecycle"
	"tributary/internal/operation"
	"tributary/internal/result"
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
	result, err := result.Stored(r, at.winner)
	if err != nil {
		return nil, err
	}
	if err := s.attach(r, scope, at.winner, result); err != nil {
		return nil, err
	}
	return result, at.complete(r, scope, id, &result.Row)
}

// row is read for a list. size is what it took to make it.
func (s *Ledger) row(r db.Reader, scope, id string) (row *result.Row, size int, err error) {
	at, err := outcomeOf(r, scope, id)
	if err != nil {
		return nil, 0, err
	}
	if !at.settled {
		result, err := s.unsettled(r, scope, id)
		if err != nil {
			return nil, 0, err
		}
		own := result.Row // its lines may go
		return &own, at.size, nil
	}
	if row, size, err = result.StoredRow(r, at.winner); err != nil {
		return nil, 0, err
	}
	return row, size, at.complete(r, scope, id, row)
}

// outcome is where an operation's result is found.
type outcome struct {
	settled bool
	size    int           // of the body
	winner  string        // the operation that was registered, or itself
	extra   []fault.Fault // what this attempt adds to the winner's
}

func outcomeOf(r db.Reader, scope, id string) (at outcome, err error) {
	var stage filing.Stage
	var added, settledBy *string
	var size *int
	err = r.Row("SELECT stage, settled_by, CASE WHEN settled_by IS NULL THEN NULL ELSE result END, bytes FROM operations WHERE operation_id = $1 AND client_id = $2", id, scope).
		Scan(&stage, &settledBy, &added, &size)
	switch {
	case errors.Is(err, db.ErrNoRows):
		return at, filing.Unknown()
	case err != nil:
		return at, err
	}
	at.settled, at.winner = stage == filing.Settled, id
	if size != nil {
		at.size = *size
	}
	if settledBy != nil {
		at.winner, at.extra = *settledBy, operation.ReadFaults(added)
	}
	return at, nil
}

// complete adds what belongs to this attempt, and what is read fresh.
func (at outcome) complete(r db.Reader, scope, id string, row *result.Row) error {
	row.OperationID = id
	row.Errors = append(row.Errors, at.extra...)
	list, err := correctionsOf(r, scope, row.TransactionID)
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
	to.Lifecycle = []result.LifecycleEntry{}
	if to.Status == filing.Success {
		to.Lifecycle, err = lifecycle.Read(r, id)
	}
	return err
}

func correctionsOf(r db.Reader, scope, transactionID string) ([]result.CorrectionEntry, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (c result.CorrectionEntry, err error) {
		return c, scan(&c.TransactionID, &c.OperationID, &c.Kind, &c.Status)
	}, `SELECT c.transaction_id, c.operation_id, c.kind, o.status FROM corrections c JOIN operations o ON o.operation_id = c.operation_id
		WHERE c.client_id = $1 AND c.original_id = $2 ORDER BY c.operation_id`, scope, transactionID)
	if err != nil {
		return nil, fmt.Errorf("read corrections: %w", err)
	}
	return list, nil
}
