package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/chain"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/hold"
	"tributary/internal/result"
)

// compareChain says whether the chain may go on where the backup left it: the
// authority's last link is ours, and whatever we have behind it has not ended,
// so that it is asked for, or sent, in order. Anything else would put a second
// link on one predecessor.
//
// An authority that cannot say its head is judged by its list: no document
// that we do not know means that no link was added.
func (q *question) compareChain(ctx context.Context) (askState, error) {
	keeper, ok := q.channel.(country.ChainKeeper)
	if !ok {
		if q.found > 0 {
			return stateChain, nil
		}
		return stateAsked, nil
	}
	head, err := chain.Head(ctx, keeper, q.supplier, q.creds)
	if err != nil {
		return "", err
	}
	state := stateChain
	err = q.r.db.Read(ctx, func(r db.Reader) error {
		own, err := chain.Read(r, q.at.Lane(0))
		if err != nil || head.Position > own.Head.Position {
			return err
		}
		for p := head.Position + 1; p <= own.Head.Position; p++ {
			if _, open := own.Open[p]; !open {
				return nil // the authority does not hold a link that it confirmed
			}
		}
		if head.Position == 0 {
			state = stateAsked // not begun there, nothing of ours has ended
			return nil
		}
		links, err := own.Links(r, q.at.Scope)
		if _, found := own.Has(links, head); found && err == nil {
			state = stateAsked
		}
		return err
	})
	return state, err
}

// Chain is a supplier's chain before and after a person decided about it.
type Chain struct {
	Lane   string       `json:"lane"`
	Before country.Link `json:"before"`
	After  country.Link `json:"after"`
	Anew   int          `json:"prepared_anew"` // filings that the authority does not hold and that get new links
}

// From says where a chain goes on: behind a link that is given, behind our own
// last one, at the beginning of a new chain, or (zero) where the authority has it.
type From struct {
	Head country.Link
	Own  bool // nothing was wrong with the chain: a setting was put back
	Anew bool // a new chain begins, at the authority under another name
}

// ResumeChain lets the chain of a supplier go on that was stopped: after a
// restored backup, because the authority refused a link, or because settings
// changed its name. An authority that cannot say where it stands is fault.Invalid
// with the zero From. Filings of ours that the authority does not hold get new
// links; those it holds stay as they are and are asked for. also joins the
// commit, for whoever keeps a log; it may be nil.
//
// Failure policy: everything is decided in one commit, while the supplier is
// held: no holder of the lane can send an old link meanwhile.
func (s *Recovery) ResumeChain(ctx context.Context, at filing.Place, from From,
	also func(tx *db.Tx, c Chain) error) (c Chain, err error) {
	q, err := s.reopen(ctx, at.Scope, at.SupplierID)
	if err != nil {
		return c, err
	}
	head, absent, err := q.resumeFrom(ctx, from)
	if err != nil {
		return c, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if c, err = q.rebuild(tx, head, absent); err != nil || also == nil {
			return err
		}
		return also(tx, c)
	})
	if err != nil {
		return Chain{}, fmt.Errorf("resume the chain of %s: %w", at.SupplierID, err)
	}
	return c, nil
}

// resumeFrom is the link on which the chain goes on, and which of our filings get new links.
func (q *question) resumeFrom(ctx context.Context, from From) (head country.Link, absent map[string]bool, err error) {
	switch {
	case from.Own:
		err = q.r.db.Read(ctx, func(r db.Reader) error {
			own, err := chain.Read(r, q.at.Lane(0))
			head = own.Head
			return err
		})
		return head, nil, err
	case from.Anew, from.Head != (country.Link{}):
		head = from.Head
	default:
		keeper, ok := q.channel.(country.ChainKeeper)
		if !ok {
			return head, nil, fault.New(fault.Invalid,
				"the authority of %s does not report the head of a chain: give the last link", q.at.Code)
		}
		if head, err = chain.Head(ctx, keeper, q.supplier, q.creds); err != nil {
			return head, nil, err
		}
	}
	absent, err = q.absent(ctx)
	return head, absent, err
}

// reopen learns about a stopped chain.
func (s *Recovery) reopen(ctx context.Context, scope, supplierID string) (*question, error) {
	var hold hold.Hold
	err := s.db.Read(ctx, func(r db.Reader) (err error) {
		hold, err = s.stopped(r, scope, supplierID)
		return err
	})
	if err != nil {
		return nil, err
	}
	q := &question{r: s, at: hold.Place}
	return q, q.open(ctx)
}

// stopped is the hold of a supplier whose chain is stopped.
func (s *Recovery) stopped(r db.Reader, scope, supplierID string) (hold.Hold, error) {
	hold, err := s.holdOf(r, scope, supplierID)
	if err == nil && hold.Reason != fault.ChainStopped {
		err = fault.New(fault.Conflict, "the supplier's chain is not stopped: it is %q", string(hold.Reason))
	}
	return hold, err
}

// absent lists the open operations of the chain whose documents the authority
// does not hold. One without a list is taken at its word: what it refused, and
// what was never sent, it does not hold. What was sent so lately that the
// authority may not show it yet is nobody's to judge: fault.Conflict.
func (q *question) absent(ctx context.Context) (ids map[string]bool, err error) {
	var own chain.Chain
	err = q.r.db.Read(ctx, func(r db.Reader) error {
		own, err = chain.Read(r, q.at.Lane(0))
		return err
	})
	if err != nil {
		return nil, err
	}
	ids = map[string]bool{}
	register, listed := q.channel.(country.Register)
	byDay := map[string]map[string]bool{}
	for _, o := range own.Open {
		if o.Stage == filing.Pending {
			continue
		}
		day := o.DatedAt.In(q.zone).Format(time.DateOnly)
		if listed && byDay[day] == nil {
			if byDay[day], listed, err = q.numbersOn(ctx, register, day); err != nil {
				return nil, err
			}
		}
		if listed && !byDay[day][o.Number] || !listed && o.Stage == filing.Prepared {
			if shown := o.SentAt.Add(q.channel.Limits().VisibleAfter); !o.SentAt.IsZero() && shown.After(q.r.db.Now()) {
				return nil, fault.New(fault.Conflict, "the authority may not show operation %s yet; resume the chain after %s",
					o.OperationID, result.Stamp(shown))
			}
			ids[o.OperationID] = true
		}
	}
	return ids, nil
}

// numbersOn are the numbers of a day's documents at the authority; false: it lists none.
func (q *question) numbersOn(ctx context.Context, register country.Register,
	text string) (numbers map[string]bool, listed bool, err error) {
	day, err := Day(text)
	if err != nil {
		return nil, false, err
	}
	call, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	theirs, err := register.Registered(call, q.supplier, day, q.creds)
	if errors.Is(err, country.ErrNoList) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("query the authority's documents: %w", err)
	}
	numbers = map[string]bool{}
	for _, e := range theirs {
		numbers[e.Number] = true
	}
	return numbers, true, nil
}

// rebuild takes the new head, undoes the links that lead nowhere, and lets go.
func (q *question) rebuild(tx *db.Tx, head country.Link, absent map[string]bool) (Chain, error) {
	if _, err := q.r.stopped(tx, q.at.Scope, q.at.SupplierID); err != nil {
		return Chain{}, err // somebody was faster
	}
	own, err := chain.Read(tx, q.at.Lane(0))
	if err != nil {
		return Chain{}, err
	}
	var anew []chain.OpenLink
	for _, l := range own.Open {
		if absent[l.OperationID] {
			anew = append(anew, l)
		}
	}
	steps := []func() error{
		func() error { return q.r.cfg.Filing.Relink(tx, own.Lane, head, anew) },
		func() error {
			return tx.Exec("UPDATE restored_suppliers SET state = 'asked', trouble = '' WHERE supplier_id = $1", q.at.SupplierID)
		},
		func() error { return q.r.cfg.Filing.Release(tx, q.at) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return Chain{}, err
		}
	}
	return Chain{Lane: own.Lane, Before: own.Head, After: head, Anew: len(anew)}, nil
}
