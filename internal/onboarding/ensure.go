package onboarding

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/lease"
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
		if jobID == "" {
			if jobID, err = c.begun(ctx, clientID, n, body); err != nil {
				return "", fmt.Errorf("onboard company %q: %w", n.ExternalID, err)
			}
		}
		wait, err := c.work(ctx, func(tx *db.Tx) (lease *lease.Lease[struct{}], waits bool, err error) {
			lease, err = jobQueue.Take(tx, jobID)
			return lease, false, err
		})
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

// begun stores the job, or finds the one there is.
func (c *Companies) begun(ctx context.Context, clientID string, n NewCompany, body []byte) (jobID string, err error) {
	w, err := c.newWish(ctx, clientID, n.Live, body)
	if err != nil {
		return "", err
	}
	jobID, err = c.submit(ctx, w)
	if fault.KindOf(err) == fault.Conflict && jobID != "" {
		err = nil // another body under the same id is under way: the company is found, not changed
	}
	return jobID, err
}

// ensureWait is between two looks at a job that somebody else works.
const ensureWait = 50 * time.Millisecond

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
		"meta": map[string]string{"country_code": n.CountryCode, "language_code": n.LanguageCode,
			"external_id": n.ExternalID},
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
