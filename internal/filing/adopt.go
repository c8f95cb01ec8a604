package filing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tributary/internal/adoption"
	"tributary/internal/alert"
	"tributary/internal/correction"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/fault"
	"tributary/internal/lifecycle"
	"tributary/internal/operation"
	"tributary/internal/series"
)

// fillGap looks for an operation's document among those that the authority held
// before a backup was restored, under the names by which it would know it; see
// [adoption.Judge]. True: the operation is decided and must not be filed now.
//
// What differs is never adopted: the number belongs to something else. A client's
// own number then ends in FAILURE; one that our series drew is replaced by the
// next. Where the authority does not tell enough a person decides.
func fillGap(ctx context.Context, b *batch, o *op, by adoption.Names) (decided bool, err error) {
	v := b.v
	if !v.lane.adopting && (!v.lane.restored || o.gather.Period == nil) {
		return false, nil
	}
	g, verdict, err := judge(ctx, v, o, &by)
	for read := map[adoption.Key]bool{}; err == nil && verdict == adoption.Same && unread(v, o, g, by) && !read[g.Key()]; {
		if known, err := readLines(ctx, b, o, g); err != nil || !known {
			return true, err
		}
		read[g.Key()] = true
		g, verdict, err = judge(ctx, v, o, &by)
	}
	if err != nil {
		return false, err
	}
	switch {
	case verdict == adoption.Other:
		return false, nil
	case verdict == adoption.Unclear:
		return true, holdBack(ctx, b, o, g)
	case verdict == adoption.Used && o.Series != "":
		return true, renumber(ctx, b, o)
	case verdict == adoption.Used:
		b.fail(o, numberUsed(g.Receipt()))
		return true, nil
	}
	if v.spoken == nil {
		v.spoken = map[adoption.Key]bool{}
	}
	v.spoken[g.Key()] = true
	o.gap = g
	if o.Series != "" && g.Number != "" {
		o.Document.Number = g.Number
	}
	o.filing = country.Filing{OperationID: o.ID, Number: cmp.Or(g.Number, by.Number), Kind: o.Kind, SHA256: g.SHA256, PreparedAt: v.s.db.Wall()}
	b.ready = append(b.ready, o)
	return true, nil
}

// judge reads what an operation's document may be, and what a person said of it.
func judge(ctx context.Context, v *visit, o *op, by *adoption.Names) (g *adoption.Gap, verdict adoption.Verdict, err error) {
	if original := o.refs.Original; original != nil {
		by.Original = cmp.Or(original.Transaction.Number, original.UniqueNumber)
	}
	if o.gather.Period != nil {
		by.Sales = o.gather.Period.Numbers()
	}
	var gaps []adoption.Gap
	var said adoption.Decision
	var number string
	untold := false
	err = v.s.db.ReadEach(ctx, func(r db.Reader) (err error) {
		if o.Series != "" {
			drawn, err := series.Of(r, o.Series)
			if err != nil {
				return err
			}
			by.Drawn = drawn.Gives
		}
		if said, number, err = adoption.Decided(r, o.ID); err != nil {
			return err
		}
		if o.gather.Period != nil {
			if untold, err = adoption.Untold(r, v.lane.at, o.gather.Period.Next); err != nil {
				return err
			}
		}
		asked := *by
		if said == adoption.Adopt {
			asked.Number = number
		}
		if o.gather.Period == nil || !v.lane.pack.Periods.Replaces { // such a document takes the place of whatever is there
			gaps, err = adoption.Find(r, v.lane.at, asked)
		}
		return err
	})
	gaps = slices.DeleteFunc(gaps, func(g adoption.Gap) bool { return v.spoken[g.Key()] })
	by.Said = said
	if i := slices.IndexFunc(gaps, func(g adoption.Gap) bool { return g.Number == number }); said == adoption.Adopt && i >= 0 {
		return &gaps[i], adoption.Same, err
	}
	g, verdict = adoption.Judge(gaps, o.Operation, *by, v.lane.location)
	switch {
	case said == adoption.File && verdict != adoption.Used:
		verdict = adoption.Other
	case verdict == adoption.Other && untold && said == "":
		g, verdict = &adoption.Gap{}, adoption.Unclear
	}
	return g, verdict, err
}

// holdBack lets an operation wait for a person.
func holdBack(ctx context.Context, b *batch, o *op, g *adoption.Gap) error {
	why := "the authority has no list that says whether the period's document was registered before the backup was restored"
	switch {
	case g.OtherLines(o.Operation):
		why = "the authority holds " + g.Number + " since before the backup was restored, with these sums and other lines"
	case g.Number != "":
		why = "the authority holds " + g.Number + " since before the backup was restored, and does not say enough to tell whether it is this document"
	}
	return waitForPerson(ctx, b, o, adoption.Held{Number: g.Number, Why: why})
}

// waitForPerson sets an operation aside until somebody has decided about it. What
// was made of it is made anew then.
func waitForPerson(ctx context.Context, b *batch, o *op, held adoption.Held) error {
	v := b.v
	b.moved = append(b.moved, o)
	held.OperationID, held.ClientID, held.SupplierID = o.ID, o.Scope, v.lane.at.SupplierID
	return v.commit(ctx, func(time.Time) []transition { return []transition{o.to(heldBack)} }, func(tx *db.Tx) error {
		if err := dropFiling(tx, v, o); err != nil {
			return err
		}
		if err := held.Store(tx); err != nil {
			return err
		}
		return v.s.cfg.Alerts.RaiseIn(tx, alert.OperationHeld, o.ID, "operation "+o.ID+" waits for a decision: "+held.Why)
	})
}

// dropFiling forgets the bytes of an operation, and keeps when they were sent.
func dropFiling(tx *db.Tx, v *visit, o *op) error {
	if err := exchange.KeepMarks(tx, v.s.db, v.lease.ID, []exchange.Mark{{OperationID: o.ID, At: o.sentAt}}); err != nil {
		return err
	}
	return tx.Exec("DELETE FROM filings WHERE operation_id = $1", o.ID)
}

// replacedMax is how many numbers an operation is given in place of others before a
// person has to look: where so many are taken, it is not the restore that took them.
const replacedMax = 5

// numberReplaced is the entry that a life cycle gets for each.
const numberReplaced = "NUMBER_REPLACED"

// replaced counts the numbers that an operation was given, since a person last looked.
func replaced(ctx context.Context, v *visit, o *op) (n int64, err error) {
	err = v.s.db.ReadEach(ctx, func(r db.Reader) error {
		at, err := adoption.DecidedAt(r, o.ID)
		if err == nil {
			n, err = lifecycle.Count(r, o.ID, numberReplaced, at)
		}
		return err
	})
	return n, err
}

// renumber gives an operation the next number of its series: the authority holds
// another document under the one it has. What was made of it is made anew; in a
// chain it gets a new link, and the refused one keeps its place.
func renumber(ctx context.Context, b *batch, o *op) error {
	v, number := b.v, ""
	switch n, err := replaced(ctx, v, o); {
	case err != nil:
		return err
	case n >= replacedMax:
		return waitForPerson(ctx, b, o, adoption.Held{Why: fmt.Sprintf(
			"the authority holds other documents under %s and the %d numbers of its series before it", o.Number, n)})
	}
	b.moved = append(b.moved, o)
	return v.commit(ctx, func(now time.Time) []transition {
		return []transition{o.to(renumbered, number, db.Micros(now))}
	}, func(tx *db.Tx) error {
		if err := dropFiling(tx, v, o); err != nil {
			return err
		}
		draw, err := v.s.Series.For(tx, o.Scope, o.Code, o.Document)
		if err != nil || draw == nil {
			return cmp.Or(err, fmt.Errorf("the series of %s %w", o.ID, correction.ErrMissing))
		}
		if number, err = series.Redraw(tx, series.Transaction{Scope: o.Scope, ID: o.TransactionID}, draw, o.Number); err != nil {
			return err
		}
		if err := renumberWaiting(tx, o, number); err != nil {
			return err
		}
		_, err = v.s.life.Append(tx, lifecycle.Of(&o.Accepted), []country.News{{Key: "number:" + number, Source: country.FromService, Severity: country.Caution,
			Code: numberReplaced, Name: "The number was replaced", Message: "the authority holds another document under " + o.Number + " since before a backup was restored; this one is " + number}})
		return err
	})
}

// renumberUsed takes those out of the outcomes that get another number instead.
//
// Failure policy: what the authority said is stored first, so that a chain which a
// refusal stops is stopped before anything is made anew.
func renumberUsed(ctx context.Context, b *batch) error {
	if !b.v.lane.restored {
		return nil
	}
	list := b.outcomes
	b.outcomes = nil
	for _, out := range list {
		used := slices.ContainsFunc(out.faults, func(f fault.Fault) bool { return f.Code == fault.AuthorityNumberUsed })
		if out.status != Failure || out.op.Series == "" || !used {
			b.settle(out)
			continue
		}
		if err := b.storeEvidence(ctx); err != nil {
			return err
		}
		if err := renumber(ctx, b, out.op); err != nil {
			return err
		}
	}
	return nil
}

// adopted is how an operation ends that adopts a gap.
func adopted(o *op) outcome {
	r := o.gap.Receipt()
	out := outcome{op: o, status: Success, receipt: r}
	switch {
	case r.AuthorityID1 == "":
		out.faults = append(out.faults, fault.Warn("", fault.AuthorityIDUnavailable,
			"the document was registered before a backup was restored; its id was in an answer that is lost"))
	case r.QRCode == "":
		out.faults = append(out.faults, fault.Warn("", fault.AuthorityIDUnavailable,
			"the document was registered before a backup was restored; its code is lost with the filing"))
	}
	return out
}

// writeAdopted stores, in the settling commit, who adopted which gap, and which
// gaps other successes filled.
func writeAdopted(tx *db.Tx, v *visit, endings []ending) error {
	if !v.lane.adopting {
		return nil
	}
	var filings, filled [][]any
	var taken []adoption.Taken
	for _, e := range endings {
		o := e.op
		switch {
		case e.status != Success:
		case o.gap != nil:
			filings = append(filings, []any{o.ID, []byte{}, o.filing.SHA256, operation.EncodeFiling(o.filing)})
			taken = append(taken, adoption.Taken{Gap: o.gap, OperationID: o.ID})
		case o.filing.Number != "":
			filled = append(filled, []any{o.filing.Number, e.receipt.AuthorityID1, o.ID})
		}
	}
	if len(filings) > 0 {
		if err := tx.Insert("filings", "operation_id,report,sha256,filing", filings...); err != nil {
			return fmt.Errorf("store adopted filings: %w", err)
		}
	}
	for _, e := range endings {
		if err := keepNumber(tx, v, e.op); err != nil {
			return err
		}
	}
	if err := adoption.Take(tx, v.lane.at, taken); err != nil {
		return err
	}
	return adoption.Fill(tx, v.lane.at, filled)
}

// keepNumber gives a transaction back the number under which its document is registered.
func keepNumber(tx *db.Tx, v *visit, o *op) error {
	if o.gap == nil || o.Series == "" || o.Document.Number == o.Number {
		return nil
	}
	draw, err := v.s.Series.For(tx, o.Scope, o.Code, o.Document)
	if err != nil || draw == nil {
		return err
	}
	return series.Renumber(tx, series.Transaction{Scope: o.Scope, ID: o.TransactionID}, draw, series.Change{Had: o.Number, Gets: o.Document.Number, Reason: series.GapRegistered})
}
