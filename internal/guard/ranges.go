package guard

import (
	"net/netip"
	"slices"
	"strings"
)

// closedRanges lists what nobody is called at. Sources: IANA IPv4 and IPv6
// Special-Purpose Address Registries, IANA IPv6 Global Unicast Assignments, and
// the cloud providers' documentation for metadata services. The first match names
// the reason, so single addresses stand before the ranges around them.
func closedRanges() []closedRange {
	var ranges []closedRange
	add := func(reason Reason, prefixes ...string) {
		for _, p := range prefixes {
			ranges = append(ranges, closedRange{netip.MustParsePrefix(p), reason})
		}
	}
	add(ReasonMetadata,
		"169.254.169.254/32",     // AWS, Azure, Google, DigitalOcean, OpenStack
		"169.254.170.2/32",       // AWS ECS task credentials
		"169.254.170.23/32",      // AWS EKS pod identity
		"169.254.0.23/32",        // Tencent
		"168.63.129.16/32",       // Azure wire server: a public address that never leaves the host
		"100.100.100.200/32",     // Alibaba
		"192.0.0.192/32",         // Oracle
		"fd00:ec2::254/128",      // AWS over IPv6
		"fd00:ec2::23/128",       // AWS EKS pod identity over IPv6
		"fd20:ce::254/128",       // Google over IPv6
		"fe80::a9fe:a9fe/128",    // OpenStack over IPv6
		"fd00:42::42/128",        // Scaleway over IPv6
		"fd00:c1::a9fe:a9fe/128") // Oracle over IPv6

	add(ReasonUnspecified, "0.0.0.0/8", "::/128")
	add(ReasonLoopback, "127.0.0.0/8", "::1/128")
	add(ReasonPrivate, "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
	add(ReasonShared, "100.64.0.0/10")
	add(ReasonLinkLocal, "169.254.0.0/16", "fe80::/10")
	add(ReasonSiteLocal, "fec0::/10")
	add(ReasonMulticast, "224.0.0.0/4", "ff00::/8")
	add(ReasonBenchmarking, "198.18.0.0/15", "2001:2::/48")
	add(ReasonDocumentation, "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20")
	add(ReasonDiscard, "100::/64", "100:0:0:1::/64")
	add(ReasonNAT64, "64:ff9b::/96", "64:ff9b:1::/48")
	add(Reason6to4, "192.88.99.0/24", "2002::/16")
	add(ReasonTeredo, "2001::/32")
	add(ReasonSegmentRouting, "5f00::/16")
	add(ReasonMapped, "::ffff:0:0:0/96") // IPv4-translated, RFC 2765; the mapped form proper never gets here
	add(ReasonCompatible, "::/96")
	add(ReasonReserved,
		"240.0.0.0/4",       // class E and the limited broadcast
		"192.0.0.0/24",      // IETF protocol assignments
		"192.31.196.0/24",   // AS112
		"192.52.193.0/24",   // AMT
		"192.175.48.0/24",   // AS112
		"2001::/23",         // IETF protocol assignments, ORCHID and ORCHIDv2 among them
		"2620:4f:8000::/48", // AS112
		"3ffe::/16")         // the returned 6bone
	return ranges
}

// knownAddresses are the addresses that a name stands for on every machine, or
// in every cloud that has it; none for names that have to be looked up. Sources:
// RFC 6761, section 6.3, the hosts files of the distributions, and the cloud
// providers' documentation for metadata services.
func knownAddresses(host string) []netip.Addr {
	loopback := []string{"localhost", "localhost.localdomain", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback"}
	metadata := []string{
		"metadata", "metadata.google.internal", "metadata.goog", // Google
		"instance-data", "instance-data.ec2.internal", // AWS
		"metadata.tencentyun.com", // Tencent
		"rancher-metadata", "rancher-metadata.rancher.internal",
	}
	switch {
	case slices.Contains(loopback, host) || strings.HasSuffix(host, ".localhost"):
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	case slices.Contains(metadata, host):
		return []netip.Addr{netip.AddrFrom4([4]byte{169, 254, 169, 254})}
	}
	return nil
}
