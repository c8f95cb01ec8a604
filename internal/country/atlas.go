package country

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tributary/internal/guard"
	"tributary/internal/transaction"
)

// Errors of [Atlas.Channel] and [Atlas.Endpoint].
var (
	ErrCountryUnknown = errors.New("no pack for the country")
	ErrNoAuthority    = errors.New("the country has documents only")
	ErrNoAddress      = errors.New("no address is configured for the authority in this environment")
	ErrTestOnly       = errors.New("the country is not offered with live keys")
)

// Addresses are where one authority lives. Empty: not configured.
type Addresses struct {
	Live string
	Test string
}

// Atlas is every pack a program has, with the wires to their authorities. It
// is safe for concurrent use.
type Atlas struct {
	packs      map[string]Pack
	codes      []string
	addresses  map[string]Addresses
	simulators string
	transport  *http.Transport
	client     *http.Client
	abroad     [2]strangers // of simulated authorities, and of all others

	setups   atomic.Pointer[map[Environment]Setup] // never changed, only replaced
	mu       sync.Mutex
	channels map[Environment]Channel
	meter    func(at Environment) Meter // nil: nothing is counted
	names    func(at Environment) Names // nil: nothing is known
}

// AtlasConfig is what an atlas is made of.
type AtlasConfig struct {
	Packs      []Pack
	Addresses  map[string]Addresses // by code
	Simulators string               // base URL; test keys fall back to {Simulators}/{cc}
	Abroad     guard.Dialer         // to addresses that strangers name; without a guard: to public ones only
}

// NewAtlas checks every pack and returns the atlas. A pack that contradicts
// itself stops the program at its start, not a client's transaction later.
func NewAtlas(cfg AtlasConfig) (*Atlas, error) {
	a := &Atlas{
		packs: make(map[string]Pack, len(cfg.Packs)), addresses: make(map[string]Addresses, len(cfg.Addresses)),
		simulators: strings.TrimSuffix(cfg.Simulators, "/"), transport: newTransport(), channels: map[Environment]Channel{},
	}
	a.client = newClient(a.transport)
	var wrong []error
	var err error
	if a.abroad, err = dialStrangers(cfg.Abroad); err != nil {
		return nil, fmt.Errorf("opening the atlas: %w", err)
	}
	for _, p := range cfg.Packs {
		if _, twice := a.packs[p.Code]; twice {
			wrong = append(wrong, fmt.Errorf("pack %s: there are two of them", p.Code))
		}
		wrong = append(wrong, p.validate())
		if p.Receive != nil {
			p.Facts.Settings = append(slices.Clone(p.Facts.Settings), receiveSetting())
		}
		p.Facts, p.zone = p.Facts.filled(), zoneOf(p.Facts.TimeZone)
		p.Facts.Obliged = p.Connect != nil && p.Files.By == ByLaw
		a.packs[p.Code] = p
		a.codes = append(a.codes, p.Code)
	}
	slices.Sort(a.codes)
	for code, at := range cfg.Addresses {
		upper := strings.ToUpper(code)
		wrong = append(wrong, a.checkAddresses(upper, at))
		a.addresses[upper] = at
	}
	if a.simulators != "" {
		wrong = append(wrong, checkURL("simulators", a.simulators, "http", "https"))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, fmt.Errorf("opening the atlas: %w", err)
	}
	return a, nil
}

func (a *Atlas) checkAddresses(code string, at Addresses) error {
	p, ok := a.packs[code]
	switch {
	case !ok:
		return fmt.Errorf("address of %s: %w", code, ErrCountryUnknown)
	case p.Connect == nil:
		return fmt.Errorf("address of %s: %w", code, ErrNoAuthority)
	case at.Live != "" && testOnly(code):
		return fmt.Errorf("live address of %s: %w", code, ErrTestOnly)
	}
	var wrong []error
	if at.Live != "" && !onThisMachine(at.Live) {
		wrong = append(wrong, checkURL("live address of "+code, at.Live, "https"))
	}
	if at.Test != "" {
		wrong = append(wrong, checkURL("test address of "+code, at.Test, "http", "https"))
	}
	return errors.Join(wrong...)
}

func checkURL(what, text string, schemes ...string) error {
	u, err := url.Parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if !slices.Contains(schemes, u.Scheme) || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("%s: %q must be an address with %s and a host, without user, query or fragment",
			what, text, strings.Join(schemes, " or "))
	}
	return nil
}

// onThisMachine reports whether an address is a loopback one, such as a local
// gateway that ends TLS; everything else that is live is asked over TLS.
func onThisMachine(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback() && checkURL("", text, "http", "https") == nil
}

// testOnly reports whether a code is one of those that never reach a live authority.
func testOnly(code string) bool { return len(code) == 2 && code[0] == 'X' && code != "XK" }

// Pack answers the pack of a country; the code is read in either case. What
// the pack points to is shared: read it only.
func (a *Atlas) Pack(code string) (Pack, bool) {
	p, ok := a.packs[code]
	if !ok {
		p, ok = a.packs[strings.ToUpper(code)]
	}
	return p, ok
}

// Codes lists the countries in alphabetical order.
func (a *Atlas) Codes() []string { return slices.Clone(a.codes) }

// Offers reports whether a country can be used with keys of an environment:
// the reference authority never with live ones.
func (a *Atlas) Offers(code string, live Live) bool {
	p, ok := a.Pack(code)
	return ok && !(bool(live) && testOnly(p.Code))
}

// Endpoint answers the authority's address for an environment. A test key uses
// the country's test address if there is one, else the simulators; a live key
// only an address configured as live.
func (a *Atlas) Endpoint(code string, live Live) (Endpoint, error) {
	p, ok := a.Pack(code)
	switch {
	case !ok:
		return Endpoint{}, fmt.Errorf("finding the authority of %q: %w", code, ErrCountryUnknown)
	case p.Connect == nil:
		return Endpoint{}, fmt.Errorf("finding the authority of %s: %w", p.Code, ErrNoAuthority)
	case bool(live) && testOnly(p.Code):
		return Endpoint{}, fmt.Errorf("finding the authority of %s: %w", p.Code, ErrTestOnly)
	}
	base, setup := a.base(p, live)
	if base == "" {
		return Endpoint{}, fmt.Errorf("finding the authority of %s: %w", p.Code, ErrNoAddress)
	}
	at := Endpoint{BaseURL: strings.TrimSuffix(base, "/"), Live: live, HTTP: a.client, Identity: setup.Identity,
		Callback: setup.Callback}
	_, from := a.Address(Environment{p.Code, live})
	if at.Simulated = from == FromSimulators; at.Simulated {
		at.Identity = p.Identity.simulated(at.Identity)
	}
	a.letAbroad(&at)
	return at, nil
}

// Channel answers the wire to a country's authority, connected once and again
// after its setup changed.
func (a *Atlas) Channel(code string, live Live) (Channel, error) {
	key := Environment{strings.ToUpper(code), live}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.channels[key]; ok {
		return c, nil
	}
	at, err := a.Endpoint(code, live)
	if errors.Is(err, ErrNoAddress) && a.packs[key.Code].Chosen() {
		at, err = Endpoint{Live: live, HTTP: a.client}, nil // what need not be filed goes on without
		a.letAbroad(&at)
	}
	if err != nil {
		return nil, err
	}
	if a.meter != nil {
		at.Meter = a.meter(key)
	}
	if a.names != nil {
		at.Names = a.names(key)
	}
	c, err := a.packs[key.Code].Connect(at)
	if err != nil {
		return nil, fmt.Errorf("connecting to the authority of %s: %w", key.Code, err)
	}
	a.channels[key] = c
	return c, nil
}

// Zone is the time zone of a supplier's address: it decides the day on a document.
func (a *Atlas) Zone(address transaction.Address, p Pack) *time.Location {
	if home, ok := a.Pack(address.CountryCode); ok {
		p = home
	}
	name := p.Facts.TimeZone
	if p.ZoneOf != nil {
		name = cmp.Or(p.ZoneOf(address), name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return time.UTC
	}
	return zone
}

// Close gives back idle connections.
func (a *Atlas) Close() {
	a.transport.CloseIdleConnections()
	for _, s := range a.abroad {
		s.client.CloseIdleConnections()
	}
}
