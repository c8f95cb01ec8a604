package country

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tributary/internal/authority"
	"tributary/internal/country/identity"
)

// Environment is a country's authority as live keys or as test keys meet it.
type Environment struct {
	Code string // upper case
	Live Live
}

// String is the environment as CC.live or CC.test.
func (e Environment) String() string {
	if e.Live {
		return e.Code + ".live"
	}
	return e.Code + ".test"
}

// ParseEnvironment reads CC.live or CC.test; the country in either case.
func ParseEnvironment(text string) (Environment, error) {
	code, kind, _ := strings.Cut(text, ".")
	e := Environment{Code: strings.ToUpper(code), Live: kind == "live"}
	if !isUpper(e.Code, 2) || kind != "live" && kind != "test" {
		return Environment{}, fmt.Errorf("%q is not of the form CC.live or CC.test", text)
	}
	return e, nil
}

// Setup is what an operator has stored for one environment of an authority; the
// package endpoint keeps it and gives it to [Atlas.Configure].
type Setup struct {
	Version  int64  // another one: another setup
	URL      string // "": none is stored
	Identity Identity
	Callback string // see [Endpoint].Callback
}

// Where an authority's address comes from, by precedence.
const (
	FromFlag       = "flag"
	FromStore      = "stored"
	FromSimulators = "simulators"
)

// Configure replaces every setup. Channels whose setup changed are connected
// anew at their next use; calls under way end with what they began with.
func (a *Atlas) Configure(setups map[Environment]Setup) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.channels {
		before, was := a.stored()[key]
		now, is := setups[key]
		if was != is || before.Version != now.Version || before.Callback != now.Callback {
			delete(a.channels, key)
		}
	}
	setups = maps.Clone(setups)
	a.setups.Store(&setups)
}

func (a *Atlas) stored() map[Environment]Setup {
	if all := a.setups.Load(); all != nil {
		return *all
	}
	return nil
}

// Address answers where an authority is called and who said so; "" where nobody did.
func (a *Atlas) Address(e Environment) (base, from string) {
	p, ok := a.Pack(e.Code)
	if !ok || p.Connect == nil || bool(e.Live) && testOnly(p.Code) {
		return "", ""
	}
	at, stored := a.addresses[p.Code], a.setup(e).URL
	flag := at.Test
	if e.Live {
		flag = at.Live
	}
	switch {
	case flag != "":
		return flag, FromFlag
	case stored != "":
		return stored, FromStore
	case !bool(e.Live) && a.simulators != "" && p.Simulator != nil:
		return a.simulators + "/" + strings.ToLower(p.Code), FromSimulators
	}
	return "", ""
}

func (a *Atlas) base(p Pack, live Live) (string, Setup) {
	e := Environment{p.Code, live}
	base, _ := a.Address(e)
	return base, a.setup(e)
}

func (a *Atlas) setup(e Environment) Setup { return a.stored()[e] }

// CheckAddress says why an address cannot be that of an authority, or nil.
func (a *Atlas) CheckAddress(e Environment, url string) error {
	at := Addresses{Test: url}
	if e.Live {
		at = Addresses{Live: url}
	}
	return a.checkAddresses(e.Code, at)
}

// ErrNoIdentity says that an authority asks who is calling, and that neither the
// supplier's credentials nor the operator's identity is an answer it takes.
// Filings wait as for an address, because only the operator can help.
var ErrNoIdentity = errors.New("the operator's identity at the authority is not set or not accepted")

// Unidentified marks an error as one of the operator's identity, after which the
// authority certainly holds nothing of the call.
func Unidentified(err error) error { return fmt.Errorf("%w: %w: %w", ErrNotTaken, ErrNoIdentity, err) }

// Certificate is the PKCS#12 with which an authority is called: the supplier's
// own where there is one, else the operator's. Neither: [ErrNoIdentity], before
// anything was sent.
func (at Endpoint) Certificate(c Credentials) (identity.PKCS12, error) {
	switch {
	case len(c.PKCS12) > 0:
		return c.Certificate(), nil
	case len(at.Identity.Certificate.File) > 0:
		return at.Identity.Certificate, nil
	}
	return identity.PKCS12{}, fmt.Errorf("%w: %w: certificate", ErrNotTaken, ErrNoIdentity)
}

// Secret is a named secret with which an authority is called: the supplier's own
// where there is one, else the operator's. Neither: [ErrNoIdentity], before
// anything was sent.
func (at Endpoint) Secret(c Credentials, name string) (string, error) {
	if own := c.Named[name]; own != "" {
		return own, nil
	}
	if operators := at.Identity.Secrets[name]; operators != "" {
		return operators, nil
	}
	return "", fmt.Errorf("%w: %w: %s", ErrNotTaken, ErrNoIdentity, name)
}

// simulated is an identity with what a simulated authority is shown in place of
// secrets that nobody has set.
func (r *IdentityRule) simulated(set Identity) Identity {
	if r == nil {
		return set
	}
	for _, s := range r.Secrets {
		if s.Simulated == "" || set.Secrets[s.Name] != "" {
			continue
		}
		set.Secrets = maps.Clone(set.Secrets)
		if set.Secrets == nil {
			set.Secrets = map[string]string{}
		}
		set.Secrets[s.Name] = s.Simulated
	}
	return set
}

// CertificateName stands for the PKCS#12 among the names of an identity's parts.
const CertificateName = "certificate"

// Missing lists what an identity needs and does not have, by name. Nil asks for nothing.
func (r *IdentityRule) Missing(secrets []string, certificate bool) (names []string) {
	if r == nil {
		return nil
	}
	there := map[string]bool{}
	for _, name := range secrets {
		there[name] = true
	}
	for _, s := range r.Secrets {
		if s.Required && !there[s.Name] {
			names = append(names, s.Name)
		}
	}
	if r.CertificateRequired && !certificate {
		names = append(names, CertificateName)
	}
	return names
}

// AddressName stands for the address among the names of what an environment lacks.
const AddressName = "address"

// Missing lists what must be set before anything can be filed in an environment,
// by name.
func (a *Atlas) Missing(e Environment) (names []string) {
	if address, _ := a.Address(e); address == "" {
		names = append(names, AddressName)
	}
	p, _ := a.Pack(e.Code)
	set := a.setup(e).Identity
	return append(names, p.Identity.Missing(slices.Collect(maps.Keys(set.Secrets)), len(set.Certificate.File) > 0)...)
}

// SetCommand is the command that sets what an environment lacks; "": nothing does.
func SetCommand(e Environment, missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	command := "tributary authority set " + e.String()
	for _, name := range missing {
		switch name {
		case AddressName:
			command += " --url https://…"
		case CertificateName:
			command += " --certificate FILE.p12 --certificate-password-file FILE"
		default:
			command += " --secret " + name + "=FILE"
		}
	}
	return command
}

// NewSimulators opens the doubles of those packs that have one.
func NewSimulators(dir string, packs ...Pack) (*authority.Simulators, error) {
	doubles := map[string]authority.Double{}
	for _, p := range packs {
		if p.Simulator == nil {
			continue
		}
		if doubles[p.Code] != nil {
			return nil, fmt.Errorf("opening the simulators: two packs for %s", p.Code)
		}
		doubles[p.Code] = p.Simulator
	}
	return authority.NewSimulators(dir, doubles)
}
