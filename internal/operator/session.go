package operator

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/ids"
	"tributary/internal/secret"
)

// Limits of a session.
const (
	IdleMax    = 30 * time.Minute // without a request
	SessionMax = 12 * time.Hour   // in all

	// seenEvery is how exact the idle limit is: every request of a page would
	// otherwise be a write.
	seenEvery  = time.Minute
	tokenBytes = 32
	agentMax   = 200
)

// Session is an operator who has signed in.
type Session struct {
	ID        string // shown; the token cannot be made from it
	Name      string
	Role      Role // at the time of the request
	IP        string
	Agent     string
	CreatedAt time.Time
	SeenAt    time.Time
	EndsAt    time.Time

	// CSRF is what a form of this session carries. It is made from the token, so
	// it is nowhere stored and worth nothing in another session. Empty in lists.
	CSRF string
}

// Actor is how the session's operator is named in audit logs.
func (s Session) Actor() audit.Actor { return audit.Actor{Name: s.Name, IP: s.IP} }

// CheckCSRF reports whether a form was made for this session, in constant time.
func (s Session) CheckCSRF(given string) bool {
	return s.CSRF != "" && subtle.ConstantTimeCompare([]byte(given), []byte(s.CSRF)) == 1
}

// Attempt is one try to sign in.
type Attempt struct {
	Name     string
	Password secret.Secret
	IP       string
	Agent    string
	Device   string // what [Operators.Remember] gave this browser; empty: nothing
}

// SignIn checks a password and begins a session. Every refusal is the same
// fault.Unauthenticated, whether the name, the password or the right to sign in
// is missing; after too many of them it is fault.Limited. Where a second factor
// is needed the error is a *[Halfway], and nobody is signed in yet.
func (o *Operators) SignIn(ctx context.Context, a Attempt) (secret.Secret, Session, error) {
	name := settle(a.Name)
	if err := o.verify(ctx, guesser{name: name, ip: a.IP, device: a.Device}, a.Password); err != nil {
		return secret.Secret{}, Session{}, err
	}
	waits, err := o.halfway(ctx, name)
	if err != nil {
		return secret.Secret{}, Session{}, err
	}
	if waits != nil {
		return secret.Secret{}, Session{}, waits
	}
	return o.begin(ctx, name, a, "signin.password")
}

// verify checks an operator's password, at most as often as the limit allows.
func (o *Operators) verify(ctx context.Context, by guesser, password secret.Secret) error {
	name, ip := by.name, by.ip
	stored, enabled := "", false
	if validName(name) && len(password.Reveal()) <= passwordMax {
		var err error
		if stored, enabled, err = o.storedHash(ctx, name); err != nil {
			return err
		}
	}
	if !o.remembers(ctx, by.device, name, stored) {
		by.device = ""
	}
	if wait := o.guesses.begin(by); wait > 0 {
		return o.limited(ctx, name, ip, wait)
	}
	ok, stale, err := o.hashing.matches(ctx, stored, password)
	if err != nil {
		return fmt.Errorf("check the password of %s: %w", name, err)
	}
	if !ok || !enabled {
		return o.refused(ctx, name, ip)
	}
	o.guesses.forgive(by)
	if stale {
		o.rehash(ctx, name, stored, password)
	}
	return nil
}

func (o *Operators) storedHash(ctx context.Context, name string) (hash string, enabled bool, err error) {
	var disabled *int64
	err = o.db.Read(ctx, func(r db.Reader) error { return r.Row(hashSQL, name).Scan(&hash, &disabled) })
	if errors.Is(err, db.ErrNoRows) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("read operator %s: %w", name, err)
	}
	return hash, disabled == nil, nil
}

// rehash renews a hash whose costs are out of date. It may fail: the old one works.
func (o *Operators) rehash(ctx context.Context, name, stored string, password secret.Secret) {
	fresh, err := o.hashing.hash(ctx, password)
	if err == nil {
		err = o.db.Write(ctx, func(tx *db.Tx) error { return tx.Exec(rehashSQL, fresh, name, stored) })
	}
	if err != nil {
		o.log.Warn("renew a password's hash", "operator", name, "error", err)
	}
}

// refused notes a failed sign-in and answers it. The log has it even where the
// note cannot be stored.
func (o *Operators) refused(ctx context.Context, name, ip string) error {
	return o.turnedAway(ctx, name, ip, "incorrect name or password")
}

// turnedAway is refused with a reason that the caller may hear.
func (o *Operators) turnedAway(ctx context.Context, name, ip, why string) error {
	o.log.Warn("a sign-in to the console was refused", "operator", name, "ip", ip, "why", why)
	by := audit.Actor{Name: "nobody", IP: ip}
	if err := o.record(ctx, by, Act{Action: "signin.refused", Subject: clip(name)}, why); err != nil {
		o.log.Error("record a refused sign-in", "error", err)
	}
	return signInFirst(why)
}

func signInFirst(why string) error {
	return fault.New(fault.Unauthenticated, "%s", why).
		With(fault.Fault{Code: fault.CodeUnauthenticated, Type: fault.Authentication, Message: why})
}

// begin stores a session of an operator whose identity is proven. What the proof
// used up is used up in the same write, or nobody is in.
func (o *Operators) begin(ctx context.Context, name string, a Attempt, action string,
	used ...func(*db.Tx) error) (secret.Secret, Session, error) {
	token := randomText()
	s := Session{ID: ids.New(), Name: name, IP: clip(a.IP), Agent: clip(a.Agent), CSRF: csrfOf(token)}
	err := o.db.Write(ctx, func(tx *db.Tx) error {
		now := tx.Now()
		p, err := o.Operator(tx, name)
		if err != nil {
			return err
		}
		for _, use := range used {
			if err := use(tx); err != nil {
				return err
			}
		}
		s.Role, s.CreatedAt, s.SeenAt, s.EndsAt = p.Role, now, now, now.Add(SessionMax)
		if err := tx.Exec(endOldSQL, db.Micros(now)); err != nil { // nobody else removes them
			return err
		}
		if err := tx.ExecOne(signedInSQL, db.Micros(now), name); err != nil {
			return err
		}
		if err := tx.Exec(newSessionSQL, digestOf(token), s.ID, name, s.IP, s.Agent, db.Micros(now),
			db.Micros(s.EndsAt)); err != nil {
			return err
		}
		return o.RecordIn(tx, s.Actor(), Act{Action: action, Subject: name, After: map[string]string{"session": s.ID}})
	})
	if errors.Is(err, db.ErrStale) || fault.KindOf(err) == fault.NotFound {
		return secret.Secret{}, Session{}, signInFirst("incorrect name or password") // disabled in this very moment
	}
	if err != nil {
		return secret.Secret{}, Session{}, fmt.Errorf("start a session of %s: %w", name, err)
	}
	return secret.FromText(token), s, nil
}

func scanSession(scan func(...any) error) (Session, error) {
	var s Session
	var created, seen, ends int64
	err := scan(&s.ID, &s.Name, &s.Role, &s.IP, &s.Agent, &created, &seen, &ends)
	s.CreatedAt, s.SeenAt, s.EndsAt = db.FromMicros(created), db.FromMicros(seen), db.FromMicros(ends)
	return s, err
}

func (s Session) alive(now time.Time) bool {
	return now.Before(s.EndsAt) && now.Before(s.SeenAt.Add(IdleMax))
}

// Watch answers who a token speaks for without noting that it was used: a page
// that keeps itself up to date must not keep its session alive. One that is
// unknown, has ended or belongs to a disabled operator: fault.Unauthenticated.
func (o *Operators) Watch(ctx context.Context, token string) (Session, error) {
	if len(token) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return Session{}, signInFirst("please sign in")
	}
	var s Session
	err := o.db.Read(ctx, func(r db.Reader) (err error) {
		s, err = scanSession(r.Row(sessionsSQL+" AND s.digest = $1", digestOf(token)).Scan)
		return err
	})
	if errors.Is(err, db.ErrNoRows) || err == nil && !s.alive(o.db.Now()) {
		return Session{}, signInFirst("please sign in")
	}
	if err != nil {
		return Session{}, fmt.Errorf("read a session: %w", err)
	}
	s.CSRF = csrfOf(token)
	return s, nil
}

// Session is Watch for a request that somebody made: it also notes that the
// session is in use.
func (o *Operators) Session(ctx context.Context, token string) (Session, error) {
	s, err := o.Watch(ctx, token)
	now := o.db.Now()
	if err != nil || now.Sub(s.SeenAt) < seenEvery {
		return s, err
	}
	if err := o.db.Write(ctx, func(tx *db.Tx) error { return tx.Exec(seenSQL, db.Micros(now), digestOf(token)) }); err != nil {
		o.log.Warn("note that a session is in use", "operator", s.Name, "error", err) // it may end early, nothing worse
		return s, nil
	}
	s.SeenAt = now
	return s, nil
}

// SignOut ends a session.
func (o *Operators) SignOut(ctx context.Context, s Session) error {
	return o.end(ctx, s.Actor(), "signout", s.ID, s.Name)
}

// EndSession ends somebody's session. Unknown: fault.NotFound.
func (o *Operators) EndSession(ctx context.Context, by audit.Actor, id string) error {
	var name string
	err := o.db.Read(ctx, func(r db.Reader) error {
		return r.Row("SELECT name FROM operator_sessions WHERE session_id = $1", id).Scan(&name)
	})
	if errors.Is(err, db.ErrNoRows) {
		return fault.New(fault.NotFound, "unknown session")
	}
	if err != nil {
		return fmt.Errorf("read session %s: %w", id, err)
	}
	return o.end(ctx, by, "session.ended", id, name)
}

func (o *Operators) end(ctx context.Context, by audit.Actor, action, id, name string) error {
	err := o.db.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Exec(endSQL, id); err != nil {
			return err
		}
		return o.RecordIn(tx, by, Act{Action: action, Subject: name, Before: map[string]string{"session": id}})
	})
	if err != nil {
		return fmt.Errorf("end session %s: %w", id, err)
	}
	return nil
}

// Sessions lists the living sessions, the last used first.
func (o *Operators) Sessions(r db.Reader) ([]Session, error) {
	now := r.Now()
	all, err := db.Collect(r, scanSession,
		sessionsSQL+" AND s.ends_at > $1 AND s.seen_at > $2 ORDER BY s.seen_at DESC, s.session_id",
		db.Micros(now), db.Micros(now.Add(-IdleMax)))
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return all, nil
}

func digestOf(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

func csrfOf(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("tributary console form v1"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// clip makes a text from outside fit for a column.
func clip(text string) string { return fault.Clip(text, agentMax) }
