package operator

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

// Enrolment is a new second factor: an app, by the ticket of its offer and its
// first code, or a passkey, by what the browser says of it.
type Enrolment struct {
	Ticket, Code   string
	Passkey, Label string
}

// Enrol adds a factor to the operator of a session. With the first one come
// recovery codes, which are never shown again; otherwise the list is empty.
func (o *Operators) Enrol(ctx context.Context, s Session, e Enrolment) (codes []string, err error) {
	if !s.Fresh(o.db.Now()) {
		return nil, notFresh()
	}
	add, err := o.examine(ctx, s.Name, e, s.Challenge())
	if err != nil {
		return nil, err
	}
	_, err = o.change(ctx, s.Actor(), s.Name, func(tx *db.Tx, p *Operator) (action string, err error) {
		codes, err = o.enrolIn(tx, p.Name, add)
		p.App = p.App || e.Passkey == ""
		if e.Passkey != "" {
			p.Passkeys++
		}
		return "operator.second_factor_added", err
	})
	return codes, err
}

// FinishEnrolment is Enrol for somebody who must enrol before anything else: it
// also begins the session. It is refused where a factor exists already.
func (o *Operators) FinishEnrolment(ctx context.Context, token string, e Enrolment,
	a Attempt) (in secret.Secret, s Session, codes []string, err error) {
	w, err := o.Waiting(ctx, token)
	if err != nil {
		return in, s, nil, err
	}
	if w.Factors.Any() {
		return in, s, nil, o.turnedAway(ctx, w.Name, a.IP, "incorrect second factor")
	}
	add, err := o.examine(ctx, w.Name, e, w.Challenge)
	if err != nil {
		return in, s, nil, err
	}
	by := audit.Actor{Name: w.Name, IP: clip(a.IP)}
	in, s, err = o.begin(ctx, w.Name, a, "signin.enrolled", func(tx *db.Tx) (err error) {
		if err := tx.Lock(lockName); err != nil {
			return err
		}
		if f, err := o.Factors(tx, w.Name); err != nil || f.Any() {
			return errors.Join(err, signInFirst("please sign in again"))
		}
		if codes, err = o.enrolIn(tx, w.Name, add); err != nil {
			return err
		}
		if err := tx.ExecOne(endHalfwaySQL, digestOf(token)); err != nil {
			return err
		}
		return o.RecordIn(tx, by, Act{Action: "operator.second_factor_added", Subject: w.Name})
	})
	return in, s, codes, err
}

// enrolIn stores a factor, and recovery codes with the first one.
func (o *Operators) enrolIn(tx *db.Tx, name string, add func(*db.Tx, Factors) error) (codes []string, err error) {
	f, err := o.Factors(tx, name)
	if err != nil {
		return nil, err
	}
	if err := add(tx, f); err != nil {
		return nil, err
	}
	if !f.Any() {
		return renewRecovery(tx, name)
	}
	return nil, nil
}

// examine checks a new factor and answers how it is stored.
func (o *Operators) examine(ctx context.Context, name string, e Enrolment,
	challenge []byte) (func(*db.Tx, Factors) error, error) {
	if e.Passkey != "" {
		return o.examinePasskey(name, e, challenge)
	}
	return o.examineApp(ctx, name, e)
}

func (o *Operators) examineApp(ctx context.Context, name string, e Enrolment) (func(*db.Tx, Factors) error, error) {
	over := fault.New(fault.Invalid, "This key has expired. Start over.")
	if o.second.Sealer == nil {
		return nil, over
	}
	raw, err := base64.RawURLEncoding.DecodeString(e.Ticket)
	if err != nil {
		return nil, over
	}
	dated, err := o.openFactor(ctx, raw, aboutOffer(name))
	if errors.Is(err, secret.ErrBroken) {
		return nil, over
	}
	if err != nil {
		return nil, err
	}
	if len(dated) != 8+totpKeyBytes || o.db.Now().Unix() >= int64(binary.BigEndian.Uint64(dated)) {
		return nil, over
	}
	key := dated[8:]
	code, _ := digitsOf(e.Code)
	step, ok := totpMatch(key, code, o.db.Now(), 0)
	if !ok {
		return nil, fault.New(fault.Invalid, "Incorrect code. Check the phone's clock and try the next code.")
	}
	sealer, err := o.second.Sealer(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the key of second factors: %w", err)
	}
	sealed, err := sealer.Seal(secret.New(key), aboutApp(name))
	if err != nil {
		return nil, fmt.Errorf("seal a second factor: %w", err)
	}
	return func(tx *db.Tx, f Factors) error {
		if f.App {
			return fault.New(fault.Conflict, "An authenticator app is already set up: remove it first.")
		}
		return tx.Exec(addTOTPSQL, name, sealed, step, db.Micros(tx.Now()))
	}, nil
}

func (o *Operators) examinePasskey(name string, e Enrolment, challenge []byte) (func(*db.Tx, Factors) error, error) {
	if o.PasskeyDomain() == "" {
		return nil, fault.New(fault.Invalid, "Passkeys need a host name for the console: set --admin-url.")
	}
	key, err := o.register(name, e.Passkey, challenge)
	if err != nil {
		return nil, fault.New(fault.Invalid, "The passkey was not accepted: %s.", err)
	}
	label := fault.Clip(e.Label, labelMax)
	if label == "" {
		label = "passkey"
	}
	return func(tx *db.Tx, f Factors) error {
		if len(f.Passkeys) >= passkeysMax {
			return fault.New(fault.Conflict, "You already have %d passkeys: remove one first.", passkeysMax)
		}
		var known int
		if err := tx.Row(passkeyOwnerSQL, key.ID).Scan(&known); err != nil {
			return err
		}
		if known > 0 {
			return fault.New(fault.Conflict, "This passkey is already registered.")
		}
		return tx.Exec(addPasskeySQL, key.ID, name, label, key.PublicKey, int64(key.Authenticator.SignCount), db.Micros(tx.Now()))
	}, nil
}

// RemoveApp takes the authenticator app from a session's operator.
func (o *Operators) RemoveApp(ctx context.Context, s Session) error {
	return o.removeFactor(ctx, s, func(tx *db.Tx) error { return tx.ExecOne(dropTOTPSQL, s.Name) })
}

// RemovePasskey takes a passkey from a session's operator.
func (o *Operators) RemovePasskey(ctx context.Context, s Session, id string) error {
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return fault.New(fault.NotFound, "Unknown passkey.")
	}
	return o.removeFactor(ctx, s, func(tx *db.Tx) error { return tx.ExecOne(dropPasskeySQL, s.Name, raw) })
}

// removeFactor removes a factor, and the recovery codes with the last one. The
// last one stays where one is required.
func (o *Operators) removeFactor(ctx context.Context, s Session, remove func(*db.Tx) error) error {
	if !s.Fresh(o.db.Now()) {
		return notFresh()
	}
	_, err := o.change(ctx, s.Actor(), s.Name, func(tx *db.Tx, p *Operator) (string, error) {
		if err := remove(tx); errors.Is(err, db.ErrStale) {
			return "", fault.New(fault.NotFound, "Unknown second factor.")
		} else if err != nil {
			return "", err
		}
		left, err := o.Factors(tx, p.Name)
		if err != nil {
			return "", err
		}
		p.App, p.Passkeys = left.App, len(left.Passkeys)
		if !left.Any() && o.second.Required {
			return "", fault.New(fault.Conflict, "A second factor is required: add another one first.")
		}
		if !left.Any() {
			err = tx.Exec(dropRecoverySQL, p.Name)
		}
		return "operator.second_factor_removed", err
	})
	return err
}

// RenewRecovery makes new recovery codes; the old ones open nothing any more.
func (o *Operators) RenewRecovery(ctx context.Context, s Session) (codes []string, err error) {
	if !s.Fresh(o.db.Now()) {
		return nil, notFresh()
	}
	_, err = o.change(ctx, s.Actor(), s.Name, func(tx *db.Tx, p *Operator) (string, error) {
		f, err := o.Factors(tx, p.Name)
		if err != nil {
			return "", err
		}
		if !f.Any() {
			return "", fault.New(fault.Conflict, "Recovery codes require a second factor: add one first.")
		}
		codes, err = renewRecovery(tx, p.Name)
		return "operator.recovery_renewed", err
	})
	return codes, err
}
