package correction

import (
	"cmp"
	"fmt"
	"slices"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operation"
	"tributary/internal/transaction"
)

// Lock orders the writes that enter corrections of the same originals; always in
// one order, so that two of them never wait for each other.
func Lock(tx *db.Tx, ops []*operation.Operation) error {
	var names []string
	for _, o := range ops {
		for _, id := range o.RefersTo() {
			names = append(names, "original|"+o.Scope+"|"+id)
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

// booked is a correction in its original's account.
type booked struct {
	transactionID string
	whole         bool
	cancelled     bool // it was withdrawn altogether
	amount        int64
	done          bool // it succeeded; else it is on its way
}

// readAccount reads the other corrections of one of an operation's originals. One that was
// itself taken back as a whole no longer counts, but for what stays of it: a
// substitution that was credited has still taken its original back.
func readAccount(tx *db.Tx, o *operation.Operation, originalID string) ([]booked, error) {
	const takenBack = `EXISTS (SELECT 1 FROM corrections x JOIN operations p ON p.operation_id = x.operation_id WHERE x.client_id = c.client_id
				AND x.original_id = c.transaction_id AND p.status = 'SUCCESS' AND x.kind = `
	list, err := db.Collect(tx, func(scan func(...any) error) (b booked, err error) {
		return b, scan(&b.transactionID, &b.whole, &b.cancelled, &b.amount, &b.done)
	}, `SELECT c.transaction_id, c.kind IN ('CREDIT', 'CANCELLATION'), c.kind = 'CANCELLATION', CASE WHEN `+takenBack+`'CREDIT') THEN c.rest ELSE c.amount END, o.status = 'SUCCESS'
		FROM corrections c JOIN operations o ON o.operation_id = c.operation_id
		WHERE c.client_id = $1 AND c.original_id = $2 AND c.transaction_id <> $3 AND c.kind <> 'PAYMENT'
			AND NOT `+takenBack+`'CANCELLATION') AND (c.rest <> 0 OR NOT `+takenBack+`'CREDIT'))
		ORDER BY c.operation_id`, o.Scope, originalID, o.TransactionID)
	if err != nil {
		return nil, fmt.Errorf("read corrections: %w", err)
	}
	return list, nil
}

// Claim is an operation that is about to be filed, with what it takes from what
// it refers to.
type Claim struct {
	*operation.Operation
	References
	Effect       *country.Effect  // on its original, as its pack says; nil: what it amounts to
	Effects      []country.Effect // the same on each of several
	InSuccession bool             // the authority wants corrections of one original one after another
	Adopted      bool             // the authority holds it already
}

// Reserve enters a correction in the account of its originals, or says why it
// cannot be: one full credit or one cancellation, and adjustments within the sum
// of each; what the authority holds already is entered in any case. What only
// corrections that are still on their way forbid waits for them. Payments for one
// document are filed one after another: each names what was owed before it. The
// caller holds the originals' locks.
func Reserve(tx *db.Tx, c Claim) (Verdict, error) {
	if !c.Correction() {
		return Verdict{}, nil
	}
	ids, pays := c.RefersTo(), c.Kind == transaction.PaymentReport
	if !c.Adopted {
		if c.InSuccession || pays {
			for _, id := range ids {
				if v, err := succession(tx, c.Operation, c.Earlier, id); err != nil || v != (Verdict{}) {
					return v, err
				}
			}
		}
		for i := range ids {
			if pays {
				break
			}
			if v, err := c.allowed(tx, i); err != nil || v != (Verdict{}) {
				return v, err
			}
		}
	}
	for i, id := range ids {
		if err := c.enter(tx, id, c.effect(i)); err != nil {
			return Verdict{}, err
		}
	}
	return Verdict{}, nil
}

// allowed asks the account of one of a correction's originals.
func (c Claim) allowed(tx *db.Tx, i int) (Verdict, error) {
	id, effect := c.RefersTo()[i], c.effect(i)
	account, err := readAccount(tx, c.Operation, id)
	if err != nil {
		return Verdict{}, err
	}
	var done []booked
	open := ""
	for _, other := range account {
		if other.done {
			done = append(done, other)
		} else {
			open = cmp.Or(open, other.transactionID)
		}
	}
	if effect.Exact && open != "" {
		return Verdict{Behind: open}, nil // what is left is not known yet
	}
	refuse := func(code fault.Code, what string) *fault.Fault { return c.Refers(id, code, what) }
	original := c.Original
	if len(c.Shares) > 0 {
		original = &c.Shares[i].Original
	}
	if f := forbids(done, original, effect, refuse); f != nil {
		return Verdict{Refused: f}, nil
	}
	if f := forbids(account, original, effect, refuse); f != nil {
		return Verdict{Behind: open}, nil
	}
	return Verdict{}, nil
}

// enter writes an operation in the account of a transaction that it refers to.
func (c Claim) enter(tx *db.Tx, originalID string, effect country.Effect) error {
	return tx.Exec(`INSERT INTO corrections (client_id, original_id, transaction_id, operation_id, kind, amount, rest) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (client_id, original_id, transaction_id) DO UPDATE SET operation_id = excluded.operation_id, kind = excluded.kind,
			amount = excluded.amount, rest = excluded.rest`,
		c.Scope, originalID, c.TransactionID, c.ID, string(c.Kind), effect.Amount, effect.Rest)
}

// effect is what a correction takes from one of its originals: what its pack
// says, else its share of it, else what it amounts to.
func (c Claim) effect(i int) country.Effect {
	switch {
	case c.Kind == transaction.PaymentReport:
		return country.Effect{Amount: c.Document.Shares[i].Amount}
	case len(c.Shares) > 0 && len(c.Effects) == len(c.Shares):
		return c.Effects[i]
	case len(c.Shares) > 0:
		return country.Effect{Amount: c.Shares[i].Amount}
	case c.Effect != nil:
		return *c.Effect
	case c.Kind != transaction.Adjustment:
		return country.Effect{Amount: -c.Original.Totals.Gross}
	}
	return country.Effect{Amount: c.Totals.Gross}
}

// Undo takes corrections that failed out of the account of their originals.
func Undo(tx *db.Tx, failed []*operation.Operation) error {
	var rows [][]any
	for _, o := range failed {
		for _, id := range o.RefersTo() {
			rows = append(rows, []any{o.Scope, id, o.ID})
		}
	}
	return tx.ExecEach("DELETE FROM corrections WHERE client_id = $1 AND original_id = $2 AND operation_id = $3", rows)
}

// Forget destroys by how much retired operations were corrected; by what stays.
func Forget(tx *db.Tx, d *db.DB, list string) error {
	return tx.Exec("UPDATE corrections SET amount = 0 WHERE (client_id, original_id) IN (SELECT client_id, transaction_id FROM operations WHERE status = 'SUCCESS' AND "+
		d.In("operation_id", "$1")+")", list)
}

// forbids says why an amount may not be taken from an original besides the
// corrections in its account; nil: it may.
func forbids(account []booked, original *country.Original, effect country.Effect,
	refuse func(fault.Code, string) *fault.Fault) *fault.Fault {
	adjusted, amount := int64(0), effect.Amount
	for _, c := range account {
		if c.whole && (c.cancelled || effect != (country.Effect{})) { // what takes nothing mends the record of what was credited
			return refuse(fault.ReferenceAlreadyCorrected, "was already credited or cancelled")
		}
		if effect.Alone && c.amount != 0 {
			return refuse(fault.ReferenceAlreadyCorrected,
				"was corrected by "+c.transactionID+
					" already: a document that replaces it would not say so. Correct it by the difference, or take that one back first")
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
