package main

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tributary/internal/fault"
	"tributary/internal/mutate"
)

// The values of flags become a configuration, or a fault that names the flag.
func FuzzFlags(f *testing.F) {
	f.Add("10.1.0.0/16", "2026-03-01", true, "ES.live", "https://authority.example")
	f.Add("10.1.0.0", "2026-02-30", true, "es", "")
	f.Add("::ffff:10.0.0.0/104", "", false, "ES.", "x")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, network, since string, restored bool, authority, address string) {
		flags := &commonFlags{WebhookAllow: []string{network}, Restored: restored, RestoredSince: since}
		cfg, err := flags.config(&command{log: slog.New(slog.DiscardHandler)})
		if err != nil {
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "--") {
				t.Fatal(err)
			}
		} else {
			if p, err := netip.ParsePrefix(network); err != nil || len(cfg.WebhookAllow) != 1 || cfg.WebhookAllow[0] != p {
				t.Fatalf("%q allows %v", network, cfg.WebhookAllow)
			}
			if day, err := time.Parse(time.DateOnly,
				since); since != "" && (err != nil || cfg.RestoredSince.String() != day.Format(time.DateOnly) || !restored) {
				t.Fatalf("%q is %s", since, cfg.RestoredSince)
			}
		}
		all, err := authorities(map[string]string{authority: address})
		code, environment, _ := strings.Cut(authority, ".")
		if err != nil {
			if fault.KindOf(err) != fault.Invalid || environment == "live" || environment == "test" {
				t.Fatal(err)
			}
			return
		}
		at, ok := all[strings.ToUpper(code)]
		if !ok || at.Live+at.Test != address || at.Live != "" && environment != "live" {
			t.Fatalf("%q=%q becomes %v", authority, address, all)
		}
	})
}
