package account_test

import (
	"testing"

	"tributary/internal/account"
)

func TestAnAddressIsTheProxysWordAndNotTheCallers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		remote    string
		forwarded []string
		trust     bool
		want      string
	}{
		"nobody between":               {"192.0.2.1:99", nil, false, "192.0.2.1"},
		"a header that is not trusted": {"192.0.2.1:99", []string{"198.51.100.7"}, false, "192.0.2.1"},
		"one hop":                      {"10.0.0.1:99", []string{"198.51.100.7"}, true, "198.51.100.7"},
		"what the caller wrote before": {"10.0.0.1:99", []string{"1.1.1.1, 198.51.100.7"}, true, "198.51.100.7"},
		"a header of the caller's own": {"10.0.0.1:99", []string{"1.1.1.1", "198.51.100.7"}, true, "198.51.100.7"},
		"both": {"10.0.0.1:99", []string{"1.1.1.1, 2.2.2.2", "3.3.3.3, 198.51.100.7"}, true,
			"198.51.100.7"},
		"trusted, and nothing was said": {"10.0.0.1:99", nil, true, "10.0.0.1"},
		"garbage from the proxy":        {"10.0.0.1:99", []string{"198.51.100.7, unknown"}, true, "10.0.0.1"},
		"a mapped address":              {"[::ffff:192.0.2.1]:99", nil, false, "192.0.2.1"},
		"a zone":                        {"[fe80::1%eth0]:99", nil, false, "fe80::1"},
		"no address":                    {"@", nil, true, "invalid IP"},
	} {
		if got := account.AddressOf(c.remote, c.forwarded, c.trust); got.String() != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
