package account_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

// signs says with which kids webhooks are signed.
func (n *node) signs(t testing.TB, id string) (older, newer string) {
	t.Helper()
	o, w, err := n.SigningKeys(context.Background(), id)
	if errors.Is(err, account.ErrNoSigningKey) {
		return "", ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return o.Kid, w.Kid
}

func TestTheSignatureStaysOnTheOlderKeyUntilPromote(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		c, first := n.create(t, "acme")
		one := c.Keys[0].Kid
		if o, w := n.signs(t, "acme"); o != one || w != "" {
			t.Errorf("at the beginning: %q, %q", o, w)
		}
		next, second, err := n.RotateKey(t.Context(), operator(), "acme")
		if err != nil || next.State != account.Next {
			t.Fatal(next, err)
		}
		if o, w := n.signs(t, "acme"); o != one || w != next.Kid {
			t.Errorf("during the rotation: %q, %q", o, w)
		}
		if !n.auth(t, first) || !n.auth(t, second) {
			t.Error("during a rotation both keys are accepted")
		}
		older, newer, err := n.SigningKeys(t.Context(), "acme")
		if err != nil || !older.Text.Equal(first) || !newer.Text.Equal(second) {
			t.Errorf("the opened keys are not the issued ones: %v", err)
		}
		if _, _, err := n.RotateKey(t.Context(), operator(), "acme"); fault.KindOf(err) != fault.Conflict {
			t.Errorf("a second rotation on top: %v", err)
		}
		if _, _, err := n.CreateKey(t.Context(), operator(), "acme"); fault.KindOf(err) != fault.Conflict {
			t.Errorf("a third key: %v", err)
		}
		if k, err := n.PromoteKey(t.Context(), operator(), "acme", ""); err != nil || k.State != account.Active ||
			k.PromotedAt.IsZero() {
			t.Fatal(k, err)
		}
		if o, w := n.signs(t, "acme"); o != next.Kid || w != one {
			t.Errorf("after promote: %q, %q", o, w)
		}
		if !n.auth(t, first) || !n.auth(t, second) {
			t.Error("a retiring key is still accepted for requests")
		}
		third, _, err := n.RotateKey(t.Context(), operator(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		if n.auth(t, first) {
			t.Error("the next rotation ends the key that was retiring")
		}
		if got := states(n.client(t, "acme")); got != "revoked active next" {
			t.Errorf("states %q after key %s", got, third.Kid)
		}
		if o, w := n.signs(t, "acme"); o != next.Kid || w != third.Kid {
			t.Errorf("during the next rotation: %q, %q", o, w)
		}
		if _, err := n.PromoteKey(t.Context(), operator(), "acme", ""); err != nil {
			t.Fatal(err)
		}
		if _, err := n.RevokeKey(t.Context(), operator(), "acme", next.Kid); err != nil {
			t.Fatal(err)
		}
		if o, w := n.signs(t, "acme"); o != third.Kid || w != "" {
			t.Errorf("after the retiring key was revoked: %q, %q", o, w)
		}
		if v := n.verdict(t, "acme"); v.Broken != nil {
			t.Errorf("audit: %+v", v.Broken)
		}
	})
}

func TestRevokingTheActiveKeyPausesSigningUntilPromote(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		c, first := n.create(t, "acme")
		next, second, err := n.RotateKey(t.Context(), operator(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		revoked, err := n.RevokeKey(t.Context(), operator(), "acme", c.Keys[0].Kid)
		if err != nil || revoked.State != account.Revoked || revoked.RevokedAt.IsZero() {
			t.Fatal(revoked, err)
		}
		if n.auth(t, first) || !n.auth(t, second) {
			t.Error("only the revoked key is refused, and at once")
		}
		if _, _, err := n.SigningKeys(t.Context(), "acme"); !errors.Is(err, account.ErrNoSigningKey) {
			t.Errorf("signed with a key the receiver may not have: %v", err)
		}
		if !strings.Contains(n.log.String(), "alert="+string(alert.SigningKeyMissing)) {
			t.Errorf("no alert: %s", n.log)
		}
		if _, _, err := n.RotateKey(t.Context(), operator(), "acme"); fault.KindOf(err) != fault.Conflict {
			t.Errorf("rotate without an active key: %v", err)
		}
		changed := n.Changed()
		if _, err := n.PromoteKey(t.Context(), operator(), "acme", next.Kid); err != nil {
			t.Fatal(err)
		}
		<-changed
		if o, w := n.signs(t, "acme"); o != next.Kid || w != "" {
			t.Errorf("after promote: %q, %q", o, w)
		}
		entries := len(n.audit(t, "acme"))
		if _, err := n.RevokeKey(t.Context(), operator(), "acme", c.Keys[0].Kid); err != nil {
			t.Errorf("revoked twice: %v", err)
		}
		if _, err := n.PromoteKey(t.Context(), operator(), "acme", next.Kid); err != nil {
			t.Errorf("promoted twice: %v", err)
		}
		if got := len(n.audit(t, "acme")); got != entries {
			t.Errorf("asking twice made %d audit entries", got-entries)
		}
		if _, err := n.PromoteKey(t.Context(), operator(), "acme", c.Keys[0].Kid); fault.KindOf(err) != fault.Conflict {
			t.Errorf("promote a revoked key: %v", err)
		}
	})
}

func TestUnknownClientsAndKeysAreNotFound(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t))
	n.create(t, "acme")
	other, _ := n.create(t, "other")
	ctx, by := t.Context(), operator()
	_, _, create := n.CreateKey(ctx, by, "nobody")
	_, _, rotate := n.RotateKey(ctx, by, "nobody")
	_, promote := n.PromoteKey(ctx, by, "nobody", "")
	_, revoke := n.RevokeKey(ctx, by, "nobody", "k")
	_, foreign := n.RevokeKey(ctx, by, "acme", other.Keys[0].Kid)
	_, stolen := n.PromoteKey(ctx, by, "acme", other.Keys[0].Kid)
	_, configure := n.Configure(ctx, by, "nobody", func(*account.Config) error { return nil })
	_, logo := n.SetLogo(ctx, by, "nobody", nil)
	_, fix := n.FixKey(ctx, by, "nobody", secret.NewAPIKey(false).Text())
	_, _, sign := n.SigningKeys(ctx, "nobody")
	_, profile := n.Profile(ctx, "nobody")
	_, sealer := n.Sealer(ctx, "nobody", account.PurposeTaxCredentials)
	for i, err := range []error{create, rotate, promote, revoke, foreign, stolen, configure, logo, fix, sign, profile,
		sealer} {
		if fault.KindOf(err) != fault.NotFound {
			t.Errorf("call %d: %v", i, err)
		}
	}
	err := n.d.Read(ctx, func(r db.Reader) error {
		id, err := n.ClientOf(r, other.Keys[0].Kid)
		if id != "other" || err != nil {
			t.Errorf("got %q, %v", id, err)
		}
		_, err = n.ClientOf(r, "nokid")
		return err
	})
	if fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	if _, err := n.Configure(ctx, audit.Actor{Name: " \x00"}, "acme", func(*account.Config) error {
		return nil
	}); err == nil {
		t.Error("a change by nobody is accepted")
	}
}

func TestFixKeyStartsAgainAndAgainWithOneKey(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		_, random := n.create(t, "demo")
		foreign, _ := n.create(t, "other")
		given := func(kid, letter string) secret.Secret {
			return secret.FromText("trb_test_" + kid + "_" + strings.Repeat(letter, 43))
		}
		a, b, a2 := given("demo", "a"), given("demo2", "b"), given("demo", "c")
		for i, step := range []struct {
			fix   secret.Secret
			works secret.Secret
			dead  []secret.Secret
		}{{a, a, []secret.Secret{random, b, a2}}, {a, a, []secret.Secret{random}}, {b, b, []secret.Secret{a}},
			{a, a, []secret.Secret{b}}, {a2, a2, []secret.Secret{a, b}}} {
			before := len(n.audit(t, "demo"))
			if k, err := n.FixKey(t.Context(), operator(), "demo", step.fix); err != nil || k.State != account.Active {
				t.Fatalf("step %d: %+v, %v", i, k, err)
			}
			if i == 1 && len(n.audit(t, "demo")) != before {
				t.Error("fixing the key that is fixed already is a change")
			}
			if !n.auth(t, step.works) || slices.ContainsFunc(step.dead, func(s secret.Secret) bool { return n.auth(t, s) }) {
				t.Errorf("step %d: the wrong keys work", i)
			}
			older, _, err := n.SigningKeys(t.Context(), "demo")
			if err != nil || !older.Text.Equal(step.works) {
				t.Errorf("step %d: signs with another key: %v", i, err)
			}
		}
		if v := n.verdict(t, "demo"); v.Broken != nil {
			t.Errorf("audit: %+v", v.Broken)
		}
		taken := secret.FromText("trb_test_" + foreign.Keys[0].Kid + "_" + strings.Repeat("x", 43))
		if _, err := n.FixKey(t.Context(), operator(), "demo", taken); fault.KindOf(err) != fault.Conflict {
			t.Errorf("a kid of another client: %v", err)
		}
		for _, text := range []string{"", "nonsense-secret", "trb_live_demo_" + strings.Repeat("s", 43),
			"trb_test_demo_" + strings.Repeat("s", 42)} {
			_, err := n.FixKey(t.Context(), operator(), "demo", secret.FromText(text))
			if fault.KindOf(err) != fault.Invalid || text != "" && strings.Contains(err.Error(), text) {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

func TestAClientCanBeginWithAGivenKey(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t))
	key := secret.FromText("trb_test_mine_" + strings.Repeat("Z", 128))
	in := account.NewClient{ID: "demo", Config: account.Config{DisplayName: "Demo"}, Key: key}
	_, shown, err := n.CreateClient(t.Context(), operator(), in)
	if err != nil || !shown.Equal(key) || !n.auth(t, key) {
		t.Error(err)
	}
	if _, _, err := n.CreateClient(t.Context(), operator(), in); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the same client twice: %v", err)
	}
	in.ID, in.Live = "live", true
	if _, _, err := n.CreateClient(t.Context(), operator(), in); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a test key for a live client: %v", err)
	}
}

// The life of keys against a model: whatever is asked in whatever order, at
// most two keys are usable, one of them signs and the other beside it, exactly those that are not
// revoked authenticate, and the log holds.
func TestKeysFollowTheirStatesInAnyOrder(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t)) // the texts of the statements are the same on both engines
	var clients atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		id := fmt.Sprint("c", clients.Add(1))
		c, first := n.create(t, id)
		model := map[string]account.State{c.Keys[0].Kid: account.Active}
		texts := map[string]secret.Secret{c.Keys[0].Kid: first}
		order := []string{c.Keys[0].Kid}
		for range rapid.IntRange(1, 7).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"create", "rotate", "promote", "revoke"}).Draw(rt, "step") {
			case "create":
				if k, text, err := n.CreateKey(t.Context(), operator(), id); agree(rt, err,
					usable(model) < 2 && find(model, account.Next) == "") {
					model[k.Kid], texts[k.Kid], order = account.Next, text, append(order, k.Kid)
				}
			case "rotate":
				k, text, err := n.RotateKey(t.Context(), operator(), id)
				if agree(rt, err, find(model, account.Active) != "" && find(model, account.Next) == "") {
					if old := find(model, account.Retiring); old != "" {
						model[old] = account.Revoked
					}
					model[k.Kid], texts[k.Kid], order = account.Next, text, append(order, k.Kid)
				}
			case "promote":
				_, err := n.PromoteKey(t.Context(), operator(), id, "")
				if next := find(model, account.Next); agree(rt, err, next != "") {
					if old := find(model, account.Active); old != "" {
						model[old] = account.Retiring
					}
					model[next] = account.Active
				}
			case "revoke":
				kid := rapid.SampledFrom(order).Draw(rt, "kid")
				if _, err := n.RevokeKey(t.Context(), operator(), id, kid); agree(rt, err, true) {
					model[kid] = account.Revoked
				}
			}
		}
		for _, k := range n.client(t, id).Keys {
			if model[k.Kid] != k.State {
				rt.Fatalf("key %s is %s, the model says %s", k.Kid, k.State, model[k.Kid])
			}
			if n.auth(t, texts[k.Kid]) != (k.State != account.Revoked) {
				rt.Fatalf("a %s key is accepted: %v", k.State, k.State == account.Revoked)
			}
		}
		active, beside := find(model, account.Active), find(model, account.Next)+find(model, account.Retiring) // never both
		if active == "" {
			beside = ""
		}
		if o, w := n.signs(t, id); o != active || w != beside {
			rt.Fatalf("signs with %q and %q, the model says %q and %q", o, w, active, beside)
		}
		if usable(model) > 2 {
			rt.Fatalf("%d usable keys", usable(model))
		}
		if v := n.verdict(t, id); v.Broken != nil {
			rt.Fatalf("audit: %+v", v.Broken)
		}
	})
}

func agree(rt *rapid.T, err error, allowed bool) bool {
	if err != nil && fault.KindOf(err) != fault.Conflict {
		rt.Fatal(err)
	}
	if (err == nil) != allowed {
		rt.Fatalf("allowed by the model: %v, but: %v", allowed, err)
	}
	return err == nil
}

func usable(model map[string]account.State) (n int) {
	for _, s := range model {
		if s != account.Revoked {
			n++
		}
	}
	return n
}

func find(model map[string]account.State, s account.State) string {
	for kid, state := range model {
		if state == s {
			return kid
		}
	}
	return ""
}

func TestKeysChangedByManyAtOnceStayWithinTheRules(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		n.create(t, "acme")
		var made atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 6 {
					var err error
					switch (i + j) % 3 {
					case 0:
						_, _, err = n.RotateKey(context.Background(), operator(), "acme")
						if err == nil {
							made.Add(1)
						}
					case 1:
						_, err = n.PromoteKey(context.Background(), operator(), "acme", "")
					case 2:
						_, err = n.Configure(context.Background(), operator(), "acme", func(c *account.Config) error {
							c.Rate = account.Rate{PerSecond: c.Rate.PerSecond + 1, Burst: c.Rate.Burst + 1}
							return nil
						})
						if err != nil {
							t.Error(err)
						}
					}
					if err != nil && fault.KindOf(err) != fault.Conflict {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		c := n.client(t, "acme")
		if got := int64(len(c.Keys)); got != made.Load()+1 {
			t.Errorf("%d keys, %d were issued", got, made.Load()+1)
		}
		if c.Config.Rate.Burst != 16 {
			t.Errorf("a change was lost: %d of 16 are there", c.Config.Rate.Burst)
		}
		if v := n.verdict(t, "acme"); v.Broken != nil {
			t.Errorf("audit: %+v", v.Broken)
		}
	})
}
