package operator

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/pquerna/otp/totp"

	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

// Second says what is asked of operators besides their password. Who comes
// through an identity provider is not asked: the provider does that.
type Second struct {
	Required bool   // who has no second factor enrols one before anything else
	AdminURL string // where browsers reach the console: its host is the passkeys' domain

	// Sealer seals the keys of authenticator apps. It is asked when it is first
	// needed. Nil: there are no apps.
	Sealer func(context.Context) (*secret.Sealer, error)
}

// Limits of second factors.
const (
	HalfwayMax = 10 * time.Minute // between password and second factor
	FreshMax   = 10 * time.Minute // a session that is older changes no factor
	OfferMax   = 15 * time.Minute // between a new key of an app and its first code

	triesMax    = 5  // of one half sign-in; then the password is asked for again
	passkeysMax = 10 // of one operator
	labelMax    = 60 // bytes of a passkey's name
)

// secondLimit bounds guesses of second factors by name alone: only who has the
// password can guess here, and six digits are few.
func secondLimit() Limit { return Limit{NameBurst: 10, NameEvery: 5 * time.Minute} }

// Halfway says that a password was right and the second factor is missing. Its
// token opens nothing but [Operators.Finish] and [Operators.FinishEnrolment].
type Halfway struct {
	Token secret.Secret
	Until time.Time
	Enrol bool // the operator has no second factor yet and needs one
}

func (h *Halfway) Error() string { return "the second factor is missing" }

// Factors is what an operator can prove.
type Factors struct {
	App      bool
	Passkeys []Passkey
	Recovery int // codes that are left
}

// Any reports whether there is a second factor. Recovery codes alone are none.
func (f Factors) Any() bool { return f.App || len(f.Passkeys) > 0 }

// Passkey is one authenticator of an operator.
type Passkey struct {
	ID        string // base64url
	Label     string
	CreatedAt time.Time
	UsedAt    time.Time

	id, public []byte
	count      int64
}

func scanPasskey(scan func(...any) error) (p Passkey, err error) {
	var created int64
	var used *int64
	err = scan(&p.id, &p.Label, &p.public, &p.count, &created, &used)
	p.ID, p.CreatedAt, p.UsedAt = base64.RawURLEncoding.EncodeToString(p.id), db.FromMicros(created), instant(used)
	return p, err
}

// Factors reads what an operator can prove.
func (o *Operators) Factors(r db.Reader, name string) (f Factors, err error) {
	var apps, passkeys int
	if err := r.Row(factorsSQL, name).Scan(&apps, &passkeys, &f.Recovery); err != nil {
		return f, fmt.Errorf("read the second factors of %s: %w", name, err)
	}
	f.App = apps > 0
	if passkeys > 0 {
		if f.Passkeys, err = db.Collect(r, scanPasskey, passkeysSQL, name); err != nil {
			return f, fmt.Errorf("read the passkeys of %s: %w", name, err)
		}
	}
	return f, nil
}

// halfway begins the second half of a sign-in; nil: none is needed.
//
// Failure policy: half sign-ins are rows, so that any node takes the second
// half. They end by themselves, and with the operator's sessions.
func (o *Operators) halfway(ctx context.Context, name string) (*Halfway, error) {
	var f Factors
	err := o.db.Read(ctx, func(r db.Reader) (err error) { f, err = o.Factors(r, name); return err })
	if err != nil || !f.Any() && !o.second.Required {
		return nil, err
	}
	challenge := make([]byte, tokenBytes)
	rand.Read(challenge) // never fails: the runtime ends the program instead
	h := &Halfway{Token: secret.FromText(randomText()), Enrol: !f.Any()}
	err = o.db.Write(ctx, func(tx *db.Tx) error {
		h.Until = tx.Now().Add(HalfwayMax)
		return errors.Join(tx.Exec(oldHalfwaysSQL, db.Micros(tx.Now())),
			tx.Exec(newHalfwaySQL, digestOf(h.Token.RevealText()), name, challenge, db.Micros(h.Until)))
	})
	if err != nil {
		return nil, fmt.Errorf("start the second step of a sign-in of %s: %w", name, err)
	}
	return h, nil
}

// Waiting is somebody whose second factor is missing.
type Waiting struct {
	Name      string
	Factors   Factors
	Challenge []byte // what a passkey signs
	CSRF      string
}

// Waiting answers whose half sign-in a token is. One that is unknown, over or
// used up: fault.Unauthenticated.
func (o *Operators) Waiting(ctx context.Context, token string) (w Waiting, err error) {
	err = o.db.Read(ctx, func(r db.Reader) (err error) {
		if err = r.Row(halfwaySQL, digestOf(token), db.Micros(r.Now()), triesMax).Scan(&w.Name, &w.Challenge); err != nil {
			return err
		}
		w.Factors, err = o.Factors(r, w.Name)
		return err
	})
	if errors.Is(err, db.ErrNoRows) {
		return w, signInFirst("please sign in again")
	}
	if err != nil {
		return w, fmt.Errorf("read an unfinished sign-in: %w", err)
	}
	w.CSRF = csrfOf(token)
	return w, nil
}

// Proof is a second factor as it was given: a code of an app or of recovery, or
// what a browser says of a passkey.
type Proof struct {
	Code    string
	Passkey string
}

// Finish checks the second factor and begins the session. A wrong one is
// fault.Unauthenticated; too many are fault.Limited.
func (o *Operators) Finish(ctx context.Context, token string, p Proof, a Attempt) (secret.Secret, Session, error) {
	w, err := o.Waiting(ctx, token)
	if err != nil {
		return secret.Secret{}, Session{}, err
	}
	by := guesser{device: w.Name}
	if wait := o.seconds.begin(by); wait > 0 {
		return secret.Secret{}, Session{}, o.limited(ctx, w.Name, a.IP, wait)
	}
	action, use, err := o.prove(ctx, w, p)
	var in secret.Secret
	var s Session
	if err == nil {
		end := func(tx *db.Tx) error { return tx.ExecOne(endHalfwaySQL, digestOf(token)) }
		in, s, err = o.begin(ctx, w.Name, a, action, use, end)
	}
	if fault.KindOf(err) == fault.Unauthenticated { // also a code that another request used up first
		if failed := o.db.Write(ctx, func(tx *db.Tx) error { return tx.Exec(triedSQL, digestOf(token)) }); failed != nil {
			o.log.Error("count a wrong second factor", "operator", w.Name, "error", failed)
		}
		return secret.Secret{}, Session{}, o.turnedAway(ctx, w.Name, a.IP, "incorrect second factor")
	}
	if err == nil { // trouble of our own forgives nothing
		o.seconds.forgive(by)
	}
	return in, s, err
}

// prove finds which factor a proof is of, and what to do so that it is none any more.
func (o *Operators) prove(ctx context.Context, w Waiting, p Proof) (action string, use func(*db.Tx) error, err error) {
	if p.Passkey != "" {
		use, err = o.provePasskey(w, p.Passkey)
		return "signin.passkey", use, err
	}
	if code, ok := digitsOf(p.Code); ok && w.Factors.App {
		use, err = o.proveApp(ctx, w.Name, code)
		return "signin.app", use, err
	}
	digest, ok := recoveryDigest(w.Name, p.Code)
	if !ok {
		return "", nil, signInFirst("incorrect second factor")
	}
	return "signin.recovery", func(tx *db.Tx) error {
		return tx.ExecOne(useRecoverySQL, db.Micros(tx.Now()), w.Name, digest)
	}, nil
}

func (o *Operators) provePasskey(w Waiting, text string) (func(*db.Tx) error, error) {
	k, count, err := o.assert(w.Name, text, w.Challenge, w.Factors.Passkeys)
	if err != nil {
		o.log.Warn("a passkey was refused", "operator", w.Name, "passkey", k.Label, "error", err)
		return nil, signInFirst(err.Error())
	}
	return func(tx *db.Tx) error {
		return tx.ExecOne(usePasskeySQL, int64(count), db.Micros(tx.Now()), k.id, w.Name, k.count)
	}, nil
}

func (o *Operators) proveApp(ctx context.Context, name, code string) (func(*db.Tx) error, error) {
	var sealed []byte
	var last int64
	if err := o.db.Read(ctx, func(r db.Reader) error { return r.Row(totpSQL, name).Scan(&sealed, &last) }); err != nil {
		return nil, fmt.Errorf("read the app of %s: %w", name, err)
	}
	key, err := o.openFactor(ctx, sealed, aboutApp(name))
	if err != nil {
		return nil, err
	}
	step, ok := totpMatch(key, code, o.db.Now(), last)
	if !ok {
		return nil, signInFirst("incorrect code")
	}
	return func(tx *db.Tx) error { return tx.ExecOne(takeStepSQL, step, name) }, nil
}

// ResealFactors seals the shared keys of all apps anew: their service key is renewed.
func ResealFactors(tx *db.Tx, old, fresh *secret.Sealer) error {
	type app struct {
		name   string
		sealed []byte
	}
	all, err := db.Collect(tx, func(scan func(...any) error) (a app, err error) {
		return a, scan(&a.name, &a.sealed)
	}, allTOTPSQL)
	if err != nil {
		return fmt.Errorf("read the second factors: %w", err)
	}
	for _, a := range all {
		key, err := old.Open(a.sealed, aboutApp(a.name))
		if err != nil {
			return fmt.Errorf("open the second factor of %s: %w", a.name, err)
		}
		sealed, err := fresh.Seal(key, aboutApp(a.name))
		if err != nil {
			return fmt.Errorf("seal the second factor of %s: %w", a.name, err)
		}
		if err := tx.ExecOne(resealTOTPSQL, sealed, a.name); err != nil {
			return fmt.Errorf("store the second factor of %s: %w", a.name, err)
		}
	}
	return nil
}

func aboutApp(name string) secret.Context {
	return secret.Context{Kid: name, Purpose: "operator totp", Version: 1}
}

func (o *Operators) openFactor(ctx context.Context, sealed []byte, about secret.Context) ([]byte, error) {
	sealer, err := o.second.Sealer(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the key of second factors: %w", err)
	}
	key, err := sealer.Open(sealed, about)
	if err != nil {
		return nil, fmt.Errorf("open a second factor: %w", err)
	}
	return key.Reveal(), nil
}

// SecondRequired reports whether nobody is let in without a second factor.
func (o *Operators) SecondRequired() bool { return o.second.Required }

// Handle names an operator to an authenticator without saying who it is
// (Web Authentication, section 14.6.1).
func Handle(name string) []byte {
	sum := sha256.Sum256([]byte("tributary passkey handle v1\x00" + name))
	return sum[:]
}

// Challenge is what a new passkey of a session answers.
func (s Session) Challenge() []byte {
	mac := hmac.New(sha256.New, []byte(s.CSRF))
	mac.Write([]byte("tributary new passkey v1"))
	return mac.Sum(nil)
}

// Fresh reports whether a session is young enough to change factors: who finds
// an open browser must not be able to leave a factor of their own behind.
func (s Session) Fresh(now time.Time) bool { return now.Sub(s.CreatedAt) < FreshMax }

func notFresh() error {
	return fault.New(fault.Forbidden,
		"Second factors can be changed within %d minutes of signing in: sign out and in again.", int(FreshMax.Minutes()))
}

// Offer is a new key for an authenticator app. Nothing is stored until a code
// proves that the app has it: the key travels in Ticket, sealed.
type Offer struct {
	Text    string // to be typed
	Address string // to be shown as a picture
	Ticket  string
}

// Offer makes a key for an operator's app.
func (o *Operators) Offer(ctx context.Context, name string) (Offer, error) {
	if o.second.Sealer == nil {
		return Offer{}, fault.New(fault.Unavailable, "No key to encrypt second factors is configured.")
	}
	sealer, err := o.second.Sealer(ctx)
	if err != nil {
		return Offer{}, fmt.Errorf("open the key of second factors: %w", err)
	}
	key := make([]byte, totpKeyBytes)
	rand.Read(key) // never fails: the runtime ends the program instead
	shown, err := totp.Generate(totp.GenerateOpts{Issuer: issuerName, AccountName: name, Secret: key})
	if err != nil {
		return Offer{}, fmt.Errorf("make a key for an app: %w", err)
	}
	dated := binary.BigEndian.AppendUint64(nil, uint64(o.db.Now().Add(OfferMax).Unix()))
	sealed, err := sealer.Seal(secret.New(append(dated, key...)), aboutOffer(name))
	if err != nil {
		return Offer{}, fmt.Errorf("seal a second factor: %w", err)
	}
	return Offer{Text: shown.Secret(), Address: shown.URL(), Ticket: base64.RawURLEncoding.EncodeToString(sealed)}, nil
}

func aboutOffer(name string) secret.Context {
	return secret.Context{Kid: name, Purpose: "operator totp offer", Version: 1}
}

// Reset takes all second factors from an operator and ends its sessions, for
// who has lost them.
func (o *Operators) Reset(ctx context.Context, by audit.Actor, name string) (Operator, error) {
	return o.change(ctx, by, settle(name), func(tx *db.Tx, p *Operator) (string, error) {
		p.App, p.Passkeys = false, 0
		return "operator.second_factor_reset",
			errors.Join(tx.Exec(dropTOTPSQL, p.Name), tx.Exec(dropPasskeysSQL, p.Name), tx.Exec(dropRecoverySQL, p.Name),
				endAll(tx, p.Name))
	})
}
