package guard_test

import (
	"net/netip"
	"net/url"
	"testing"

	"tributary/internal/guard"
	"tributary/internal/mutate"
)

func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"https://r.example/", "https://0x7f.1/", "https://[::ffff:1.2.3.4]/", "https://u@h/",
		"https://bücher.example:8443/ü?x#y", "https://１２７.0.0.1/"} {
		f.Add(s)
	}
	g, err := guard.New(guard.Config{Own: []string{"https://api.own.example"}})
	if err != nil {
		f.Fatal(err)
	}
	mutate.Corpus(f)
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
		if err != nil || u.Scheme != "https" || u.User != nil || u.Fragment != "" || len(got) > guard.URLCharactersMax ||
			u.Hostname() == "api.own.example" {
			t.Fatalf("%q became %q", raw, got)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && g.CheckAddress(a) != nil {
			t.Fatalf("%q names a refused address", got)
		}
	})
}

// Wherever a receiver redirects to, it is an address that could have been
// configured, or the try ends there.
func FuzzLocation(f *testing.F) {
	for _, location := range []string{
		"/b", "//other.example/b", "https://other.example:8443/x?y#z", "http://other.example/", "https://127.0.0.1/",
		"https://api.own.example/", "?x=y", "", "\\\\evil.example", "https://u:p@h/",
		"HTTPS://OTHER.example./", "javascript:alert(1)", "https:/other.example", "https://0x7f.1/", "\t//h",
	} {
		f.Add(location)
	}
	g, err := guard.New(guard.Config{Own: []string{"https://api.own.example"}})
	if err != nil {
		f.Fatal(err)
	}
	base, err := url.Parse("https://receiver.example/a/b")
	if err != nil {
		f.Fatal(err)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, location string) {
		hop, err := g.ParseHop(base, location)
		if err != nil {
			if reasonOf(err) == "" {
				t.Fatalf("%q: untyped error %v", location, err)
			}
			return
		}
		got := hop.String()
		u, err := url.Parse(got)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" ||
			u.Hostname() == "api.own.example" || len(got) > guard.URLCharactersMax {
			t.Fatalf("%q leads to %q, %v", location, got, err)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && g.CheckAddress(a) != nil {
			t.Fatalf("%q leads to the refused address %s", location, a)
		}
	})
}

// No spelling of our own address, nor of any other, makes the service call itself.
func FuzzOwnAddress(f *testing.F) {
	f.Add("https://api.own.example")
	f.Add("https://API.Own.example.:443/base")
	f.Add("https://[2606:4700::1]:8443")
	f.Add("https://b\u00fccher.example")
	free, err := guard.New(guard.Config{})
	if err != nil {
		f.Fatal(err)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, own string) {
		g, err := guard.New(guard.Config{Own: []string{own}})
		if err != nil {
			return
		}
		if plain, err := free.CheckURL(own); err == nil {
			if _, err := g.CheckURL(own); reasonOf(err) != guard.ReasonOwnHost {
				t.Fatalf("%q may be called: %v", own, err)
			}
			if _, err := g.CheckURL(plain); reasonOf(err) != guard.ReasonOwnHost {
				t.Fatalf("%q may be called: %v", plain, err)
			}
		}
	})
}
