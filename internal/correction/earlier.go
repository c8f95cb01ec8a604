package correction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operation"
	"tributary/internal/result"
)

// earlierBytesMax bounds the bodies of the earlier corrections that one more is handed.
const earlierBytesMax = 32 << 20

// earlier are the corrections of the same original that succeeded before this
// one, in the order in which they were filed, and their operations.
func (t Terms) earlier(ctx context.Context, o *operation.Operation,
	originalID string) (list []country.Earlier, ids []string, v Verdict, err error) {
	most := cmp.Or(t.EarlierMax, earlierBytesMax)
	err = t.DB.Read(ctx, func(r db.Reader) error {
		var bytes int64
		if err := r.Row("SELECT coalesce(sum(x.bytes), 0) "+othersOf+" AND x.status = 'SUCCESS'", o.Scope, originalID,
			o.TransactionID).Scan(&bytes); err != nil {
			return err
		}
		if bytes > most {
			v.Refused = o.Refers(originalID, fault.UnsupportedOperation,
				fmt.Sprintf("has corrections of %d bytes in all, more than can be taken into account for another one (%d)", bytes, most))
			return nil
		}
		list, ids, err = earlierOf(r, o, originalID)
		return err
	})
	if err != nil {
		return nil, nil, v, fmt.Errorf("read earlier corrections: %w", err)
	}
	return list, ids, v, nil
}

// othersOf are the other corrections of a correction's original.
const othersOf = "FROM corrections c JOIN operations x ON x.operation_id = c.operation_id WHERE c.client_id = $1 AND c.original_id = $2 AND c.transaction_id <> $3"

func earlierOf(r db.Reader, o *operation.Operation, originalID string) (list []country.Earlier, ids []string, err error) {
	ids, err = db.Collect(r, func(scan func(...any) error) (id string, err error) { return id, scan(&id) },
		"SELECT c.operation_id "+othersOf+" AND x.status = 'SUCCESS' ORDER BY c.operation_id", o.Scope, originalID, o.TransactionID)
	if err != nil {
		return nil, nil, err
	}
	type filed struct {
		at time.Time
		country.Earlier
	}
	all := make([]filed, len(ids))
	for i, id := range ids {
		one, err := Read(r, o.Scope, id)
		if err != nil {
			return nil, nil, err
		}
		e := &all[i]
		e.Transaction, e.Totals, e.Number, e.at = *one.Document, one.Totals, one.Number, one.AcceptedAt
		var report []byte
		var stored string
		switch err := r.Row("SELECT report, filing FROM filings WHERE operation_id = $1", id).Scan(&report, &stored); {
		case err == nil:
			f, err := operation.ReadFiling(stored, report)
			if err != nil {
				return nil, nil, err
			}
			e.Report, e.Number, e.at = f.Report, cmp.Or(f.Number, e.Number), f.PreparedAt
		case !errors.Is(err, db.ErrNoRows):
			return nil, nil, err
		}
		ended, err := result.Stored(r, id)
		if err != nil {
			return nil, nil, err
		}
		e.AuthorityID1, e.AuthorityID2 = result.Text(ended.AuthorityID1), result.Text(ended.AuthorityID2)
		if e.Cancelled, err = withdrawn(r, o.Scope, one.TransactionID); err != nil {
			return nil, nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b filed) int { return a.at.Compare(b.at) })
	for _, e := range all {
		list = append(list, e.Earlier)
	}
	return list, ids, nil
}

// withdrawn reports whether a transaction was cancelled.
func withdrawn(r db.Reader, scope, transactionID string) (yes bool, err error) {
	var n int64
	err = r.Row(`SELECT count(*) FROM corrections c JOIN operations x ON x.operation_id = c.operation_id
		WHERE c.client_id = $1 AND c.original_id = $2 AND c.kind = 'CANCELLATION' AND x.status = 'SUCCESS'`, scope, transactionID).Scan(&n)
	return n > 0, err
}

// succession is whether an operation is the next that refers to an original: one
// that is on its way is waited for, and one that ended since this was prepared
// must be known to it. The caller holds the original's lock.
func succession(tx *db.Tx, o *operation.Operation, known []string, originalID string) (Verdict, error) {
	type other struct {
		id, transactionID string
		status            operation.Status
	}
	others, err := db.Collect(tx, func(scan func(...any) error) (x other, err error) {
		return x, scan(&x.id, &x.transactionID, &x.status)
	},
		"SELECT c.operation_id, c.transaction_id, x.status "+othersOf+" ORDER BY c.operation_id", o.Scope, originalID,
		o.TransactionID)
	if err != nil {
		return Verdict{}, fmt.Errorf("read the other corrections: %w", err)
	}
	for _, x := range others {
		if x.status == operation.Processing {
			return Verdict{Behind: x.transactionID}, nil
		}
		if x.status == operation.Success && !slices.Contains(known, x.id) {
			return Verdict{Again: true}, nil
		}
	}
	return Verdict{}, nil
}
