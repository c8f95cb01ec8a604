package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

// State is where a key is in its life: next → active → retiring → revoked. Every
// key that is not revoked authenticates requests. The active one signs
// webhooks; the next or the retiring one signs beside it, so that the receiver
// can switch before promote or after it. A client has at most two keys that are
// not revoked.
//
// Failure policy: no key becomes the signing key but by promote, the client's
// first excepted. After the active key is revoked, deliveries wait rather than
// being signed with a key that the receiver may not have.
type State string

// The states.
const (
	Next     State = "next"
	Active   State = "active"
	Retiring State = "retiring"
	Revoked  State = "revoked"
)

const usableKeysMax = 2

// Key is one API key without its secret.
type Key struct {
	Kid        string    `json:"kid"`
	State      State     `json:"state"`
	CreatedAt  time.Time `json:"created_at"`
	PromotedAt time.Time `json:"promoted_at,omitzero"`
	RevokedAt  time.Time `json:"revoked_at,omitzero"`
	digest     audit.Digest
}

func scanKey(scan func(...any) error) (Key, error) {
	var k Key
	var sum []byte
	var created int64
	var promoted, revoked *int64
	err := scan(&k.Kid, &k.State, &sum, &created, &promoted, &revoked)
	copy(k.digest[:], sum)
	k.CreatedAt = db.FromMicros(created)
	if promoted != nil {
		k.PromotedAt = db.FromMicros(*promoted)
	}
	if revoked != nil {
		k.RevokedAt = db.FromMicros(*revoked)
	}
	return k, err
}

func microsOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return db.Micros(t)
}

// CreateKey adds a key in state next. A client that has two usable keys
// already: fault.Conflict. The key text is returned here and never shown again.
func (a *Accounts) CreateKey(ctx context.Context, by audit.Actor, clientID string) (Key, secret.Secret, error) {
	return a.issue(ctx, by, clientID, func(*edit) error { return nil })
}

// RotateKey begins a rotation: it adds a key in state next beside the active
// one. A key that still retires from the rotation before is revoked with it.
func (a *Accounts) RotateKey(ctx context.Context, by audit.Actor, clientID string) (Key, secret.Secret, error) {
	return a.issue(ctx, by, clientID, func(e *edit) error {
		if e.keyIn(Active) == nil {
			return conflict("the client has no active key to rotate: create and promote one")
		}
		if e.keyIn(Next) != nil {
			return conflict("a rotation is in progress: promote or revoke the next key first")
		}
		if old := e.keyIn(Retiring); old != nil {
			return e.moveKey(old, Revoked)
		}
		return nil
	})
}

// issue makes a key, seals it outside of the write, and stores it as next.
func (a *Accounts) issue(ctx context.Context, by audit.Actor, clientID string,
	before func(*edit) error) (Key, secret.Secret, error) {
	p, err := a.Profile(ctx, clientID)
	if err != nil {
		return Key{}, secret.Secret{}, err
	}
	key := secret.NewAPIKey(p.Live)
	sealed, err := a.sealKey(ctx, clientID, key)
	if err != nil {
		return Key{}, secret.Secret{}, fmt.Errorf("create a key of client %s: %w", clientID, err)
	}
	var made Key
	err = a.change(ctx, by, clientID, func(e *edit) error {
		if err := before(e); err != nil {
			return err
		}
		if e.usable() >= usableKeysMax || e.keyIn(Next) != nil {
			return conflict("the client already has %d usable keys: revoke one first", usableKeysMax)
		}
		if err := e.addKey(key, sealed, Next); err != nil {
			return err
		}
		made = e.keys[len(e.keys)-1]
		return nil
	})
	if err != nil {
		return Key{}, secret.Secret{}, fmt.Errorf("create a key of client %s: %w", clientID, err)
	}
	return made, key.Text(), nil
}

// PromoteKey makes the next key the active one; the active one retires. An
// empty kid means the client's next key, whichever it is.
func (a *Accounts) PromoteKey(ctx context.Context, by audit.Actor, clientID, kid string) (Key, error) {
	var promoted Key
	err := a.change(ctx, by, clientID, func(e *edit) error {
		k := e.keyIn(Next)
		if kid != "" {
			k = e.key(kid)
		}
		switch {
		case k == nil && kid == "":
			return conflict("the client has no next key: rotate first")
		case k == nil:
			return unknownKey(kid)
		case k.State == Active:
			promoted = *k // asked twice
			return nil
		case k.State != Next:
			return conflict("key %s is %s: only a next key can be promoted", k.Kid, k.State)
		}
		if old := e.keyIn(Active); old != nil {
			if err := e.moveKey(old, Retiring); err != nil {
				return err
			}
		}
		err := e.moveKey(k, Active)
		promoted = *k
		return err
	})
	if err != nil {
		return Key{}, fmt.Errorf("promote a key of client %s: %w", clientID, err)
	}
	return promoted, nil
}

// RevokeKey ends a key at once, whatever its state. Revoking the active key
// pauses the client's webhooks until another is promoted, which raises an alert.
func (a *Accounts) RevokeKey(ctx context.Context, by audit.Actor, clientID, kid string) (Key, error) {
	var revoked Key
	err := a.change(ctx, by, clientID, func(e *edit) error {
		k := e.key(kid)
		if k == nil {
			ended, known, err := e.revokeLimited(kid)
			if err != nil || known {
				revoked = ended
				return err
			}
			return unknownKey(kid)
		}
		signed := k.State == Active
		if k.State != Revoked {
			if err := e.moveKey(k, Revoked); err != nil {
				return err
			}
		}
		revoked = *k
		if !signed || a.alerts == nil {
			return nil
		}
		return a.alerts.RaiseIn(e.tx, alert.SigningKeyMissing, clientID,
			fmt.Sprintf("the active key %s of client %s was revoked: its webhooks wait until another key is promoted", kid, clientID))
	})
	if err != nil {
		return Key{}, fmt.Errorf("revoke key %s of client %s: %w", kid, clientID, err)
	}
	return revoked, nil
}

// FixKey makes a given key text the client's active key and revokes every
// other. It is for the demo and for tests, which start again and again with one
// key: unlike the others it takes back a key that was revoked, and gives a kid
// that the client has used another secret.
func (a *Accounts) FixKey(ctx context.Context, by audit.Actor, clientID string, text secret.Secret) (Key, error) {
	p, err := a.Profile(ctx, clientID)
	if err != nil {
		return Key{}, err
	}
	key, err := parseKey(text, p.Live)
	if err != nil {
		return Key{}, err
	}
	sealed, err := a.sealKey(ctx, clientID, key)
	if err != nil {
		return Key{}, fmt.Errorf("set the key of client %s: %w", clientID, err)
	}
	var fixed Key
	err = a.change(ctx, by, clientID, func(e *edit) error {
		if err := e.fixKey(key, sealed); err != nil {
			return err
		}
		fixed = *e.key(key.Kid())
		return nil
	})
	if err != nil {
		return Key{}, fmt.Errorf("set the key of client %s: %w", clientID, err)
	}
	return fixed, nil
}

func (e *edit) fixKey(key secret.APIKey, sealed []byte) error {
	for i := range e.keys {
		if k := &e.keys[i]; k.Kid != key.Kid() && k.State != Revoked {
			if err := e.moveKey(k, Revoked); err != nil {
				return err
			}
		}
	}
	k := e.key(key.Kid())
	if k == nil {
		var owner string
		err := e.tx.Row(ownerSQL, key.Kid()).Scan(&owner)
		if err == nil {
			return conflict("kid %s belongs to another client: use another kid", key.Kid())
		}
		if !errors.Is(err, db.ErrNoRows) {
			return err
		}
		return e.addKey(key, sealed, Active)
	}
	if !key.Matches(k.digest[:]) {
		before := k.hash()
		k.digest = key.Digest()
		if err := e.tx.ExecOne(replaceKeySQL, k.digest[:], sealed, k.Kid); err != nil {
			return err
		}
		e.record("key.replaced", subjectKey+k.Kid, before, k.hash())
	}
	if k.State == Active {
		return nil
	}
	return e.moveKey(k, Active)
}

// ClientOf names the client that a kid belongs to. Unknown: fault.NotFound.
func (a *Accounts) ClientOf(r db.Reader, kid string) (clientID string, err error) {
	err = r.Row(ownerSQL, kid).Scan(&clientID)
	if errors.Is(err, db.ErrNoRows) {
		return "", unknownKey(kid)
	}
	return clientID, err
}

// parseKey reads a key that was given, never repeating it.
func parseKey(text secret.Secret, live bool) (secret.APIKey, error) {
	want := "trb_test_"
	if live {
		want = "trb_live_"
	}
	key, err := secret.ParseAPIKey(text.RevealText())
	if err != nil || key.Live() != live {
		return secret.APIKey{}, fault.New(fault.Invalid, "the API key is not valid").With(fault.At("api_key", fault.FieldNotValid,
			"must be %s<kid>_<secret>: kid 1 to 16 of a-z 0-9, secret 43 to 128 of A-Z a-z 0-9 -", want))
	}
	return key, nil
}

func conflict(format string, args ...any) error {
	e := fault.New(fault.Conflict, format, args...)
	return e.With(fault.Fault{Code: fault.CodeConflict, Type: fault.General,
		Message: "operation not allowed in the current key state"})
}

func unknownKey(kid string) error {
	return fault.New(fault.NotFound, "the client has no key %q", kid).
		With(fault.Fault{Code: fault.CodeNotFound, Type: fault.General, Message: "unknown key"})
}
