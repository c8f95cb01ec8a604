package server_test

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"tributary/internal/fault"
	"tributary/internal/mutate"
	"tributary/internal/server"
)

// A configuration is usable after its check, or every fault names its key.
func FuzzConfig(f *testing.F) {
	f.Add("127.0.0.1:8080", "127.0.0.1:8081", "https://api.example.com/", "", true, false)
	f.Add(":0", "", "", "sqlite:x.db", false, true)
	f.Add("8080", "[::1", "https://u:p@h", "postgres://", true, true)
	f.Add("", "", "http://h?x#y", "", false, false)
	dir := f.TempDir()
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, listen, admin, public, database string, serves, works bool) {
		c := server.Config{Listen: listen, Admin: admin, PublicURL: public, Database: database, API: serves, Worker: works,
			Data: dir}
		if err := c.Check(); err != nil {
			var e *fault.Error
			if !errors.As(err, &e) || e.Kind != fault.Invalid || len(e.Faults) == 0 {
				t.Fatal(err)
			}
			for _, one := range e.Faults {
				if !strings.HasPrefix(one.Field, "--") || one.Message == "" {
					t.Fatalf("%+v", one)
				}
			}
			return
		}
		if c.Database == "" || c.Documents == "" || c.MasterKey == "" || c.Log == nil || !c.API && !c.Worker {
			t.Fatalf("%+v", c)
		}
		if _, _, err := net.SplitHostPort(c.Listen); c.API && err != nil {
			t.Fatalf("it listens on %q", c.Listen)
		}
		if c.PublicURL == "" {
			return
		}
		u, err := url.Parse(c.PublicURL + "/v1/transactions")
		if err != nil || u.Host == "" || u.User != nil || !strings.HasSuffix(u.Path, "/v1/transactions") || u.RawQuery != "" {
			t.Fatalf("%q becomes the base %q", public, c.PublicURL)
		}
	})
}
