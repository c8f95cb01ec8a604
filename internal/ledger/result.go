package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
)

// Result answers an operation's result in whatever state it is.
func (s *Ledger) Result(ctx context.Context, scope, operationID string) (result *filing.Result, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		result, err = s.read(r, scope, operationID)
		return err
	})
	return result, err
}

func (s *Ledger) read(r db.Reader, scope, id string) (*filing.Result, error) {
	var stage filing.Stage
	var stored, settledBy *string
	err := r.Row("SELECT stage, result, settled_by FROM operations WHERE operation_id = $1 AND client_id = $2", id, scope).Scan(&stage, &stored, &settledBy)
	if errors.Is(err, db.ErrNoRows) {
		return nil, filing.Unknown()
	}
	if err != nil {
		return nil, err
	}
	if stage != filing.Settled {
		return s.unsettled(r, scope, id)
	}
	winner, extra := id, []fault.Fault(nil)
	if settledBy != nil {
		winner, extra = *settledBy, filing.ReadFaults(stored)
	}
	result, err := filing.StoredResult(r, winner)
	if err != nil {
		return nil, err
	}
	result.OperationID = id
	result.Errors = append(result.Errors, extra...)
	if err := s.link(r, scope, winner, result); err != nil {
		return nil, err
	}
	return result, nil
}

// unsettled describes an operation on its way, and why it waits.
func (s *Ledger) unsettled(r db.Reader, scope, id string) (*filing.Result, error) {
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
		if text, published := waits[code]; published {
			list = append(list, fault.Warn("", code, "%s", text))
		}
	}
	code := fault.Code(w.Why)
	if w.Why == WhyQuarantine {
		code = fault.Held
	}
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
	fault.AuthorityNotConfigured: "the tax authority's address is not configured; the document is filed when it is",
	fault.AuthorityUnreachable:   "the tax authority does not answer; the document is filed when it does",
	fault.AuthorityError:         "the tax authority answers with an error of its own; the document is filed when it no longer does",
	fault.AuthorityWait:          "the tax authority asked for a pause, which is obeyed",
	fault.AuthorityUnavailable:   "the tax authority could not be reached for more than 24 hours",
	fault.CredentialsInvalid:     "the tax authority refuses the supplier's credentials; the document is filed with new ones",
	fault.ChainStopped:           "the supplier's chain of documents is stopped until somebody has looked at it",
	fault.AwaitingAcceptance:     "the tax authority waits for somebody else's acceptance",
	fault.OutcomeUnknown:         "the tax authority may hold the document; it has not answered yet",
	fault.DocumentsUnavailable:   "the document cannot be stored at the moment; it is made as soon as it can",
	fault.BehindAnother:          "an earlier attempt, or what this transaction corrects, is still on its way",
	fault.Held:                   "the transaction is held back until somebody has looked at it",
}

// link adds what is made fresh for every answer: addresses and corrections.
func (s *Ledger) link(r db.Reader, scope, id string, result *filing.Result) error {
	list, err := s.cfg.Documents.Of(r, scope, id)
	if err != nil {
		return err
	}
	for _, a := range list {
		result.Attachments = append(result.Attachments, filing.Attachment{Kind: a.Kind, ResourceID: a.ResourceID, ResourceURL: s.cfg.Documents.URL(a), Type: a.Type})
	}
	corrections, err := db.Collect(r, func(scan func(...any) error) (c filing.CorrectionEntry, err error) {
		return c, scan(&c.TransactionID, &c.OperationID, &c.Kind, &c.Status)
	}, `SELECT c.transaction_id, c.operation_id, c.kind, o.status FROM corrections c JOIN operations o ON o.operation_id = c.operation_id
		WHERE c.client_id = $1 AND c.original_id = $2 ORDER BY c.operation_id`, scope, result.TransactionID)
	if err != nil {
		return fmt.Errorf("read corrections: %w", err)
	}
	result.Corrections = append(result.Corrections, corrections...)
	return nil
}
