package account_test

import (
	"net/netip"
	"testing"
	"time"

	"tributary/internal/account"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
)

func TestKeysWithLimitsOpenAndNeverSign(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		_, key := n.create(t, "acme")
		made, text, err := n.CreateLimitedKey(t.Context(), operator(), "acme",
			account.Limits{Name: "till", Scopes: []account.Scope{"submit", "read", "read"},
				ExpiresAt: time.Now().Add(time.Hour), Networks: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/16")}})
		if err != nil || len(made.Scopes) != 2 || made.Networks[0].String() != "10.1.0.0/16" {
			t.Fatal(made, err)
		}
		caller, err := n.Authenticate(t.Context(), text.RevealText(), netip.MustParseAddr("::ffff:10.1.9.9"))
		if err != nil || caller.Kid != made.Kid || caller.Require(account.ScopeRead) != nil ||
			fault.KindOf(caller.Require(account.ScopeOnboard)) != fault.Forbidden {
			t.Errorf("%+v %v", caller, err)
		}
		if _, err := n.Authenticate(t.Context(), text.RevealText(),
			netip.MustParseAddr("10.2.0.1")); fault.KindOf(err) != fault.Forbidden {
			t.Errorf("from elsewhere: %v", err)
		}
		main, beside, err := n.SigningKeys(t.Context(), "acme")
		if err != nil || main.Text.RevealText() != key.RevealText() || beside.Kid != "" {
			t.Errorf("signs with %s and %s: %v", main.Kid, beside.Kid, err)
		}
		if _, err := n.PromoteKey(t.Context(), operator(), "acme", made.Kid); fault.KindOf(err) != fault.NotFound {
			t.Errorf("promoted: %v", err)
		}
		// The two keys of a rotation stand beside it.
		if _, _, err := n.RotateKey(t.Context(), operator(), "acme"); err != nil {
			t.Error(err)
		}
		// A process that begins now knows it, and the audit log holds.
		cold := open(t, d, func(o *account.Options) { o.Master = n.master })
		if _, err := cold.Authenticate(t.Context(), text.RevealText(), netip.MustParseAddr("10.1.0.1")); err != nil {
			t.Errorf("after a restart: %v", err)
		}
		if _, err := n.RevokeKey(t.Context(), operator(), "acme", made.Kid); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Authenticate(t.Context(), text.RevealText(),
			netip.MustParseAddr("10.1.0.1")); fault.KindOf(err) != fault.Unauthenticated {
			t.Errorf("revoked: %v", err)
		}
		if err := d.Read(t.Context(), func(r db.Reader) error {
			verdict, err := n.VerifyAudit(r, "acme")
			if verdict.Broken != nil {
				t.Errorf("the audit log breaks: %+v", *verdict.Broken)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLimitsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t))
	n.create(t, "acme")
	many := make([]netip.Prefix, 21)
	for i := range many {
		many[i] = netip.MustParsePrefix("10.0.0.0/8")
	}
	for what, l := range map[string]account.Limits{
		"unknown scope": {Scopes: []account.Scope{"everything"}}, "over": {ExpiresAt: time.Now().Add(-time.Second)},
		"many networks": {Networks: many},
		"long name":     {Name: string(make([]rune, 101))},
	} {
		if _, _, err := n.CreateLimitedKey(t.Context(), operator(), "acme", l); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, _, err := n.CreateLimitedKey(t.Context(), operator(), "acme", account.Limits{Networks: many[:20]}); err != nil {
		t.Error(err)
	}
	for i := 1; ; i++ {
		_, _, err := n.CreateLimitedKey(t.Context(), operator(), "acme", account.Limits{Name: "n"})
		if i == 50 && fault.KindOf(err) == fault.Conflict {
			return
		}
		if err != nil || i > 50 {
			t.Fatalf("key %d: %v", i+1, err)
		}
	}
}
