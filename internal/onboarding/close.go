package onboarding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// Close ends a company: nothing more is issued in its name, its credentials are
// forgotten, its tax number may be onboarded anew. What was issued stays, and so
// does the external_id. busy reports, in the same commit, whether work of the
// company is open elsewhere; then, and while a change of it is under way, the
// answer is fault.Conflict. Closing twice is as once. Unknown: fault.NotFound.
func (c *Companies) Close(ctx context.Context, clientID, id string, busy func(db.Reader) (bool, error)) error {
	err := c.db.Write(ctx, func(tx *db.Tx) error {
		var text string
		err := tx.Row(supplierSQL, clientID, id).Scan(&text)
		if errors.Is(err, db.ErrNoRows) {
			return notFound("company")
		}
		if err != nil {
			return err
		}
		var p profile
		if err := decodeProfile(text, &p); err != nil || p.Closed {
			return err
		}
		var jobs int64
		err = tx.Row("SELECT count(*) FROM onboarding_jobs WHERE client_id = $1 AND company_id = $2 AND status IN ('pending', 'processing')", clientID, id).Scan(&jobs)
		if err != nil {
			return err
		}
		open, err := busy(tx)
		if err != nil {
			return err
		}
		if jobs > 0 || open {
			return fault.New(fault.Conflict, "the company has transactions or changes in progress").
				With(fault.Fault{Code: fault.CodeConflict, Type: fault.General,
					Message: "wait until its transactions and changes have finished"})
		}
		p.Closed = true
		closed, err := json.Marshal(&p)
		if err != nil {
			return err
		}
		// The key that keeps a tax number to itself becomes one that no number has.
		err = tx.ExecOne("UPDATE companies SET profile = $1, tax_key = $2, updated_at = $3 WHERE client_id = $4 AND company_id = $5",
			string(closed), "closed "+id, db.Micros(tx.Now()), clientID, id)
		if err != nil {
			return err
		}
		return tx.Exec("DELETE FROM company_credentials WHERE client_id = $1 AND company_id = $2", clientID, id)
	})
	if err != nil {
		return fmt.Errorf("close company %s: %w", id, err)
	}
	return nil
}
