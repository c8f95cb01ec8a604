package filing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// signAnewAtOnce is how many operations one commit of signAnew changes.
const signAnewAtOnce = 1000

// CredentialsChanged says, in the commit that replaces a supplier's
// credentials, that there are new ones. It raises their version and ends our own
// pause of the supplier's lanes; whoever holds a lane compares the version and
// acts, see visit.signAnew. Nobody else touches what rides in it.
func CredentialsChanged(tx *db.Tx, clientID, companyID string) error {
	if err := tx.Lock(credentialsLock(clientID, companyID)); err != nil {
		return err
	}
	err := tx.Exec(`INSERT INTO credential_versions (client_id, supplier_id, version) VALUES ($1, $2, 1)
		ON CONFLICT (client_id, supplier_id) DO UPDATE SET version = credential_versions.version + 1`, clientID, companyID)
	if err != nil {
		return err
	}
	lanes, err := lanesOfSupplier(tx, clientID, companyID)
	if err != nil {
		return err
	}
	rows := make([][]any, len(lanes))
	for i, lane := range lanes {
		rows[i] = []any{lane, db.Micros(tx.Now()), string(fault.CredentialsInvalid)}
	}
	tx.Wake(laneQueue.Table)
	return tx.ExecEach("UPDATE lanes SET "+soonAgain+" WHERE lane = $1 AND lease_until IS NULL AND reason = $3", rows)
}

// credentialsLock orders the replacement of credentials and the pause of a lane for want of them.
func credentialsLock(clientID, companyID string) string {
	return "credentials|" + clientID + "|" + companyID
}

func credentialVersion(r db.Reader, clientID, companyID string) (version int64, err error) {
	err = r.Row("SELECT version FROM credential_versions WHERE client_id = $1 AND supplier_id = $2", clientID, companyID).Scan(&version)
	if errors.Is(err, db.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of the credentials: %w", err)
	}
	return version, nil
}

// signAnew acts on new credentials: what the authority certainly does not hold is
// built and signed again, except in a chain, whose positions are fixed; what it
// may hold keeps its bytes. That includes what was refused for the old
// credentials: with its old signature it would be refused for ever.
func (v *visit) signAnew(ctx context.Context) error {
	if v.version == v.lease.Row.credentials {
		return nil
	}
	for more := !v.chained; more; {
		var list []transition
		err := v.db.Read(ctx, func(r db.Reader) (err error) {
			list, err = db.Collect(r, func(scan func(...any) error) (t transition, err error) {
				t = transition{move: signedAnew, from: Prepared}
				return t, scan(&t.id)
			}, "SELECT operation_id FROM operations WHERE lane = $1 AND due_at IS NOT NULL AND stage = 'prepared' LIMIT $2", v.lease.ID, signAnewAtOnce)
			return err
		})
		if err == nil && len(list) > 0 {
			err = v.commit(ctx, func(time.Time) []transition { return list }, func(tx *db.Tx) error {
				return tx.Exec("DELETE FROM filings WHERE "+v.db.In("operation_id", "$1"), db.Strings(idsOf(list)))
			})
		}
		if err != nil {
			return fmt.Errorf("sign %d filings anew: %w", len(list), err)
		}
		more = len(list) == signAnewAtOnce
	}
	if v.lacksCredentials() {
		v.recovered()
	}
	// Stored when the lane is left. Whoever visits it after a crash before that
	// signs once more what was not sent.
	v.acted = v.version
	return nil
}

func idsOf(list []transition) []string {
	ids := make([]string, len(list))
	for i, t := range list {
		ids[i] = t.id
	}
	return ids
}
