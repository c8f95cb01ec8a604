package filing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/alert"
	"tributary/internal/chain"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/fault"
	"tributary/internal/hold"
	"tributary/internal/lifecycle"
)

// A link that the authority refuses because it does not follow the last one it
// holds says nothing about its document and everything about the chain: each
// later link hangs on it and would be refused, too. Nothing was registered, so
// the operation does not end; the chain does not go on until it is known why.

// mendChain decides how a chain goes on after links were refused: by the head,
// where the authority can be asked for it, else by a person.
//
// Failure policy: a crash before the decision is stored sends the same bytes
// again, which are refused again. A head that is not answered is no reason to
// stop: that is an authority which does not answer.
func mendChain(ctx context.Context, b *batch) error {
	if len(b.broken) == 0 {
		return nil
	}
	refused := b.broken
	b.broken = nil
	inOrder(refused)
	if b.v.held != nil {
		return b.again(ctx, refused) // it stopped at a link before them
	}
	keeper, ok := b.v.lane.channel.(country.ChainKeeper)
	if !ok {
		return stopChain(ctx, b, refused)
	}
	head, err := askHead(ctx, b, keeper, refused)
	if err != nil {
		b.v.failed(err)
		return b.again(ctx, refused)
	}
	var what chain.Mend
	err = b.v.s.db.Read(ctx, func(r db.Reader) error {
		own, err := chain.Read(r, b.v.lease.ID)
		if err != nil {
			return err
		}
		links, err := own.Links(r, b.v.lane.at.Scope)
		if err != nil {
			return err
		}
		what, head = own.Explain(links, head, refused[0].filing.Link.Position)
		return nil
	})
	switch {
	case err != nil:
		return err
	case what == chain.Relink:
		return relinkBehind(ctx, b, head, refused)
	case what == chain.Wait:
		return waitForChain(ctx, b, head, refused)
	}
	return stopChain(ctx, b, refused)
}

// waitForChain lets refused links go again, in order. One that the authority
// counts was sent before, and its answer got lost: it is asked for. When it was
// and the authority does not hold it, the lost answer was a refusal of the
// document, which had its place in the chain all the same.
func waitForChain(ctx context.Context, b *batch, head country.Link, refused []*op) error {
	var again []*op
	for _, o := range refused {
		counted := o.filing.Link.Position <= head.Position
		if counted && o.told {
			b.settle(outcome{op: o, status: Failure, receipt: o.receipt, faults: []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority,
				Message: "the tax authority refused the document; its reasons were in an answer that got lost"}}})
			continue
		}
		o.doubtful = o.doubtful || counted
		again = append(again, o)
	}
	if len(again) > 0 {
		b.v.failed(errors.New("the authority refused a link of the chain while it, or one before it, is still being settled"))
	}
	return b.again(ctx, again)
}

func askHead(ctx context.Context, b *batch, keeper country.ChainKeeper, refused []*op) (country.Link, error) {
	call, cancel := exchange.Bounded(ctx, b.v.lane.limits)
	defer cancel()
	began := b.v.now()
	head, err := chain.Head(call, keeper, b.v.lane.supplier, b.v.lane.creds)
	err = country.BoundedError(err)
	b.record(exchange.Call{Verb: "head", At: began, Operations: idsOf(refused), Err: err, Traffic: country.TrafficOf(call)})
	return head, errors.Join(err, b.storeEvidence(ctx))
}

// relinkBehind lets everything that hangs on links which the authority did not
// count be prepared anew behind its head, as after a decision of a person.
func relinkBehind(ctx context.Context, b *batch, head country.Link, refused []*op) error {
	again := map[string]bool{}
	for _, o := range refused {
		again[o.ID] = true
	}
	var anew []chain.OpenLink
	err := b.v.s.db.Write(ctx, func(tx *db.Tx) error {
		anew = nil
		if err := b.v.lease.Guard(tx); err != nil {
			return err
		}
		own, err := chain.Read(tx, b.v.lease.ID)
		if err != nil {
			return err
		}
		for position, l := range own.Open {
			if position > head.Position && (l.Stage != Pending || again[l.OperationID]) {
				anew = append(anew, l)
			}
		}
		return relink(tx, b.v.s.db, own.Lane, relinking{head, anew})
	})
	if err != nil {
		return fmt.Errorf("make %d links anew: %w", len(anew), err)
	}
	b.v.s.log.Warn("links were made anew behind the last one that the authority holds", "lane", b.v.lease.ID, "position", head.Position, "links", len(anew))
	return nil
}

// stopChain holds the supplier until recovery resumes its chain. The refused links
// keep their places; they are made anew, or asked for, when it goes on.
//
// Failure policy: the hold is stored last. Whoever sees it may resume the chain
// in the same moment, and must find the refused links as ones that were not
// taken. A crash before it sends the same bytes again, which are refused again.
func stopChain(ctx context.Context, b *batch, refused []*op) error {
	first := refused[0]
	held := stop(b.v, fmt.Sprintf("the authority refused link %d of the chain, operation %s, because it does not follow the last one that it holds", first.filing.Link.Position, first.ID))
	if err := b.again(ctx, refused); err != nil {
		return err
	}
	return storeStop(ctx, b.v, held, held.Why+": "+lifecycle.Rejection(first.receipt)[0].Message)
}

// stop lets nothing of the lane's chain be filed in this visit.
func stop(v *visit, why string) hold.Hold {
	v.held = &hold.Hold{Place: v.lane.at, Reason: fault.ChainStopped, Why: why}
	v.rests()
	return *v.held
}

// storeStop holds the supplier, and tells somebody.
func storeStop(ctx context.Context, v *visit, held hold.Hold, message string) error {
	if err := v.commit(ctx, nothing, func(tx *db.Tx) error { return writeStop(tx, v, held, message) }); err != nil {
		return fmt.Errorf("stop the chain: %w", err)
	}
	return nil
}

func writeStop(tx *db.Tx, v *visit, held hold.Hold, message string) error {
	if err := held.Store(tx); err != nil {
		return err
	}
	return v.s.cfg.Alerts.RaiseIn(tx, alert.ChainMismatch, v.lane.subject(), message)
}

// stopAtRefusal holds the supplier where a refused document stops its chain. The
// hold is stored in the commit that ends the operation: a crash in between must
// not let anything follow.
func stopAtRefusal(b *batch, o *op, r country.Receipt) {
	v := b.v
	if !v.lane.chained() || v.lane.limits.Refusal != country.StopsChain || v.held != nil {
		return
	}
	held := stop(v, fmt.Sprintf("the authority refused link %d of the chain, operation %s; nothing may follow it until somebody has decided", o.filing.Link.Position, o.ID))
	b.evidence = append(b.evidence, func(tx *db.Tx) error { return writeStop(tx, v, held, held.Why+": "+lifecycle.Rejection(r)[0].Message) })
}

// remarkChain tells somebody, once a day, of a link that the authority took
// although it does not follow the last one that it held.
func remarkChain(b *batch, o *op) {
	b.evidence = append(b.evidence, func(tx *db.Tx) error {
		return b.v.s.cfg.Alerts.RaiseOnceIn(tx, tx.Now().Add(-24*time.Hour), alert.Alert{Name: alert.ChainRemarked, Subject: b.v.lane.subject(),
			Message: fmt.Sprintf("the authority took link %d of the chain, operation %s, and remarks that it does not follow the last one that it held", o.filing.Link.Position, o.ID)})
	})
}

// renamed reports whether a link belongs to another chain at the authority than
// the last one that was made: the company's settings were changed.
func renamed(last, next country.Link) bool {
	return last.Name != "" && next.Name != "" && last.Name != next.Name
}

// stopRenamed holds a supplier whose settings would let its chain go on under
// another name. A chain is begun openly, by a person, or not at all.
func stopRenamed(ctx context.Context, v *visit, from, to string) error {
	held := stop(v, fmt.Sprintf("the company's settings changed the name of its chain at the authority from %q to %q: put them back, or begin the new chain with `tributary recovery resume --anew`", from, to))
	return storeStop(ctx, v, held, held.Why)
}
