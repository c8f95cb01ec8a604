package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tributary/internal/country/identity"
)

func TestAuthoritiesFromTheCommandLine(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, url string) {
		flags := append(book(t, url), "--json")
		dir := t.TempDir()
		write := func(name string, content []byte) string {
			t.Helper()
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		file, password, err := identity.Test("XX-1", "Gateway", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		key, p12, word := write("key", []byte("canary-9\n")), write("id.p12", file), write("word", []byte(password))
		ask := func(want int, args ...string) string {
			t.Helper()
			code, out, errs := call(t, append(append([]string{"authority"}, args...), flags...)...)
			if code != want {
				t.Fatalf("%v: %d %s%s", args, code, out, errs)
			}
			if strings.Contains(out+errs, "canary-9") || strings.Contains(out+errs, password) {
				t.Errorf("%v shows a secret: %s%s", args, out, errs)
			}
			return out + errs
		}
		ask(0, "set", "xx.test", "--url", "http://127.0.0.1:9", "--secret", "platform_key="+key, "--certificate", p12,
			"--certificate-password-file", word)
		var list []struct {
			Country     string `json:"country_code"`
			Environment string
			URL         string
			Secrets     []string
			Certificate *struct{ Subject, Fingerprint string }
		}
		if err := json.Unmarshal([]byte(ask(0, "list")), &list); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, a := range list {
			found = found || a.Country == "XX" && a.Environment == "test" && a.URL == "http://127.0.0.1:9" && len(a.Secrets) == 1 && a.Certificate != nil && strings.Contains(a.Certificate.Subject, "CN=Gateway")
		}
		if !found {
			t.Errorf("%+v", list)
		}
		for _, wrong := range []struct {
			args []string
			want string
		}{
			{[]string{"set", "XX.test"}, "nothing to set"},
			{[]string{"set", "XX.prod", "--url", "https://x.example"}, "CC.live or CC.test"},
			{[]string{"set", "XX.live", "--url", "https://x.example"}, "not available with live keys"},
			{[]string{"set", "XX.test", "--secret", "client_id=" + key}, "XX requires platform_key"},
			{[]string{"set", "XX.test", "--secret", "platform_key=" + key + ".none"}, "--secret platform_key"},
			{[]string{"set", "XX.test", "--certificate", p12}, "--certificate-password-file"},
			{[]string{"set", "XX.test", "--certificate-password-file", word}, "requires --certificate"},
			{[]string{"set", "XX.test", "--certificate", write("large", bytes.Repeat([]byte("x"), identity.FileBytesMax+1))},
				"larger than 65536 bytes"},
		} {
			if said := ask(exitUsage, wrong.args...); !strings.Contains(said, wrong.want) {
				t.Errorf("%v says %s", wrong.args, said)
			}
		}
		// A rotated master key takes the identities along, and the key of the audit logs.
		code, out, errs := call(t, append([]string{"master-key", "rotate"}, flags...)...)
		if code != 0 || !strings.Contains(out, `"data_keys_moved": 2`) {
			t.Errorf("rotate: %d %s%s", code, out, errs)
		}
		ask(0, "set", "XX.test", "--url", "http://127.0.0.1:8") // opens what is sealed
		ask(0, "unset", "XX.test")
		ask(exitFailed, "unset", "XX.test")
		_, out, _ = call(t, append([]string{"operator", "audit"}, flags...)...)
		if strings.Count(out, "authority.set") != 2 || strings.Count(out, "authority.unset") != 1 {
			t.Errorf("the log: %s", out)
		}
	})
}
