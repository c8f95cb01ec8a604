package country_test

import (
	"net/netip"
	"net/url"
	"testing"

	"tributary/internal/country"
	"tributary/internal/mutate"
)

// An address of an authority is used only when it is one: with TLS, or on this
// machine, and with nothing hidden in it.
func FuzzAddresses(f *testing.F) {
	for _, text := range []string{"https://authority.example", "http://127.0.0.1:8090/ie", "http://authority.example",
		"https://u:p@h", "https://h?x", "http://[::1]", "https:///x", "//h", "http://0x7f.1"} {
		f.Add(text, text)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, live, test string) {
		a, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{goodPack("IE")},
			Addresses: map[string]country.Addresses{"ie": {Live: live, Test: test}}})
		if err != nil {
			return
		}
		a.Close()
		for text, what := range map[string]string{live: "live", test: "test"} {
			if text == "" {
				continue
			}
			u, err := url.Parse(text)
			if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
				u.Scheme != "https" && u.Scheme != "http" {
				t.Fatalf("the %s address %q is taken: %v", what, text, err)
			}
			if ip, err := netip.ParseAddr(u.Hostname()); text == live && u.Scheme == "http" && (err != nil || !ip.IsLoopback()) {
				t.Fatalf("the live address %q is asked in clear text", text)
			}
		}
	})
}
