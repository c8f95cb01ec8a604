package account

import (
	"net/netip"
	"strings"
)

// AddressOf is where a request comes from, the zero Addr when that cannot be
// read. forwarded are all values of X-Forwarded-For: behind a proxy that is
// trusted, the last entry of the last of them is the proxy's own word, and
// everything before it is the caller's, who may send the header more than once.
// API and console ask this one function: limits and logs must mean one address.
func AddressOf(remote string, forwarded []string, trustProxy bool) netip.Addr {
	if trustProxy && len(forwarded) > 0 {
		hops := strings.Split(forwarded[len(forwarded)-1], ",")
		if at, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1])); err == nil {
			return at.Unmap().WithZone("")
		}
	}
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr().Unmap().WithZone("")
}

// LoopbackName reports whether a host, as a browser names it, is this machine.
func LoopbackName(host string) bool {
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && at.IsLoopback()
}
