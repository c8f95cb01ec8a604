package filing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/hold"
	"tributary/internal/operation"
)

// documentsBatch is how many operations go together where only documents are made.
const documentsBatch = 40

// open learns everything the lane's operations share.
func (v *visit) open(ctx context.Context) (err error) {
	atlas := v.s.cfg.Atlas
	var ok bool
	if v.lane.pack, ok = atlas.Pack(v.lane.at.Code); !ok {
		return fmt.Errorf("country %s is not in this program any more", v.lane.at.Code)
	}
	v.lane.limits = country.Limits{Batch: documentsBatch, Parallel: operation.DocumentShards}
	if v.lane.pack.Connect != nil {
		if v.lane.channel, err = atlas.Channel(v.lane.at.Code, v.lane.at.Live); err != nil {
			return err
		}
		v.lane.limits = v.lane.channel.Limits()
	}
	if v.lane.at.SupplierID == "" {
		return nil
	}
	if err := v.openSupplier(ctx); err != nil || !v.lane.known || v.lane.channel == nil {
		return err
	}
	if err := v.holdNewcomer(ctx); err != nil {
		return err
	}
	if v.lane.creds, err = v.s.cfg.Companies.Credentials(ctx, v.lane.at.Scope, v.lane.at.SupplierID); err != nil {
		return fmt.Errorf("open the supplier's credentials: %w", err)
	}
	return v.signAnew(ctx)
}

// openSupplier reads whose lane it is, and whether anything of it may be filed.
func (v *visit) openSupplier(ctx context.Context) error {
	err := v.s.db.ReadEach(ctx, func(r db.Reader) (err error) {
		if v.lane.channel != nil {
			if err := v.learnHold(r); err != nil {
				return err
			}
			if v.lane.version, err = credentialVersion(r, v.lane.at.Scope, v.lane.at.SupplierID); err != nil {
				return err
			}
		}
		v.lane.supplier, err = v.s.cfg.Companies.Supplier(r, v.lane.at.Scope, v.lane.at.SupplierID)
		return err
	})
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the supplier: %w", err)
	}
	if v.lane.supplier.Closed {
		return nil // as if it were not there: what it issued stays
	}
	v.lane.known, v.lane.location = true, v.s.cfg.Atlas.Zone(v.lane.supplier.Address, v.lane.pack)
	return nil
}

// learnHold finds out whether anything of the supplier may be filed, and
// whether documents wait for their operations.
func (v *visit) learnHold(r db.Reader) error {
	var reason, why *string
	var released *int64
	var looked, newcomers bool
	var gaps int
	err := r.Row(`SELECT h.reason, h.why, h.released_at, h.client_id IS NOT NULL, coalesce(i.newcomers_until, 0) > $3, i.newcomers_from IS NOT NULL,
		(SELECT count(*) FROM (SELECT 1 FROM adoptions WHERE client_id = $1 AND supplier_id = $2 AND operation_id IS NULL LIMIT 1) AS one)
		FROM (SELECT 1 AS one) AS x LEFT JOIN supplier_holds h ON h.client_id = $1 AND h.supplier_id = $2 LEFT JOIN intake i ON i.one = x.one`,
		v.lane.at.Scope, v.lane.at.SupplierID, db.Micros(r.Now())).Scan(&reason, &why, &released, &looked, &newcomers, &v.lane.restored, &gaps)
	if err != nil {
		return fmt.Errorf("look for a hold: %w", err)
	}
	v.lane.adopting, v.lane.newcomer = gaps > 0, newcomers && !looked
	if looked && released == nil {
		v.held = &hold.Hold{Place: v.lane.at, Reason: fault.Code(*reason), Why: *why}
	}
	return nil
}

// holdNewcomer holds a company that is younger than a restored backup: it may be
// one that was lost with its sales and onboarded again. Recovery asks its
// authority and releases it.
func (v *visit) holdNewcomer(ctx context.Context) error {
	if !v.lane.newcomer || v.lane.pack.Keeps(&v.lane.supplier) {
		return nil
	}
	company, err := v.s.cfg.Companies.Company(ctx, v.lane.at.Scope, v.lane.at.SupplierID, false)
	if err != nil {
		return fmt.Errorf("read the company: %w", err)
	}
	held := hold.Hold{Place: v.lane.at, Reason: fault.Held, Why: "a company that is new after a restored backup; its authority has not said yet what it holds"}
	return v.s.db.Write(ctx, func(tx *db.Tx) error {
		var from int64
		if err := tx.Row("SELECT newcomers_from FROM intake").Scan(&from); err != nil {
			return err
		}
		if time.Time(company.CreatedAt).Before(db.FromMicros(from)) {
			return nil // onboarded by a program without authorities for its country; nothing was filed
		}
		v.held = &held
		return held.Store(tx)
	})
}

// signAnewAtOnce is how many operations one commit of signAnew changes.
const signAnewAtOnce = 1000

// signAnew acts on new credentials: what the authority certainly does not hold is
// built and signed again, except in a chain, whose positions are fixed; what it
// may hold keeps its bytes. That includes what was refused for the old
// credentials: with its old signature it would be refused for ever.
func (v *visit) signAnew(ctx context.Context) error {
	if v.lane.version == v.lease.Row.credentials {
		return nil
	}
	for more := !v.lane.chained(); more; {
		var list []transition
		err := v.s.db.Read(ctx, func(r db.Reader) (err error) {
			list, err = db.Collect(r, func(scan func(...any) error) (t transition, err error) {
				t = transition{move: signedAnew, from: Prepared}
				return t, scan(&t.id)
			}, "SELECT operation_id FROM operations WHERE lane = $1 AND due_at IS NOT NULL AND stage = 'prepared' LIMIT $2", v.lease.ID, signAnewAtOnce)
			return err
		})
		if err == nil && len(list) > 0 {
			err = v.commit(ctx, func(time.Time) []transition { return list }, func(tx *db.Tx) error {
				return tx.Exec("DELETE FROM filings WHERE "+v.s.db.In("operation_id", "$1"), db.Strings(moving(list)))
			})
		}
		if err != nil {
			return fmt.Errorf("sign %d filings anew: %w", len(list), err)
		}
		more = len(list) == signAnewAtOnce
	}
	if v.health.lacksCredentials() {
		v.health.recovered()
	}
	// Stored when the lane is left. Whoever visits it after a crash before that
	// signs once more what was not sent.
	v.health.acted = v.lane.version
	return nil
}

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
	return endPausesOf(tx, [2]string{clientID, companyID}, "", fault.CredentialsInvalid)
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
