package server_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"tributary/internal/account"
	"tributary/internal/audit"
)

// limitedKey makes a key with limits of the second client.
func limitedKey(t testing.TB, p *program, l account.Limits) (kid, text string) {
	t.Helper()
	made, key, err := p.Accounts().CreateLimitedKey(context.Background(), audit.Actor{Name: "test"}, "stranger", l)
	if err != nil {
		t.Fatal(err)
	}
	return made.Kid, key.RevealText()
}

func TestAKeyGoesAsFarAsItsScopes(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	calls := map[account.Scope][3]string{
		account.ScopeSubmit: {"POST", "/v1/transactions/validate", "{}"}, account.ScopeRead: {"GET", "/v1/transactions", ""},
		account.ScopeOnboard:  {"POST", "/onboarding/v2/companies", "{}"},
		account.ScopeLookup:   {"POST", "/lookup/v2/single-validations", "{}"},
		account.ScopeWebhooks: {"GET", "/v1/webhooks/events", ""},
	}
	for _, own := range account.Scopes() {
		_, key := limitedKey(t, p, account.Limits{Scopes: []account.Scope{own}})
		c := p.as(key)
		for scope, call := range calls {
			var body any
			if call[2] != "" {
				body = call[2]
			}
			got := c.do(t, call[0], call[1], body)
			if allowed := got.status != 403; allowed != (scope == own) {
				t.Errorf("a key of %s: %s %s answers %d", own, call[0], call[1], got.status)
			}
			if got.status == 403 && got.code(t) != "forbidden" {
				t.Errorf("refused as %s", got.code(t))
			}
		}
		c.want(t, 200, "GET", "/v1/countries/XX", nil)
		if me := c.want(t, 200, "GET", "/v1/me", nil).json(t); len(me["scopes"].([]any)) != 1 ||
			me["scopes"].([]any)[0] != string(own) {
			t.Errorf("me %v", me)
		}
	}
}

func TestMeSaysWhoseKeyThisIs(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	me := p.as(demoKey).want(t, 200, "GET", "/v1/me", nil).json(t)
	if me["limits"].(map[string]any)["per_node"] != true {
		t.Errorf("nothing says that limits are those of a node: %v", me["limits"])
	}
	if me["client_id"] != "demo" || me["environment"] != "test" || me["key_id"] != "demo" || me["expires_at"] != nil ||
		len(me["scopes"].([]any)) != 5 ||
		me["limits"].(object)["requests_per_second"] != nil {
		t.Errorf("me %v", me)
	}
	until := time.Now().Add(time.Hour)
	kid, key := limitedKey(t, p, account.Limits{ExpiresAt: until,
		Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	me = p.as(key).want(t, 200, "GET", "/v1/me", nil).json(t)
	if me["client_id"] != "stranger" || me["key_id"] != kid ||
		me["expires_at"] != until.UTC().Format("2006-01-02T15:04:05Z") ||
		me["limits"].(object)["networks"].([]any)[0] != "127.0.0.0/8" {
		t.Errorf("me %v", me)
	}
}

func TestALimitedKeyEndsAndStaysWhereItBelongs(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	_, elsewhere := limitedKey(t, p, account.Limits{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	if got := p.as(elsewhere).want(t, 403, "GET", "/v1/me", nil); got.code(t) != "forbidden" {
		t.Errorf("from elsewhere: %s", got.body)
	}
	var brief string
	for life := time.Second; ; life *= 2 { // a machine that stalls may use up a short life before the first call
		_, brief = limitedKey(t, p, account.Limits{ExpiresAt: time.Now().Add(life)})
		if status := p.as(brief).do(t, "GET", "/v1/me", nil).status; status == 200 {
			break
		} else if status != 401 || life > patience {
			t.Fatalf("a key with %s to live: %d", life, status)
		}
	}
	for until := time.Now().Add(patience); p.as(brief).do(t, "GET", "/v1/me", nil).status != 401; time.Sleep(
		50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("an expired key is still taken")
		}
	}
	kid, key := limitedKey(t, p, account.Limits{Name: "till"})
	p.as(key).want(t, 200, "GET", "/v1/me", nil)
	if _, err := p.Accounts().RevokeKey(context.Background(), audit.Actor{Name: "test"}, "stranger", kid); err != nil {
		t.Fatal(err)
	}
	p.as(key).want(t, 401, "GET", "/v1/me", nil)
}
