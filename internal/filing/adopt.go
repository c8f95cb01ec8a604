package filing

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// gapKey is a gap's primary key within its supplier.
type gapKey struct{ number, reference, id1, id2 string }

func (g *Gap) key() gapKey { return gapKey{g.Number, g.Reference, g.ID1, g.ID2} }

// receipt is the authority's word on the document, as far as it can be had.
func (g *Gap) receipt() country.Receipt {
	return country.Receipt{Outcome: country.Accepted, AuthorityID1: g.ID1, AuthorityID2: g.ID2, QRCode: g.QRCode, SHA256: g.SHA256, At: g.At}
}

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
func (b *batch) fillGap(ctx context.Context, o *operation, number string) (decided bool, err error) {
	if !b.adopting {
		return false, nil
	}
	original := ""
	if o.original != nil {
		if original = o.original.Transaction.Number; original == "" {
			original = o.original.UniqueNumber
		}
	}
	var gaps []Gap
	err = b.db.ReadEach(ctx, func(r db.Reader) error {
		gaps, err = db.Collect(r, scanGap, `SELECT number, reference, authority_id_1, authority_id_2, kind, day, gross, sha256, qr_code, registered_at
			FROM adoptions WHERE client_id = $1 AND supplier_id = $2 AND operation_id IS NULL AND (number = $3 OR reference = $4 AND reference <> '')`,
			b.at.Scope, b.at.SupplierID, number, original)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look for a gap of %s: %w", o.id, err)
	}
	for i := range gaps {
		g := &gaps[i]
		if b.spoken[g.key()] || !b.meant(o, g, number, original) {
			continue
		}
		if g.Kind != "" && g.Kind != o.kind || g.Gross != nil && *g.Gross != o.totals.Gross {
			b.fail(o, numberUsed(g.receipt()))
			return true, nil
		}
		if b.spoken == nil {
			b.spoken = map[gapKey]bool{}
		}
		b.spoken[g.key()] = true
		o.gap = g
		o.filing = country.Filing{OperationID: o.id, Number: cmp.Or(g.Number, number), Kind: o.kind, SHA256: g.SHA256, PreparedAt: b.db.Wall()}
		b.ready = append(b.ready, o)
		return true, nil
	}
	return false, nil
}

// meant reports whether a gap is an operation's document. A correction that
// came without a number got one of our own, which is lost with the operation
// that had it; it is known by what it corrects.
func (b *batch) meant(o *operation, g *Gap, number, original string) bool {
	if g.Number != "" && g.Number == number {
		return b.near(o.document.Date, g.Day)
	}
	numberless := o.document.Number == uniqueNumber(o.code, o.id)
	return o.whole() && g.Kind == o.kind && g.Reference == original && (g.Number == "" || numberless)
}

// near reports whether a document's day is a given one, or next to it.
func (b *batch) near(date time.Time, day string) bool {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return false
	}
	where := b.location
	if where == nil {
		where = time.UTC
	}
	own, _ := time.Parse(time.DateOnly, date.In(where).Format(time.DateOnly)) // printed a moment ago
	return own.Sub(at).Abs() <= 24*time.Hour
}

// adopted is how an operation ends that adopts a gap.
func (b *batch) adopted(o *operation) outcome {
	r := o.gap.receipt()
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

func scanGap(scan func(...any) error) (g Gap, err error) {
	err = scan(&g.Number, &g.Reference, &g.ID1, &g.ID2, &g.Kind, &g.Day, &g.Gross, &g.SHA256, &g.QRCode, db.NullInstant(&g.At))
	return g, err
}

// writeAdopted stores, in the settling commit, who adopted which gap: one
// each. A success that the authority confirmed otherwise, when it was asked for
// bytes the backup had, fills its gap as well.
func (b *batch) writeAdopted(tx *db.Tx, endings []ending) error {
	if !b.adopting {
		return nil
	}
	var filings, taken, filled [][]any
	for _, e := range endings {
		o := e.op
		switch {
		case e.status != Success:
		case o.gap != nil:
			filings = append(filings, []any{o.id, []byte{}, o.filing.SHA256, encodeFiling(o.filing)})
			g := o.gap
			taken = append(taken, []any{o.scope, b.at.SupplierID, g.Number, g.Reference, g.ID1, g.ID2, o.id})
		case o.filing.Number != "":
			filled = append(filled, []any{o.scope, b.at.SupplierID, o.filing.Number, e.receipt.AuthorityID1, o.id})
		}
	}
	if len(filings) > 0 {
		if err := tx.Insert("filings", "operation_id,report,sha256,filing", filings...); err != nil {
			return fmt.Errorf("store adopted filings: %w", err)
		}
	}
	if err := tx.ExecEachOne(`UPDATE adoptions SET operation_id = $7 WHERE client_id = $1 AND supplier_id = $2 AND number = $3 AND reference = $4
		AND authority_id_1 = $5 AND authority_id_2 = $6 AND operation_id IS NULL`, taken); err != nil {
		return fmt.Errorf("adopt gaps: %w", err)
	}
	return tx.ExecEach(`UPDATE adoptions SET operation_id = $5 WHERE client_id = $1 AND supplier_id = $2 AND number = $3
		AND (authority_id_1 = $4 OR authority_id_1 = '') AND operation_id IS NULL`, filled)
}
