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

// standing is what decides how an operation is shown.
type standing struct {
	stage   filing.Stage
	doubts  string
	started time.Time
}

func (s *Ledger) read(r db.Reader, scope, id string) (*filing.Result, error) {
	var at standing
	var stored, settledBy *string
	err := r.Row("SELECT stage, doubts, started_at, result, settled_by FROM operations WHERE operation_id = $1 AND client_id = $2", id, scope).
		Scan(&at.stage, &at.doubts, db.NullInstant(&at.started), &stored, &settledBy)
	if errors.Is(err, db.ErrNoRows) {
		return nil, filing.Unknown()
	}
	if err != nil {
		return nil, err
	}
	if at.stage != filing.Settled {
		return s.unsettled(r, scope, id, at)
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

// unsettled describes an operation on its way.
func (s *Ledger) unsettled(r db.Reader, scope, id string, at standing) (*filing.Result, error) {
	result, err := s.cfg.Filing.Outline(r, scope, id)
	if err != nil {
		return nil, err
	}
	switch fault.Code(at.doubts) {
	case fault.OutcomeUnknown:
		result.Errors = append(result.Errors, fault.Warn("", fault.OutcomeUnknown, "the tax authority may hold the document; it has not answered yet"))
	case fault.AwaitingAcceptance:
		result.Errors = append(result.Errors, fault.Warn("", fault.AwaitingAcceptance, "the tax authority waits for somebody else's acceptance"))
	}
	if at.stage == filing.Prepared && !at.started.IsZero() && r.Now().Sub(at.started) >= filing.HopelessAfter {
		result.Errors = append(result.Errors, fault.Warn("", fault.AuthorityUnavailable, "the tax authority could not be reached for 48 hours; the document is sent when it returns"))
	}
	return result, nil
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
