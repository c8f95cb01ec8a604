package onboarding

import (
	"context"
	"fmt"
	"net/url"
	"runtime/debug"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// examined is what the checks of a job found.
type examined struct {
	pack        country.Pack
	supplier    country.Supplier
	credentials country.Credentials
	replaced    bool // the job brings credentials, or takes them away
	bought      bool // the enrolment brought what a person granted
	certificate *certificate
	faults      []fault.Fault

	grant        url.Values // what a browser brought back; nil: nothing came
	visit, state string     // an address that a person must visit first, with the digest of its state
}

// examine finds everything that is wrong with a job before anybody outside is
// asked. An error is a matter of ours: the job goes on later.
func (c *Companies) examine(ctx context.Context, job *claimed) (*examined, error) {
	e := &examined{supplier: c.supplier(job.companyID, &job.profile)}
	pack, known := c.cfg.Atlas.Pack(job.country)
	if !known {
		e.faults = []fault.Fault{fault.At(fieldCountry, fault.UnsupportedCountry, "is no longer supported")}
		return e, nil
	}
	e.pack = pack
	if err := c.gather(ctx, job, e); err != nil {
		return nil, err
	}
	flawed := false // the number cannot exist: what the country says of it besides says less
	if job.kind == kindCreate {
		e.faults = append(e.faults, checkNumber(job, pack)...)
		flawed = len(e.faults) > 0
		var found []fault.Fault
		err := c.db.Read(ctx, func(r db.Reader) (err error) {
			found, err = twin(r, job)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("look for a company with the same number: %w", err)
		}
		e.faults = append(e.faults, found...)
	}
	if err := c.checkCredentials(ctx, job, e); err != nil {
		return nil, err
	}
	if pack.CheckCompany != nil {
		found := c.guarded(job, "checking", func() []fault.Fault { return pack.CheckCompany(e.supplier, e.credentials) })
		for _, f := range errorsOnly(found) {
			if !flawed || f.Field != fieldTaxNumber {
				e.faults = append(e.faults, f)
			}
		}
	}
	e.faults = distinct(append(e.faults, pack.CheckReceive(&e.supplier)...))
	return e, nil
}

// gather lays the credentials that came with the job over those the company has.
func (c *Companies) gather(ctx context.Context, job *claimed, e *examined) error {
	if job.kind == kindPatch {
		old, _, err := c.ownCredentials(ctx, job.clientID, job.companyID)
		if err != nil {
			return err
		}
		e.credentials = old
	}
	var sent secrets
	if job.sealed != nil {
		var err error
		if sent, err = c.requested(ctx, job); err != nil {
			return fmt.Errorf("open the credentials of job %s: %w", job.id, err)
		}
		e.credentials = sent.over(e.credentials)
		e.replaced = true
	}
	return c.share(ctx, job, e, sent)
}

// checkNumber refuses a tax number that cannot exist, where the country's
// authority would refuse it too. Elsewhere it is accepted as it is: an
// envelope without errors has no place for a warning.
func checkNumber(job *claimed, pack country.Pack) []fault.Fault {
	v := taxid.Check(job.country, job.profile.TaxNumber)
	if v.Valid || !pack.Facts.StrictNumbers {
		return nil
	}
	return []fault.Fault{fault.At(fieldTaxNumber, fault.FieldNotValid, "is not a tax number of %s: %s", pack.Name, v.Reason)}
}

// checkCredentials makes sure that what the country needs is there and works.
func (c *Companies) checkCredentials(ctx context.Context, job *claimed, e *examined) error {
	if job.kind == kindPatch && !e.replaced {
		return nil // checked when they came
	}
	e.faults = append(e.faults, missing(e.credentials, e.pack.Facts)...)
	if len(e.credentials.PKCS12) == 0 {
		return nil
	}
	cert, problem, err := c.openCertificate(ctx, job.clientID, e.credentials.PKCS12, e.credentials.Password)
	if err != nil {
		return err
	}
	if problem != nil {
		e.faults = append(e.faults, *problem)
		return nil
	}
	e.certificate = cert
	e.faults = append(e.faults, cert.check(c.now(), certificateRules{
		country: job.country,
		key:     e.pack.Facts.CertificateKey,
		number:  numberToName(e.pack, job.profile.TaxNumber),
	})...)
	return nil
}

// numberToName is the tax number that the certificate's subject must carry:
// where an authority looks at certificates. Documents alone need none.
func numberToName(pack country.Pack, number string) string {
	if !pack.Reports() {
		return ""
	}
	return number
}

// guarded calls a pack. A panic is a defect of the pack: the job fails, the
// service lives on, and neither log nor answer repeats the panic's value, which
// could hold a part of the credentials.
func (c *Companies) guarded(job *claimed, doing string, call func() []fault.Fault) (faults []fault.Fault) {
	defer func() {
		if recover() == nil {
			return
		}
		c.log.Error("a country pack panicked", "doing", doing, "country", job.country, "job_id", job.id, "stack",
			string(debug.Stack()))
		faults = []fault.Fault{{Code: fault.InternalError, Type: fault.General,
			Message: "the company could not be checked; the operator has been alerted"}}
	}()
	return call()
}

func errorsOnly(all []fault.Fault) []fault.Fault {
	var kept []fault.Fault
	for _, f := range all {
		if f.Type != fault.Warning {
			kept = append(kept, f)
		}
	}
	return kept
}

// distinct drops what two checks found alike.
func distinct(all []fault.Fault) []fault.Fault {
	seen := map[[2]string]bool{}
	var kept []fault.Fault
	for _, f := range all {
		key := [2]string{string(f.Code), f.Field}
		if f.Field != "" && seen[key] && f.Code == fault.FieldRequired {
			continue
		}
		seen[key] = true
		kept = append(kept, f)
	}
	return kept
}
