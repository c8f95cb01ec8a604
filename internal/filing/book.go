package filing

import (
	"cmp"
	"fmt"
	"slices"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// lockOriginals orders the writes that enter corrections of the same originals;
// always in one order, so that two of them never wait for each other.
func lockOriginals(tx *db.Tx, ops []*operation) error {
	var names []string
	for _, o := range ops {
		for _, id := range o.refersTo() {
			names = append(names, "original|"+o.scope+"|"+id)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := tx.Lock(name); err != nil {
			return err
		}
	}
	return nil
}

// booked is a correction in its original's book.
type booked struct {
	transactionID string
	whole         bool
	cancelled     bool // it was withdrawn altogether
	amount        int64
	done          bool // it succeeded; else it is on its way
}

// readBook reads the other corrections of one of an operation's originals. One that was
// itself taken back as a whole no longer counts, but for what stays of it: a
// substitution that was credited has still taken its original back.
func readBook(tx *db.Tx, o *operation, originalID string) ([]booked, error) {
	const takenBack = `EXISTS (SELECT 1 FROM corrections x JOIN operations p ON p.operation_id = x.operation_id WHERE x.client_id = c.client_id
				AND x.original_id = c.transaction_id AND p.status = 'SUCCESS' AND x.kind = `
	list, err := db.Collect(tx, func(scan func(...any) error) (b booked, err error) {
		return b, scan(&b.transactionID, &b.whole, &b.cancelled, &b.amount, &b.done)
	}, `SELECT c.transaction_id, c.kind IN ('CREDIT', 'CANCELLATION'), c.kind = 'CANCELLATION', CASE WHEN `+takenBack+`'CREDIT') THEN c.rest ELSE c.amount END, o.status = 'SUCCESS'
		FROM corrections c JOIN operations o ON o.operation_id = c.operation_id
		WHERE c.client_id = $1 AND c.original_id = $2 AND c.transaction_id <> $3 AND c.kind <> 'PAYMENT'
			AND NOT `+takenBack+`'CANCELLATION') AND (c.rest <> 0 OR NOT `+takenBack+`'CREDIT'))
		ORDER BY c.operation_id`, o.scope, originalID, o.transactionID)
	if err != nil {
		return nil, fmt.Errorf("read corrections: %w", err)
	}
	return list, nil
}

// reserved is whether a correction may be filed now: it may, or it may never,
// or what is on its way decides.
type reserved struct {
	refused *fault.Fault
	behind  string // transaction to wait for
	again   bool   // another one ended since it was prepared, which it does not know
}

// reserve enters a correction in the books of its originals, or says why it
// cannot be: one full credit or one cancellation, and adjustments within the sum
// of each; what the authority holds already is entered in any case. What only
// corrections that are still on their way forbid waits for them. The caller
// holds the originals' locks.
func (b *batch) reserve(tx *db.Tx, o *operation) (reserved, error) {
	if !o.correction() {
		return reserved{}, nil
	}
	if o.kind == transaction.PaymentReport {
		return b.reservePayment(tx, o)
	}
	ids := o.refersTo()
	if o.gap == nil {
		if why, err := b.inSuccession(tx, o); err != nil || why != (reserved{}) {
			return why, err
		}
		for i := range ids {
			if why, err := allows(tx, o, i); err != nil || why != (reserved{}) {
				return why, err
			}
		}
	}
	for i, id := range ids {
		if err := enter(tx, o, id, effectOf(o, i)); err != nil {
			return reserved{}, err
		}
	}
	return reserved{}, nil
}

// allows asks the book of one of a correction's originals.
func allows(tx *db.Tx, o *operation, i int) (reserved, error) {
	id, effect := o.refersTo()[i], effectOf(o, i)
	book, err := readBook(tx, o, id)
	if err != nil {
		return reserved{}, err
	}
	var done []booked
	open := ""
	for _, c := range book {
		if c.done {
			done = append(done, c)
		} else {
			open = cmp.Or(open, c.transactionID)
		}
	}
	if effect.Exact && open != "" {
		return reserved{behind: open}, nil // what is left is not known yet
	}
	refuse := func(code fault.Code, what string) *fault.Fault {
		f := o.refers(id, code, what)
		return &f
	}
	original := o.original
	if len(o.shares) > 0 {
		original = &o.shares[i].Original
	}
	if f := forbids(done, original, effect, refuse); f != nil {
		return reserved{refused: f}, nil
	}
	if f := forbids(book, original, effect, refuse); f != nil {
		return reserved{behind: open}, nil
	}
	return reserved{}, nil
}

// enter writes an operation in the book of a transaction that it refers to.
func enter(tx *db.Tx, o *operation, originalID string, effect country.Effect) error {
	return tx.Exec(`INSERT INTO corrections (client_id, original_id, transaction_id, operation_id, kind, amount, rest) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (client_id, original_id, transaction_id) DO UPDATE SET operation_id = excluded.operation_id, kind = excluded.kind,
			amount = excluded.amount, rest = excluded.rest`,
		o.scope, originalID, o.transactionID, o.id, string(o.kind), effect.Amount, effect.Rest)
}

// effectOf is what a correction takes from one of its originals: what its pack
// says, else its share of it, else what it amounts to.
func effectOf(o *operation, i int) country.Effect {
	switch {
	case len(o.shares) > 0 && len(o.filing.Effects) == len(o.shares):
		return o.filing.Effects[i]
	case len(o.shares) > 0:
		return country.Effect{Amount: o.shares[i].Amount}
	case o.filing.Effect != nil:
		return *o.filing.Effect
	case o.kind != transaction.Adjustment:
		return country.Effect{Amount: -o.original.Totals.Gross}
	}
	return country.Effect{Amount: o.totals.Gross}
}

// forbids says why an amount may not be taken from an original besides the
// corrections in its book; nil: it may.
func forbids(book []booked, original *country.Original, effect country.Effect, refuse func(fault.Code, string) *fault.Fault) *fault.Fault {
	adjusted, amount := int64(0), effect.Amount
	for _, c := range book {
		if c.whole && (c.cancelled || effect != (country.Effect{})) { // what takes nothing mends the record of what was credited
			return refuse(fault.ReferenceAlreadyCorrected, "was already credited or cancelled")
		}
		if effect.Alone && c.amount != 0 {
			return refuse(fault.ReferenceAlreadyCorrected, "was corrected by "+c.transactionID+" already: a document that replaces it would not say so. Correct it by the difference, or take that one back first")
		}
		adjusted += c.amount
	}
	sum := original.Totals.Gross
	sized := !original.Backfilled || len(original.Transaction.Items) > 0
	if left := sum + adjusted; sized && effect.Exact && left+amount != 0 {
		return refuse(fault.ReferenceExceeded, fmt.Sprintf("has %d left, and what replaces it amounts to %d", left, -amount))
	}
	if !sized || !exceeds(sum, adjusted+amount) {
		return nil
	}
	return refuse(fault.ReferenceExceeded, fmt.Sprintf("amounts to %d and would be corrected by %d", sum, adjusted+amount))
}

// exceeds reports whether a correction takes more from a sum than there is.
func exceeds(sum, correction int64) bool {
	left := sum + correction
	return sum >= 0 && left < 0 || sum < 0 && left > 0
}
