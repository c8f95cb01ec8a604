package filing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// A link that the authority refuses because it does not follow the last one it
// holds says nothing about its document and everything about the chain: each
// later link hangs on it and would be refused, too. Nothing was registered, so
// the operation does not end; the chain does not go on until it is known why.

// mend is what the authority's head says about a refused link.
type mend int

const (
	mendStop   mend = iota // it does not explain the refusal: a person decides
	mendWait               // the authority counts the link, or lacks one that is still on its way: asked for, or the same bytes again
	mendRelink             // the link hangs on one that the authority refused and did not count
)

// mendChain decides how a chain goes on after links were refused: by the head,
// where the authority can be asked for it, else by a person.
//
// Failure policy: a crash before the decision is stored sends the same bytes
// again, which are refused again. A head that is not answered is no reason to
// stop: that is an authority which does not answer.
func (b *batch) mendChain(ctx context.Context) error {
	if len(b.broken) == 0 {
		return nil
	}
	refused := b.broken
	b.broken = nil
	inOrder(refused)
	if b.held != nil {
		return b.again(ctx, refused) // it stopped at a link before them
	}
	keeper, ok := b.channel.(country.ChainKeeper)
	if !ok {
		return b.stopChain(ctx, refused)
	}
	head, err := b.askHead(ctx, keeper, refused)
	if err != nil {
		b.failed(err)
		return b.again(ctx, refused)
	}
	var what mend
	err = b.db.Read(ctx, func(r db.Reader) error {
		own, err := ReadChain(r, b.lease.ID)
		if err != nil {
			return err
		}
		links, err := own.Links(r, b.at.Scope)
		if err != nil {
			return err
		}
		what, head = explain(own, links, head, refused[0].filing.Link.Position)
		return nil
	})
	switch {
	case err != nil:
		return err
	case what == mendRelink:
		return b.relinkBehind(ctx, head, refused)
	case what == mendWait:
		return b.waitForChain(ctx, head, refused)
	}
	return b.stopChain(ctx, refused)
}

// waitForChain lets refused links go again, in order. One that the authority
// counts was sent before, and its answer got lost: it is asked for. When it was
// and the authority does not hold it, the lost answer was a refusal of the
// document, which had its place in the chain all the same.
func (b *batch) waitForChain(ctx context.Context, head country.Link, refused []*operation) error {
	var again []*operation
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
		b.failed(errors.New("the authority refused a link of the chain while it, or one before it, is still being settled"))
	}
	if err := b.again(ctx, again); err != nil {
		return err
	}
	return b.storeOutcomes(ctx)
}

func (b *batch) askHead(ctx context.Context, keeper country.ChainKeeper, refused []*operation) (country.Link, error) {
	call, cancel := b.callContext(ctx)
	defer cancel()
	began := b.db.Now()
	head, err := Head(call, keeper, b.supplier, b.creds)
	err = country.BoundedError(err)
	b.record(exchange{verb: "head", at: began, ops: refused, err: err, traffic: country.TrafficOf(call)})
	return head, errors.Join(err, b.storeEvidence(ctx))
}

// explain holds the authority's head against our links, of which the one at
// position first was refused. The head comes back as we have it.
func explain(c Chain, links []PastLink, head country.Link, first int64) (mend, country.Link) {
	if head.Position > 0 {
		ours, found := c.Has(links, head)
		if !found {
			return mendStop, head // somebody else's
		}
		head = ours
	}
	what := mendRelink
	switch {
	case head.Position == first-1:
		return mendStop, head // the link does follow it: the authority contradicts itself
	case head.Position >= first:
		what = mendWait
	}
	for _, l := range links {
		switch {
		case l.Position <= head.Position || l.Position >= first:
		case l.Status == Success:
			return mendStop, head // it confirmed a link and does not hold it
		case l.Status == Processing:
			what = mendWait
		}
	}
	return what, head
}

// relinkBehind lets everything that hangs on links which the authority did not
// count be prepared anew behind its head, as after a decision of a person.
func (b *batch) relinkBehind(ctx context.Context, head country.Link, refused []*operation) error {
	again := map[string]bool{}
	for _, o := range refused {
		again[o.id] = true
	}
	var anew []OpenLink
	err := b.db.Write(ctx, func(tx *db.Tx) error {
		anew = nil
		if err := b.lease.Guard(tx); err != nil {
			return err
		}
		own, err := ReadChain(tx, b.lease.ID)
		if err != nil {
			return err
		}
		for position, l := range own.Open {
			if position > head.Position && (l.Stage != Pending || again[l.OperationID]) {
				anew = append(anew, l)
			}
		}
		return b.relink(tx, own.Lane, head, anew)
	})
	if err != nil {
		return fmt.Errorf("make %d links anew: %w", len(anew), err)
	}
	b.log.Warn("links were made anew behind the last one that the authority holds", "lane", b.lease.ID, "position", head.Position, "links", len(anew))
	return nil
}

// stopChain holds the supplier until recovery resumes its chain. The refused links
// keep their places; they are made anew, or asked for, when it goes on.
//
// Failure policy: the hold is stored last. Whoever sees it may resume the chain
// in the same moment, and must find the refused links as ones that were not
// taken. A crash before it sends the same bytes again, which are refused again.
func (b *batch) stopChain(ctx context.Context, refused []*operation) error {
	first := refused[0]
	b.held = &Hold{Place: b.at, Reason: fault.ChainStopped,
		Why: fmt.Sprintf("the authority refused link %d of the chain, operation %s, because it does not follow the last one that it holds", first.filing.Link.Position, first.id)}
	b.hold()
	if err := b.again(ctx, refused); err != nil {
		return err
	}
	err := b.commit(ctx, nothing, func(tx *db.Tx) error {
		if err := b.Hold(tx, *b.held); err != nil {
			return err
		}
		return b.cfg.Alerts.RaiseIn(tx, alert.ChainMismatch, b.subject(), b.held.Why+": "+rejection(first.receipt)[0].Message)
	})
	if err != nil {
		return fmt.Errorf("stop the chain: %w", err)
	}
	return nil
}

// stopAtRefusal holds the supplier where a refused document stops its chain. The
// hold is stored in the commit that ends the operation: a crash in between must
// not let anything follow.
func (b *batch) stopAtRefusal(o *operation, r country.Receipt) {
	if !b.chained || b.limits.Refusal != country.StopsChain || b.held != nil {
		return
	}
	b.held = &Hold{Place: b.at, Reason: fault.ChainStopped,
		Why: fmt.Sprintf("the authority refused link %d of the chain, operation %s; nothing may follow it until somebody has decided", o.filing.Link.Position, o.id)}
	b.hold()
	held := *b.held
	b.evidence = append(b.evidence, func(tx *db.Tx) error {
		if err := b.Hold(tx, held); err != nil {
			return err
		}
		return b.cfg.Alerts.RaiseIn(tx, alert.ChainMismatch, b.subject(), held.Why+": "+rejection(r)[0].Message)
	})
}

// remarkChain tells somebody, once a day, of a link that the authority took
// although it does not follow the last one that it held.
func (b *batch) remarkChain(o *operation) {
	b.evidence = append(b.evidence, func(tx *db.Tx) error {
		return b.cfg.Alerts.RaiseOnceIn(tx, tx.Now().Add(-24*time.Hour), alert.Alert{Name: alert.ChainRemarked, Subject: b.subject(),
			Message: fmt.Sprintf("the authority took link %d of the chain, operation %s, and remarks that it does not follow the last one that it held", o.filing.Link.Position, o.id)})
	})
}

// renamed reports whether a link belongs to another chain at the authority than
// the last one that was made: the company's settings were changed.
func renamed(last, next country.Link) bool {
	return last.Name != "" && next.Name != "" && last.Name != next.Name
}

// stopRenamed holds a supplier whose settings would let its chain go on under
// another name. A chain is begun openly, by a person, or not at all.
func (b *batch) stopRenamed(ctx context.Context, name string) error {
	b.held = &Hold{Place: b.at, Reason: fault.ChainStopped,
		Why: fmt.Sprintf("the company's settings changed the name of its chain at the authority from %q to %q: put them back, or begin the new chain with `tributary recovery resume --anew`", b.chain.Name, name)}
	b.hold()
	err := b.commit(ctx, nothing, func(tx *db.Tx) error {
		if err := b.Hold(tx, *b.held); err != nil {
			return err
		}
		return b.cfg.Alerts.RaiseIn(tx, alert.ChainMismatch, b.subject(), b.held.Why)
	})
	if err != nil {
		return fmt.Errorf("stop the chain: %w", err)
	}
	return nil
}
