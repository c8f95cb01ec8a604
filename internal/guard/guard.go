// Package guard decides which addresses of others may be called: webhook
// receivers now, and every other address that somebody outside names.
//
// It owns the rules for URLs and addresses, and the connection that keeps them:
// resolve, vet, connect, through the operator's proxy where there is one. It
// does not own what is said over the connection. The law of [Guard]: what is
// refused when a URL is saved is refused when it is called, and the decision
// that counts is made on the address that is connected to.
package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// URLCharactersMax bounds the length of a URL, as given and as normalised.
const URLCharactersMax = 2048

// Reason is the stable name of why an address or a URL was refused.
type Reason string

// The reasons. Those of the first group speak of the URL, the others of the
// connected address.
const (
	ReasonURL      Reason = "url_not_valid"
	ReasonLength   Reason = "url_too_long"
	ReasonScheme   Reason = "scheme_not_https"
	ReasonUserinfo Reason = "userinfo"
	ReasonFragment Reason = "fragment"
	ReasonHost     Reason = "host_not_valid"
	ReasonPort     Reason = "port_not_allowed"
	ReasonOwnHost  Reason = "own_host"

	ReasonNetwork         Reason = "not_tcp"
	ReasonDenied          Reason = "denied_by_operator"
	ReasonUnspecified     Reason = "unspecified"
	ReasonLoopback        Reason = "loopback"
	ReasonPrivate         Reason = "private"
	ReasonShared          Reason = "shared"
	ReasonLinkLocal       Reason = "link_local"
	ReasonSiteLocal       Reason = "site_local"
	ReasonMetadata        Reason = "metadata"
	ReasonMulticast       Reason = "multicast"
	ReasonReserved        Reason = "reserved"
	ReasonBenchmarking    Reason = "benchmarking"
	ReasonDocumentation   Reason = "documentation"
	ReasonDiscard         Reason = "discard"
	ReasonMapped          Reason = "ipv4_mapped"
	ReasonCompatible      Reason = "ipv4_compatible"
	ReasonNAT64           Reason = "nat64"
	Reason6to4            Reason = "6to4"
	ReasonTeredo          Reason = "teredo"
	ReasonISATAP          Reason = "isatap"
	ReasonSegmentRouting  Reason = "segment_routing"
	ReasonNotGlobal       Reason = "not_global_unicast"
	ReasonZone            Reason = "zone"
	ReasonNotTranslatable Reason = "translation_prefix_too_wide"
)

// Refusal says that the guard will not send to a URL or connect to an address.
type Refusal struct {
	Reason  Reason
	Subject string // the URL's part or the address that was refused; never userinfo
}

func (r *Refusal) Error() string {
	if r.Subject == "" {
		return "refused: " + string(r.Reason)
	}
	return fmt.Sprintf("refused %s: %s", r.Subject, r.Reason)
}

// Config is the operator's say in what the guard lets through.
type Config struct {
	// Allow opens ranges that are refused otherwise, for receivers in private
	// networks. Metadata services stay closed unless named as a single address.
	Allow []netip.Prefix
	// Deny closes ranges that are open otherwise. It wins over Allow. A network
	// with its own NAT64 prefix (RFC 6052, section 2.2) has to name it here, since
	// nothing in such an address shows that it leads to IPv4.
	Deny []netip.Prefix
	// Demo opens loopback, plain http and port 80 for receivers on the same machine.
	Demo bool
	// Own are our own base URLs. Their hosts are refused as receivers; in the demo,
	// where everything shares one machine, only their exact host and port.
	Own []string
	// Ports opens ports below 1024 other than 443.
	Ports []uint16
}

// Guard decides which URLs may be configured and which addresses may be connected
// to. It is immutable: a connection it let through stays vetted as long as it lives.
//
// Failure policy: the decision that counts is made on the address handed to
// connect(2), after name resolution and for every address tried; what a name
// resolved to earlier proves nothing. For IPv6 only 2000::/3 without the ranges
// below is open, so that a range assigned tomorrow is refused until it is known.
type Guard struct {
	config Config
	own    []ownAddress
	closed []closedRange
	names  *idna.Profile
}

type closedRange struct {
	prefix netip.Prefix
	reason Reason
}

type ownAddress struct {
	host string
	port uint16
}

// New checks the operator's configuration.
func New(c Config) (*Guard, error) {
	g := &Guard{
		config: Config{
			Allow: slices.Clone(c.Allow), Deny: slices.Clone(c.Deny), Demo: c.Demo,
			Own: slices.Clone(c.Own), Ports: slices.Clone(c.Ports),
		},
		closed: closedRanges(),
		names: idna.New(idna.MapForLookup(), idna.BidiRule(), idna.CheckJoiners(true),
			idna.StrictDomainName(true), idna.VerifyDNSLength(true)),
	}
	for _, list := range [][]netip.Prefix{c.Allow, c.Deny} {
		for _, p := range list {
			if !p.IsValid() || p.Addr().Is4In6() {
				return nil, fmt.Errorf("reading address ranges: %s is not a plain IPv4 or IPv6 prefix", p)
			}
		}
	}
	for _, raw := range c.Own {
		u, err := url.Parse(raw)
		if err != nil || u.Hostname() == "" {
			return nil, fmt.Errorf("reading our own base URL: %q has no host", raw)
		}
		host, err := g.hostname(u)
		if err != nil {
			return nil, fmt.Errorf("reading our own base URL %q: %w", raw, err)
		}
		port, err := PortOf(u)
		if err != nil {
			return nil, fmt.Errorf("reading our own base URL %q: %w", raw, err)
		}
		g.own = append(g.own, ownAddress{host, port})
	}
	return g, nil
}

// With returns a guard that also lets through what is inside the ranges, by the
// rules of [Config.Allow]; Deny still wins. It is for what the operator opened to
// one client only.
func (g *Guard) With(allow []netip.Prefix) *Guard {
	if len(allow) == 0 {
		return g
	}
	wider := *g
	wider.config.Allow = slices.Concat(g.config.Allow, allow)
	return &wider
}

// CheckURL applies the rules for a configured URL and returns its normalised form: lower-case scheme, host in its ASCII
// form without a trailing dot, no default port, at least "/" as path. It is asked when an address is saved and again
// before each try, since the operator's rules may have changed between.
func (g *Guard) CheckURL(raw string) (string, error) {
	u, err := g.Parse(raw)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// Parse is CheckURL for who goes on to call the URL.
func (g *Guard) Parse(raw string) (*url.URL, error) {
	if utf8.RuneCountInString(raw) > URLCharactersMax {
		return nil, &Refusal{Reason: ReasonLength}
	}
	// Blanks and backslashes are read differently by different parsers: what one
	// takes for a path another takes for the end of the host.
	if !utf8.ValidString(raw) || strings.ContainsAny(raw, " \t\r\n\\") {
		return nil, &Refusal{Reason: ReasonURL}
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, &Refusal{Reason: ReasonURL} // the parser's text may repeat userinfo
	}
	if strings.Contains(raw, "#") {
		return nil, &Refusal{Reason: ReasonFragment}
	}
	return g.normal(u, g.config.Demo)
}

// ParseHop resolves and checks the Location of a redirect. A fragment there is
// meant for a browser and dropped; plain http is refused in the demo as well.
func (g *Guard) ParseHop(base *url.URL, location string) (*url.URL, error) {
	if strings.Contains(location, `\`) {
		return nil, &Refusal{Reason: ReasonURL}
	}
	u, err := base.Parse(location)
	if err != nil {
		return nil, &Refusal{Reason: ReasonURL}
	}
	return g.normal(u, false)
}

func (g *Guard) normal(u *url.URL, plain bool) (*url.URL, error) {
	switch {
	case u.Scheme == "https", u.Scheme == "http" && plain:
	case u.Scheme == "":
		return nil, &Refusal{Reason: ReasonURL}
	default:
		return nil, &Refusal{ReasonScheme, u.Scheme}
	}
	if u.User != nil {
		return nil, &Refusal{Reason: ReasonUserinfo}
	}
	if u.Opaque != "" || u.Host == "" {
		return nil, &Refusal{Reason: ReasonURL}
	}
	host, err := g.hostname(u)
	if err != nil {
		return nil, err
	}
	port, err := PortOf(u)
	if err != nil || !g.portOpen(port) {
		return nil, &Refusal{ReasonPort, u.Port()}
	}
	if g.isOwn(host, port) {
		return nil, &Refusal{ReasonOwnHost, host}
	}
	if err := g.checkHost(host); err != nil {
		return nil, err
	}
	n := &url.URL{Scheme: u.Scheme, Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery, ForceQuery: u.ForceQuery}
	n.Host = hostPort(u.Scheme, host, port)
	if n.Path == "" {
		n.Path = "/"
	}
	if len(n.String()) > URLCharactersMax {
		return nil, &Refusal{Reason: ReasonLength}
	}
	return n, nil
}

// hostname returns the host in the one form that is compared, stored and dialled.
func (g *Guard) hostname(u *url.URL) (string, error) {
	raw := u.Hostname()
	if strings.HasPrefix(u.Host, "[") || strings.Contains(raw, ":") {
		addr, err := netip.ParseAddr(raw)
		switch {
		case err != nil || !addr.Is6():
			return "", &Refusal{ReasonHost, raw}
		case addr.Zone() != "":
			return "", &Refusal{ReasonZone, raw}
		}
		return addr.String(), nil
	}
	if addr, err := netip.ParseAddr(raw); err == nil {
		return addr.String(), nil
	}
	if !utf8.ValidString(raw) { // written with %: the mapping would make a name of it that it refuses itself
		return "", &Refusal{ReasonHost, strings.ToValidUTF8(raw, "\uFFFD")}
	}
	host, err := g.names.ToASCII(raw)
	if err != nil && strings.HasSuffix(raw, ".") {
		host, err = g.names.ToASCII(strings.TrimSuffix(raw, "."))
	}
	if err != nil {
		return "", &Refusal{ReasonHost, raw}
	}
	host = strings.TrimSuffix(host, ".")
	if host == "" {
		return "", &Refusal{ReasonHost, raw}
	}
	// After the mapping, so that full-width digits are caught as well. A dotted quad
	// is welcome in any spelling the mapping makes plain; inet_aton's other spellings
	// (0x7f.1, 017700000001, 127.1) are read as addresses by some resolvers only.
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.String(), nil
	}
	if endsInNumber(host) {
		return "", &Refusal{ReasonHost, raw}
	}
	return host, nil
}

// endsInNumber is the WHATWG URL Standard's "ends in a number" check (section 3.5).
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if strings.HasPrefix(last, "0x") {
		rest := strings.Trim(last[2:], "0123456789abcdef")
		return rest == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// PortOf is the port that a URL names or means.
func PortOf(u *url.URL) (uint16, error) {
	switch text := u.Port(); {
	case text != "":
		n, err := strconv.ParseUint(text, 10, 16)
		return uint16(n), err
	case u.Scheme == "http":
		return 80, nil
	default:
		return 443, nil
	}
}

func hostPort(scheme, host string, port uint16) string {
	if scheme == "https" && port == 443 || scheme == "http" && port == 80 {
		if strings.Contains(host, ":") {
			return "[" + host + "]"
		}
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// portOpen keeps calls away from the services that live below 1024 and
// do not expect HTTP. Unprivileged ports are open: receivers really run there.
func (g *Guard) portOpen(port uint16) bool {
	return port == 443 || port >= 1024 || port == 80 && g.config.Demo || slices.Contains(g.config.Ports, port)
}

func (g *Guard) isOwn(host string, port uint16) bool {
	return slices.ContainsFunc(g.own, func(o ownAddress) bool {
		if !g.config.Demo {
			return o.host == host
		}
		return o.port == port && (o.host == host || isLocalName(o.host) && isLocalName(host))
	})
}

func isLocalName(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && (addr.IsLoopback() || addr.IsUnspecified()) ||
		host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// checkHost looks at a host that is an address, or a name whose address is known
// without asking: those need no dial to be refused.
func (g *Guard) checkHost(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		return g.CheckAddress(addr)
	}
	var refused error
	for _, addr := range knownAddresses(host) {
		if refused = g.CheckAddress(addr); refused == nil {
			return nil
		}
	}
	var r *Refusal
	if errors.As(refused, &r) {
		return &Refusal{r.Reason, host}
	}
	return nil
}

// CheckAddress decides on one address. The error is a *Refusal.
func (g *Guard) CheckAddress(addr netip.Addr) error {
	if addr.Zone() != "" {
		return &Refusal{ReasonZone, addr.String()}
	}
	if addr.Is4In6() {
		return &Refusal{ReasonMapped, addr.String()}
	}
	contains := func(p netip.Prefix) bool { return p.Contains(addr) }
	if slices.ContainsFunc(g.config.Deny, contains) {
		return &Refusal{ReasonDenied, addr.String()}
	}
	if slices.ContainsFunc(g.config.Allow, contains) {
		return g.checkAllowed(addr, contains)
	}
	if g.config.Demo && addr.IsLoopback() {
		return nil
	}
	if reason := g.closedFor(addr); reason != "" {
		return &Refusal{reason, addr.String()}
	}
	return nil
}

// checkAllowed looks at an address inside the operator's ranges. Two things are
// not meant by a range: metadata services, and IPv4 addresses behind a translator,
// which have to be open themselves.
func (g *Guard) checkAllowed(addr netip.Addr, contains func(netip.Prefix) bool) error {
	byName := slices.Contains(g.config.Allow, netip.PrefixFrom(addr, addr.BitLen()))
	reason := g.closedFor(addr)
	if reason == ReasonMetadata && !byName {
		return &Refusal{reason, addr.String()}
	}
	if addr.Is4() {
		return nil
	}
	b := addr.As16()
	switch reason {
	case ReasonNAT64:
		// Inside the local-use prefix the position of the IPv4 address depends on the
		// translator's own prefix; only /96 puts it at the end (RFC 6052, section 2.2).
		known := slices.ContainsFunc(g.config.Allow, func(p netip.Prefix) bool { return p.Bits() >= 96 && contains(p) })
		if !known && b[5] == 1 {
			return &Refusal{ReasonNotTranslatable, addr.String()}
		}
		return g.CheckAddress(netip.AddrFrom4([4]byte(b[12:16])))
	case Reason6to4:
		return g.CheckAddress(netip.AddrFrom4([4]byte(b[2:6])))
	case ReasonTeredo:
		return g.CheckAddress(netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
	}
	return nil
}

// closedFor names the first range that closes addr; "" means a public address.
func (g *Guard) closedFor(addr netip.Addr) Reason {
	for _, r := range g.closed {
		if r.prefix.Contains(addr) {
			return r.reason
		}
	}
	if addr.Is4() {
		return ""
	}
	b := addr.As16()
	if b[0]>>5 != 1 {
		return ReasonNotGlobal
	}
	// ISATAP (RFC 5214, section 6.1) carries IPv4 in the interface identifier of any prefix.
	if b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
		return ReasonISATAP
	}
	return ""
}

// Control is the hook for [net.Dialer.ControlContext]: it sees the address about
// to be connected to, whatever the name resolved to before.
func (g *Guard) Control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return &Refusal{ReasonNetwork, network}
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &Refusal{ReasonHost, address}
	}
	if !g.portOpen(ap.Port()) {
		return &Refusal{ReasonPort, address}
	}
	if g.isOwn(ap.Addr().String(), ap.Port()) {
		return &Refusal{ReasonOwnHost, address}
	}
	return g.CheckAddress(ap.Addr())
}
