package account_test

import (
	"errors"
	"strings"
	"testing"

	"tributary/internal/account"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

// standard are the texts that sign as Standard Webhooks.
func (n *node) standard(t testing.TB, id string) (texts []string) {
	t.Helper()
	all, err := n.WebhookSecrets(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		texts = append(texts, s.Text().RevealText())
	}
	return texts
}

func TestWebhookSecretsSignSideBySideUntilOneIsRevoked(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		_, key := n.create(t, "acme")
		n.create(t, "other")
		if got := n.standard(t, "acme"); got != nil {
			t.Errorf("a client without secrets signs with %v", got)
		}
		first, text, err := n.CreateWebhookSecret(t.Context(), operator(), "acme", secret.Secret{})
		if err != nil || !strings.HasPrefix(text.RevealText(), "whsec_") {
			t.Fatal(err)
		}
		if got := n.standard(t, "acme"); len(got) != 1 || got[0] != text.RevealText() {
			t.Errorf("signs with %v", got)
		}
		fixed := secret.FromText("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
		second, _, err := n.CreateWebhookSecret(t.Context(), operator(), "acme", fixed)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.standard(t, "acme"); len(got) != 2 || got[0] != text.RevealText() || got[1] != fixed.RevealText() {
			t.Errorf("signs with %v, oldest first", got)
		}
		if _, _, err := n.CreateWebhookSecret(t.Context(), operator(), "acme",
			secret.Secret{}); fault.KindOf(err) != fault.Conflict {
			t.Errorf("a third: %v", err)
		}
		if got := n.standard(t, "other"); got != nil {
			t.Errorf("another client signs with %v", got)
		}
		if n.auth(t, fixed) || !n.auth(t, key) {
			t.Error("a webhook secret must open nothing")
		}
		// A process that begins now, and one that runs, see the same.
		cold := open(t, d, func(o *account.Options) { o.Master = n.master })
		if got := cold.standard(t, "acme"); len(got) != 2 || got[1] != fixed.RevealText() {
			t.Errorf("after a restart: %v", got)
		}
		if one, err := n.RevokeWebhookSecret(t.Context(), operator(), "acme", first.ID); err != nil ||
			one.RevokedAt.IsZero() {
			t.Fatal(one, err)
		}
		if got := n.standard(t, "acme"); len(got) != 1 || got[0] != fixed.RevealText() {
			t.Errorf("after revoke: %v", got)
		}
		entries := len(n.audit(t, "acme"))
		if _, err := n.RevokeWebhookSecret(t.Context(), operator(), "acme", first.ID); err != nil ||
			len(n.audit(t, "acme")) != entries {
			t.Errorf("revoked twice: %v, %d new entries", err, len(n.audit(t, "acme"))-entries)
		}
		if _, err := n.RevokeWebhookSecret(t.Context(), operator(), "other", second.ID); fault.KindOf(err) != fault.NotFound {
			t.Errorf("another client's: %v", err)
		}
		if _, _, err := n.CreateWebhookSecret(t.Context(), operator(), "acme", text); fault.KindOf(err) != fault.Conflict {
			t.Errorf("one that was revoked comes back: %v", err)
		}
		if _, _, err := n.CreateWebhookSecret(t.Context(), operator(), "acme",
			secret.FromText("whsec_short")); fault.KindOf(err) != fault.Invalid {
			t.Errorf("one that is none: %v", err)
		}
		if _, _, err := n.CreateWebhookSecret(t.Context(), operator(), "nobody",
			secret.Secret{}); fault.KindOf(err) != fault.NotFound {
			t.Errorf("of nobody: %v", err)
		}
		if got := n.client(t, "acme").WebhookSecrets; len(got) != 2 || got[0].ID != first.ID || got[0].RevokedAt.IsZero() ||
			!got[1].RevokedAt.IsZero() {
			t.Errorf("listed %+v", got)
		}
		if v := n.verdict(t, "acme"); v.Broken != nil {
			t.Errorf("audit: %+v", v.Broken)
		}
	})
}

func TestWebhookSecretsChangedPastTheLogShow(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]string{
		"revoked":     "UPDATE webhook_secrets SET revoked_at = 1 WHERE client_id = 'acme'",
		"removed":     "DELETE FROM webhook_secrets WHERE client_id = 'acme'",
		"another one": "UPDATE webhook_secrets SET digest = x'00' WHERE client_id = 'acme'",
	} {
		t.Run(what, func(t *testing.T) {
			d := dbtest.SQLite(t)
			n := open(t, d)
			n.create(t, "acme")
			if _, _, err := n.CreateWebhookSecret(t.Context(), operator(), "acme", secret.Secret{}); err != nil {
				t.Fatal(err)
			}
			if err := d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec(change) }); err != nil {
				t.Fatal(err)
			}
			if v := n.verdict(t, "acme"); v.Broken == nil || !strings.Contains(v.Broken.Reason, "webhook secret") {
				t.Errorf("%+v", v.Broken)
			}
		})
	}
}

func TestWebhookSecretsOfTwoClientsCannotBeSwapped(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	n := open(t, d)
	ids := map[string]string{}
	for _, client := range []string{"a", "b"} {
		n.create(t, client)
		s, _, err := n.CreateWebhookSecret(t.Context(), operator(), client, secret.Secret{})
		if err != nil {
			t.Fatal(err)
		}
		ids[client] = s.ID
	}
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec("UPDATE webhook_secrets SET (digest, sealed) = (SELECT digest, sealed FROM webhook_secrets WHERE id = $1) WHERE id = $2", ids["a"], ids["b"])
	})
	if err != nil {
		t.Fatal(err)
	}
	cold := open(t, d, func(o *account.Options) { o.Master = n.master })
	if _, err := cold.WebhookSecrets(t.Context(), "b"); !errors.Is(err, secret.ErrBroken) {
		t.Errorf("b signs with what was sealed for a: %v", err)
	}
}
