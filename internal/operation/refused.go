package operation

import (
	"context"
	"encoding/json"
	"fmt"

	"tributary/internal/country"
	"tributary/internal/db"
)

// Refused are the filings of earlier attempts that the authority refused:
// some must be told that this is the mended one.
func Refused(ctx context.Context, d *db.DB, o *Accepted) (refused []country.Filing, err error) {
	if o.Attempt <= 1 {
		return nil, nil
	}
	type attempt struct{ filing, receipt string }
	err = d.Read(ctx, func(r db.Reader) error {
		attempts, err := db.Collect(r, func(scan func(...any) error) (a attempt, err error) {
			return a, scan(&a.filing, &a.receipt)
		},
			`SELECT f.filing, f.receipt FROM operations o JOIN filings f ON f.operation_id = o.operation_id
				WHERE o.client_id = $1 AND o.transaction_id = $2 AND o.Attempt < $3 AND o.status = 'FAILURE' AND f.receipt IS NOT NULL ORDER BY o.Attempt`,
			o.Scope, o.TransactionID, o.Attempt)
		if err != nil {
			return err
		}
		for _, a := range attempts {
			var before country.Receipt
			if err := json.Unmarshal([]byte(a.receipt), &before); err != nil {
				return err
			}
			if before.Outcome != country.Rejected {
				continue
			}
			f, err := ReadFiling(a.filing, nil)
			if err != nil {
				return err
			}
			refused = append(refused, f)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for refusals of %s: %w", o.ID, err)
	}
	return refused, nil
}
