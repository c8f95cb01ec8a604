package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"tributary/internal/webhook"
)

// forms are addresses a name may resolve to, with the reason they are refused for.
var forms = []struct {
	address string
	reason  webhook.Reason
}{
	{"0.0.0.0", webhook.ReasonUnspecified}, {"0.0.0.1", webhook.ReasonUnspecified}, {"0.255.255.255", webhook.ReasonUnspecified},
	{"::", webhook.ReasonUnspecified},
	{"127.0.0.1", webhook.ReasonLoopback}, {"127.0.0.2", webhook.ReasonLoopback}, {"127.255.255.254", webhook.ReasonLoopback},
	{"::1", webhook.ReasonLoopback},
	{"10.0.0.0", webhook.ReasonPrivate}, {"10.0.0.1", webhook.ReasonPrivate}, {"10.255.255.255", webhook.ReasonPrivate},
	{"172.16.0.1", webhook.ReasonPrivate}, {"172.31.255.255", webhook.ReasonPrivate},
	{"192.168.0.1", webhook.ReasonPrivate}, {"192.168.255.255", webhook.ReasonPrivate},
	{"fc00::1", webhook.ReasonPrivate}, {"fd12:3456:789a::1", webhook.ReasonPrivate}, {"fdff:ffff::", webhook.ReasonPrivate},
	{"100.64.0.0", webhook.ReasonShared}, {"100.127.255.255", webhook.ReasonShared},
	{"169.254.0.1", webhook.ReasonLinkLocal}, {"169.254.255.255", webhook.ReasonLinkLocal},
	{"fe80::1", webhook.ReasonLinkLocal}, {"febf::1", webhook.ReasonLinkLocal},
	{"fec0::1", webhook.ReasonSiteLocal}, {"feff::1", webhook.ReasonSiteLocal},
	{"169.254.169.254", webhook.ReasonMetadata}, {"169.254.170.2", webhook.ReasonMetadata}, {"169.254.170.23", webhook.ReasonMetadata},
	{"100.100.100.200", webhook.ReasonMetadata}, {"168.63.129.16", webhook.ReasonMetadata}, {"192.0.0.192", webhook.ReasonMetadata},
	{"fd00:ec2::254", webhook.ReasonMetadata}, {"fd00:ec2::23", webhook.ReasonMetadata}, {"fd20:ce::254", webhook.ReasonMetadata},
	{"fe80::a9fe:a9fe", webhook.ReasonMetadata},
	{"224.0.0.1", webhook.ReasonMulticast}, {"239.255.255.255", webhook.ReasonMulticast}, {"ff02::1", webhook.ReasonMulticast}, {"ff0e::1", webhook.ReasonMulticast},
	{"240.0.0.1", webhook.ReasonReserved}, {"255.255.255.254", webhook.ReasonReserved}, {"255.255.255.255", webhook.ReasonReserved},
	{"192.0.0.1", webhook.ReasonReserved}, {"192.31.196.1", webhook.ReasonReserved}, {"192.52.193.1", webhook.ReasonReserved}, {"192.175.48.1", webhook.ReasonReserved},
	{"2001:10::1", webhook.ReasonReserved}, {"2001:20::1", webhook.ReasonReserved}, {"2001:1ff:ffff::", webhook.ReasonReserved},
	{"2620:4f:8000::1", webhook.ReasonReserved}, {"3ffe::1", webhook.ReasonReserved},
	{"198.18.0.1", webhook.ReasonBenchmarking}, {"198.19.255.255", webhook.ReasonBenchmarking}, {"2001:2::1", webhook.ReasonBenchmarking},
	{"192.0.2.1", webhook.ReasonDocumentation}, {"198.51.100.1", webhook.ReasonDocumentation}, {"203.0.113.255", webhook.ReasonDocumentation},
	{"2001:db8::1", webhook.ReasonDocumentation}, {"3fff::1", webhook.ReasonDocumentation}, {"3fff:fff::1", webhook.ReasonDocumentation},
	{"100::1", webhook.ReasonDiscard}, {"100:0:0:1::1", webhook.ReasonDiscard},
	{"192.88.99.1", webhook.Reason6to4}, {"2002:7f00:1::", webhook.Reason6to4}, {"2002:a9fe:a9fe::1", webhook.Reason6to4}, {"2002:808:808::1", webhook.Reason6to4},
	{"64:ff9b::a9fe:a9fe", webhook.ReasonNAT64}, {"64:ff9b::7f00:1", webhook.ReasonNAT64}, {"64:ff9b::808:808", webhook.ReasonNAT64},
	{"64:ff9b:1::1", webhook.ReasonNAT64}, {"64:ff9b:1:ffff::a00:1", webhook.ReasonNAT64},
	{"2001::1", webhook.ReasonTeredo}, {"2001:0:4136:e378:8000:63bf:80ff:fffe", webhook.ReasonTeredo},
	{"5f00::1", webhook.ReasonSegmentRouting}, {"5f00:ffff::1", webhook.ReasonSegmentRouting},
	{"::2", webhook.ReasonCompatible}, {"::127.0.0.1", webhook.ReasonCompatible}, {"::8.8.8.8", webhook.ReasonCompatible},
	{"::ffff:0:127.0.0.1", webhook.ReasonMapped}, {"::ffff:0:8.8.8.8", webhook.ReasonMapped},
	{"2400::5efe:127.0.0.1", webhook.ReasonISATAP}, {"2400::200:5efe:10.0.0.1", webhook.ReasonISATAP},
	{"64:ff9b:2::1", webhook.ReasonNotGlobal}, {"200::1", webhook.ReasonNotGlobal}, {"4000::1", webhook.ReasonNotGlobal}, {"e000::1", webhook.ReasonNotGlobal},
	{"fe00::1", webhook.ReasonNotGlobal}, {"1::1", webhook.ReasonNotGlobal},
	// A mapped answer is dialled as the IPv4 address it is.
	{"::ffff:127.0.0.1", webhook.ReasonLoopback}, {"::ffff:169.254.169.254", webhook.ReasonMetadata}, {"::ffff:10.0.0.1", webhook.ReasonPrivate},
	{"::ffff:0.0.0.0", webhook.ReasonUnspecified}, {"::ffff:100.64.0.1", webhook.ReasonShared},
}

func TestNamesThatResolveToForbiddenAddressesAreNeverConnectedTo(t *testing.T) {
	if len(forms) < 60 {
		t.Fatalf("only %d forms", len(forms))
	}
	f := newForbidden(t, ":0") // every local address, both families
	z := newZone(t)
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, webhook.GuardConfig{}), Resolver: z.resolver()})
	p := parcel(t)
	for i, form := range forms {
		name := fmt.Sprintf("f%d.forms.example", i)
		z.set(name, addrs(form.address))
		try := s.Send(t.Context(), "https://"+net.JoinHostPort(name, f.port())+"/hook", p)
		if try.Class != webhook.ClassAddressRefused || try.Refusal == nil || try.Refusal.Reason != form.reason {
			t.Errorf("%s: %s %v %s, want %s", form.address, try.Class, try.Refusal, try.Detail, form.reason)
		}
		if try.Delivered() || try.Address != "" || try.Status != 0 {
			t.Errorf("%s: try %+v", form.address, try)
		}
	}
	if n := f.seen.Load(); n != 0 {
		t.Fatalf("the forbidden listener saw %d connections", n)
	}
	// The listener is really there: the demo's guard reaches it under three of the names.
	demo := newSender(t, webhook.SenderConfig{Guard: newGuard(t, webhook.GuardConfig{Demo: true}), Resolver: z.resolver()})
	for i, form := range forms {
		if form.address == "127.0.0.1" || form.address == "::1" || form.address == "::ffff:127.0.0.1" {
			if try := demo.Send(t.Context(), fmt.Sprintf("http://f%d.forms.example:%s/", i, f.port()), p); try.Class != webhook.ClassClosed {
				t.Errorf("control %s: %s %s", form.address, try.Class, try.Detail)
			}
		}
	}
	if f.seen.Load() < 3 {
		t.Errorf("control: %d connections", f.seen.Load())
	}
}

func TestAddressFormsAsLiterals(t *testing.T) {
	g := newGuard(t, webhook.GuardConfig{})
	for _, form := range forms {
		addr := netip.MustParseAddr(form.address)
		want := form.reason
		if addr.Is4In6() {
			want = webhook.ReasonMapped
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
	g := newGuard(t, webhook.GuardConfig{})
	for _, a := range addrs("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
		"169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0",
		"198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.15", "168.63.129.17", "1.0.0.0",
		"2606:4700:4700::1111", "2a00:1450::1", "2001:200::1", "2001:db7::1", "2001:db9::1", "2003::1", "2620:4f:8001::1", "3fff:1000::1", "2400::1") {
		if err := g.CheckAddress(a); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
}

func reasonOf(err error) webhook.Reason {
	var r *webhook.Refusal
	if errors.As(err, &r) {
		return r.Reason
	}
	return ""
}

func TestRebindingNameIsRefusedWhenItTurns(t *testing.T) {
	ca := must(newAuthority())(t)
	got := make(chan string, 10)
	receiver := serveTLS(t, ca, "127.0.0.2:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.RemoteAddr
	}), "rebind.example")
	f := newForbidden(t, "127.0.0.1:"+portOf(receiver))
	z := newZone(t)
	z.set("rebind.example", addrs("127.0.0.2"), addrs("127.0.0.1"))
	s := newSender(t, webhook.SenderConfig{
		Guard: newGuard(t, webhook.GuardConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}),
		Roots: roots(t, ca), Resolver: z.resolver(),
	})
	address := "https://rebind.example:" + portOf(receiver) + "/hook"
	if try := s.Send(t.Context(), address, parcel(t)); !try.Delivered() || try.Address != "127.0.0.2:"+portOf(receiver) {
		t.Fatalf("first: %+v", try)
	}
	first := <-got
	// The kept connection stays bound to the address it was vetted for, whatever the name says now.
	if try := s.Send(t.Context(), address, parcel(t)); !try.Delivered() || try.Address != "127.0.0.2:"+portOf(receiver) {
		t.Fatalf("kept alive: %+v", try)
	}
	if again := <-got; again != first {
		t.Errorf("a second connection %s after %s", again, first)
	}
	s.Close()
	try := s.Send(t.Context(), address, parcel(t))
	if try.Class != webhook.ClassAddressRefused || try.Refusal.Reason != webhook.ReasonLoopback {
		t.Errorf("after the name turned: %+v", try)
	}
	if f.seen.Load() != 0 {
		t.Error("the forbidden listener saw a connection")
	}
}

func TestNameWithMixedAddressesReachesOnlyTheOpenOne(t *testing.T) {
	ca := must(newAuthority())(t)
	receiver := serveTLS(t, ca, "127.0.0.2:0", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), "mixed.example")
	four := newForbidden(t, "127.0.0.1:"+portOf(receiver))
	six := newForbidden(t, "[::1]:"+portOf(receiver))
	z := newZone(t)
	z.set("mixed.example", addrs("::1", "127.0.0.1", "10.0.0.1", "127.0.0.2", "::ffff:127.0.0.1"))
	z.set("all-bad.example", addrs("::1", "127.0.0.1", "::ffff:127.0.0.1"))
	s := newSender(t, webhook.SenderConfig{
		Guard: newGuard(t, webhook.GuardConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}),
		Roots: roots(t, ca), Resolver: z.resolver(),
	})
	if try := s.Send(t.Context(), "https://mixed.example:"+portOf(receiver), parcel(t)); !try.Delivered() || !strings.HasPrefix(try.Address, "127.0.0.2:") {
		t.Errorf("mixed: %+v", try)
	}
	if try := s.Send(t.Context(), "https://all-bad.example:"+portOf(receiver), parcel(t)); try.Class != webhook.ClassAddressRefused {
		t.Errorf("all bad: %+v", try)
	}
	if four.seen.Load()+six.seen.Load() != 0 {
		t.Error("a forbidden listener saw a connection")
	}
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
		want        webhook.Reason
	}{
		{prefixes("10.1.0.0/16"), nil, "10.1.2.3", ""},
		{prefixes("10.1.0.0/16"), nil, "10.2.2.3", webhook.ReasonPrivate},
		{prefixes("127.0.0.0/8"), nil, "127.0.0.1", ""},
		{prefixes("fd00::/8"), nil, "fd12::1", ""},
		{prefixes("fd00::/8"), nil, "fd00:ec2::254", webhook.ReasonMetadata},
		{prefixes("0.0.0.0/0", "::/0"), nil, "169.254.169.254", webhook.ReasonMetadata},
		{prefixes("0.0.0.0/0", "::/0"), nil, "168.63.129.16", webhook.ReasonMetadata},
		{prefixes("169.254.169.254/32"), nil, "169.254.169.254", ""},
		{prefixes("::/0"), nil, "::ffff:10.0.0.1", webhook.ReasonMapped},
		{prefixes("64:ff9b::/96"), nil, "64:ff9b::808:808", ""},
		{prefixes("64:ff9b::/96"), nil, "64:ff9b::a9fe:a9fe", webhook.ReasonMetadata},
		{prefixes("64:ff9b::/96"), nil, "64:ff9b::7f00:1", webhook.ReasonLoopback},
		{prefixes("64:ff9b:1::/48"), nil, "64:ff9b:1::808:808", webhook.ReasonNotTranslatable},
		{prefixes("64:ff9b:1::/96"), nil, "64:ff9b:1::808:808", ""},
		{prefixes("64:ff9b:1::/96"), nil, "64:ff9b:1::a00:1", webhook.ReasonPrivate},
		{prefixes("2002::/16"), nil, "2002:7f00:1::", webhook.ReasonLoopback},
		{prefixes("2002::/16"), nil, "2002:808:808::", ""},
		{prefixes("192.88.99.0/24"), nil, "192.88.99.1", ""},
		{prefixes("2001::/32"), nil, "2001::f5ff:fffe", webhook.ReasonPrivate}, // 10.0.0.1 inverted
		{prefixes("2001::/32"), nil, "2001::f7f7:f7f7", ""},                    // 8.8.8.8 inverted
		{nil, prefixes("8.8.0.0/16"), "8.8.8.8", webhook.ReasonDenied},
		{prefixes("10.0.0.0/8"), prefixes("10.9.0.0/16"), "10.9.0.1", webhook.ReasonDenied},
	} {
		g := newGuard(t, webhook.GuardConfig{Allow: c.allow, Deny: c.deny})
		if err := g.CheckAddress(netip.MustParseAddr(c.address)); reasonOf(err) != c.want || (err == nil) != (c.want == "") {
			t.Errorf("allow %v deny %v: %s: %v, want %q", c.allow, c.deny, c.address, err, c.want)
		}
	}
}

func TestCheckURL(t *testing.T) {
	pad := func(n int) string { return "https://r.example/" + strings.Repeat("a", n-len("https://r.example/")) }
	for _, c := range []struct {
		raw, want string
		reason    webhook.Reason
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
		{pad(2049), "", webhook.ReasonLength},
		{"https://r.example/" + strings.Repeat("ü", 400), "", webhook.ReasonLength}, // short as given, too long as stored
		{"http://r.example/", "", webhook.ReasonScheme},
		{"ftp://r.example/", "", webhook.ReasonScheme},
		{"javascript:alert(1)", "", webhook.ReasonScheme},
		{"r.example/x", "", webhook.ReasonURL},
		{"//r.example/x", "", webhook.ReasonURL},
		{"", "", webhook.ReasonURL},
		{"https:r.example", "", webhook.ReasonURL},
		{"https:///x", "", webhook.ReasonURL},
		{"https://", "", webhook.ReasonURL},
		{"https://r.example /", "", webhook.ReasonURL},
		{" https://r.example/", "", webhook.ReasonURL},
		{"https://r.example/\n", "", webhook.ReasonURL},
		{"https://r.example\\@evil.example/", "", webhook.ReasonURL},
		{"https://r.example/\xff", "", webhook.ReasonURL},
		{"https://[::1", "", webhook.ReasonURL},
		{"https://127%2e0.0.1/", "", webhook.ReasonURL},
		{"https://u:p@r.example/", "", webhook.ReasonUserinfo},
		{"https://u@r.example/", "", webhook.ReasonUserinfo},
		{"https://@r.example/", "", webhook.ReasonUserinfo},
		{"https://r.example/#x", "", webhook.ReasonFragment},
		{"https://r.example/#", "", webhook.ReasonFragment},
		{"https://r.example:22/", "", webhook.ReasonPort},
		{"https://r.example:80/", "", webhook.ReasonPort},
		{"https://r.example:1023/", "", webhook.ReasonPort},
		{"https://r.example:0/", "", webhook.ReasonPort},
		{"https://r.example:65536/", "", webhook.ReasonPort},
		{"https://r..example/", "", webhook.ReasonHost},
		{"https://.example/", "", webhook.ReasonHost},
		{"https://./", "", webhook.ReasonHost},
		{"https://r_x.example/", "", webhook.ReasonHost},
		{"https://" + strings.Repeat("a", 64) + ".example/", "", webhook.ReasonHost},
		{"https://0x7f.1/", "", webhook.ReasonHost},
		{"https://0x7f000001/", "", webhook.ReasonHost},
		{"https://2130706433/", "", webhook.ReasonHost},
		{"https://017700000001/", "", webhook.ReasonHost},
		{"https://0177.0.0.1/", "", webhook.ReasonHost},
		{"https://127.1/", "", webhook.ReasonHost},
		{"https://127.0.0.1./", "", webhook.ReasonLoopback},
		{"https://１２７.0.0.1/", "", webhook.ReasonLoopback},
		{"https://r.0x/", "", webhook.ReasonHost},
		{"https://[1.2.3.4]/", "", webhook.ReasonURL},
		{"https://[fe80::1%25eth0]/", "", webhook.ReasonZone},
		{"https://api.own.example/x", "", webhook.ReasonOwnHost},
		{"https://API.own.example.:8443/x", "", webhook.ReasonOwnHost},
	} {
		g := newGuard(t, webhook.GuardConfig{Own: []string{"https://api.own.example"}})
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
	g := newGuard(t, webhook.GuardConfig{Demo: true, Own: []string{"http://127.0.0.1:8080", "http://localhost:8081"}})
	for raw, want := range map[string]webhook.Reason{
		"http://127.0.0.1:9999/hook": "", "https://[::1]:9999/": "", "http://localhost:9999/": "", "http://r.example/": "",
		"http://127.0.0.1:8080/v1":   webhook.ReasonOwnHost,
		"http://localhost:8080/v1":   webhook.ReasonOwnHost,
		"https://[::1]:8081/":        webhook.ReasonOwnHost,
		"http://x.localhost:8081/":   webhook.ReasonOwnHost,
		"http://10.0.0.1:9999/":      webhook.ReasonPrivate,
		"http://0.0.0.0:9999/":       webhook.ReasonUnspecified,
		"http://169.254.169.254/":    webhook.ReasonMetadata,
		"http://r.example:22/":       webhook.ReasonPort,
		"ftp://127.0.0.1:9999/":      webhook.ReasonScheme,
		"http://u:p@127.0.0.1:9999/": webhook.ReasonUserinfo,
	} {
		if _, err := g.CheckURL(raw); reasonOf(err) != want || (err == nil) != (want == "") {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
	// Under another name our own listener is recognised when it is dialled.
	if err := g.Control(t.Context(), "tcp4", "127.0.0.1:8080", nil); reasonOf(err) != webhook.ReasonOwnHost {
		t.Errorf("dialling ourselves: %v", err)
	}
}

func TestControlDecidesOnTheConnectedAddress(t *testing.T) {
	g := newGuard(t, webhook.GuardConfig{Ports: []uint16{80}})
	for _, c := range []struct {
		network, address string
		want             webhook.Reason
	}{
		{"tcp4", "8.8.8.8:443", ""}, {"tcp6", "[2606:4700::1]:8443", ""}, {"tcp4", "8.8.8.8:80", ""},
		{"tcp4", "8.8.8.8:25", webhook.ReasonPort}, {"tcp4", "127.0.0.1:443", webhook.ReasonLoopback},
		{"tcp6", "[fe80::1%eth0]:443", webhook.ReasonZone}, {"udp4", "8.8.8.8:443", webhook.ReasonNetwork},
		{"unix", "/run/x.sock", webhook.ReasonNetwork}, {"tcp4", "name:443", webhook.ReasonHost}, {"tcp6", "[::ffff:8.8.8.8]:443", webhook.ReasonMapped},
	} {
		if err := g.Control(context.Background(), c.network, c.address, nil); reasonOf(err) != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%s %s: %v, want %q", c.network, c.address, err, c.want)
		}
	}
}

func TestGuardRefusesAConfigurationItCannotKeep(t *testing.T) {
	for _, c := range []webhook.GuardConfig{
		{Allow: []netip.Prefix{{}}},
		{Deny: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}},
		{Own: []string{"api.example"}}, {Own: []string{"https://"}}, {Own: []string{"https://api..example"}}, {Own: []string{"https://api.example:99999"}},
	} {
		if _, err := webhook.NewGuard(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"https://r.example/", "https://0x7f.1/", "https://[::ffff:1.2.3.4]/", "https://u@h/", "https://bücher.example:8443/ü?x#y", "https://１２７.0.0.1/"} {
		f.Add(s)
	}
	g, err := webhook.NewGuard(webhook.GuardConfig{Own: []string{"https://api.own.example"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := g.CheckURL(raw)
		if err != nil {
			if reasonOf(err) == "" {
				t.Fatalf("%q: untyped error %v", raw, err)
			}
			return
		}
		again, err := g.CheckURL(got)
		if err != nil || again != got {
			t.Fatalf("%q became %q, then %q: %v", raw, got, again, err)
		}
		u, err := url.Parse(got)
		if err != nil || u.Scheme != "https" || u.User != nil || u.Fragment != "" || len(got) > webhook.URLCharactersMax || u.Hostname() == "api.own.example" {
			t.Fatalf("%q became %q", raw, got)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && g.CheckAddress(a) != nil {
			t.Fatalf("%q names a refused address", got)
		}
	})
}
