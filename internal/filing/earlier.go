package filing

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
)

// earlierBytesMax bounds the bodies of the earlier corrections that one more is handed.
const earlierBytesMax = 32 << 20

// meetEarlier hands a correction those of the same original that succeeded
// before it, in the order in which they were filed. False: there are too many.
func (b *batch) meetEarlier(ctx context.Context, o *operation, originalID string, original *country.Original) (goOn bool, err error) {
	most := cmp.Or(b.earlierMax, earlierBytesMax)
	err = b.db.Read(ctx, func(r db.Reader) error {
		var bytes int64
		if err := r.Row("SELECT coalesce(sum(x.bytes), 0) "+othersOf+" AND x.status = 'SUCCESS'", o.scope, originalID, o.transactionID).Scan(&bytes); err != nil {
			return err
		}
		if bytes > most {
			b.fail(o, o.refers(originalID, fault.UnsupportedOperation, fmt.Sprintf("has corrections of %d bytes in all, more than can be taken into account for another one (%d)", bytes, most)))
			return nil
		}
		goOn = true
		var ids []string
		original.Corrections, ids, err = b.earlierOf(r, o, originalID)
		o.earlier = append(o.earlier, ids...)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("read earlier corrections: %w", err)
	}
	return goOn, nil
}

// othersOf are the other corrections of a correction's original.
const othersOf = "FROM corrections c JOIN operations x ON x.operation_id = c.operation_id WHERE c.client_id = $1 AND c.original_id = $2 AND c.transaction_id <> $3"

func (s *Service) earlierOf(r db.Reader, o *operation, originalID string) (list []country.Earlier, ids []string, err error) {
	ids, err = db.Collect(r, func(scan func(...any) error) (id string, err error) { return id, scan(&id) },
		"SELECT c.operation_id "+othersOf+" AND x.status = 'SUCCESS' ORDER BY c.operation_id", o.scope, originalID, o.transactionID)
	if err != nil {
		return nil, nil, err
	}
	type filed struct {
		at time.Time
		country.Earlier
	}
	all := make([]filed, len(ids))
	for i, id := range ids {
		one, err := s.operation(r, o.scope, id)
		if err != nil {
			return nil, nil, err
		}
		e := &all[i]
		e.Transaction, e.Totals, e.Number, e.at = *one.document, one.totals, one.number, one.acceptedAt
		var report []byte
		var stored string
		switch err := r.Row("SELECT report, filing FROM filings WHERE operation_id = $1", id).Scan(&report, &stored); {
		case err == nil:
			f, err := ReadFiling(stored, report)
			if err != nil {
				return nil, nil, err
			}
			e.Report, e.Number, e.at = f.Report, cmp.Or(f.Number, e.Number), f.PreparedAt
		case !errors.Is(err, db.ErrNoRows):
			return nil, nil, err
		}
		result, err := StoredResult(r, id)
		if err != nil {
			return nil, nil, err
		}
		e.AuthorityID1, e.AuthorityID2 = text(result.AuthorityID1), text(result.AuthorityID2)
		if e.Cancelled, err = withdrawn(r, o.scope, one.transactionID); err != nil {
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

// inSuccession lets corrections of one original be filed one after another,
// where the authority wants it.
func (b *batch) inSuccession(tx *db.Tx, o *operation) (reserved, error) {
	if !b.limits.InSuccession {
		return reserved{}, nil
	}
	for _, id := range o.refersTo() {
		if why, err := succession(tx, o, id); err != nil || why != (reserved{}) {
			return why, err
		}
	}
	return reserved{}, nil
}

// succession is whether an operation is the next that refers to an original: one
// that is on its way is waited for, and one that ended since this was prepared
// must be known to it. The caller holds the original's lock.
func succession(tx *db.Tx, o *operation, originalID string) (reserved, error) {
	type other struct {
		id, transactionID string
		status            Status
	}
	others, err := db.Collect(tx, func(scan func(...any) error) (x other, err error) { return x, scan(&x.id, &x.transactionID, &x.status) },
		"SELECT c.operation_id, c.transaction_id, x.status "+othersOf+" ORDER BY c.operation_id", o.scope, originalID, o.transactionID)
	if err != nil {
		return reserved{}, fmt.Errorf("read the other corrections: %w", err)
	}
	for _, x := range others {
		if x.status == Processing {
			return reserved{behind: x.transactionID}, nil
		}
		if x.status == Success && !slices.Contains(o.earlier, x.id) {
			return reserved{again: true}, nil
		}
	}
	return reserved{}, nil
}
