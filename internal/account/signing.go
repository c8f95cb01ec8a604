package account

import (
	"context"
	"errors"
	"fmt"

	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/secret"
)

// What a data key seals. Each purpose has a data key of its own, so that one
// that leaks opens nothing else.
const (
	PurposeAPIKeys        = "api_keys"
	PurposeTaxCredentials = "tax_credentials"
	PurposeWebhookSecrets = "webhook_secrets"
)

// rowVersion is bound into what is sealed; it changes with the form of the rows.
const rowVersion = 1

// ErrNoSigningKey says that a client has no active key: its webhooks wait.
var ErrNoSigningKey = errors.New("the client has no active key to sign with")

// dataKey names a data key.
type dataKey struct{ clientID, purpose string }

func (k dataKey) context() secret.Context {
	return secret.Context{Client: k.clientID, Purpose: k.purpose, Version: rowVersion}
}

func keyContext(clientID, kid string) secret.Context {
	return secret.Context{Client: clientID, Kid: kid, Purpose: "api_key", Version: rowVersion}
}

// SigningKey is one key as the HMAC secret of webhooks. Its zero value is no key.
type SigningKey struct {
	Kid  string
	Text secret.Secret
}

// SigningKeys returns the keys to sign with at this instant: main is the active
// key, beside the other one of a rotation: the next key before promote, the
// retiring one after it, until that is revoked; zero outside a rotation. Without
// an active key the error is [ErrNoSigningKey]; see [Accounts.Changed].
func (a *Accounts) SigningKeys(ctx context.Context, clientID string) (main, beside SigningKey, err error) {
	c, err := a.card(ctx, clientID)
	if err != nil {
		return main, beside, err
	}
	for _, k := range c.keys {
		var to *SigningKey
		switch k.state {
		case Active:
			to = &main
		case Next, Retiring: // there is never one of each
			to = &beside
		default:
			continue
		}
		if *to, err = a.openKey(ctx, clientID, k); err != nil {
			return SigningKey{}, SigningKey{}, fmt.Errorf("open key %s of client %s: %w", k.kid, clientID, err)
		}
	}
	if main.Kid == "" {
		return SigningKey{}, SigningKey{}, fmt.Errorf("client %s: %w", clientID, ErrNoSigningKey)
	}
	return main, beside, nil
}

// openKey opens a sealed key once; from then on it is in memory until it is revoked.
func (a *Accounts) openKey(ctx context.Context, clientID string, k bookKey) (SigningKey, error) {
	a.mu.Lock()
	text, known := a.texts[k.digest]
	a.mu.Unlock()
	if known {
		return SigningKey{k.kid, text}, nil
	}
	sealer, err := a.Sealer(ctx, clientID, PurposeAPIKeys)
	if err != nil {
		return SigningKey{}, err
	}
	var sealed []byte
	err = a.read(ctx, func(r db.Reader) error {
		return r.Row(sealedSQL, k.kid, clientID).Scan(&sealed)
	})
	if err != nil {
		return SigningKey{}, err
	}
	if text, err = sealer.Open(sealed, keyContext(clientID, k.kid)); err != nil {
		return SigningKey{}, err
	}
	key, err := secret.ParseAPIKey(text.RevealText())
	if err != nil || !key.Matches(k.digest[:]) {
		return SigningKey{}, secret.ErrBroken // digest and sealed text of one row belong to different keys
	}
	a.mu.Lock()
	a.texts[k.digest] = text
	a.mu.Unlock()
	return SigningKey{k.kid, text}, nil
}

// forgetTexts drops opened keys that are in use no more. They are not wiped: a
// delivery may be signing with one at this moment.
func (a *Accounts) forgetTexts(b *snapshot) {
	used := make(map[audit.Digest]bool, len(b.keys))
	for _, e := range b.keys {
		used[e.digest] = true
	}
	for _, c := range b.clients {
		for _, s := range c.secrets {
			used[s.digest] = true
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for d := range a.texts {
		if !used[d] {
			delete(a.texts, d)
		}
	}
}

func (a *Accounts) sealKey(ctx context.Context, clientID string, key secret.APIKey) ([]byte, error) {
	sealer, err := a.Sealer(ctx, clientID, PurposeAPIKeys)
	if err != nil {
		return nil, err
	}
	return sealer.Seal(key.Text(), keyContext(clientID, key.Kid()))
}

// Sealer returns the client's sealer for a purpose, and makes its data key the
// first time. It is kept in memory: the master key may be a network away.
func (a *Accounts) Sealer(ctx context.Context, clientID, purpose string) (*secret.Sealer, error) {
	k := dataKey{clientID, purpose}
	a.mu.Lock()
	sealer := a.sealers[k]
	a.mu.Unlock()
	if sealer != nil {
		return sealer, nil
	}
	if a.master == nil {
		return nil, fmt.Errorf("open the data key of client %s: %w", clientID, errNoMaster)
	}
	// Many deliveries of one client may begin at once; the master key is asked once.
	made, err, _ := a.openings.Do(purpose+" "+clientID, func() (any, error) {
		return a.openSealer(context.WithoutCancel(ctx), k)
	})
	if err != nil {
		return nil, err
	}
	return made.(*secret.Sealer), nil
}

func (a *Accounts) openSealer(ctx context.Context, k dataKey) (*secret.Sealer, error) {
	wrapped, err := a.wrapped(ctx, k)
	if errors.Is(err, db.ErrNoRows) {
		if err := a.makeDataKey(ctx, k); err != nil {
			return nil, err
		}
		wrapped, err = a.wrapped(ctx, k)
	}
	if err != nil {
		return nil, fmt.Errorf("read the data key of client %s: %w", k.clientID, err)
	}
	sealer, err := a.master.Open(wrapped, k.context())
	if err != nil {
		return nil, err
	}
	sealer.Follow(func() (*secret.Sealer, error) {
		again, err := a.wrapped(context.WithoutCancel(ctx), k)
		if err != nil {
			return nil, err
		}
		return a.master.Open(again, k.context())
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sealers[k] = sealer
	return sealer, nil
}

func (a *Accounts) wrapped(ctx context.Context, k dataKey) (wrapped []byte, err error) {
	err = a.read(ctx, func(r db.Reader) error {
		return r.Row(wrappedSQL, k.clientID, k.purpose).Scan(&wrapped)
	})
	return wrapped, err
}

// makeDataKey stores a new data key unless another process was faster.
func (a *Accounts) makeDataKey(ctx context.Context, k dataKey) error {
	fresh, err := a.master.NewKey(k.context())
	if err != nil {
		return err
	}
	return a.change(ctx, audit.Actor{Name: "service"}, k.clientID, func(e *edit) error {
		var there int
		err := e.tx.Row(countDataKeysSQL, k.clientID, k.purpose).Scan(&there)
		if err != nil || there > 0 {
			return err
		}
		return e.addDataKey(k.purpose, fresh)
	})
}

type wrappedKey struct {
	dataKey
	wrapped []byte
}

func readDataKeys(r db.Reader, where string, args ...any) ([]wrappedKey, error) {
	all, err := db.Collect(r, func(scan func(...any) error) (k wrappedKey, err error) {
		return k, scan(&k.clientID, &k.purpose, &k.wrapped)
	}, fmt.Sprintf(dataKeysSQL, where), args...)
	if err != nil {
		return nil, fmt.Errorf("read data keys: %w", err)
	}
	return all, nil
}

// Rewrap wraps every data key again that is not under the current master key,
// and returns how many it moved. Keys and credentials stay sealed as they are,
// so nothing needs to stop.
//
// Failure policy: each data key is a write of its own that replaces exactly the
// bytes that were read. Interrupted, it leaves some under the old master key,
// which must stay in the file until a later run answers 0.
func (a *Accounts) Rewrap(ctx context.Context, by audit.Actor) (moved int, err error) {
	return a.Adopt(ctx, by, a.master)
}

// Adopt is Rewrap for data keys that another master key wrapped: the way from a
// file to a KMS, or back.
func (a *Accounts) Adopt(ctx context.Context, by audit.Actor, from *secret.Master) (moved int, err error) {
	if a.master == nil || from == nil {
		return 0, fmt.Errorf("re-wrap data keys: %w", errNoMaster)
	}
	current, err := a.master.KeyID()
	if err != nil {
		return 0, fmt.Errorf("re-wrap data keys: %w", err)
	}
	var all []wrappedKey
	err = a.read(ctx, func(r db.Reader) (err error) {
		all, err = readDataKeys(r, "")
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("re-wrap data keys: %w", err)
	}
	for _, k := range all {
		if id, err := secret.KeyID(k.wrapped); err == nil && id == current {
			continue
		}
		again, err := a.master.Adopt(from, k.wrapped, k.context())
		if err != nil {
			return moved, err
		}
		switch err := a.replaceDataKey(ctx, by, k, again); {
		case errors.Is(err, db.ErrStale): // another run moved it meanwhile
		case err != nil:
			return moved, fmt.Errorf("re-wrap the data key of client %s: %w", k.clientID, err)
		default:
			moved++
		}
	}
	return moved, nil
}

// RenewDataKeys gives every data key a fresh key for what is sealed from now on;
// what was sealed before still opens. It returns how many it renewed.
func (a *Accounts) RenewDataKeys(ctx context.Context, by audit.Actor) (renewed int, err error) {
	if a.master == nil {
		return 0, fmt.Errorf("renew data keys: %w", errNoMaster)
	}
	var all []wrappedKey
	err = a.read(ctx, func(r db.Reader) (err error) {
		all, err = readDataKeys(r, "")
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("renew data keys: %w", err)
	}
	for _, k := range all {
		again, err := a.master.Renew(k.wrapped, k.context())
		if err != nil {
			return renewed, err
		}
		switch err := a.replaceDataKey(ctx, by, k, again); {
		case errors.Is(err, db.ErrStale): // re-wrapped meanwhile: the next run renews it
		case err != nil:
			return renewed, fmt.Errorf("renew the data key of client %s: %w", k.clientID, err)
		default:
			renewed++
		}
	}
	return renewed, nil
}

// dropSealers forgets the data keys of clients that changed: they may have been renewed.
func (a *Accounts) dropSealers(changed []*card) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := map[string]bool{}
	for _, c := range changed {
		ids[c.profile.ClientID] = true
	}
	for k := range a.sealers {
		if ids[k.clientID] {
			delete(a.sealers, k)
		}
	}
}

func (a *Accounts) replaceDataKey(ctx context.Context, by audit.Actor, k wrappedKey, again []byte) error {
	return a.change(ctx, by, k.clientID, func(e *edit) error {
		err := e.tx.ExecOne(rewrapSQL, again, k.clientID, k.purpose, k.wrapped)
		if err != nil {
			return err
		}
		e.record("data_key.rewrapped", subjectDataKey+k.purpose, dataKeyHash(k.purpose, k.wrapped), dataKeyHash(k.purpose, again))
		return nil
	})
}
