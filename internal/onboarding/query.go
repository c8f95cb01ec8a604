package onboarding

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/taxid"
	"tributary/internal/db"
	"tributary/internal/ids"
	"tributary/internal/transaction"
)

const (
	pageDefault = 20
	pageMax     = 100
)

// Supplier answers an onboarded company as packs see it, its settings with the
// country's defaults; fault.NotFound when this client has none with the id.
func (c *Companies) Supplier(r db.Reader, clientID, id string) (country.Supplier, error) {
	var text string
	err := r.Row(supplierSQL, clientID, id).Scan(&text)
	if errors.Is(err, db.ErrNoRows) {
		return country.Supplier{}, notFound("company")
	}
	if err != nil {
		return country.Supplier{}, fmt.Errorf("read company %s: %w", id, err)
	}
	var p profile
	if err := decodeProfile(text, &p); err != nil {
		return country.Supplier{}, err
	}
	return c.supplier(id, &p), nil
}

// IDOf is the id of the company that a client calls by its own; "" for none.
func (c *Companies) IDOf(r db.Reader, clientID, externalID string) (id string, err error) {
	err = r.Row("SELECT company_id FROM companies WHERE client_id = $1 AND external_id = $2", clientID, externalID).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for company %s: %w", externalID, err)
	}
	return id, nil
}

// Holder finds the company of a client that a party of a document is: by its tax number, else by another number of it
// that is one, such as that of its electronic address. false: the client has no such company, or several.
func (c *Companies) Holder(r db.Reader, clientID string, p transaction.Party) (s country.Supplier, found bool, err error) {
	var other []string
	if p.Electronic != nil {
		other = append(other, p.Electronic.ID)
	}
	for _, numbers := range [][]string{{p.TaxNumber}, {p.FiscalCode}, append(other, p.EntityNumber)} {
		s, found, err = c.holder(r, clientID, taxid.CountryOf("", &p), numbers)
		if found || err != nil {
			return s, found, err
		}
	}
	return s, false, nil
}

// taxKeys are the forms in which numbers may be those of companies.
func taxKeys(home string, numbers ...string) (keys []string) {
	for _, number := range numbers {
		bare := taxid.Bare(number)
		if bare == "" {
			continue
		}
		keys = append(keys, bare, withoutCountry(bare))
		for _, of := range []string{home, taxid.Prefix(bare)} {
			if of != "" {
				keys = append(keys, taxid.Check(of, number).Number)
			}
		}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return key == "" })
}

func (c *Companies) holder(r db.Reader, clientID, home string, numbers []string) (found country.Supplier, ok bool, err error) {
	keys := taxKeys(home, numbers...)
	if len(keys) == 0 {
		return found, false, nil
	}
	matches := 0
	rows, err := r.Query("SELECT company_id, profile FROM companies WHERE client_id = $1 AND "+c.db.In("tax_key", "$2"), clientID,
		db.Strings(keys))
	if err != nil {
		return found, false, fmt.Errorf("look for the company of a number: %w", err)
	}
	err = rows.Each(func(scan func(...any) error) error {
		var id, text string
		var p profile
		if err := scan(&id, &text); err != nil {
			return err
		}
		if err := decodeProfile(text, &p); err != nil || p.Closed || home != "" && home != p.country() {
			return err
		}
		matches++
		found = c.supplier(id, &p)
		return nil
	})
	return found, matches == 1, err
}

// receiversMax is how many companies one document can be delivered to.
const receiversMax = 100

// Receivers finds the companies of all clients that a party of a document is, in one
// environment of a country: by its tax number, else by another number of it.
func (c *Companies) Receivers(r db.Reader, at country.Environment, p transaction.Party) (list []Owned, err error) {
	other := []string{p.EntityNumber}
	if p.Electronic != nil {
		other = append(other, p.Electronic.ID)
	}
	for _, numbers := range [][]string{{p.TaxNumber}, {p.FiscalCode}, other} {
		keys := taxKeys(at.Code, numbers...)
		if len(keys) == 0 {
			continue
		}
		list, err = db.Collect(r, c.owned, "SELECT client_id, company_id, live, profile FROM companies WHERE country = $1 AND live = $2 AND "+c.db.In("tax_key", "$3")+
			" ORDER BY client_id, company_id LIMIT $4", at.Code, bool(at.Live), db.Strings(keys), receiversMax)
		if err != nil {
			return nil, fmt.Errorf("look for who receives a document: %w", err)
		}
		if len(list) > 0 {
			return list, nil
		}
	}
	return nil, nil
}

func (c *Companies) supplier(id string, p *profile) country.Supplier {
	pack, _ := c.cfg.Atlas.Pack(p.CountryCode)
	s := country.Supplier{
		ID: id, ExternalID: p.ExternalID, CountryCode: p.country(), Closed: p.Closed, LanguageCode: strings.ToUpper(p.LanguageCode),
		LegalName: p.LegalName, Type: cmp.Or(p.Type, transaction.Business), CompanyNumber: p.CompanyNumber, Address: p.Address,
		TaxNumber: p.TaxNumber, TaxRegime: p.Regime, Settings: withDefaults(p.Settings, pack.Facts),
		Branding: brandingOf(p.Branding),
	}
	if s.LanguageCode == "" && len(pack.Facts.Languages) > 0 {
		s.LanguageCode = pack.Facts.Languages[0]
	}
	return s
}

// Credentials opens a company's tax credentials, for one signing or one call;
// they are empty when the company has none. fault.NotFound as in Supplier. What a
// person granted is among them, renewed where its time has come.
func (c *Companies) Credentials(ctx context.Context, clientID, id string) (country.Credentials, error) {
	own, grantID, err := c.ownCredentials(ctx, clientID, id)
	if err != nil || grantID == "" {
		return own, err
	}
	return c.granted(ctx, grantOf{clientID, grantID}, own)
}

// Opens reports why a company's stored credentials cannot be opened; nil: they
// can. Nobody is called, whatever has to be renewed.
func (c *Companies) Opens(ctx context.Context, clientID, id string) error {
	_, _, err := c.ownCredentials(ctx, clientID, id)
	return err
}

// ownCredentials are those without what a person granted, and which grant that is.
func (c *Companies) ownCredentials(ctx context.Context, clientID, id string) (own country.Credentials, grantID string, err error) {
	var sealed []byte
	err = c.db.ReadEach(ctx, func(r db.Reader) error { return r.Row(sealedSQL, clientID, id).Scan(&sealed, &grantID) })
	if errors.Is(err, db.ErrNoRows) {
		return own, "", notFound("company")
	}
	if err != nil {
		return own, "", fmt.Errorf("read the credentials of company %s: %w", id, err)
	}
	if len(sealed) == 0 {
		return own, "", nil
	}
	sealer, err := c.sealer(ctx, clientID)
	if err != nil {
		return own, "", err
	}
	if own, err = openCredentials(sealer, sealed, bound(clientID, id, purposeCredentials)); err != nil {
		return own, "", fmt.Errorf("open the credentials of company %s: %w", id, err)
	}
	return own, grantID, nil
}

// Job answers a job's envelope; fault.NotFound when this client has no such job.
func (c *Companies) Job(ctx context.Context, clientID, jobID string) (Envelope, error) {
	var companyID, status string
	var faults *string
	var visit *Visit
	err := c.db.Read(ctx, func(r db.Reader) error {
		err := r.Row(jobSQL, clientID, jobID).Scan(&companyID, &status, &faults)
		if err == nil && status != Success && status != Failed {
			visit, err = openVisit(r, clientID, companyID)
		}
		return err
	})
	if errors.Is(err, db.ErrNoRows) {
		return Envelope{}, notFound("job")
	}
	if err != nil {
		return Envelope{}, fmt.Errorf("read job %s: %w", jobID, err)
	}
	e := Envelope{Status: status}
	switch status {
	case Success:
		e.Data = &Reference{ID: companyID, Location: c.companyLocation(companyID)}
	case Failed:
		e.Message = orNull("The job failed; see errors.")
		if faults != nil {
			if err := json.Unmarshal([]byte(*faults), &e.Errors); err != nil {
				return Envelope{}, fmt.Errorf("read the errors of job %s: %w", jobID, err)
			}
		}
	default:
		e.Data = c.jobReference(jobID)
		if e.Data.Visit = visit; visit != nil {
			e.Message = orNull("Authorization required: a person must open visit.url and approve.")
		}
	}
	return e, nil
}

func (c *Companies) jobReference(jobID string) *Reference {
	return &Reference{JobID: jobID, JobStatusLocation: c.cfg.BaseURL + "/onboarding/v2/jobs/" + jobID}
}

func (c *Companies) companyLocation(id string) string {
	return c.cfg.BaseURL + "/onboarding/v2/companies/" + id
}

// storedCompany is a row with what may be told of its credentials.
type storedCompany struct {
	id          string
	live        bool
	profile     profile
	createdAt   int64
	updatedAt   int64
	login       *bool
	subject     *string
	fingerprint *string
	expiresAt   *int64
}

func scanCompany(scan func(...any) error) (storedCompany, error) {
	var s storedCompany
	var text string
	err := scan(&s.id, &s.live, &text, &s.createdAt, &s.updatedAt, &s.login, &s.subject, &s.fingerprint, &s.expiresAt)
	if err == nil {
		err = decodeProfile(text, &s.profile)
	}
	return s, err
}

func (c *Companies) stored(ctx context.Context, clientID, id string, external bool) (storedCompany, error) {
	text := companySelect + "c.company_id = $2"
	if external {
		text = companySelect + "c.external_id = $2"
	}
	var s storedCompany
	err := c.db.Read(ctx, func(r db.Reader) error {
		var err error
		s, err = scanCompany(r.Row(text, clientID, id).Scan)
		return err
	})
	if errors.Is(err, db.ErrNoRows) {
		return s, notFound("company")
	}
	if err != nil {
		return s, fmt.Errorf("read a company: %w", err)
	}
	return s, nil
}

// Company answers a company by its id or, with external, by the client's own.
func (c *Companies) Company(ctx context.Context, clientID, id string, external bool) (Company, error) {
	s, err := c.stored(ctx, clientID, id, external)
	if err != nil {
		return Company{}, err
	}
	shown := c.show(s)
	err = c.db.Read(ctx, func(r db.Reader) (err error) {
		shown.Visit, err = openVisit(r, clientID, s.id)
		return err
	})
	return shown, err
}

// show is the company as a client reads it.
func (c *Companies) show(s storedCompany) Company {
	p := &s.profile
	pack, _ := c.cfg.Atlas.Pack(p.CountryCode)
	shown := Company{
		ID: s.id, Status: statusActive,
		Meta:      Meta{CountryCode: p.CountryCode, LanguageCode: orNull(p.LanguageCode), ExternalID: p.ExternalID},
		LegalName: p.LegalName, Type: cmp.Or(p.Type, transaction.Business), CompanyNumber: orNull(p.CompanyNumber),
		Address:        p.Address,
		TaxInformation: TaxInformation{TaxNumber: p.TaxNumber, Regime: orNull(p.Regime)},
		Branding:       p.Branding,
		Settings:       withDefaults(p.Settings, pack.Facts),
		Credentials:    []Credential{},
		CreatedAt:      Timestamp(db.FromMicros(s.createdAt)), UpdatedAt: Timestamp(db.FromMicros(s.updatedAt)),
	}
	if p.Closed {
		shown.Status = statusClosed
	}
	if s.fingerprint != nil {
		shown.Credentials = append(shown.Credentials, Credential{
			Kind: CertificateCredential, Subject: s.subject, Fingerprint: s.fingerprint, ExpiresAt: timestamp(s.expiresAt),
		})
	}
	if s.login != nil && *s.login {
		shown.Credentials = append(shown.Credentials, Credential{Kind: LoginCredential, ExpiresAt: instant(pack.LoginEnd())})
	}
	return shown
}

// instant is nil for the zero time.
func instant(at time.Time) *Timestamp {
	if at.IsZero() {
		return nil
	}
	t := Timestamp(at)
	return &t
}

func timestamp(us *int64) *Timestamp {
	if us == nil {
		return nil
	}
	t := Timestamp(db.FromMicros(*us))
	return &t
}

// List answers a page of a client's companies, newest first, and the cursor of
// the next one, which is empty at the end. limit 0 is the default of 20.
func (c *Companies) List(ctx context.Context, clientID string, limit int,
	cursor string) (page []Company, next string, err error) {
	limit, from, err := ids.Page(limit, pageDefault, pageMax, cursor)
	if err != nil {
		return nil, "", err
	}
	var rows []storedCompany
	err = c.db.Read(ctx, func(r db.Reader) error {
		rows, err = db.Collect(r, scanCompany, listSQL, clientID, from.At, from.ID, limit+1)
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list companies: %w", err)
	}
	if len(rows) > limit {
		rows = rows[:limit]
		next = ids.Cursor{At: rows[limit-1].createdAt, ID: rows[limit-1].id}.String()
	}
	page = make([]Company, len(rows))
	for i, s := range rows {
		page[i] = c.show(s)
	}
	return page, next, nil
}
