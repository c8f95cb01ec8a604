package account

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

// Scope is one thing that a key may be used for.
type Scope string

// The scopes.
const (
	ScopeSubmit   Scope = "submit"   // transactions, corrections, series
	ScopeRead     Scope = "read"     // results, lists, documents, companies
	ScopeOnboard  Scope = "onboard"  // companies
	ScopeLookup   Scope = "lookup"   // tax numbers
	ScopeWebhooks Scope = "webhooks" // events and their delivery
)

// Scopes are all of them.
func Scopes() []Scope {
	return []Scope{ScopeSubmit, ScopeRead, ScopeOnboard, ScopeLookup, ScopeWebhooks}
}

const (
	limitedKeysMax  = 50 // usable ones of a client
	keyNameMax      = 100
	keyNetworksMax  = 20
	subjectLimited  = "limited key "
	limitedKeyLabel = "tributary limited key v1"
)

// Limits narrow what a key is good for. A key with any never signs webhooks: its
// text is nowhere but where the client keeps it.
//
// They stand in a table of their own beside the two keys of a rotation: a key that
// never signs needs no sealed text, so its digest is all that is stored. An expired
// one is refused like a wrong one (401). A right key from a wrong address, or
// without the scope, is told so (403), because its owner must see what is wrong.
// Companies and jobs may be read with onboard alone; /v1/me and the
// countries need no scope.
type Limits struct {
	Name      string
	Scopes    []Scope        // none: all
	ExpiresAt time.Time      // zero: never
	Networks  []netip.Prefix // none: from anywhere
}

// LimitedKey is a key with limits, without its secret.
type LimitedKey struct {
	Kid       string         `json:"kid"`
	Name      string         `json:"name,omitempty"`
	Scopes    []Scope        `json:"scopes"`
	ExpiresAt time.Time      `json:"expires_at,omitzero"`
	Networks  []netip.Prefix `json:"networks,omitempty"`
	CreatedAt time.Time      `json:"created_at"`
	RevokedAt time.Time      `json:"revoked_at,omitzero"`
	digest    audit.Digest
}

const (
	limitedColumns    = "kid, name, scopes, networks, expires_at, digest, created_at, revoked_at"
	limitedSQL        = "SELECT client_id, " + limitedColumns + " FROM limited_keys %s ORDER BY created_at, kid"
	clientLimitedSQL  = "SELECT " + limitedColumns + " FROM limited_keys WHERE client_id = $1 ORDER BY created_at, kid"
	revokeLimitedSQL  = "UPDATE limited_keys SET revoked_at = $1 WHERE kid = $2 AND client_id = $3 AND revoked_at IS NULL"
	changedLimitedSQL = `SELECT l.client_id, l.kid, l.name, l.scopes, l.networks, l.expires_at, l.digest, l.created_at, l.revoked_at
		FROM limited_keys l JOIN clients c ON c.client_id = l.client_id WHERE c.version > $1 AND l.revoked_at IS NULL`
)

func scanLimited(scan func(...any) error) (k LimitedKey, err error) {
	var scopes, networks string
	var sum []byte
	var created int64
	var expires, revoked *int64
	if err := scan(&k.Kid, &k.Name, &scopes, &networks, &expires, &sum, &created, &revoked); err != nil {
		return k, err
	}
	copy(k.digest[:], sum)
	for name := range strings.FieldsSeq(scopes) {
		k.Scopes = append(k.Scopes, Scope(name))
	}
	for text := range strings.FieldsSeq(networks) {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return k, fmt.Errorf("read the networks of key %s: %w", k.Kid, err)
		}
		k.Networks = append(k.Networks, network)
	}
	k.CreatedAt = db.FromMicros(created)
	if expires != nil {
		k.ExpiresAt = db.FromMicros(*expires)
	}
	if revoked != nil {
		k.RevokedAt = db.FromMicros(*revoked)
	}
	return k, nil
}

// State is what a key is good for now: active, revoked or expired.
func (k LimitedKey) State(now time.Time) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked"
	case !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(now):
		return "expired"
	}
	return "active"
}

func (k *LimitedKey) scopes() string {
	words := make([]string, len(k.Scopes))
	for i, s := range k.Scopes {
		words[i] = string(s)
	}
	return strings.Join(words, " ")
}

func (k *LimitedKey) networks() string {
	words := make([]string, len(k.Networks))
	for i, n := range k.Networks {
		words[i] = n.String()
	}
	return strings.Join(words, " ")
}

func (k *LimitedKey) hash() audit.Digest {
	state := "usable"
	if !k.RevokedAt.IsZero() {
		state = "revoked"
	}
	until := ""
	if !k.ExpiresAt.IsZero() {
		until = k.ExpiresAt.UTC().Format(time.RFC3339Nano)
	}
	return audit.Hash(limitedKeyLabel, []byte(k.Kid), []byte(state), []byte(k.Name), []byte(k.scopes()),
		[]byte(k.networks()), []byte(until), k.digest[:])
}

// settle checks limits and puts them into one form.
func (l *Limits) settle(now time.Time) error {
	var found []fault.Fault
	for _, s := range l.Scopes {
		if !slices.Contains(Scopes(), s) {
			found = append(found, fault.At("scopes", fault.FieldNotValid,
				"has unknown scope %q; supported: submit, read, onboard, lookup, webhooks", s))
		}
	}
	if len(l.Scopes) == 0 {
		l.Scopes = Scopes()
	}
	l.Scopes = slices.Compact(slices.Sorted(slices.Values(l.Scopes)))
	if utf8.RuneCountInString(l.Name) > keyNameMax || fault.Printable(l.Name) != l.Name {
		found = append(found, fault.At("name", fault.FieldNotValid, "must be at most %d printable characters", keyNameMax))
	}
	if !l.ExpiresAt.IsZero() && !l.ExpiresAt.After(now) {
		found = append(found, fault.At("expires_at", fault.FieldNotValid, "must be in the future"))
	}
	if len(l.Networks) > keyNetworksMax {
		found = append(found, fault.At("networks", fault.FieldNotValid, "must not be more than %d", keyNetworksMax))
	}
	for i, n := range l.Networks {
		l.Networks[i] = n.Masked()
	}
	if len(found) > 0 {
		return fault.New(fault.Invalid, "invalid restrictions of the key").With(found...)
	}
	return nil
}

// CreateLimitedKey adds a key with limits, usable at once and beside those of a
// rotation. The key text is returned here and stored nowhere: it signs nothing.
func (a *Accounts) CreateLimitedKey(ctx context.Context, by audit.Actor, clientID string,
	limits Limits) (made LimitedKey, text secret.Secret, err error) {
	p, err := a.Profile(ctx, clientID)
	if err != nil {
		return made, text, err
	}
	if err := limits.settle(a.db.Wall()); err != nil {
		return made, text, err
	}
	key := secret.NewAPIKey(p.Live)
	err = a.change(ctx, by, clientID, func(e *edit) error {
		all, err := db.Collect(e.tx, scanLimited, clientLimitedSQL, clientID)
		if err != nil {
			return err
		}
		usable := 0
		for _, k := range all {
			if k.usable(e.tx.Now()) {
				usable++
			}
		}
		if usable >= limitedKeysMax {
			return conflict("the client already has %d restricted keys: revoke one first", usable)
		}
		made = LimitedKey{Kid: key.Kid(), Name: limits.Name, Scopes: limits.Scopes,
			ExpiresAt: limits.ExpiresAt.UTC().Truncate(time.Microsecond), Networks: limits.Networks, CreatedAt: e.tx.Now(),
			digest: key.Digest()}
		err = e.tx.Insert("limited_keys", "kid,client_id,name,scopes,networks,expires_at,digest,created_at",
			[]any{made.Kid, clientID, made.Name, made.scopes(), made.networks(), microsOrNull(made.ExpiresAt), made.digest[:],
				db.Micros(made.CreatedAt)})
		if err != nil {
			return err
		}
		e.record("key.created", subjectLimited+made.Kid, audit.Digest{}, made.hash())
		return nil
	})
	if err != nil {
		return LimitedKey{}, text, fmt.Errorf("create a key of client %s: %w", clientID, err)
	}
	return made, key.Text(), nil
}

func (k *LimitedKey) usable(now time.Time) bool {
	return k.State(now) == "active"
}

// revokeLimited ends a key with limits, as a [Key]; false: the client has none of the kid.
func (e *edit) revokeLimited(kid string) (Key, bool, error) {
	all, err := db.Collect(e.tx, scanLimited, clientLimitedSQL, e.clientID)
	if err != nil {
		return Key{}, false, err
	}
	for _, k := range all {
		if k.Kid != kid {
			continue
		}
		if k.RevokedAt.IsZero() {
			before := k.hash()
			k.RevokedAt = e.tx.Now()
			if err := e.tx.ExecOne(revokeLimitedSQL, db.Micros(k.RevokedAt), kid, e.clientID); err != nil {
				return Key{}, true, err
			}
			e.record("key.revoked", subjectLimited+kid, before, k.hash())
		}
		return Key{Kid: kid, State: Revoked, CreatedAt: k.CreatedAt, RevokedAt: k.RevokedAt}, true, nil
	}
	return Key{}, false, nil
}

// readLimited adds the keys with limits of the clients that changed after a version.
func readLimited(r db.Reader, since int64, byID map[string]*card) error {
	rows, err := r.Query(changedLimitedSQL, since)
	if err != nil {
		return fmt.Errorf("read restricted keys: %w", err)
	}
	err = rows.Each(func(scan func(...any) error) error {
		var id string
		k, err := scanLimited(func(dest ...any) error { return scan(append([]any{&id}, dest...)...) })
		if c := byID[id]; c != nil && err == nil && c.profile.Config != nil {
			c.limited = append(c.limited, k)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read restricted keys: %w", err)
	}
	return nil
}

// admits says why a key may not be used now and from there; nil: it may.
func (a *Accounts) admits(c Caller, from netip.Addr) error {
	if c.Limits == nil {
		return nil
	}
	if !c.Limits.usable(time.Now()) {
		return a.refuse(c.Kid, from, reasonExpired)
	}
	if len(c.Limits.Networks) == 0 {
		return nil
	}
	from = from.Unmap()
	if slices.ContainsFunc(c.Limits.Networks, func(n netip.Prefix) bool { return n.Contains(from) }) {
		return nil
	}
	return forbidden("this key may not be used from this address")
}

// Require refuses a caller whose key has none of the scopes; none given: any key will do.
func (c Caller) Require(scopes ...Scope) error {
	if c.Limits == nil || len(scopes) == 0 || slices.ContainsFunc(scopes, func(s Scope) bool {
		return slices.Contains(c.Limits.Scopes, s)
	}) {
		return nil
	}
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return forbidden("this key lacks the scope " + strings.Join(words, " or "))
}

func forbidden(message string) error {
	return fault.New(fault.Forbidden, "%s",
		message).With(fault.Fault{Code: fault.CodeForbidden, Type: fault.Authentication, Message: message})
}
