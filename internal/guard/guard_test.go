package guard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"tributary/internal/guard"
	"tributary/internal/guard/guardtest"
	"tributary/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func newGuard(t testing.TB, c guard.Config) *guard.Guard {
	t.Helper()
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// forms are addresses a name may resolve to, with the reason they are refused for.
var forms = []struct {
	address string
	reason  guard.Reason
}{
	{"0.0.0.0", guard.ReasonUnspecified}, {"0.0.0.1", guard.ReasonUnspecified}, {"0.255.255.255", guard.ReasonUnspecified},
	{"::", guard.ReasonUnspecified},
	{"127.0.0.1", guard.ReasonLoopback}, {"127.0.0.2", guard.ReasonLoopback}, {"127.255.255.254", guard.ReasonLoopback},
	{"::1", guard.ReasonLoopback},
	{"10.0.0.0", guard.ReasonPrivate}, {"10.0.0.1", guard.ReasonPrivate}, {"10.255.255.255", guard.ReasonPrivate},
	{"172.16.0.1", guard.ReasonPrivate}, {"172.31.255.255", guard.ReasonPrivate},
	{"192.168.0.1", guard.ReasonPrivate}, {"192.168.255.255", guard.ReasonPrivate},
	{"fc00::1", guard.ReasonPrivate}, {"fd12:3456:789a::1", guard.ReasonPrivate}, {"fdff:ffff::", guard.ReasonPrivate},
	{"100.64.0.0", guard.ReasonShared}, {"100.127.255.255", guard.ReasonShared},
	{"169.254.0.1", guard.ReasonLinkLocal}, {"169.254.255.255", guard.ReasonLinkLocal},
	{"fe80::1", guard.ReasonLinkLocal}, {"febf::1", guard.ReasonLinkLocal},
	{"fec0::1", guard.ReasonSiteLocal}, {"feff::1", guard.ReasonSiteLocal},
	{"169.254.169.254", guard.ReasonMetadata}, {"169.254.170.2", guard.ReasonMetadata},
	{"169.254.170.23", guard.ReasonMetadata},
	{"100.100.100.200", guard.ReasonMetadata}, {"168.63.129.16", guard.ReasonMetadata},
	{"192.0.0.192", guard.ReasonMetadata},
	{"fd00:ec2::254", guard.ReasonMetadata}, {"fd00:ec2::23", guard.ReasonMetadata},
	{"fd20:ce::254", guard.ReasonMetadata},
	{"fe80::a9fe:a9fe", guard.ReasonMetadata},
	{"224.0.0.1", guard.ReasonMulticast}, {"239.255.255.255", guard.ReasonMulticast}, {"ff02::1", guard.ReasonMulticast},
	{"ff0e::1", guard.ReasonMulticast},
	{"240.0.0.1", guard.ReasonReserved}, {"255.255.255.254", guard.ReasonReserved},
	{"255.255.255.255", guard.ReasonReserved},
	{"192.0.0.1", guard.ReasonReserved}, {"192.31.196.1", guard.ReasonReserved}, {"192.52.193.1", guard.ReasonReserved},
	{"192.175.48.1", guard.ReasonReserved},
	{"2001:10::1", guard.ReasonReserved}, {"2001:20::1", guard.ReasonReserved}, {"2001:1ff:ffff::", guard.ReasonReserved},
	{"2620:4f:8000::1", guard.ReasonReserved}, {"3ffe::1", guard.ReasonReserved},
	{"198.18.0.1", guard.ReasonBenchmarking}, {"198.19.255.255", guard.ReasonBenchmarking},
	{"2001:2::1", guard.ReasonBenchmarking},
	{"192.0.2.1", guard.ReasonDocumentation}, {"198.51.100.1", guard.ReasonDocumentation},
	{"203.0.113.255", guard.ReasonDocumentation},
	{"2001:db8::1", guard.ReasonDocumentation}, {"3fff::1", guard.ReasonDocumentation},
	{"3fff:fff::1", guard.ReasonDocumentation},
	{"100::1", guard.ReasonDiscard}, {"100:0:0:1::1", guard.ReasonDiscard},
	{"192.88.99.1", guard.Reason6to4}, {"2002:7f00:1::", guard.Reason6to4}, {"2002:a9fe:a9fe::1", guard.Reason6to4},
	{"2002:808:808::1", guard.Reason6to4},
	{"64:ff9b::a9fe:a9fe", guard.ReasonNAT64}, {"64:ff9b::7f00:1", guard.ReasonNAT64},
	{"64:ff9b::808:808", guard.ReasonNAT64},
	{"64:ff9b:1::1", guard.ReasonNAT64}, {"64:ff9b:1:ffff::a00:1", guard.ReasonNAT64},
	{"2001::1", guard.ReasonTeredo}, {"2001:0:4136:e378:8000:63bf:80ff:fffe", guard.ReasonTeredo},
	{"5f00::1", guard.ReasonSegmentRouting}, {"5f00:ffff::1", guard.ReasonSegmentRouting},
	{"::2", guard.ReasonCompatible}, {"::127.0.0.1", guard.ReasonCompatible}, {"::8.8.8.8", guard.ReasonCompatible},
	{"::ffff:0:127.0.0.1", guard.ReasonMapped}, {"::ffff:0:8.8.8.8", guard.ReasonMapped},
	{"2400::5efe:127.0.0.1", guard.ReasonISATAP}, {"2400::200:5efe:10.0.0.1", guard.ReasonISATAP},
	{"64:ff9b:2::1", guard.ReasonNotGlobal}, {"200::1", guard.ReasonNotGlobal}, {"4000::1", guard.ReasonNotGlobal},
	{"e000::1", guard.ReasonNotGlobal},
	{"fe00::1", guard.ReasonNotGlobal}, {"1::1", guard.ReasonNotGlobal},
	// A mapped answer is dialled as the IPv4 address it is.
	{"::ffff:127.0.0.1", guard.ReasonLoopback}, {"::ffff:169.254.169.254", guard.ReasonMetadata},
	{"::ffff:10.0.0.1", guard.ReasonPrivate},
	{"::ffff:0.0.0.0", guard.ReasonUnspecified}, {"::ffff:100.64.0.1", guard.ReasonShared},
}

func TestNamesThatResolveToForbiddenAddressesAreNeverConnectedTo(t *testing.T) {
	if len(forms) < 60 {
		t.Fatalf("only %d forms", len(forms))
	}
	f := guardtest.NewForbidden(t, ":0") // every local address, both families
	z := guardtest.NewZone(t)
	proxy := guardtest.NewForbidden(t, "127.0.0.1:0")
	strict := guard.Dialer{Guard: newGuard(t, guard.Config{}), Resolver: z.Resolver()}
	proxied := strict
	proxied.Proxy = &url.URL{Scheme: "http", Host: "127.0.0.1:" + proxy.Port()}
	for i, form := range forms {
		name := fmt.Sprintf("f%d.forms.example", i)
		z.Set(name, guardtest.Addrs(form.address))
		for what, d := range map[string]*guard.Dialer{"directly": &strict, "through the proxy": &proxied} {
			conn, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(name, f.Port()))
			if conn != nil || stepOf(err) != guard.Vetting || reasonOf(err) != form.reason {
				t.Errorf("%s %s: %v, want %s", form.address, what, err, form.reason)
			}
		}
	}
	if n, asked := f.Seen.Load(), proxy.Seen.Load(); n != 0 || asked != 0 {
		t.Fatalf("the forbidden listener saw %d connections, the proxy was asked %d times", n, asked)
	}
	// The listener is really there: the demo's guard reaches it under three of the names.
	demo := guard.Dialer{Guard: newGuard(t, guard.Config{Demo: true}), Resolver: z.Resolver()}
	for i, form := range forms {
		if form.address == "127.0.0.1" || form.address == "::1" || form.address == "::ffff:127.0.0.1" {
			conn, err := demo.DialContext(t.Context(), "tcp", fmt.Sprintf("f%d.forms.example:%s", i, f.Port()))
			if err != nil {
				t.Fatalf("control %s: %v", form.address, err)
			}
			// It closes at once; its end is what tells that it was counted.
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Log(err) // a reset is an end, too
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if f.Seen.Load() < 3 {
		t.Errorf("control: %d connections", f.Seen.Load())
	}
}

func stepOf(err error) guard.Step {
	var d *guard.DialError
	if errors.As(err, &d) {
		return d.Step
	}
	return ""
}

func TestNamesOfTheMachineAndOfMetadataServicesAreRefusedBeforeAnybodyIsAsked(t *testing.T) {
	strict := newGuard(t, guard.Config{})
	here := newGuard(t, guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	cloud := newGuard(t, guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("169.254.169.254/32")}})
	wide := newGuard(t, guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16")}})
	for name, want := range map[string]guard.Reason{
		"localhost": guard.ReasonLoopback, "LOCALHOST.": guard.ReasonLoopback, "a.b.localhost": guard.ReasonLoopback,
		"localhost.localdomain": guard.ReasonLoopback, "ip6-localhost": guard.ReasonLoopback,
		"ｌｏｃａｌｈｏｓｔ": guard.ReasonLoopback,
		"metadata":  guard.ReasonMetadata, "metadata.google.internal": guard.ReasonMetadata,
		"Metadata.Google.Internal.": guard.ReasonMetadata, "metadata.goog": guard.ReasonMetadata,
		"instance-data":     guard.ReasonMetadata,
		"localhost.example": "", "notlocalhost": "", "metadata.example": "", "mylocalhost.example": "",
	} {
		for what, c := range map[string]struct {
			g    *guard.Guard
			open guard.Reason
		}{"strict": {strict, ""}, "loopback is open": {here, guard.ReasonLoopback},
			"the service is open by name": {cloud, guard.ReasonMetadata}, "its network is open": {wide, ""}} {
			wanted := want
			if want == c.open {
				wanted = ""
			}
			if _, err := c.g.CheckURL("https://" + name + ":8443/hook"); reasonOf(err) != wanted ||
				(err == nil) != (wanted == "") {
				t.Errorf("%s, %s: %v, want %q", name, what, err, wanted)
			}
		}
	}
}

func TestWithOpensNetworksToOneAndNobodyElse(t *testing.T) {
	prefix := func(text string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(text)} }
	g := newGuard(t, guard.Config{Allow: prefix("10.1.0.0/16"), Deny: prefix("10.2.9.0/24")})
	wider := g.With(prefix("10.2.0.0/16"))
	for _, c := range []struct {
		g       *guard.Guard
		address string
		want    guard.Reason
	}{
		{wider, "10.1.0.1", ""}, {wider, "10.2.0.1", ""}, {wider, "10.3.0.1", guard.ReasonPrivate},
		{wider, "10.2.9.1", guard.ReasonDenied}, {wider, "169.254.169.254", guard.ReasonMetadata},
		{g, "10.1.0.1", ""}, {g, "10.2.0.1", guard.ReasonPrivate},
		{wider.With(prefix("0.0.0.0/0")), "169.254.169.254", guard.ReasonMetadata},
		{g.With(nil), "10.2.0.1", guard.ReasonPrivate},
		{g.With([]netip.Prefix{{}}), "10.2.0.1", guard.ReasonPrivate},
	} {
		if err := c.g.CheckAddress(netip.MustParseAddr(c.address)); reasonOf(err) != c.want {
			t.Errorf("%s: %v, want %q", c.address, err, c.want)
		}
	}
	// Two that begin with the same guard do not see each other's networks.
	other := g.With(prefix("10.4.0.0/16"))
	if reasonOf(wider.CheckAddress(netip.MustParseAddr("10.4.0.1"))) != guard.ReasonPrivate ||
		other.CheckAddress(netip.MustParseAddr("10.4.0.1")) != nil {
		t.Error("networks of one are open to another")
	}
}

func TestAddressFormsAsLiterals(t *testing.T) {
	g := newGuard(t, guard.Config{})
	for _, form := range forms {
		addr := netip.MustParseAddr(form.address)
		want := form.reason
		if addr.Is4In6() {
			want = guard.ReasonMapped
		}
		_, err := g.CheckURL("https://" + net.JoinHostPort(form.address, "8443") + "/")
		if reasonOf(err) != want {
			t.Errorf("%s as URL: %v, want %s", form.address, err, want)
		}
		if err := g.CheckAddress(addr); reasonOf(err) != want {
			t.Errorf("%s: %v, want %s", form.address, err, want)
		}
	}
}

func TestPublicAddressesPass(t *testing.T) {
	g := newGuard(t, guard.Config{})
	for _, a := range guardtest.Addrs("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
		"126.255.255.255", "128.0.0.0",
		"169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.167.255.255",
		"192.169.0.0",
		"198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.15", "168.63.129.17", "1.0.0.0",
		"2606:4700:4700::1111", "2a00:1450::1", "2001:200::1", "2001:db7::1", "2001:db9::1", "2003::1", "2620:4f:8001::1",
		"3fff:1000::1", "2400::1") {
		if err := g.CheckAddress(a); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
}

func reasonOf(err error) guard.Reason {
	var r *guard.Refusal
	if errors.As(err, &r) {
		return r.Reason
	}
	return ""
}

func TestAllowListOpensWhatItNamesAndNoMore(t *testing.T) {
	prefixes := func(texts ...string) (list []netip.Prefix) {
		for _, s := range texts {
			list = append(list, netip.MustParsePrefix(s))
		}
		return list
	}
	for _, c := range []struct {
		allow, deny []netip.Prefix
		address     string
		want        guard.Reason
	}{
		{prefixes("10.1.0.0/16"), nil, "10.1.2.3", ""},
		{prefixes("10.1.0.0/16"), nil, "10.2.2.3", guard.ReasonPrivate},
		{prefixes("127.0.0.0/8"), nil, "127.0.0.1", ""},
		{prefixes("fd00::/8"), nil, "fd12::1", ""},
		{prefixes("fd00::/8"), nil, "fd00:ec2::254", guard.ReasonMetadata},
		{prefixes("0.0.0.0/0", "::/0"), nil, "169.254.169.254", guard.ReasonMetadata},
		{prefixes("0.0.0.0/0", "::/0"), nil, "168.63.129.16", guard.ReasonMetadata},
		{prefixes("169.254.169.254/32"), nil, "169.254.169.254", ""},
		{prefixes("::/0"), nil, "::ffff:10.0.0.1", guard.ReasonMapped},
		{prefixes("64:ff9b::/96"), nil, "64:ff9b::808:808", ""},
		{prefixes("64:ff9b::/96"), nil, "64:ff9b::a9fe:a9fe", guard.ReasonMetadata},
		{prefixes("64:ff9b::/96"), nil, "64:ff9b::7f00:1", guard.ReasonLoopback},
		{prefixes("64:ff9b:1::/48"), nil, "64:ff9b:1::808:808", guard.ReasonNotTranslatable},
		{prefixes("64:ff9b:1::/96"), nil, "64:ff9b:1::808:808", ""},
		{prefixes("64:ff9b:1::/96"), nil, "64:ff9b:1::a00:1", guard.ReasonPrivate},
		{prefixes("2002::/16"), nil, "2002:7f00:1::", guard.ReasonLoopback},
		{prefixes("2002::/16"), nil, "2002:808:808::", ""},
		{prefixes("192.88.99.0/24"), nil, "192.88.99.1", ""},
		{prefixes("2001::/32"), nil, "2001::f5ff:fffe", guard.ReasonPrivate}, // 10.0.0.1 inverted
		{prefixes("2001::/32"), nil, "2001::f7f7:f7f7", ""},                  // 8.8.8.8 inverted
		{nil, prefixes("8.8.0.0/16"), "8.8.8.8", guard.ReasonDenied},
		{prefixes("10.0.0.0/8"), prefixes("10.9.0.0/16"), "10.9.0.1", guard.ReasonDenied},
	} {
		g := newGuard(t, guard.Config{Allow: c.allow, Deny: c.deny})
		if err := g.CheckAddress(netip.MustParseAddr(c.address)); reasonOf(err) != c.want || (err == nil) != (c.want == "") {
			t.Errorf("allow %v deny %v: %s: %v, want %q", c.allow, c.deny, c.address, err, c.want)
		}
	}
}

func TestCheckURL(t *testing.T) {
	pad := func(n int) string { return "https://r.example/" + strings.Repeat("a", n-len("https://r.example/")) }
	for _, c := range []struct {
		raw, want string
		reason    guard.Reason
	}{
		{"https://r.example", "https://r.example/", ""},
		{"HTTPS://R.Example/Path?q=1&r=%20", "https://r.example/Path?q=1&r=%20", ""},
		{"https://r.example:443/x", "https://r.example/x", ""},
		{"https://r.example:/x", "https://r.example/x", ""},
		{"https://r.example./x", "https://r.example/x", ""},
		{"https://r.example:8443/x", "https://r.example:8443/x", ""},
		{"https://r.example:1024/", "https://r.example:1024/", ""},
		{"https://r.example:65535/", "https://r.example:65535/", ""},
		{"https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC", ""},
		{"https://BÜCHER。example/", "https://xn--bcher-kva.example/", ""},
		{"https://1.1.1.1/x", "https://1.1.1.1/x", ""},
		{"https://[2606:4700:0:0::1111]/x", "https://[2606:4700::1111]/x", ""},
		{"https://[2606:4700::1111]:8443/x", "https://[2606:4700::1111]:8443/x", ""},
		{"https://１.１.１.１/", "https://1.1.1.1/", ""},
		{"https://r.example/a%2Fb", "https://r.example/a%2Fb", ""},
		{"https://4.example/", "https://4.example/", ""},
		{"https://r.0xample/", "https://r.0xample/", ""},
		{pad(2048), pad(2048), ""},
		{pad(2049), "", guard.ReasonLength},
		{"https://r.example/" + strings.Repeat("ü", 400), "", guard.ReasonLength}, // short as given, too long as stored
		{"http://r.example/", "", guard.ReasonScheme},
		{"ftp://r.example/", "", guard.ReasonScheme},
		{"javascript:alert(1)", "", guard.ReasonScheme},
		{"r.example/x", "", guard.ReasonURL},
		{"//r.example/x", "", guard.ReasonURL},
		{"", "", guard.ReasonURL},
		{"https:r.example", "", guard.ReasonURL},
		{"https:///x", "", guard.ReasonURL},
		{"https://", "", guard.ReasonURL},
		{"https://r.example /", "", guard.ReasonURL},
		{" https://r.example/", "", guard.ReasonURL},
		{"https://r.example/\n", "", guard.ReasonURL},
		{"https://r.example\\@evil.example/", "", guard.ReasonURL},
		{"https://r.example/\xff", "", guard.ReasonURL},
		{"https://[::1", "", guard.ReasonURL},
		{"https://127%2e0.0.1/", "", guard.ReasonURL},
		{"https://u:p@r.example/", "", guard.ReasonUserinfo},
		{"https://u@r.example/", "", guard.ReasonUserinfo},
		{"https://@r.example/", "", guard.ReasonUserinfo},
		{"https://r.example/#x", "", guard.ReasonFragment},
		{"https://r.example/#", "", guard.ReasonFragment},
		{"https://r.example:22/", "", guard.ReasonPort},
		{"https://r.example:80/", "", guard.ReasonPort},
		{"https://r.example:1023/", "", guard.ReasonPort},
		{"https://r.example:0/", "", guard.ReasonPort},
		{"https://r.example:65536/", "", guard.ReasonPort},
		{"https://r..example/", "", guard.ReasonHost},
		{"https://.example/", "", guard.ReasonHost},
		{"https://./", "", guard.ReasonHost},
		{"https://r_x.example/", "", guard.ReasonHost},
		{"https://" + strings.Repeat("a", 64) + ".example/", "", guard.ReasonHost},
		{"https://0x7f.1/", "", guard.ReasonHost},
		{"https://0x7f000001/", "", guard.ReasonHost},
		{"https://2130706433/", "", guard.ReasonHost},
		{"https://017700000001/", "", guard.ReasonHost},
		{"https://0177.0.0.1/", "", guard.ReasonHost},
		{"https://127.1/", "", guard.ReasonHost},
		{"https://127.0.0.1./", "", guard.ReasonLoopback},
		{"https://１２７.0.0.1/", "", guard.ReasonLoopback},
		{"https://r.0x/", "", guard.ReasonHost},
		{"https://[1.2.3.4]/", "", guard.ReasonURL},
		{"https://[fe80::1%25eth0]/", "", guard.ReasonZone},
		{"https://api.own.example/x", "", guard.ReasonOwnHost},
		{"https://API.own.example.:8443/x", "", guard.ReasonOwnHost},
	} {
		g := newGuard(t, guard.Config{Own: []string{"https://api.own.example"}})
		got, err := g.CheckURL(c.raw)
		if got != c.want || reasonOf(err) != c.reason {
			t.Errorf("%.60q: %.80q %v, want %.80q %q", c.raw, got, err, c.want, c.reason)
		}
		if err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("%q: the refusal repeats userinfo: %v", c.raw, err)
		}
	}
}

func TestDemoOpensLoopbackAndPlainHTTPButNotOurselves(t *testing.T) {
	g := newGuard(t, guard.Config{Demo: true, Own: []string{"http://127.0.0.1:8080", "http://localhost:8081"}})
	for raw, want := range map[string]guard.Reason{
		"http://127.0.0.1:9999/hook": "", "https://[::1]:9999/": "", "http://localhost:9999/": "", "http://r.example/": "",
		"http://127.0.0.1:8080/v1":   guard.ReasonOwnHost,
		"http://localhost:8080/v1":   guard.ReasonOwnHost,
		"https://[::1]:8081/":        guard.ReasonOwnHost,
		"http://x.localhost:8081/":   guard.ReasonOwnHost,
		"http://10.0.0.1:9999/":      guard.ReasonPrivate,
		"http://0.0.0.0:9999/":       guard.ReasonUnspecified,
		"http://169.254.169.254/":    guard.ReasonMetadata,
		"http://r.example:22/":       guard.ReasonPort,
		"ftp://127.0.0.1:9999/":      guard.ReasonScheme,
		"http://u:p@127.0.0.1:9999/": guard.ReasonUserinfo,
	} {
		if _, err := g.CheckURL(raw); reasonOf(err) != want || (err == nil) != (want == "") {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
	// Under another name our own listener is recognised when it is dialled.
	if err := g.Control(t.Context(), "tcp4", "127.0.0.1:8080", nil); reasonOf(err) != guard.ReasonOwnHost {
		t.Errorf("dialling ourselves: %v", err)
	}
}

func TestControlDecidesOnTheConnectedAddress(t *testing.T) {
	g := newGuard(t, guard.Config{Ports: []uint16{80}})
	for _, c := range []struct {
		network, address string
		want             guard.Reason
	}{
		{"tcp4", "8.8.8.8:443", ""}, {"tcp6", "[2606:4700::1]:8443", ""}, {"tcp4", "8.8.8.8:80", ""},
		{"tcp4", "8.8.8.8:25", guard.ReasonPort}, {"tcp4", "127.0.0.1:443", guard.ReasonLoopback},
		{"tcp6", "[fe80::1%eth0]:443", guard.ReasonZone}, {"udp4", "8.8.8.8:443", guard.ReasonNetwork},
		{"unix", "/run/x.sock", guard.ReasonNetwork}, {"tcp4", "name:443", guard.ReasonHost},
		{"tcp6", "[::ffff:8.8.8.8]:443", guard.ReasonMapped},
	} {
		if err := g.Control(context.Background(), c.network, c.address, nil); reasonOf(err) != c.want ||
			(err == nil) != (c.want == "") {
			t.Errorf("%s %s: %v, want %q", c.network, c.address, err, c.want)
		}
	}
}

func TestGuardRefusesAConfigurationItCannotKeep(t *testing.T) {
	for _, c := range []guard.Config{
		{Allow: []netip.Prefix{{}}},
		{Deny: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}},
		{Own: []string{"api.example"}}, {Own: []string{"https://"}}, {Own: []string{"https://api..example"}},
		{Own: []string{"https://api.example:99999"}},
	} {
		if _, err := guard.New(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}
