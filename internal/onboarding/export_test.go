package onboarding

import (
	"context"
	"time"

	"tributary/internal/account"
	"tributary/internal/country/identity"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/lease"
	"tributary/internal/strictjson"
)

// What the tests of the external package may touch.

const (
	PKCS12BytesMax  = pkcs12BytesMax
	IterationsMax   = identity.IterationsMax
	CrashesMax      = crashesMax
	EnrolTries      = enrolTries
	DepthMax        = strictjson.DepthMax
	FaultsMax       = fault.ListMax
	MemberPassword  = memberPassword
	ReferenceDigits = 32
)

// OnEnd calls fn after the end of every job.
func (c *Companies) OnEnd(fn func(jobID string)) { c.ended = fn }

// take claims a job that nobody has, however long it is to wait.
func take(jobID string) taker {
	return func(tx *db.Tx) (lease *lease.Lease[struct{}], waits bool, err error) {
		if err := tx.Exec("UPDATE onboarding_jobs SET due_at = 1 WHERE job_id = $1 AND due_at IS NOT NULL AND lease_until IS NULL", jobID); err != nil {
			return nil, false, err
		}
		lease, err = jobQueue.Take(tx, jobID)
		return lease, true, err
	}
}

// WorkNow is what a worker does with a job.
func (c *Companies) WorkNow(ctx context.Context, jobID string) (time.Duration, error) {
	return c.work(ctx, take(jobID))
}

// Abandon begins a job and does nothing with it, as a killed process does.
func (c *Companies) Abandon(ctx context.Context, jobID string) (begun bool, err error) {
	job, _, err := c.begin(ctx, take(jobID))
	return job != nil, err
}

// OpenPKCS12 opens a file as a job does; reason is empty when it opened.
func OpenPKCS12(c *Companies, der []byte, password string) (subject, field, reason string, err error) {
	c.openFor = time.Hour // what is refused is refused by its rounds, not by a slow machine
	cert, problem, err := c.openCertificate(context.Background(), "", der, password)
	switch {
	case err != nil:
		return "", "", "", err
	case problem != nil:
		return "", problem.Field, problem.Message, nil
	}
	return cert.subject, "", "", nil
}

// ReadBody reads a body as Create does, without a country.
func ReadBody(body []byte, patch bool) error {
	var p profile
	q, err := read(body, patch, &p, func(raw []byte) (*account.Logo, error) {
		return account.ReadLogo(context.Background(), "", raw)
	})
	if err != nil {
		return err
	}
	q.digests()
	return q.err()
}
