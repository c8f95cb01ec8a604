package onboarding

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/secret"
)

// A grant is what a person at an authority has given, tokens that die when they
// are renewed. It is kept apart from companies' own credentials, because several
// companies share it and because it changes by itself.
//
// Failure policy: one holder renews it, marked in the row before the authority is
// called; what came is stored before anybody uses it. A holder that died leaves
// its mark: after holdFor another tries with what is stored, once. If the
// authority had taken the call, that is refused, the grant is forgotten, and the
// companies wait with credentials_invalid for a person; nobody asks again.
const (
	purposeAuthorityGrant = "authority_grant"

	renewBefore = 2 * time.Minute // before it cannot be used any more
	renewFor    = 30 * time.Second
	holdFor     = 2 * time.Minute
	awaitFor    = 45 * time.Second
	awaitEvery  = 200 * time.Millisecond
)

const (
	grantSQL = "SELECT sealed, usable_until, version FROM authority_grants WHERE client_id = $1 AND grant_id = $2"
	holdSQL  = `UPDATE authority_grants SET renewing_at = $1 WHERE client_id = $2 AND grant_id = $3 AND version = $4
		AND sealed IS NOT NULL AND (renewing_at IS NULL OR renewing_at < $5)`
	renewedSQL = `UPDATE authority_grants SET sealed = $1, usable_until = $2, ends_at = $3, renewing_at = NULL, version = version + 1
		WHERE client_id = $4 AND grant_id = $5 AND version = $6`
	letGoSQL    = "UPDATE authority_grants SET renewing_at = NULL WHERE client_id = $1 AND grant_id = $2 AND version = $3"
	putGrantSQL = `INSERT INTO authority_grants (client_id, grant_id, sealed, usable_until, ends_at, version) VALUES ($1, $2, $3, $4, $5, 1)
		ON CONFLICT (client_id, grant_id) DO UPDATE SET sealed = excluded.sealed, usable_until = excluded.usable_until,
			ends_at = excluded.ends_at, renewing_at = NULL, version = authority_grants.version + 1`
	// companies whose credentials end with a grant are watched anew when it was renewed
	grantEndSQL = "UPDATE company_credentials SET expires_at = $1, alarmed = 0 WHERE client_id = $2 AND grant_id = $3 AND subject IS NULL AND (expires_at IS NULL OR expires_at <> $1)"
)

// grantOf names a grant of a client.
type grantOf struct{ client, id string }

func grantID(code string, live bool, person string) string {
	return country.Environment{Code: code, Live: country.Live(live)}.String() + ":" + person
}

// whose is the grant that a company shares, or would have to itself.
func (job *claimed) whose(e *examined) string {
	person := "company " + job.companyID
	if name := e.supplier.Settings.Text(e.pack.Grant.Person); e.pack.Grant.Person != "" && name != "" {
		person = "person " + name
	}
	return grantID(job.country, job.live, person)
}

// stored is a grant as it stands; without secrets it is dead.
type stored struct {
	secrets map[string]string
	usable  time.Time
	version int64
}

func (c *Companies) readGrant(ctx context.Context, at grantOf) (g stored, err error) {
	var sealed []byte
	var usable int64
	err = c.db.Read(ctx, func(r db.Reader) error { return r.Row(grantSQL, at.client, at.id).Scan(&sealed, &usable, &g.version) })
	if errors.Is(err, db.ErrNoRows) {
		return g, nil
	}
	if err != nil {
		return g, fmt.Errorf("read grant %s: %w", at.id, err)
	}
	g.usable = db.FromMicros(usable)
	if len(sealed) == 0 {
		return g, nil
	}
	sealer, err := c.sealer(ctx, at.client)
	if err != nil {
		return g, err
	}
	if err := openJSON(sealer, sealed, bound(at.client, at.id, purposeAuthorityGrant), &g.secrets); err != nil {
		return g, fmt.Errorf("open grant %s: %w", at.id, err)
	}
	return g, nil
}

// with lays a grant's secrets over a company's own credentials.
func (g stored) with(own country.Credentials) country.Credentials {
	named := maps.Clone(own.Named)
	if named == nil {
		named = map[string]string{}
	}
	maps.Copy(named, g.secrets)
	own.Named = named
	return own
}

// granted are a company's credentials with its grant, renewed where it must be. A
// grant that is dead adds nothing.
func (c *Companies) granted(ctx context.Context, at grantOf, own country.Credentials) (country.Credentials, error) {
	for until := time.Now().Add(awaitFor); ; {
		g, err := c.readGrant(ctx, at)
		if err != nil || g.secrets == nil || c.now().Before(g.usable.Add(-renewBefore)) {
			return g.with(own), err
		}
		held, err := c.holdGrant(ctx, at, g.version)
		switch {
		case err != nil:
			return own, err
		case held:
			return c.renewGrant(ctx, at, g, own)
		case c.now().Before(g.usable):
			return g.with(own), nil // another renews it
		case time.Now().After(until):
			return own, fmt.Errorf("%w: the authorization is being renewed", country.ErrNotTaken)
		}
		select {
		case <-ctx.Done():
			return own, ctx.Err()
		case <-time.After(awaitEvery):
		}
	}
}

// holdGrant marks a grant as being renewed; false: somebody else was faster.
func (c *Companies) holdGrant(ctx context.Context, at grantOf, version int64) (bool, error) {
	err := c.db.Write(ctx, func(tx *db.Tx) error {
		now := c.now()
		return tx.ExecOne(holdSQL, db.Micros(now), at.client, at.id, version, db.Micros(now.Add(-holdFor)))
	})
	if errors.Is(err, db.ErrStale) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("hold grant %s: %w", at.id, err)
	}
	return true, nil
}

// renewGrant asks the authority and stores what came before anybody has it.
func (c *Companies) renewGrant(ctx context.Context, at grantOf, g stored, own country.Credentials) (country.Credentials, error) {
	name, _, _ := strings.Cut(at.id, ":")
	code, err := country.ParseEnvironment(name)
	if err != nil {
		return own, fmt.Errorf("renew grant %s: %w", at.id, err)
	}
	pack, known := c.cfg.Atlas.Pack(code.Code)
	if !known || pack.Grant == nil {
		return own, fmt.Errorf("renew grant %s: the country has none any more", at.id)
	}
	kept, err := c.askRenewal(ctx, pack, code, g.with(own))
	// What the authority did stands, whoever waits for it here.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseFor)
	defer cancel()
	switch {
	case err == nil:
		return c.storeRenewed(ctx, at, g, own, renewal{pack, kept})
	case errors.Is(err, country.ErrCredentials):
		c.log.Warn("a grant is dead; a person has to authorize this service again", "grant", at.id, "client", at.client, "error", err)
		return own, c.db.Write(ctx, func(tx *db.Tx) error {
			return tx.ExecOne(renewedSQL, nil, db.Micros(g.usable), nil, at.client, at.id, g.version)
		})
	}
	if letGo := c.db.Write(ctx, func(tx *db.Tx) error { return tx.Exec(letGoSQL, at.client, at.id, g.version) }); letGo != nil {
		c.log.Warn("a grant waits for its holder", "grant", at.id, "error", letGo)
	}
	if c.now().Before(g.usable) {
		return g.with(own), nil
	}
	if !errors.Is(err, country.ErrNotTaken) {
		err = fmt.Errorf("%w: %w", country.ErrNotTaken, err)
	}
	return own, fmt.Errorf("renew the authorization: %w", err)
}

func (c *Companies) askRenewal(ctx context.Context, pack country.Pack, e country.Environment, with country.Credentials) (kept map[string]string, err error) {
	at, err := c.cfg.Atlas.Endpoint(e.Code, e.Live)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", country.ErrNotTaken, err)
	}
	ctx, cancel := context.WithTimeout(ctx, renewFor)
	defer cancel()
	err = country.Safely("renewing a grant", func() (err error) {
		kept, err = pack.Grant.Renew(ctx, at, with)
		return err
	})
	return kept, err
}

// renewal is what the authority gave.
type renewal struct {
	pack country.Pack
	kept map[string]string
}

func (c *Companies) storeRenewed(ctx context.Context, at grantOf, g stored, own country.Credentials, n renewal) (country.Credentials, error) {
	sealer, err := c.sealer(ctx, at.client)
	if err != nil {
		return own, err
	}
	k, err := sealGrant(sealer, at, n, c.now())
	if err != nil {
		return own, err
	}
	err = c.db.Write(ctx, func(tx *db.Tx) error {
		if err := tx.ExecOne(renewedSQL, k.sealed, k.usable, k.ends, at.client, at.id, g.version); err != nil {
			return err
		}
		return tx.Exec(grantEndSQL, k.ends, at.client, at.id)
	})
	if err != nil {
		return own, fmt.Errorf("store grant %s: %w", at.id, err)
	}
	return stored{secrets: n.kept}.with(own), nil
}

// keptGrant is a grant as it is stored with a company; without sealed secrets the
// company shares what is there.
type keptGrant struct {
	id     string
	sealed []byte
	usable int64
	ends   any
}

func sealGrant(sealer *secret.Sealer, at grantOf, n renewal, now time.Time) (keptGrant, error) {
	sealed, err := sealJSON(sealer, n.kept, bound(at.client, at.id, purposeAuthorityGrant))
	if err != nil {
		return keptGrant{}, fmt.Errorf("seal grant %s: %w", at.id, err)
	}
	use, end := n.pack.Grant.Ends(n.kept, now)
	k := keptGrant{id: at.id, sealed: sealed, usable: db.Micros(use)}
	if !end.IsZero() {
		k.ends = db.Micros(end)
	}
	return k, nil
}

func (k *keptGrant) store(tx *db.Tx, clientID string) error {
	if k.sealed == nil {
		return nil
	}
	if err := tx.Exec(putGrantSQL, clientID, k.id, k.sealed, k.usable, k.ends); err != nil {
		return err
	}
	return tx.Exec(grantEndSQL, k.ends, clientID, k.id)
}

// endOfGrant is when a person has to come again; nil: nobody knows.
func endOfGrant(tx *db.Tx, at grantOf) (ends *int64, err error) {
	err = tx.Row("SELECT ends_at FROM authority_grants WHERE client_id = $1 AND grant_id = $2", at.client, at.id).Scan(&ends)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return ends, err
}

// sealing is what is stored of a company's credentials.
type sealing struct {
	own   []byte
	grant *keptGrant
}

// share gives a job the grant that its company has, or shares with others, unless
// the client sent another or takes it back.
func (c *Companies) share(ctx context.Context, job *claimed, e *examined, sent secrets) error {
	rule := e.pack.Grant
	if rule == nil {
		return nil
	}
	_, all := sent.members[memberNamed]
	if all || slices.ContainsFunc(rule.Secrets, func(name string) bool { _, said := sent.members[name]; return said }) {
		e.bought = rule.Among(e.credentials.Named) // what was handed over is kept as what is brought
		return nil
	}
	g, err := c.readGrant(ctx, grantOf{job.clientID, job.whose(e)})
	if err != nil || g.secrets == nil {
		return err
	}
	e.credentials = g.with(e.credentials)
	if job.kind == kindCreate {
		e.replaced = true
	}
	return nil
}

// keepGrant takes what a person granted out of a company's own credentials.
func (c *Companies) keepGrant(job *claimed, e *examined, sealer *secret.Sealer) (*keptGrant, error) {
	rule := e.pack.Grant
	if rule == nil {
		return nil, nil
	}
	kept, own := map[string]string{}, map[string]string{}
	for name, value := range e.credentials.Named {
		if slices.Contains(rule.Secrets, name) {
			kept[name] = value
		} else {
			own[name] = value
		}
	}
	e.credentials.Named = own
	at := grantOf{job.clientID, job.whose(e)}
	switch {
	case len(kept) == 0:
		return nil, nil
	case !e.bought:
		return &keptGrant{id: at.id}, nil
	}
	k, err := sealGrant(sealer, at, renewal{e.pack, kept}, c.now())
	return &k, err
}
