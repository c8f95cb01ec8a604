package webhook_test

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"tributary/internal/freeport"
	"tributary/internal/guard"
	"tributary/internal/guard/guardtest"
	"tributary/internal/webhook"
)

func TestRebindingNameIsRefusedWhenItTurns(t *testing.T) {
	t.Parallel()
	ca := must(newAuthority())(t)
	got := make(chan string, 10)
	receiver := serveTLS(t, ca, freeOn(t, "127.0.0.2"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.RemoteAddr
	}), "rebind.example")
	f := guardtest.NewForbidden(t, "127.0.0.1:"+portOf(receiver))
	z := guardtest.NewZone(t)
	z.Set("rebind.example", guardtest.Addrs("127.0.0.2"), guardtest.Addrs("127.0.0.1"))
	s := newSender(t, webhook.SenderConfig{
		Guard: newGuard(t, guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}),
		Roots: roots(t, ca), Resolver: z.Resolver(),
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
	if try.Class != webhook.ClassAddressRefused || try.Refusal.Reason != guard.ReasonLoopback {
		t.Errorf("after the name turned: %+v", try)
	}
	if f.Seen.Load() != 0 {
		t.Error("the forbidden listener saw a connection")
	}
}

// freeOn is an address whose port is free on the other local addresses too: the kernel's own choice is on this one alone.
func freeOn(t *testing.T, host string) string {
	t.Helper()
	return net.JoinHostPort(host, strconv.Itoa(must(freeport.New())(t)))
}

func TestNameWithMixedAddressesReachesOnlyTheOpenOne(t *testing.T) {
	t.Parallel()
	ca := must(newAuthority())(t)
	receiver := serveTLS(t, ca, freeOn(t, "127.0.0.2"), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		"mixed.example")
	four := guardtest.NewForbidden(t, "127.0.0.1:"+portOf(receiver))
	six := guardtest.NewForbidden(t, "[::1]:"+portOf(receiver))
	z := guardtest.NewZone(t)
	z.Set("mixed.example", guardtest.Addrs("::1", "127.0.0.1", "10.0.0.1", "127.0.0.2", "::ffff:127.0.0.1"))
	z.Set("all-bad.example", guardtest.Addrs("::1", "127.0.0.1", "::ffff:127.0.0.1"))
	s := newSender(t, webhook.SenderConfig{
		Guard: newGuard(t, guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}),
		Roots: roots(t, ca), Resolver: z.Resolver(),
	})
	if try := s.Send(t.Context(), "https://mixed.example:"+portOf(receiver), parcel(t)); !try.Delivered() ||
		!strings.HasPrefix(try.Address, "127.0.0.2:") {
		t.Errorf("mixed: %+v", try)
	}
	if try := s.Send(t.Context(), "https://all-bad.example:"+portOf(receiver),
		parcel(t)); try.Class != webhook.ClassAddressRefused {
		t.Errorf("all bad: %+v", try)
	}
	if four.Seen.Load()+six.Seen.Load() != 0 {
		t.Error("a forbidden listener saw a connection")
	}
}

// TestNetworksOfOneClientServeNobodyElse: the connection that one client's
// permission opened is not there for another, not even while it is kept.
func TestNetworksOfOneClientServeNobodyElse(t *testing.T) {
	t.Parallel()
	ca := must(newAuthority())(t)
	var seen atomic.Int64
	receiver := serveTLS(t, ca, "127.0.0.2:0", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		seen.Add(1)
	}), "inside.example")
	z := guardtest.NewZone(t)
	z.Set("inside.example", guardtest.Addrs("127.0.0.2"))
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{}), Roots: roots(t, ca),
		Resolver: z.Resolver()})
	address := "https://inside.example:" + portOf(receiver) + "/hook"
	prefixes := func(texts ...string) (list []netip.Prefix) {
		for _, text := range texts {
			list = append(list, netip.MustParsePrefix(text))
		}
		return list
	}
	for i, c := range []struct {
		allow []netip.Prefix
		class webhook.Class
	}{
		{nil, webhook.ClassAddressRefused},
		{prefixes("127.0.0.2/32"), ""},
		{nil, webhook.ClassAddressRefused},
		{prefixes("127.0.0.3/32"), webhook.ClassAddressRefused},
		{prefixes("10.0.0.0/8", "127.0.0.2/32"), ""},
	} {
		if try := s.For(c.allow).Send(t.Context(), address, parcel(t)); try.Class != c.class {
			t.Errorf("%d, open to %v: %q %s", i, c.allow, try.Class, try.Detail)
		}
		if err := s.For(c.allow).Reach(t.Context(), address); (err == nil) != (c.class == "") {
			t.Errorf("%d, reaching: %v", i, err)
		}
	}
	if seen.Load() != 2 {
		t.Errorf("%d notifications arrived", seen.Load())
	}
	if s.For(prefixes("10.0.0.0/8", "127.0.0.2/32")) != s.For(prefixes("127.0.0.2/32", "10.1.2.3/8")) {
		t.Error("the same networks in another order have connections of their own")
	}
	// However many sets of networks come by, few are kept; the last one works.
	first := s.For(prefixes("127.0.0.2/32"))
	for i := range webhook.WiderMax {
		s.For(prefixes(fmt.Sprintf("10.%d.0.0/16", i)))
	}
	if again := s.For(prefixes("127.0.0.2/32")); again == first {
		t.Error("a set that was not used for long is kept")
	} else if try := again.Send(t.Context(), address, parcel(t)); !try.Delivered() {
		t.Errorf("%+v", try)
	}
}
