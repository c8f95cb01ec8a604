package onboarding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
	"tributary/internal/lease"
)

const (
	enrolFor   = 30 * time.Second
	releaseFor = 5 * time.Second
	crashesMax = 3
	enrolTries = 6 // calls of an authority that cannot answer, 1, 2, 4 … s apart; then the client may repeat the onboarding
	retryBase  = time.Second
	retryOwn   = 5 * time.Second // after a trouble of ours
	rivalWait  = time.Second
	waitMax    = time.Hour // longer than any pause here
)

// How many jobs a node works at the same time, most of which wait for an
// authority: of one client, and of all.
const (
	workedAtOnce = 8
	workedMax    = 64
)

const jobsTable = "onboarding_jobs"

// A job that waits for a person may be due later than that: looking at it early costs nothing.
var jobQueue = &lease.Queue[struct{}]{Table: jobsTable, ID: "job_id", Key: "client_id",
	Longest: fmt.Sprint(waitMax.Microseconds())}

// Run works onboarding jobs until ctx ends, clients in turns.
func (c *Companies) Run(ctx context.Context) error {
	pump := &lease.Pump[struct{}]{DB: c.db, Queue: jobQueue, Log: c.log, InFlight: workedMax, Room: func(string) int {
		return workedAtOnce
	},
		Work: func(ctx context.Context, l *lease.Lease[struct{}]) {
			_, err := c.work(ctx, func(tx *db.Tx) (*lease.Lease[struct{}], bool, error) { return l, true, l.Guard(tx) })
			if err != nil && ctx.Err() == nil {
				c.log.Warn("retrying an onboarding job", "job_id", l.ID, "in", retryOwn, "error", err)
			}
		}}
	return pump.Run(ctx)
}

// Depth is how much there is to do.
func Depth(r db.Reader) (lease.Depth, error) { return jobQueue.Depth(r) }

// Tasks are what is done again and again.
func (c *Companies) Tasks() []lease.Task {
	return []lease.Task{lease.Every("onboarding_expiry", expiryEvery, func(ctx context.Context) error {
		_, err := c.RaiseExpiryAlarms(ctx)
		return err
	})}
}

// claimed is a job in our hands.
type claimed struct {
	id         string
	lease      *lease.Lease[struct{}]
	clientID   string
	companyID  string
	externalID string
	kind       string
	status     string
	country    string
	taxKey     string
	live       bool
	profile    profile
	sealed     []byte
	crashes    int64
	tries      int64
}

// taker gets hold of a job inside a write; nil: somebody else has it. waits says
// that it lets a rival for the same company go first.
type taker func(tx *db.Tx) (lease *lease.Lease[struct{}], waits bool, err error)

// giveBack lets the job wait, inside a write.
func (job *claimed) giveBack(tx *db.Tx, tries int64, until time.Time) error {
	if err := job.lease.Finish(tx, until); err != nil {
		return err
	}
	return tx.ExecOne(giveBackSQL, tries, db.Micros(tx.Now()), job.id)
}

// work brings a job to its end, unless somebody else has it. again is how long
// it must wait before another try.
func (c *Companies) work(ctx context.Context, hold taker) (again time.Duration, err error) {
	job, again, err := c.begin(ctx, hold)
	if err != nil || job == nil {
		return again, err
	}
	if again, err = c.carryOut(ctx, job); err != nil {
		c.release(ctx, job)
	}
	return again, err
}

// release gives a job back that a trouble of ours interrupted, so that it is no
// crash and the next try need not wait for the lease to run out. It is a
// courtesy: when it fails too, the lease runs out.
func (c *Companies) release(ctx context.Context, job *claimed) {
	wait := retryOwn
	if ctx.Err() != nil {
		wait = 0 // the node stops: another goes on
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseFor)
	defer cancel()
	job.tries-- // this one did not reach the authority
	if _, err := c.giveBack(ctx, job, wait); err != nil {
		c.log.Warn("an interrupted onboarding job waits until its lease expires", "job_id", job.id, "error", err)
	}
}

// begin makes a job ours; nil when there is nothing to do, or nothing yet.
func (c *Companies) begin(ctx context.Context, hold taker) (job *claimed, again time.Duration, err error) {
	err = c.db.Write(ctx, func(tx *db.Tx) error {
		job, again = nil, ensureWait
		lease, waits, err := hold(tx)
		if err != nil || lease == nil {
			return err
		}
		found, err := readJob(tx, lease)
		if err != nil {
			return err
		}
		if found.status != Pending && found.status != Processing {
			return lease.Finish(tx, time.Time{})
		}
		rival := ""
		if waits && found.kind == kindCreate {
			// Two jobs with one tax number must not enrol at the same time: the
			// second waits for the first and then finds its company.
			if err := tx.Lock("onboarding-number:" + found.clientID + ":" + found.country + ":" + found.taxKey); err != nil {
				return err
			}
			err := tx.Row(rivalSQL, found.clientID, found.country, found.taxKey, found.id).Scan(&rival)
			if err != nil && !errors.Is(err, db.ErrNoRows) {
				return err
			}
		}
		if rival != "" {
			again = rivalWait
			return found.giveBack(tx, found.tries, tx.Now().Add(rivalWait))
		}
		job = found
		return tx.ExecOne(beginSQL, db.Micros(tx.Now()), found.id)
	})
	if errors.Is(err, db.ErrStale) {
		return nil, ensureWait, nil // another worker has it
	}
	if err != nil {
		return nil, 0, fmt.Errorf("begin an onboarding job: %w", err)
	}
	return job, again, nil
}

func readJob(tx *db.Tx, lease *lease.Lease[struct{}]) (*claimed, error) {
	job := &claimed{id: lease.ID, lease: lease}
	var text string
	err := tx.Row(readSQL, job.id).Scan(&job.clientID, &job.companyID, &job.externalID, &job.kind, &job.status,
		&job.country, &job.taxKey, &job.live, &text, &job.sealed, &job.crashes, &job.tries)
	if err != nil {
		return nil, err
	}
	return job, decodeProfile(text, &job.profile)
}

// carryOut checks, enrols and ends a claimed job.
func (c *Companies) carryOut(ctx context.Context, job *claimed) (again time.Duration, err error) {
	if job.crashes >= crashesMax {
		return 0, c.condemn(ctx, job)
	}
	visit, wait, err := c.visitOf(ctx, job)
	if err != nil {
		return 0, err
	}
	if wait > 0 {
		job.tries-- // nobody was called
		return c.giveBack(ctx, job, wait)
	}
	e, err := c.examine(ctx, job)
	if err != nil {
		return 0, err
	}
	defer clear(e.credentials.PKCS12)
	if len(e.faults) == 0 {
		if e.grant, err = c.grantOf(ctx, job, visit); err != nil {
			return 0, err
		}
		var transient bool
		e.faults, transient = c.enrol(ctx, job, e)
		killpoint.Reach(killpoint.Enrolled)
		if transient && job.tries+1 < enrolTries {
			return c.giveBack(ctx, job, retryBase<<job.tries)
		}
		if e.visit != "" && visit.tooOld(c.db.Now()) {
			e.faults = []fault.Fault{{Code: fault.CodeExpired, Type: fault.General,
				Message: "the authorization was not granted in time; please onboard the company again"}}
		} else if e.visit != "" {
			return c.await(ctx, job, e)
		}
	}
	return 0, c.end(ctx, job, e)
}

// condemn fails a job that took its worker down again and again.
func (c *Companies) condemn(ctx context.Context, job *claimed) error {
	faults := []fault.Fault{{Code: fault.InternalError, Type: fault.General,
		Message: "the job could not be completed; the operator has been alerted"}}
	if err := c.end(ctx, job, &examined{faults: faults}); err != nil {
		return err
	}
	return c.alarm(ctx, alert.JobDiscarded, job.id,
		fmt.Sprintf("onboarding job %s was discarded after %d crashes", job.id, job.crashes))
}

func (c *Companies) alarm(ctx context.Context, name alert.Name, subject, message string) error {
	if c.cfg.Alerts == nil {
		c.log.Error(message, "alert", string(name), "subject", subject)
		return nil
	}
	return c.cfg.Alerts.Raise(ctx, name, subject, message)
}

func (c *Companies) giveBack(ctx context.Context, job *claimed, wait time.Duration) (time.Duration, error) {
	err := c.db.Write(ctx, func(tx *db.Tx) error {
		return job.giveBack(tx, job.tries+1, tx.Now().Add(wait))
	})
	if err != nil {
		return 0, fmt.Errorf("let onboarding job %s wait: %w", job.id, err)
	}
	return wait, nil
}

// enrol does what the authority asks. transient says that it could not answer.
func (c *Companies) enrol(ctx context.Context, job *claimed, e *examined) (faults []fault.Fault, transient bool) {
	enrols := e.pack.Enrol != nil && (job.kind != kindPatch || e.replaced)
	receives := e.pack.Receive.Enrols(&e.supplier)
	if !enrols && !receives {
		return nil, false // nothing to do, or done when the credentials came
	}
	at, err := c.cfg.Atlas.Endpoint(job.country, country.Live(job.live))
	if err != nil {
		c.log.Error("a company cannot be enrolled", "country", job.country, "error", err)
		return []fault.Fault{{
			Code: fault.AuthorityUnavailable, Type: fault.General,
			Message: "no authority endpoint is configured; contact the operator of this service",
		}}, false
	}
	ctx, cancel := context.WithTimeout(ctx, enrolFor)
	defer cancel()
	var done country.Enrolled
	state, digest := newState()
	faults = c.guarded(job, "enrolling", func() []fault.Fault {
		in := country.Enrolment{At: at, Supplier: e.supplier, Credentials: e.credentials, State: state, Grant: e.grant}
		if enrols {
			done = e.pack.Enrol(ctx, in)
		}
		if receives && len(done.Faults) == 0 && done.Visit == "" {
			done.Faults = e.pack.Receive.Enrol(ctx, in)
		}
		return country.BoundedFaults(done.Faults)
	})
	if faults = errorsOnly(faults); len(faults) == 0 && done.Visit != "" {
		e.visit, e.state = done.Visit, digest
	} else if len(faults) == 0 {
		e.keep(job, done)
	}
	transient = len(faults) > 0
	for _, f := range faults {
		transient = transient && f.Code == fault.AuthorityUnavailable
	}
	return faults, transient
}

// keep lays what the authority gave over what was sent: secrets and settings that
// only an enrolment can bring.
func (e *examined) keep(job *claimed, done country.Enrolled) {
	if len(done.Keep) > 0 {
		named := maps.Clone(e.credentials.Named)
		if named == nil {
			named = map[string]string{}
		}
		maps.Copy(named, done.Keep)
		e.credentials.Named, e.replaced = named, true
		e.bought = e.bought || e.pack.Grant.Among(done.Keep)
	}
	if len(done.Settings) > 0 {
		chosen := maps.Clone(job.profile.Settings)
		if chosen == nil {
			chosen = country.Settings{}
		}
		maps.Copy(chosen, done.Settings)
		job.profile.Settings = chosen
	}
}

// end writes the outcome: the company with everything that belongs to it, or
// the list of what is wrong. A lost lease stores nothing.
func (c *Companies) end(ctx context.Context, job *claimed, e *examined) error {
	var sealed []byte
	var kept *keptGrant
	if len(e.faults) == 0 && e.replaced && !empty(e.credentials) {
		sealer, err := c.sealer(ctx, job.clientID)
		if err != nil {
			return err
		}
		if kept, err = c.keepGrant(job, e, sealer); err != nil {
			return err
		}
		if sealed, err = sealCredentials(sealer, e.credentials,
			bound(job.clientID, job.companyID, purposeCredentials)); err != nil {
			return fmt.Errorf("seal the credentials of company %s: %w", job.companyID, err)
		}
	}
	err := c.db.Write(ctx, func(tx *db.Tx) error { return c.store(tx, job, e, sealing{sealed, kept}) })
	if errors.Is(err, db.ErrStale) {
		c.log.Warn("an onboarding job was finished by another worker", "job_id", job.id)
		return nil
	}
	if err != nil {
		return fmt.Errorf("end onboarding job %s: %w", job.id, err)
	}
	if c.ended != nil {
		c.ended(job.id)
	}
	return nil
}

func (c *Companies) store(tx *db.Tx, job *claimed, e *examined, sealed sealing) error {
	// The lease first: whoever lost it changes nothing.
	if err := job.lease.Finish(tx, time.Time{}); err != nil {
		return err
	}
	if err := tx.Exec(forgetVisitSQL, job.id); err != nil {
		return err
	}
	faults := e.faults
	if len(faults) == 0 && job.kind == kindCreate {
		if err := tx.Lock("onboarding-number:" + job.clientID + ":" + job.country + ":" + job.taxKey); err != nil {
			return err
		}
		var err error
		if faults, err = twin(tx, job); err != nil {
			return err
		}
	}
	now := db.Micros(tx.Now())
	if len(faults) > 0 {
		text, err := json.Marshal(faults[:min(len(faults), fault.ListMax)])
		if err != nil {
			return fmt.Errorf("encode faults: %w", err)
		}
		if err := tx.ExecOne(endSQL, Failed, string(text), now, job.id); err != nil {
			return err
		}
		kept, err := keptLook(tx, job)
		if err != nil {
			return err
		}
		return pruneLogos(tx, job, kept)
	}
	if err := tx.ExecOne(endSQL, Success, nil, now, job.id); err != nil {
		return err
	}
	return c.storeCompany(tx, job, e, sealed)
}

func (c *Companies) storeCompany(tx *db.Tx, job *claimed, e *examined, sealed sealing) error {
	now := db.Micros(tx.Now())
	text, err := json.Marshal(job.profile)
	if err != nil {
		return fmt.Errorf("encode a company: %w", err)
	}
	if job.kind == kindCreate {
		err = tx.Insert("companies", "client_id,company_id,external_id,country,tax_key,live,profile,created_at,updated_at",
			[]any{job.clientID, job.companyID, job.externalID, job.country, job.taxKey, job.live, string(text), now, now})
	} else {
		err = tx.ExecOne(changeCompanySQL, string(text), now, job.clientID, job.companyID)
	}
	if err == nil {
		err = pruneLogos(tx, job, job.profile.Branding)
	}
	if err == nil && c.cfg.Stored != nil {
		err = c.cfg.Stored(tx, job.clientID, job.live, c.supplier(job.companyID, &job.profile))
	}
	if err != nil || !e.replaced {
		return err
	}
	if err := c.storeCredentials(tx, job, e, sealed); err != nil {
		return err
	}
	if job.kind == kindPatch && c.cfg.CredentialsChanged != nil {
		return c.cfg.CredentialsChanged(tx, job.clientID, job.companyID)
	}
	return nil
}

func (c *Companies) storeCredentials(tx *db.Tx, job *claimed, e *examined, s sealing) error {
	if s.own == nil {
		return tx.Exec("DELETE FROM company_credentials WHERE client_id = $1 AND company_id = $2", job.clientID, job.companyID)
	}
	var subject, fingerprint, ends any
	if cert := e.certificate; cert != nil {
		subject, fingerprint, ends = cert.subject, cert.fingerprint, db.Micros(cert.notAfter)
	}
	login := e.credentials.Username != "" || e.credentials.Secret != ""
	if end := c.loginEnd(job.country); login && ends == nil && !end.IsZero() {
		ends = db.Micros(end)
	}
	var grant any
	if s.grant != nil {
		grant = s.grant.id
		if err := s.grant.store(tx, job.clientID); err != nil {
			return err
		}
		if at, err := endOfGrant(tx, grantOf{job.clientID, s.grant.id}); err != nil {
			return err
		} else if ends == nil && at != nil {
			ends = *at
		}
	}
	return tx.Exec(putCredentialsSQL, job.clientID, job.companyID, s.own, login, subject, fingerprint, ends, grant)
}

// loginEnd is when a country's authority stops taking logins; zero: never that
// we know of.
func (c *Companies) loginEnd(code string) time.Time {
	pack, _ := c.cfg.Atlas.Pack(code)
	return pack.LoginEnd()
}

// twin finds the company that has the number already.
func twin(r db.Reader, job *claimed) ([]fault.Fault, error) {
	var external string
	err := r.Row(twinSQL, job.clientID, job.country, job.taxKey, job.companyID).Scan(&external)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []fault.Fault{fault.At(fieldTaxNumber, fault.AlreadyOnboarded,
		"is already onboarded as the company with external_id %q", external)}, nil
}

// requested opens the credentials that came with the job.
func (c *Companies) requested(ctx context.Context, job *claimed) (secrets, error) {
	sealer, err := c.sealer(ctx, job.clientID)
	if err != nil {
		return secrets{}, err
	}
	return openSecrets(sealer, job.sealed, bound(job.clientID, job.companyID, purposeRequested))
}
