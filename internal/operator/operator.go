// Package operator keeps the people who run the service: who may use the
// console, in which role, how they sign in, and what they did.
//
// It owns operators, their passwords and sessions, the limit on guessing, the
// sign-in through an identity provider, and the log of every action. It does
// not own the actions themselves, HTTP, cookies or pages. Law of
// [Operators.Session]: a token speaks for its operator only while that operator
// is enabled, the session was used within [IdleMax] and is younger than
// [SessionMax]; whatever ends it ends it on every node at the next request.
//
// Failure policy: every change of an operator and its audit entry are one
// write. Sessions are rows, not memory: a restart signs nobody out, and a
// disabled operator is out everywhere at once. While the database cannot be
// read nobody is let in.
//
// Half a sign-in, between password and second factor, is a row of its own table
// with a token, a challenge and a count of tries; it is never a session with a flag
// that somebody would forget to look at. The key of a new app travels in the form,
// sealed and dated: nothing is stored before its first code is right. An identity
// provider signs in operators that exist already; it makes none.
package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

// Role is what an operator may do.
type Role string

// The roles, each with everything the one before it may do.
const (
	Viewer Role = "viewer"   // reads
	Acting Role = "operator" // acts on transactions, deliveries and alerts
	Admin  Role = "admin"    // manages clients, keys and operators
)

func (r Role) rank() int {
	switch r {
	case Viewer:
		return 1
	case Acting:
		return 2
	case Admin:
		return 3
	}
	return 0
}

// Allows reports whether the role may do what needs another.
func (r Role) Allows(need Role) bool { return need.rank() > 0 && r.rank() >= need.rank() }

// ParseRole reads a role. Anything else is fault.Invalid.
func ParseRole(text string) (Role, error) {
	if r := Role(strings.ToLower(strings.TrimSpace(text))); r.rank() > 0 {
		return r, nil
	}
	return "", invalid(fault.At("role", fault.FieldNotValid, "must be %s, %s or %s", Viewer, Acting, Admin))
}

// Config says what operators stand on. DB is required.
type Config struct {
	DB     *db.DB
	Alerts *alert.Alerts // nil: none are raised
	Log    *slog.Logger  // nil: discarded
	Limit  Limit         // of guessing; zero: the default
	Cost   Cost          // of a password's hash; zero: the default

	Audit  *audit.Key // nil: entries of the audit log are not authenticated
	Second Second     // what operators prove besides their password

	// Device answers the key that signs what remembers a browser. It is asked when
	// it is first needed. Nil: none is remembered.
	Device func(context.Context) (secret.Secret, error)
}

// Operators is safe for concurrent use.
type Operators struct {
	db      *db.DB
	alerts  *alert.Alerts
	log     *slog.Logger
	hashing *hashing
	guesses *guesses
	device  func(context.Context) (secret.Secret, error)
	audit   *audit.Key
	second  Second
	seconds *guesses // of second factors, by name
}

// New returns the operators of a database. It starts nothing.
func New(c Config) *Operators {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Operators{db: c.DB, alerts: c.Alerts, log: c.Log, hashing: newHashing(c.Cost),
		guesses: newGuesses(c.Limit, c.DB.Now), device: c.Device,
		audit: c.Audit, second: c.Second, seconds: newGuesses(secondLimit(), c.DB.Now)}
}

// Operator is one of the people.
type Operator struct {
	Name       string    `json:"name"`
	Role       Role      `json:"role"`
	Password   bool      `json:"password"`         // signs in with one
	Issuer     string    `json:"issuer,omitempty"` // of the identity that is bound to the name
	CreatedAt  time.Time `json:"created_at"`
	SignedInAt time.Time `json:"signed_in_at,omitzero"`
	DisabledAt time.Time `json:"disabled_at,omitzero"` // zero: enabled
	App        bool      `json:"authenticator_app"`    // a second factor
	Passkeys   int       `json:"passkeys"`             // second factors
}

func scanOperator(scan func(...any) error) (Operator, error) {
	var o Operator
	var issuer *string
	var created int64
	var apps int
	var signedIn, disabled *int64
	err := scan(&o.Name, &o.Role, &o.Password, &issuer, &created, &signedIn, &disabled, &apps, &o.Passkeys)
	o.App = apps > 0
	o.CreatedAt, o.SignedInAt, o.DisabledAt = db.FromMicros(created), instant(signedIn), instant(disabled)
	if issuer != nil {
		o.Issuer = *issuer
	}
	return o, err
}

func instant(us *int64) time.Time {
	if us == nil {
		return time.Time{}
	}
	return db.FromMicros(*us)
}

// List reads all operators by name.
func (o *Operators) List(r db.Reader) ([]Operator, error) {
	all, err := db.Collect(r, scanOperator, operatorsSQL+" ORDER BY name")
	if err != nil {
		return nil, fmt.Errorf("list operators: %w", err)
	}
	return all, nil
}

// Operator reads one. Unknown: fault.NotFound.
func (o *Operators) Operator(r db.Reader, name string) (Operator, error) {
	one, err := scanOperator(r.Row(operatorsSQL+" WHERE name = $1", settle(name)).Scan)
	if errors.Is(err, db.ErrNoRows) {
		return one, fault.New(fault.NotFound, "unknown operator %q", name).
			With(fault.Fault{Code: fault.CodeNotFound, Type: fault.General, Message: "unknown operator"})
	}
	if err != nil {
		return one, fmt.Errorf("read operator %s: %w", name, err)
	}
	return one, nil
}

// NewOperator is what an operator begins with.
type NewOperator struct {
	Name            string // 1 to 128 of a-z 0-9 . _ @ + -; an e-mail address where the identity provider signs in
	Role            Role
	Password        secret.Secret // zero: one is made
	WithoutPassword bool          // signs in through the identity provider only
}

// Create adds an operator and returns the password, which is never shown again;
// it is zero for one who has none. A name that exists: fault.Conflict.
func (o *Operators) Create(ctx context.Context, by audit.Actor, in NewOperator) (Operator, secret.Secret, error) {
	in.Name = settle(in.Name)
	if err := in.check(); err != nil {
		return Operator{}, secret.Secret{}, err
	}
	password, hash, err := o.newPassword(ctx, in)
	if err != nil {
		return Operator{}, secret.Secret{}, err
	}
	var made Operator
	err = o.db.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(lockName); err != nil {
			return err
		}
		if _, err := o.Operator(tx, in.Name); err == nil {
			return fault.New(fault.Conflict, "operator %q already exists", in.Name)
		} else if fault.KindOf(err) != fault.NotFound {
			return err
		}
		made = Operator{Name: in.Name, Role: in.Role, Password: hash != "", CreatedAt: tx.Now().Truncate(time.Microsecond)}
		if err := tx.Exec(createSQL, made.Name, string(made.Role), db.Null(hash), db.Micros(tx.Now())); err != nil {
			return err
		}
		return o.RecordIn(tx, by, Act{Action: "operator.created", Subject: made.Name, After: made.shown()})
	})
	if err != nil {
		return Operator{}, secret.Secret{}, fmt.Errorf("create operator %s: %w", in.Name, err)
	}
	return made, password, nil
}

func (in NewOperator) check() error {
	var wrong []fault.Fault
	if !validName(in.Name) {
		wrong = append(wrong, fault.At("name", fault.FieldNotValid, "must be 1 to %d of a-z 0-9 . _ @ + -", nameMax))
	}
	if in.Role.rank() == 0 {
		wrong = append(wrong, fault.At("role", fault.FieldNotValid, "must be %s, %s or %s", Viewer, Acting, Admin))
	}
	if in.WithoutPassword && !in.Password.IsZero() {
		wrong = append(wrong, fault.At("password", fault.UnsupportedField, "cannot be set for an operator without one"))
	}
	if len(wrong) > 0 {
		return invalid(wrong...)
	}
	return nil
}

// newPassword makes or checks the password and hashes it, before any write begins.
func (o *Operators) newPassword(ctx context.Context, in NewOperator) (secret.Secret, string, error) {
	if in.WithoutPassword {
		return secret.Secret{}, "", nil
	}
	if in.Password.IsZero() {
		in.Password = secret.FromText(spoken(24, 6))
	} else if err := checkPassword(in.Name, in.Password); err != nil {
		return secret.Secret{}, "", err
	}
	hash, err := o.hashing.hash(ctx, in.Password)
	return in.Password, hash, err
}

// shown is what the log keeps of an operator.
func (p Operator) shown() map[string]any {
	shown := map[string]any{"role": p.Role, "password": p.Password, "disabled": !p.DisabledAt.IsZero()}
	if p.Issuer != "" {
		shown["issuer"] = p.Issuer
	}
	if p.App || p.Passkeys > 0 {
		shown["authenticator_app"], shown["passkeys"] = p.App, p.Passkeys
	}
	return shown
}

// SetPassword gives an operator a new password and ends all its sessions. A
// zero password means one is made; it is returned and never shown again.
func (o *Operators) SetPassword(ctx context.Context, by audit.Actor, name string,
	password secret.Secret) (secret.Secret, error) {
	name = settle(name)
	password, hash, err := o.newPassword(ctx, NewOperator{Name: name, Password: password})
	if err != nil {
		return secret.Secret{}, err
	}
	_, err = o.change(ctx, by, name, func(tx *db.Tx, p *Operator) (string, error) {
		p.Password = true
		return "operator.password_set", errors.Join(tx.ExecOne(passwordSQL, hash, name), endAll(tx, name))
	})
	if err != nil {
		return secret.Secret{}, err
	}
	return password, nil
}

// ChangePassword is an operator's own change: it wants the old password, and
// ends the operator's other sessions.
func (o *Operators) ChangePassword(ctx context.Context, s Session, old, fresh secret.Secret) error {
	if err := o.verify(ctx, guesser{name: s.Name, ip: s.IP}, old); err != nil {
		return err
	}
	_, hash, err := o.newPassword(ctx, NewOperator{Name: s.Name, Password: fresh})
	if err != nil {
		return err
	}
	_, err = o.change(ctx, s.Actor(), s.Name, func(tx *db.Tx, _ *Operator) (string, error) {
		return "operator.password_changed", errors.Join(tx.ExecOne(passwordSQL, hash, s.Name),
			tx.Exec(endOthersSQL, s.Name, s.ID), tx.Exec(endHalfwaysSQL, s.Name))
	})
	return err
}

// SetRole changes what an operator may do, at once and in all sessions. The
// last enabled admin keeps the role: fault.Conflict.
func (o *Operators) SetRole(ctx context.Context, by audit.Actor, name string, role Role) (Operator, error) {
	if role.rank() == 0 {
		return Operator{}, invalid(fault.At("role", fault.FieldNotValid, "must be %s, %s or %s", Viewer, Acting, Admin))
	}
	return o.change(ctx, by, settle(name), func(tx *db.Tx, p *Operator) (string, error) {
		if p.Role == role {
			return "", nil
		}
		if role != Admin {
			if err := lastAdmin(tx, *p); err != nil {
				return "", err
			}
		}
		p.Role = role
		return "operator.role_set", tx.ExecOne(roleSQL, string(role), p.Name)
	})
}

// Disable ends an operator's sessions and lets it in no more. The last enabled
// admin cannot be disabled: fault.Conflict.
func (o *Operators) Disable(ctx context.Context, by audit.Actor, name string) (Operator, error) {
	return o.change(ctx, by, settle(name), func(tx *db.Tx, p *Operator) (string, error) {
		if !p.DisabledAt.IsZero() {
			return "", nil
		}
		if err := lastAdmin(tx, *p); err != nil {
			return "", err
		}
		p.DisabledAt = tx.Now()
		return "operator.disabled", errors.Join(tx.ExecOne(disableSQL, db.Micros(tx.Now()), p.Name), endAll(tx, p.Name))
	})
}

// Enable lets a disabled operator in again.
func (o *Operators) Enable(ctx context.Context, by audit.Actor, name string) (Operator, error) {
	return o.change(ctx, by, settle(name), func(tx *db.Tx, p *Operator) (string, error) {
		if p.DisabledAt.IsZero() {
			return "", nil
		}
		p.DisabledAt = time.Time{}
		return "operator.enabled", tx.ExecOne(disableSQL, nil, p.Name)
	})
}

// Unbind takes the identity of a provider from an operator and ends its
// sessions; the next identity with its address that signs in is bound to it.
// That is for a person whose account at the provider is a new one.
func (o *Operators) Unbind(ctx context.Context, by audit.Actor, name string) (Operator, error) {
	return o.change(ctx, by, settle(name), func(tx *db.Tx, p *Operator) (string, error) {
		if p.Issuer == "" {
			return "", nil
		}
		p.Issuer = ""
		return "operator.identity_unbound", errors.Join(tx.ExecOne(unbindSQL, p.Name), endAll(tx, p.Name))
	})
}

// Ensure makes an operator what it should be: there, enabled, with this role and
// this password. It is for the demo and for tests, which start again and again
// with one operator, and changes nothing that is right already, so that a
// restart signs nobody out.
func (o *Operators) Ensure(ctx context.Context, by audit.Actor, in NewOperator) (Operator, error) {
	one, _, err := o.Create(ctx, by, in)
	if fault.KindOf(err) != fault.Conflict {
		return one, err
	}
	name := settle(in.Name)
	if _, err := o.Enable(ctx, by, name); err != nil {
		return Operator{}, err
	}
	if one, err = o.SetRole(ctx, by, name, in.Role); err != nil || in.Password.IsZero() {
		return one, err
	}
	stored, _, err := o.storedHash(ctx, name)
	if err != nil {
		return Operator{}, err
	}
	if same, _, err := o.hashing.matches(ctx, stored, in.Password); err != nil || same {
		return one, err
	}
	_, err = o.SetPassword(ctx, by, name, in.Password)
	return one, err
}

// endAll ends an operator's sessions and what would become one.
func endAll(tx *db.Tx, name string) error {
	return errors.Join(tx.Exec(endAllSQL, name), tx.Exec(endHalfwaysSQL, name))
}

// lastAdmin refuses to take the last way to manage anything from the console.
func lastAdmin(tx *db.Tx, p Operator) error {
	if p.Role != Admin || !p.DisabledAt.IsZero() {
		return nil
	}
	var others int
	if err := tx.Row(otherAdminsSQL, p.Name).Scan(&others); err != nil {
		return fmt.Errorf("count admins: %w", err)
	}
	if others == 0 {
		return fault.New(fault.Conflict, "%s is the last admin: create another one first", p.Name).
			With(fault.Fault{Code: fault.CodeConflict, Type: fault.General, Message: "one admin must remain"})
	}
	return nil
}

// change edits one operator in one write with its audit entry. fn names the
// action; an empty name means that nothing had to be done.
func (o *Operators) change(ctx context.Context, by audit.Actor, name string,
	fn func(*db.Tx, *Operator) (string, error)) (Operator, error) {
	var p Operator
	err := o.db.Write(ctx, func(tx *db.Tx) (err error) {
		if err := tx.Lock(lockName); err != nil {
			return err
		}
		if p, err = o.Operator(tx, name); err != nil {
			return err
		}
		before := p.shown()
		action, err := fn(tx, &p)
		if err != nil || action == "" {
			return err
		}
		return o.RecordIn(tx, by, Act{Action: action, Subject: name, Before: before, After: p.shown()})
	})
	if err != nil {
		return Operator{}, fmt.Errorf("change operator %s: %w", name, err)
	}
	return p, nil
}

// lockName orders all changes of operators: they are few, and "the last admin"
// is a question about all of them.
const lockName = "operators"

const nameMax = 128

// settle is the one form of a name.
func settle(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

func validName(name string) bool {
	if name == "" || len(name) > nameMax {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("._@+-", rune(c)) {
			return false
		}
	}
	return true
}

func invalid(faults ...fault.Fault) error {
	return fault.New(fault.Invalid, "the operator is not valid").With(faults...)
}
