package onboarding

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// NewCompany is a company to be there; see [Companies.Ensure].
type NewCompany struct {
	Live          bool
	ExternalID    string
	CountryCode   string
	LanguageCode  string
	LegalName     string
	CompanyNumber string
	Address       transaction.Address
	TaxNumber     string
	TaxRegime     string
	Settings      country.Settings
	Credentials   country.Credentials
}

// Ensure answers the id of the company with an external_id and onboards it
// first when there is none, at once and without a queue. A company that exists
// stays as it is. What is wrong with a new one is a fault.Invalid.
func (c *Companies) Ensure(ctx context.Context, clientID string, n NewCompany) (id string, err error) {
	body, err := n.body()
	if err != nil {
		return "", err
	}
	jobID := ""
	for {
		found, err := c.stored(ctx, clientID, n.ExternalID, true)
		if err == nil {
			return found.id, nil
		}
		if fault.KindOf(err) != fault.NotFound {
			return "", err
		}
		wait := time.Duration(0)
		if jobID == "" {
			jobID, wait, err = c.begin(ctx, clientID, n, body)
		} else if wait, err = c.work(ctx, jobID); wait == 0 {
			wait = ensureWait // somebody else has it, or it has just ended
		}
		if err != nil {
			return "", fmt.Errorf("onboard company %q: %w", n.ExternalID, err)
		}
		if err := c.failure(ctx, clientID, jobID); err != nil {
			return "", err
		}
		if err := pause(ctx, wait); err != nil {
			return "", err
		}
	}
}

// begin stores the job as ours and works it, or finds the one there is.
func (c *Companies) begin(ctx context.Context, clientID string, n NewCompany, body []byte) (jobID string, wait time.Duration, err error) {
	w, err := c.newWish(ctx, clientID, n.Live, body)
	if err != nil {
		return "", 0, err
	}
	jobID, made, err := c.submit(ctx, w, c.db.Node())
	if fault.KindOf(err) == fault.Conflict && jobID != "" {
		err = nil // another body under the same id is under way: the company is found, not changed
	}
	if err != nil {
		return "", 0, err
	}
	if !made {
		return jobID, ensureWait, nil
	}
	job, err := c.own(ctx, jobID)
	if err != nil || job == nil {
		return jobID, ensureWait, err
	}
	if wait, err = c.carryOut(ctx, job); err != nil {
		c.release(ctx, job)
	}
	return jobID, wait, err
}

// ensureWait is between two looks at a job that somebody else works.
const ensureWait = 50 * time.Millisecond

// own reads a job that was stored with our claim on it; nil when it is not ours.
func (c *Companies) own(ctx context.Context, jobID string) (*claimed, error) {
	job := &claimed{id: jobID}
	var text string
	err := c.db.Read(ctx, func(r db.Reader) error {
		return r.Row(ownSQL, jobID, c.db.Node()).Scan(&job.clientID, &job.companyID, &job.externalID, &job.kind,
			&job.country, &job.taxKey, &job.live, &text, &job.sealed, &job.claim, &job.crashes, &job.tries)
	})
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return job, decodeProfile(text, &job.profile)
}

// failure is the error of a job that failed.
func (c *Companies) failure(ctx context.Context, clientID, jobID string) error {
	e, err := c.Job(ctx, clientID, jobID)
	if err != nil {
		return err
	}
	if e.Status == Failed {
		return fault.New(fault.Invalid, "the company could not be onboarded").With(e.Errors...)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// body is the company as a client would have sent it.
func (n *NewCompany) body() ([]byte, error) {
	credentials := map[string]string{}
	put := func(name, value string) {
		if value != "" {
			credentials[name] = value
		}
	}
	put(memberCertificate, base64.StdEncoding.EncodeToString(n.Credentials.PKCS12))
	put(memberPassword, n.Credentials.Password)
	put(memberUsername, n.Credentials.Username)
	put(memberSecret, n.Credentials.Secret)
	for name, value := range n.Credentials.Named {
		put(name, value)
	}
	body, err := json.Marshal(map[string]any{
		"meta":            map[string]string{"country_code": n.CountryCode, "language_code": n.LanguageCode, "external_id": n.ExternalID},
		"legal_name":      n.LegalName,
		"company_number":  n.CompanyNumber,
		"address":         n.Address,
		"tax_information": map[string]string{"tax_number": n.TaxNumber, "regime": n.TaxRegime},
		"tax_credentials": credentials,
		"settings":        n.Settings,
	})
	if err != nil {
		return nil, fmt.Errorf("encode a company: %w", err)
	}
	return body, nil
}
