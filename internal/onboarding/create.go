package onboarding

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/ids"
	"tributary/internal/secret"
)

const (
	queuedText      = "The onboarding job was queued."
	queuedPatchText = "The update job was queued."
)

// wish is a checked request on its way to become a job.
type wish struct {
	clientID  string
	companyID string
	live      bool
	kind      string
	profile   profile
	request   *request
	digest    []byte
	secret    []byte // digest of the credentials, in the open
}

const (
	kindCreate = "create"
	kindPatch  = "patch"
)

// Create checks a body and queues the job that onboards the company. While the
// latest job of an external_id has not failed, the same body answers that job
// and another body is a conflict; after a failure any body starts a new one.
func (c *Companies) Create(ctx context.Context, clientID string, live bool, body []byte) (Envelope, error) {
	w, err := c.newWish(ctx, clientID, live, body)
	if err != nil {
		return Envelope{}, err
	}
	jobID, err := c.submit(ctx, w)
	if err != nil {
		return Envelope{}, err
	}
	return c.queued(jobID, w.request.note(queuedText)), nil
}

func (c *Companies) queued(jobID string, message *string) Envelope {
	return Envelope{Status: Success, Data: c.jobReference(jobID), Message: message}
}

func (c *Companies) newWish(ctx context.Context, clientID string, live bool, body []byte) (*wish, error) {
	w := &wish{clientID: clientID, companyID: ids.New(), live: live, kind: kindCreate}
	q, err := read(body, false, &w.profile, c.pictures(ctx, clientID))
	if err != nil {
		return nil, err
	}
	w.request = q
	pack, err := c.pack(ctx, w)
	if err != nil {
		return nil, err
	}
	q.complete(&w.profile, pack)
	q.settings(&w.profile, pack.Facts)
	q.named(pack.Facts.Secrets)
	for _, f := range missing(q.credentials.over(country.Credentials{}), pack.Facts) {
		if !q.faulty(f.Field) {
			q.refuse(f.Field, f.Code, "must not be empty")
		}
	}
	if err := q.err(); err != nil {
		return nil, err
	}
	w.digest, w.secret = q.digests()
	return w, nil
}

// pictures reads logos in the turns of a client: decoding takes memory.
func (c *Companies) pictures(ctx context.Context, clientID string) func([]byte) (*account.Logo, error) {
	return func(raw []byte) (*account.Logo, error) { return account.ReadLogo(ctx, clientID, raw) }
}

// pack answers the pack of the body's country; a country that cannot be used
// is a fault of the body, and everything else is still checked against an
// empty pack.
func (c *Companies) pack(ctx context.Context, w *wish) (country.Pack, error) {
	code := w.profile.country()
	if code == "" {
		return country.Pack{}, nil
	}
	pack, known := c.cfg.Atlas.Pack(code)
	offered := known && c.cfg.Atlas.Offers(code, country.Live(w.live))
	if offered && c.cfg.Enabled != nil {
		var err error
		if offered, err = c.cfg.Enabled(ctx, w.clientID, code); err != nil {
			return country.Pack{}, fmt.Errorf("ask whether a client uses %s: %w", code, err)
		}
	}
	if !offered {
		w.request.refuse(fieldCountry, fault.UnsupportedCountry, "is not a country enabled for this key")
		return country.Pack{}, nil
	}
	return pack, nil
}

// submit stores the job, or finds the one that answers the same wish. node is
// set when the caller works a new job itself instead of leaving it to the queue.
func (c *Companies) submit(ctx context.Context, w *wish) (jobID string, err error) {
	var sealer *secret.Sealer
	if w.secret != nil {
		if sealer, err = c.sealer(ctx, w.clientID); err != nil {
			return "", err
		}
	}
	job, err := newJob(w, sealer)
	if err != nil {
		return "", err
	}
	var found *earlierJob
	err = c.db.Write(ctx, func(tx *db.Tx) error {
		found = nil
		if err := tx.Lock("onboarding:" + w.clientID + ":" + w.profile.ExternalID); err != nil {
			return err
		}
		before, err := findEarlierJob(tx, w)
		if err != nil || before != nil {
			found = before
			return err
		}
		return job.insert(tx)
	})
	if err != nil {
		return "", fmt.Errorf("store an onboarding job: %w", err)
	}
	if found == nil {
		return job.id, nil
	}
	return found.id, c.same(ctx, w, found)
}

func (c *Companies) sealer(ctx context.Context, clientID string) (*secret.Sealer, error) {
	s, err := c.cfg.Sealer(ctx, clientID)
	if err != nil {
		return nil, fmt.Errorf("find the key of a client's tax credentials: %w", err)
	}
	return s, nil
}

// earlierJob is a job that has not failed and answers for the same company.
type earlierJob struct {
	id        string
	companyID string
	digest    []byte
	secret    []byte // sealed
}

// findEarlierJob finds the job whose answer stands: of a new company the latest
// that did not fail, of a known one the change that is under way.
func findEarlierJob(tx *db.Tx, w *wish) (*earlierJob, error) {
	text, key := openCreateSQL, w.profile.ExternalID
	if w.kind == kindPatch {
		text, key = openChangeSQL, w.companyID
	}
	s := &earlierJob{}
	err := tx.Row(text, w.clientID, key).Scan(&s.id, &s.companyID, &s.digest, &s.secret)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return s, err
}

// same reports a conflict unless the wish is the one the job was made from.
func (c *Companies) same(ctx context.Context, w *wish, s *earlierJob) error {
	equal := bytes.Equal(w.digest, s.digest) && (w.secret == nil) == (s.secret == nil)
	if equal && w.secret != nil {
		sealer, err := c.sealer(ctx, w.clientID)
		if err != nil {
			return err
		}
		digest, err := sealer.Open(s.secret, bound(w.clientID, s.companyID, purposeDigest))
		if err != nil {
			return fmt.Errorf("compare the credentials of job %s: %w", s.id, err)
		}
		equal = digest.Equal(secret.New(w.secret))
	}
	if equal {
		return nil
	}
	field, text := fieldExternalID,
		"belongs to a job with a different body; its status is at "+c.jobReference(s.id).JobStatusLocation
	if w.kind == kindPatch {
		field, text = "", "another change of the company is in progress; its status is at "+c.jobReference(s.id).JobStatusLocation
	}
	return conflict(field, text)
}

func conflict(field, text string) error {
	f := fault.Fault{Code: fault.CodeConflict, Type: fault.Validation, Field: field,
		Message: strings.TrimSpace(field + " " + text)}
	return fault.New(fault.Conflict, "conflicting request").With(f)
}

// job is a row of onboarding_jobs on its way in.
type job struct {
	id     string
	w      *wish
	digest []byte // of the credentials, sealed
	sealed []byte
}

func newJob(w *wish, sealer *secret.Sealer) (*job, error) {
	j := &job{id: ids.New(), w: w}
	if w.secret == nil {
		return j, nil
	}
	var err error
	if j.digest, err = sealer.Seal(secret.New(w.secret), bound(w.clientID, w.companyID, purposeDigest)); err != nil {
		return nil, fmt.Errorf("seal the digest of credentials: %w", err)
	}
	j.sealed, err = w.request.credentials.seal(sealer, bound(w.clientID, w.companyID, purposeRequested))
	if err != nil {
		return nil, fmt.Errorf("seal credentials: %w", err)
	}
	return j, nil
}

func (j *job) insert(tx *db.Tx) error {
	profile, err := json.Marshal(j.w.profile)
	if err != nil {
		return fmt.Errorf("encode a company: %w", err)
	}
	now, w := tx.Now(), j.w
	err = tx.Insert(jobsTable,
		"job_id,client_id,company_id,external_id,kind,status,country,tax_key,live,profile,digest,secret_digest,sealed,created_at,updated_at,due_at",
		[]any{j.id, w.clientID, w.companyID, w.profile.ExternalID, w.kind, Pending, w.profile.country(), w.profile.taxKey(),
			w.live, string(profile),
			j.w.digest, bytesOrNull(j.digest), bytesOrNull(j.sealed), db.Micros(now), db.Micros(now), db.Micros(now)})
	if err != nil {
		return err
	}
	tx.Wake(jobsTable)
	return j.insertLogo(tx)
}

func bytesOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// Patch queues a change: what the body has takes the place of what is stored,
// null clears, and what it does not have stays, also within address, settings
// and tax_credentials. Country, tax number and external_id are identity: they
// may be repeated, not changed.
func (c *Companies) Patch(ctx context.Context, clientID, id string, body []byte) (Envelope, error) {
	stored, err := c.stored(ctx, clientID, id, false)
	if err != nil {
		return Envelope{}, err
	}
	if stored.profile.Closed {
		return Envelope{}, fault.New(fault.Conflict, "the company is closed").
			With(fault.Fault{Code: fault.CodeConflict, Type: fault.General, Message: "a closed company cannot be changed"})
	}
	w := &wish{clientID: clientID, companyID: stored.id, live: stored.live, kind: kindPatch, profile: stored.profile}
	q, err := read(body, true, &w.profile, c.pictures(ctx, clientID))
	if err != nil {
		return Envelope{}, err
	}
	w.request = q
	if err := identityStays(q, &stored.profile); err != nil {
		return Envelope{}, err
	}
	pack, known := c.cfg.Atlas.Pack(w.profile.country())
	if !known {
		return Envelope{}, fmt.Errorf("patch company %s: %w: %s", id, country.ErrCountryUnknown, w.profile.CountryCode)
	}
	q.complete(&w.profile, pack)
	q.settings(&w.profile, pack.Facts)
	q.named(pack.Facts.Secrets)
	if err := q.err(); err != nil {
		return Envelope{}, err
	}
	w.digest, w.secret = q.digests()
	jobID, err := c.submit(ctx, w)
	if err != nil {
		return Envelope{}, err
	}
	return c.queued(jobID, q.note(queuedPatchText)), nil
}

func identityStays(q *request, stored *profile) error {
	var faults []fault.Fault
	changed := func(field string) {
		faults = append(faults, fault.At(field, fault.CodeConflict,
			"is part of the company's identity and cannot change; onboard another company"))
	}
	if q.country != nil && !strings.EqualFold(*q.country, stored.CountryCode) {
		changed(fieldCountry)
	}
	if q.externalID != nil && *q.externalID != stored.ExternalID {
		changed(fieldExternalID)
	}
	if q.taxNumber != nil {
		as := *stored
		as.TaxNumber = *q.taxNumber
		if as.taxKey() != stored.taxKey() {
			changed(fieldTaxNumber)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "the identity of a company cannot change").With(faults...)
}
