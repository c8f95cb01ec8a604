package account

import (
	"context"
	"fmt"
	"time"

	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/ids"
	"tributary/internal/secret"
)

// webhookSecretsMax is how many secrets of a client sign side by side: the one
// its receiver has, and the one it is about to have.
const webhookSecretsMax = 2

// WebhookSecret is a secret with which a client's notifications are signed as
// Standard Webhooks, without its text. It opens nothing else: where it is kept,
// nobody can submit with it.
type WebhookSecret struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	RevokedAt time.Time `json:"revoked_at,omitzero"`
	digest    audit.Digest
}

func scanWebhookSecret(scan func(...any) error) (WebhookSecret, error) {
	var s WebhookSecret
	var sum []byte
	var created int64
	var revoked *int64
	err := scan(&s.ID, &sum, &created, &revoked)
	copy(s.digest[:], sum)
	s.CreatedAt = db.FromMicros(created)
	if revoked != nil {
		s.RevokedAt = db.FromMicros(*revoked)
	}
	return s, err
}

func (s *WebhookSecret) hash() audit.Digest {
	state := "signs"
	if !s.RevokedAt.IsZero() {
		state = "revoked"
	}
	return audit.Hash("tributary webhook secret v1", []byte(s.ID), []byte(state), s.digest[:])
}

func webhookSecretContext(clientID, id string) secret.Context {
	return secret.Context{Client: clientID, Kid: id, Purpose: "webhook_secret", Version: rowVersion}
}

// CreateWebhookSecret gives a client a secret; from now on its notifications
// carry the headers of Standard Webhooks, signed with all that are not revoked.
// text fixes it, empty: a random one. A client with two: fault.Conflict. The text
// is returned here and never shown again.
func (a *Accounts) CreateWebhookSecret(ctx context.Context, by audit.Actor, clientID string,
	text secret.Secret) (WebhookSecret, secret.Secret, error) {
	none := func(err error) (WebhookSecret, secret.Secret, error) {
		return WebhookSecret{}, secret.Secret{}, fmt.Errorf("make a webhook secret of client %s: %w", clientID, err)
	}
	fresh := secret.NewWebhookSecret()
	if !text.IsZero() {
		var err error
		if fresh, err = secret.ParseWebhookSecret(text.RevealText()); err != nil {
			return none(fault.New(fault.Invalid, "%v", err))
		}
	}
	if _, err := a.Profile(ctx, clientID); err != nil {
		return none(err)
	}
	made := WebhookSecret{ID: ids.New(), digest: fresh.Digest()}
	sealer, err := a.Sealer(ctx, clientID, PurposeWebhookSecrets)
	if err != nil {
		return none(err)
	}
	sealed, err := sealer.Seal(fresh.Text(), webhookSecretContext(clientID, made.ID))
	if err != nil {
		return none(err)
	}
	err = a.change(ctx, by, clientID, func(e *edit) error {
		all, err := db.Collect(e.tx, scanWebhookSecret, clientSecretsSQL, clientID)
		if err != nil {
			return err
		}
		usable := 0
		for _, s := range all {
			switch {
			case s.digest == made.digest:
				return conflict("the client already has or had this secret")
			case s.RevokedAt.IsZero():
				usable++
			}
		}
		if usable >= webhookSecretsMax {
			return conflict("the client already has %d webhook secrets: revoke one first", usable)
		}
		made.CreatedAt = e.tx.Now()
		err = e.tx.Insert("webhook_secrets", newSecretColumns,
			[]any{made.ID, clientID, made.digest[:], sealed, db.Micros(made.CreatedAt)})
		if err != nil {
			return err
		}
		e.record("webhook_secret.created", subjectSecret+made.ID, audit.Digest{}, made.hash())
		return nil
	})
	if err != nil {
		return none(err)
	}
	return made, fresh.Text(), nil
}

// RevokeWebhookSecret ends a secret; with the last one the headers of Standard
// Webhooks go. Twice is as once. Unknown: fault.NotFound.
func (a *Accounts) RevokeWebhookSecret(ctx context.Context, by audit.Actor,
	clientID, id string) (revoked WebhookSecret, err error) {
	err = a.change(ctx, by, clientID, func(e *edit) error {
		all, err := db.Collect(e.tx, scanWebhookSecret, clientSecretsSQL, clientID)
		if err != nil {
			return err
		}
		for _, s := range all {
			if s.ID != id {
				continue
			}
			if revoked = s; !s.RevokedAt.IsZero() {
				return nil
			}
			revoked.RevokedAt = e.tx.Now()
			if err := e.tx.ExecOne(revokeSecretSQL, db.Micros(revoked.RevokedAt), id, clientID); err != nil {
				return err
			}
			e.record("webhook_secret.revoked", subjectSecret+id, s.hash(), revoked.hash())
			return nil
		}
		return fault.New(fault.NotFound, "client %s has no webhook secret %q", clientID, id)
	})
	if err != nil {
		return WebhookSecret{}, fmt.Errorf("revoke a webhook secret of client %s: %w", clientID, err)
	}
	return revoked, nil
}

// WebhookSecrets returns what a client's notifications are signed with beside
// the API key at this instant, oldest first; none: no headers of Standard Webhooks.
func (a *Accounts) WebhookSecrets(ctx context.Context, clientID string) (list []secret.WebhookSecret, err error) {
	c, err := a.card(ctx, clientID)
	if err != nil || len(c.secrets) == 0 {
		return nil, err
	}
	for _, s := range c.secrets {
		text, err := a.openWebhookSecret(ctx, clientID, s)
		if err != nil {
			return nil, fmt.Errorf("open webhook secret %s of client %s: %w", s.kid, clientID, err)
		}
		parsed, err := secret.ParseWebhookSecret(text.RevealText())
		if err != nil || audit.Digest(parsed.Digest()) != s.digest {
			return nil, fmt.Errorf("open webhook secret %s of client %s: %w", s.kid, clientID, secret.ErrBroken)
		}
		list = append(list, parsed)
	}
	return list, nil
}

// openWebhookSecret opens a sealed secret once; from then on it is in memory until it is revoked.
func (a *Accounts) openWebhookSecret(ctx context.Context, clientID string, s bookKey) (secret.Secret, error) {
	a.mu.Lock()
	text, known := a.texts[s.digest]
	a.mu.Unlock()
	if known {
		return text, nil
	}
	sealer, err := a.Sealer(ctx, clientID, PurposeWebhookSecrets)
	if err != nil {
		return secret.Secret{}, err
	}
	var sealed []byte
	err = a.read(ctx, func(r db.Reader) error { return r.Row(sealedSecretSQL, s.kid, clientID).Scan(&sealed) })
	if err != nil {
		return secret.Secret{}, err
	}
	if text, err = sealer.Open(sealed, webhookSecretContext(clientID, s.kid)); err != nil {
		return secret.Secret{}, err
	}
	a.mu.Lock()
	a.texts[s.digest] = text
	a.mu.Unlock()
	return text, nil
}
