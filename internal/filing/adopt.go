package filing

import (
	"cmp"
	"context"
	"fmt"

	"tributary/internal/adoption"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operation"
)

// fillGap looks for an operation's document among the gaps, under the number by
// which the authority would know it. True: the operation is decided and must
// not be filed.
//
// The bytes that were registered are lost, and bytes made now differ from them
// in times, keys and links, so hashes say nothing. What is compared is what the
// authority tells: the number, the day (give or take one: authorities and
// suppliers may count in different zones), the kind and the total. A number on
// another day is another document where numbers begin anew each year; the
// authority decides about it as about any other. A kind or total that differs
// is FAILURE: the number belongs to something else.
func fillGap(ctx context.Context, b *batch, o *op, number string) (decided bool, err error) {
	v, by := b.v, adoption.Names{Number: number}
	if !v.adopting {
		return false, nil
	}
	if original := o.refs.Original; original != nil {
		by.Original = cmp.Or(original.Transaction.Number, original.UniqueNumber)
	}
	var gaps []adoption.Gap
	err = v.s.db.ReadEach(ctx, func(r db.Reader) (err error) {
		gaps, err = adoption.Find(r, v.at, by)
		return err
	})
	if err != nil {
		return false, err
	}
	for i := range gaps {
		g := &gaps[i]
		if v.spoken[g.Key()] || !g.Means(o.Operation, by, v.location) {
			continue
		}
		if g.Differs(o.Operation) {
			b.fail(o, numberUsed(g.Receipt()))
			return true, nil
		}
		if v.spoken == nil {
			v.spoken = map[adoption.Key]bool{}
		}
		v.spoken[g.Key()] = true
		o.gap = g
		o.filing = country.Filing{OperationID: o.ID, Number: cmp.Or(g.Number, number), Kind: o.Kind, SHA256: g.SHA256, PreparedAt: v.s.db.Wall()}
		b.ready = append(b.ready, o)
		return true, nil
	}
	return false, nil
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
	if !v.adopting {
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
	if err := adoption.Take(tx, v.at, taken); err != nil {
		return err
	}
	return adoption.Fill(tx, v.at, filled)
}
