package filing

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/transaction"
)

// loadSet is how many transactions one commit of LoadSettled carries.
const loadSet = 500

// LoadSettled stores settled transactions directly, so that a benchmark can see
// how the service does when it is old. body makes the i-th body.
func (s *Service) LoadSettled(ctx context.Context, caller Caller, n int, body func(i int) []byte) error {
	for from := 0; from < n; from += loadSet {
		var set []submission
		for i := from; i < min(n, from+loadSet); i++ {
			text := body(i)
			examined, err := country.Examine(transaction.Invoice, text, s.terms(caller))
			if err != nil {
				return err
			}
			id, err := uuid.NewV7()
			if err != nil {
				return err
			}
			set = append(set, s.submission(id.String(), caller, examined, text))
		}
		if err := s.db.Write(ctx, func(tx *db.Tx) error { return s.storeSettled(tx, set) }); err != nil {
			return fmt.Errorf("load settled transactions: %w", err)
		}
	}
	return nil
}

func (s *Service) storeSettled(tx *db.Tx, set []submission) error {
	now := db.Micros(tx.Now())
	var transactions, operations, bodies, filings [][]any
	for _, sub := range set {
		t := sub.examined.Transaction
		o := &operation{id: sub.operationID, transactionID: t.ID, kind: t.Kind, code: sub.examined.Pack.Code, supplierID: t.SupplierID,
			document: t, totals: sub.examined.Totals, acceptedAt: tx.Now()}
		result := describe(o, sub.examined.Pack, country.Supplier{})
		result.Status = Success
		transactions = append(transactions, []any{sub.caller.Scope, t.ID, 1, 0, sub.operationID})
		operations = append(operations, []any{
			sub.operationID, sub.caller.Scope, t.ID, 1, string(t.Kind), o.code, bool(sub.caller.Live), string(sub.examined.UseCase), t.SupplierID, t.Number,
			db.Micros(t.Date), now, nil, sub.lane, string(Settled), string(Success), nil, sub.examined.Pack.Version, len(sub.body), now, encodeResult(result),
		})
		bodies = append(bodies, []any{sub.operationID, sub.body, nil, db.Null(sub.digest)})
		filings = append(filings, []any{sub.operationID, sub.body, sub.operationID, "{}"})
	}
	if err := tx.Insert("transactions", "client_id,transaction_id,attempts,open,success_id", transactions...); err != nil {
		return err
	}
	if err := tx.Insert("operations", operationColumns+",settled_at,result", operations...); err != nil {
		return err
	}
	if err := tx.Insert("bodies", "operation_id,body,warnings,digest", bodies...); err != nil {
		return err
	}
	return tx.Insert("filings", "operation_id,report,sha256,filing", filings...)
}
