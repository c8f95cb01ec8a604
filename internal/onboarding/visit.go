package onboarding

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// Some authorities want a person to agree before they let us act for a company:
// the pack answers an address to visit, and a browser brings a grant back to ours.
//
// Failure policy: the state in the address is good once and for ten minutes. It
// is used up in the commit that keeps what came with it, so a reloaded page, a
// second browser or a second node finish nothing. A visit that nobody made is
// replaced by a fresh address for a week; then the job fails. What was brought
// is sealed like credentials and forgotten with the job's end.
const (
	StateFor      = 10 * time.Minute
	visitsFor     = 7 * 24 * time.Hour
	broughtMax    = 16 << 10 // bytes of what a browser brings back
	purposeGrant  = "onboarding_grant"
	visitBytesMax = 4000
)

// Visit is an address that a person must visit, and until when.
type Visit struct {
	URL       string    `json:"url"`
	ExpiresAt Timestamp `json:"expires_at"`
}

const (
	putVisitSQL = `INSERT INTO onboarding_visits (job_id, client_id, company_id, country, live, state, address, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (job_id) DO UPDATE SET state = excluded.state, address = excluded.address, expires_at = excluded.expires_at, used_at = NULL, brought = NULL`
	visitSQL     = "SELECT address, created_at, expires_at, used_at, brought FROM onboarding_visits WHERE job_id = $1"
	openVisitSQL = `SELECT v.address, v.expires_at FROM onboarding_visits v JOIN onboarding_jobs j ON j.job_id = v.job_id
		WHERE v.client_id = $1 AND v.company_id = $2 AND v.used_at IS NULL AND v.expires_at > $3 AND j.status IN ('pending', 'processing')`
	stateSQL = `SELECT v.job_id, v.client_id, v.company_id, v.expires_at, v.used_at, j.status FROM onboarding_visits v
		JOIN onboarding_jobs j ON j.job_id = v.job_id WHERE v.state = $1 AND v.country = $2 AND v.live = $3`
	useVisitSQL    = "UPDATE onboarding_visits SET used_at = $1, brought = $2 WHERE state = $3 AND used_at IS NULL AND expires_at > $1"
	forgetVisitSQL = "UPDATE onboarding_visits SET brought = NULL WHERE job_id = $1"
)

// visiting is the visit of a job as it stands.
type visiting struct {
	address            string
	createdAt, expires time.Time
	used               bool
	brought            []byte
}

func readVisit(r db.Reader, jobID string) (*visiting, error) {
	v := &visiting{}
	var created, expires int64
	var used *int64
	err := r.Row(visitSQL, jobID).Scan(&v.address, &created, &expires, &used, &v.brought)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the authorization of job %s: %w", jobID, err)
	}
	v.createdAt, v.expires, v.used = db.FromMicros(created), db.FromMicros(expires), used != nil
	return v, nil
}

// visitOf reads the visit of a job, and how long it is still to be waited for.
func (c *Companies) visitOf(ctx context.Context, job *claimed) (v *visiting, wait time.Duration, err error) {
	err = c.db.Read(ctx, func(r db.Reader) error {
		if v, err = readVisit(r, job.id); err != nil || v == nil || v.used {
			return err
		}
		wait = max(0, v.expires.Sub(r.Now()))
		return nil
	})
	return v, wait, err
}

// tooOld reports whether addresses were given for long enough.
func (v *visiting) tooOld(now time.Time) bool { return v != nil && now.Sub(v.createdAt) > visitsFor }

func newState() (state, digest string) {
	var b [32]byte
	rand.Read(b[:]) // never fails: the runtime ends the program instead
	state = base64.RawURLEncoding.EncodeToString(b[:])
	return state, stateDigest(state)
}

func stateDigest(state string) string {
	sum := sha256.Sum256([]byte(state))
	return hex.EncodeToString(sum[:])
}

// grantOf opens what a browser brought back for a job; nil: nothing came yet.
func (c *Companies) grantOf(ctx context.Context, job *claimed, v *visiting) (url.Values, error) {
	if v == nil || v.brought == nil {
		return nil, nil
	}
	sealer, err := c.sealer(ctx, job.clientID)
	if err != nil {
		return nil, err
	}
	var brought url.Values
	err = openJSON(sealer, v.brought, bound(job.clientID, job.id, purposeGrant), &brought)
	return brought, err
}

// await lets a job wait for a person who visits an address.
func (c *Companies) await(ctx context.Context, job *claimed, e *examined) (time.Duration, error) {
	if len(e.visit) > visitBytesMax {
		return 0, fmt.Errorf("the authorization URL of job %s has %d bytes", job.id, len(e.visit))
	}
	err := c.db.Write(ctx, func(tx *db.Tx) error {
		now := tx.Now()
		if err := tx.Exec(putVisitSQL, job.id, job.clientID, job.companyID, job.country, job.live, e.state, e.visit,
			db.Micros(now), db.Micros(now.Add(StateFor))); err != nil {
			return err
		}
		return job.giveBack(tx, 0, now.Add(StateFor))
	})
	if err != nil {
		return 0, fmt.Errorf("let onboarding job %s wait for authorization: %w", job.id, err)
	}
	return StateFor, nil
}

// Returned takes what a browser brought back from an authority. A state that is
// not known is fault.NotFound, one that was used fault.Conflict, one whose time
// is over fault.Expired.
func (c *Companies) Returned(ctx context.Context, at country.Environment, brought url.Values) error {
	digest, now := stateDigest(brought.Get("state")), c.db.Now()
	var jobID, clientID, companyID, status string
	var expires int64
	var used *int64
	err := c.db.Read(ctx, func(r db.Reader) error {
		return r.Row(stateSQL, digest, at.Code, bool(at.Live)).Scan(&jobID, &clientID, &companyID, &expires, &used, &status)
	})
	switch {
	case errors.Is(err, db.ErrNoRows):
		return fault.New(fault.NotFound, "unknown state")
	case err != nil:
		return fmt.Errorf("find an authorization: %w", err)
	case used != nil || status != Pending && status != Processing:
		return fault.New(fault.Conflict, "the state was already used")
	case !now.Before(db.FromMicros(expires)):
		return fault.New(fault.Expired, "the state has expired")
	case len(brought.Encode()) > broughtMax:
		return fault.New(fault.Invalid, "the URL is too long")
	}
	sealer, err := c.sealer(ctx, clientID)
	if err != nil {
		return err
	}
	kept, err := sealJSON(sealer, brought, bound(clientID, jobID, purposeGrant))
	if err != nil {
		return fmt.Errorf("seal the authorization of job %s: %w", jobID, err)
	}
	err = c.db.Write(ctx, func(tx *db.Tx) error {
		if err := tx.ExecOne(useVisitSQL, db.Micros(tx.Now()), kept, digest); err != nil {
			return err
		}
		tx.Wake(jobsTable)
		return tx.Exec(dueSQL, db.Micros(tx.Now()), jobID)
	})
	if errors.Is(err, db.ErrStale) {
		return fault.New(fault.Conflict, "the state was already used")
	}
	if err != nil {
		return fmt.Errorf("store the authorization of job %s: %w", jobID, err)
	}
	return nil
}

// openVisit is the address that a person must visit for a company, or nil.
func openVisit(r db.Reader, clientID, companyID string) (*Visit, error) {
	var address string
	var expires int64
	err := r.Row(openVisitSQL, clientID, companyID, db.Micros(r.Now())).Scan(&address, &expires)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find an authorization: %w", err)
	}
	return &Visit{URL: address, ExpiresAt: Timestamp(db.FromMicros(expires))}, nil
}
