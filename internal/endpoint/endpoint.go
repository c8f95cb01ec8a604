// Package endpoint keeps what the operator says of authorities: where one is
// called, in whose name, and under which name it calls us.
//
// It owns endpoint identities (the operator's secrets and certificates), their
// sealing and the alarms about their end. It does not own suppliers' credentials
// (onboarding), the calls (packs make them through [country.Atlas]) or the
// listener for callbacks. Law of [Endpoints.Set]: the change, its entry in the
// operators' log and the count-up of one version row are one commit.
//
// Failure policy: a running process looks at the version row twice a second, so
// a change on any node is used by all within a second; calls under way end with
// what they began with. While the database does not answer, what is known goes on
// being used. An identity that does not open (another master key) leaves its
// address in use and its secrets absent: filings wait, and the log says why.
//
// An address on the command line (--authority) wins over a stored one: it belongs
// to one node, is given by the person who starts it, and is what one reaches for in
// an emergency. A supplier's own credentials win over the operator's. An identity
// that the authority refuses counts as none: new credentials of the supplier would
// not help, so the transaction waits as without an address and the alert says what
// is missing.
package endpoint

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/db"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

const (
	pollEvery      = 500 * time.Millisecond // half of the second that other nodes may lag behind
	refreshTimeout = 3 * time.Second

	purpose       = "authority_identity"
	sealedVersion = 1
)

// Config says what endpoints stand on. DB and Atlas are required; without Master
// nothing sealed can be read or written, which is enough for listing.
type Config struct {
	DB        *db.DB
	Atlas     *country.Atlas
	Master    *secret.Master
	Operators *operator.Operators // whose log changes are noted in
	Alerts    *alert.Alerts       // nil: none are raised
	Log       *slog.Logger        // nil: discarded

	// Callback is the address under which an authority reaches us, host being the
	// stored name or ""; nil: it cannot.
	Callback func(e country.Environment, host string) string
	// Changed hears of environments whose setup changed, after the atlas has it.
	Changed func(ctx context.Context, changed []country.Environment)
}

// Endpoints is safe for concurrent use.
type Endpoints struct {
	cfg Config
	db  *db.DB
	log *slog.Logger

	turn  sync.Mutex // one refresh at a time
	known atomic.Pointer[snapshot]
}

// snapshot is everything stored, as of one version. It is never changed, only replaced.
type snapshot struct {
	version int64
	all     map[country.Environment]*opened
}

// opened is one row with its secrets.
type opened struct {
	row
	identity country.Identity
	trust    *x509.CertPool // nil: nobody's client certificate is believed
}

// New returns the endpoints of a database. [Endpoints.Refresh] reads them.
func New(c Config) *Endpoints {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	e := &Endpoints{cfg: c, db: c.DB, log: c.Log}
	e.known.Store(&snapshot{version: -1})
	return e
}

// Run keeps up with changes made by other processes until ctx ends.
func (e *Endpoints) Run(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	healthy := true
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := e.Refresh(ctx)
		if err != nil && healthy && ctx.Err() == nil {
			e.log.Warn("check for changed authorities: continuing with the cached ones", "error", err)
		}
		healthy = err == nil
	}
}

// Refresh reads what is stored, gives it to the atlas and tells of changes.
func (e *Endpoints) Refresh(ctx context.Context) error {
	e.turn.Lock()
	defer e.turn.Unlock()
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	old := e.known.Load()
	next := &snapshot{version: old.version}
	var rows []row
	err := e.db.Read(db.AsService(ctx), func(r db.Reader) (err error) {
		if err := r.Row(versionSQL).Scan(&next.version); err != nil || next.version == old.version {
			return err
		}
		rows, err = readRows(r)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the authorities' endpoints: %w", err)
	}
	if next.version == old.version {
		return nil
	}
	next.all = make(map[country.Environment]*opened, len(rows))
	for _, one := range rows {
		next.all[one.at] = e.open(one, old)
	}
	e.known.Store(next)
	e.configure(next)
	if changed := changes(old, next); len(changed) > 0 && e.cfg.Changed != nil {
		e.cfg.Changed(ctx, changed)
	}
	return nil
}

// open unseals a row, unless it is known already: the master key may be a
// network away.
func (e *Endpoints) open(one row, old *snapshot) *opened {
	if before := old.all[one.at]; before != nil && before.version == one.version {
		return before
	}
	o := &opened{row: one}
	if one.ca != "" {
		o.trust = x509.NewCertPool()
		o.trust.AppendCertsFromPEM([]byte(one.ca))
	}
	var err error
	if o.identity, err = e.unseal(one); err != nil {
		e.log.Error("the operator's identity at an authority is not readable: filings that need it wait", "authority",
			one.at.String(), "error", err)
	}
	return o
}

func (e *Endpoints) configure(s *snapshot) {
	setups := make(map[country.Environment]country.Setup, len(s.all))
	for at, o := range s.all {
		setups[at] = country.Setup{Version: o.version, URL: o.url, Identity: o.identity, Callback: e.callback(at, o.host)}
	}
	if e.cfg.Callback != nil {
		for _, code := range e.cfg.Atlas.Codes() {
			for _, live := range []country.Live{false, true} {
				at := country.Environment{Code: code, Live: live}
				if pack, _ := e.cfg.Atlas.Pack(code); pack.Connect != nil && s.all[at] == nil {
					setups[at] = country.Setup{Callback: e.callback(at, "")}
				}
			}
		}
	}
	e.cfg.Atlas.Configure(setups)
}

func (e *Endpoints) callback(at country.Environment, host string) string {
	if e.cfg.Callback == nil {
		return ""
	}
	return e.cfg.Callback(at, host)
}

// changes lists environments whose setup is another one. The first look tells
// of nothing: nobody has used anything else before.
func changes(old, next *snapshot) (list []country.Environment) {
	if old.version < 0 {
		return nil
	}
	for at, o := range next.all {
		if before := old.all[at]; before == nil || before.version != o.version {
			list = append(list, at)
		}
	}
	for at := range old.all {
		if next.all[at] == nil {
			list = append(list, at)
		}
	}
	return list
}

// sealed is what is kept of an identity under the master key.
type sealed struct {
	Secrets  map[string]string `json:"secrets,omitempty"`
	PKCS12   []byte            `json:"pkcs12,omitempty"`
	Password string            `json:"password,omitempty"`
}

func about(at country.Environment) secret.Context {
	return secret.Context{Kid: at.String(), Purpose: purpose, Version: sealedVersion}
}

var errNoMaster = errors.New("the master key is needed")

func (e *Endpoints) unseal(one row) (country.Identity, error) {
	if one.sealed == nil {
		return country.Identity{}, nil
	}
	if e.cfg.Master == nil {
		return country.Identity{}, errNoMaster
	}
	sealer, err := e.cfg.Master.Open(one.wrapped, about(one.at))
	if err != nil {
		return country.Identity{}, err
	}
	plain, err := sealer.Open(one.sealed, about(one.at))
	if err != nil {
		return country.Identity{}, err
	}
	defer plain.Wipe()
	var s sealed
	if json.Unmarshal(plain.Reveal(), &s) != nil {
		return country.Identity{}, errors.New("it is not in the sealed format") // the decoder's words could hold a part of it
	}
	return country.Identity{Secrets: s.Secrets, Certificate: identity.PKCS12{File: s.PKCS12, Password: s.Password}}, nil
}

// seal wraps an identity with a data key of its own.
func (e *Endpoints) seal(at country.Environment, id country.Identity) (wrapped, under []byte, err error) {
	if len(id.Secrets) == 0 && len(id.Certificate.File) == 0 {
		return nil, nil, nil
	}
	if e.cfg.Master == nil {
		return nil, nil, errNoMaster
	}
	plain, err := json.Marshal(sealed{Secrets: id.Secrets, PKCS12: id.Certificate.File, Password: id.Certificate.Password})
	if err != nil {
		return nil, nil, errors.New("it cannot be encoded")
	}
	hidden := secret.New(plain)
	defer hidden.Wipe()
	clear(plain)
	if wrapped, err = e.cfg.Master.NewKey(about(at)); err != nil {
		return nil, nil, err
	}
	sealer, err := e.cfg.Master.Open(wrapped, about(at))
	if err != nil {
		return nil, nil, err
	}
	under, err = sealer.Seal(hidden, about(at))
	return wrapped, under, err
}
