package onboarding_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/onboarding"
)

// granter is an OAuth server whose refresh tokens die when they are used.
type granter struct {
	mu    sync.Mutex
	last  int // the only token that is good
	calls int
	down  bool
}

func (g *granter) renew(_ context.Context, _ country.Endpoint, c country.Credentials) (map[string]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	switch {
	case g.down:
		return nil, errors.New("status 503")
	case c.Named["refresh"] != fmt.Sprint("r", g.last):
		return nil, fmt.Errorf("%w: invalid_grant", country.ErrCredentials)
	}
	g.last++
	return g.tokens(), nil
}

func (g *granter) tokens() map[string]string {
	return map[string]string{"refresh": fmt.Sprint("r", g.last), "access": fmt.Sprint("a", g.last)}
}

// asked are the calls since the last look.
func (g *granter) asked() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.calls
	g.calls = 0
	return n
}

// granting is a world with a country whose grants rotate: an access token is good
// for an hour, the grant for 100 days from its renewal.
func granting(t *testing.T, d *db.DB) (*world, *granter) {
	t.Helper()
	g := &granter{}
	pack := filing("RO", func(p *country.Pack) {
		p.Facts.Settings = append(p.Facts.Settings, country.Setting{Key: "person", Type: "string", Default: ""})
		p.Facts.Secrets = []country.SecretRule{{Name: "refresh", Description: "of a person"}, {Name: "access", Description: "renewed"}}
		p.Enrol = func(ctx context.Context, in country.Enrolment) country.Enrolled {
			switch {
			case in.Credentials.Named["access"] != "":
				return country.Enrolled{}
			case in.Credentials.Named["refresh"] == "":
				return country.Enrolled{Visit: "https://authority.test/grant?state=" + in.State}
			}
			kept, err := g.renew(ctx, in.At, in.Credentials)
			if err != nil {
				return refusedGrantOf(err)
			}
			return country.Enrolled{Keep: kept}
		}
		p.Grant = &country.Grant{Secrets: []string{"refresh", "access"}, Person: "person", Renew: g.renew,
			Ends: func(_ map[string]string, now time.Time) (time.Time, time.Time) {
				return now.Add(time.Hour), now.Add(100 * 24 * time.Hour)
			}}
	})
	w := newWorld(t, d, func(c *onboarding.Config) {
		atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{pack},
			Addresses: map[string]country.Addresses{"RO": {Test: "http://127.0.0.1:1"}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(atlas.Close)
		c.Atlas = atlas
	})
	return w, g
}

func romanian(external, number string, more ...any) map[string]any {
	return company(append([]any{"meta.country_code", "ro", "meta.external_id", external, "tax_information.tax_number", number}, more...)...)
}

func (w *world) access(id string) (string, error) {
	c, err := w.Credentials(w.t.Context(), client, id)
	return c.Named["access"], err
}

// A grant is renewed when its time has come, by one of many, and shared.
func TestAGrantIsRenewedOnceAndShared(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w, g := granting(t, d)
		first := w.onboard(romanian("one", "RO18547290", "settings.person", "ana", "tax_credentials.refresh", "r0"))
		if n := g.asked(); n != 1 {
			t.Errorf("%d calls at onboarding", n)
		}
		second := w.onboard(romanian("two", "RO14399840", "settings.person", "ana"))
		for _, id := range []string{first, second} {
			if got, err := w.access(id); got != "a1" || err != nil {
				t.Errorf("%q %v", got, err)
			}
		}
		if n := g.asked(); n != 0 {
			t.Errorf("%d calls for what is fresh", n)
		}
		w.setNow(w.now.Load().Add(59 * time.Minute))
		var all sync.WaitGroup
		for range 4 {
			for _, id := range []string{first, second} {
				all.Go(func() {
					if got, err := w.access(id); got != "a1" && got != "a2" || err != nil {
						t.Errorf("%q %v", got, err)
					}
				})
			}
		}
		all.Wait()
		if n := g.asked(); n != 1 {
			t.Errorf("%d renewals", n)
		}
		if got, err := w.access(second); got != "a2" || err != nil {
			t.Errorf("%q %v", got, err)
		}
		w.setNow(w.now.Load().Add(93*24*time.Hour + time.Hour))
		if n, err := w.RaiseExpiryAlarms(t.Context()); n != 2 || err != nil {
			t.Errorf("%d alarms for two companies whose grant ends in a week: %v", n, err)
		}
	})
}

// An authority that cannot renew is waited for; what can be used still is.
func TestAnOutageOfRenewalIsNoLossOfTheGrant(t *testing.T) {
	t.Parallel()
	w, g := granting(t, dbtest.SQLite(t))
	id := w.onboard(romanian("one", "RO18547290", "tax_credentials.refresh", "r0"))
	g.down = true
	w.setNow(w.now.Load().Add(59 * time.Minute))
	if got, err := w.access(id); got != "a1" || err != nil {
		t.Errorf("what is still good: %q %v", got, err)
	}
	w.setNow(w.now.Load().Add(2 * time.Minute))
	if _, err := w.access(id); !errors.Is(err, country.ErrNotTaken) || errors.Is(err, country.ErrCredentials) {
		t.Errorf("an outage: %v", err)
	}
	g.down = false
	if got, err := w.access(id); got != "a2" || err != nil {
		t.Errorf("afterwards: %q %v", got, err)
	}
}

// A crash between "the server has renewed it" and "we have stored it" ends in a
// grant that is dead, is not asked about again, and comes back by a visit.
func TestAGrantThatWasLostInACrashWaitsForAPerson(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w, g := granting(t, d)
		id := w.onboard(romanian("one", "RO18547290", "tax_credentials.refresh", "r0"))
		w.setNow(w.now.Load().Add(61 * time.Minute))
		err := d.Write(t.Context(), func(tx *db.Tx) error { // the holder has marked it, and died
			return tx.ExecOne("UPDATE authority_grants SET renewing_at = $1", db.Micros(*w.now.Load()))
		})
		if err != nil {
			t.Fatal(err)
		}
		g.last++ // the server has renewed it
		w.setNow(w.now.Load().Add(3 * time.Minute))
		g.asked()
		for range 3 {
			if got, err := w.access(id); got != "" || err != nil {
				t.Errorf("a token that nobody has: %q %v", got, err)
			}
		}
		if n := g.asked(); n != 1 {
			t.Errorf("the authority was asked %d times", n)
		}
		e, err := w.Patch(t.Context(), client, id, encode(map[string]any{"tax_credentials": map[string]any{"refresh": nil}}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WorkNow(t.Context(), e.Data.JobID); err != nil {
			t.Fatal(err)
		}
		if e, err = w.Job(t.Context(), client, e.Data.JobID); err != nil || e.Data.Visit == nil {
			t.Fatalf("nobody is asked to come: %+v %v", e, err)
		}
	})
}

func refusedGrantOf(err error) country.Enrolled {
	return country.Enrolled{Faults: []fault.Fault{fault.At("tax_credentials", fault.CredentialsInvalid, "%v", err)}}
}
