package endpoint_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"log/slog"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	pkcs12 "software.sslmate.com/src/go-pkcs12"

	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/country/world"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/endpoint"
	"tributary/internal/fault"
	"tributary/internal/leaks"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

func TestMain(m *testing.M) {
	leaks.Main(m)
}

var (
	xx  = country.Environment{Code: "XX"}
	es  = country.Environment{Code: "ES", Live: true}
	who = audit.Actor{Name: "ana"}
)

const canary = "canary-7b1f"

// node is one process's view.
type node struct {
	*endpoint.Endpoints
	d       *db.DB
	atlas   *country.Atlas
	master  *secret.Master
	path    string
	alerts  *alert.Alerts
	log     *bytes.Buffer
	changed []country.Environment
}

func newNode(t *testing.T, d *db.DB, masterPath string) *node {
	t.Helper()
	n := &node{d: d, log: &bytes.Buffer{}, path: masterPath}
	if masterPath == "" {
		n.path = filepath.Join(t.TempDir(), "master.key")
		must(t, secret.CreateMasterFile(n.path))
	}
	packs, err := world.Packs(world.Platform("XP"))
	must(t, err)
	n.atlas, err = country.NewAtlas(country.AtlasConfig{Packs: packs, Simulators: "http://127.0.0.1:1",
		Addresses: map[string]country.Addresses{"PL": {Live: "https://flag.example"}}})
	must(t, err)
	n.master, err = secret.OpenMaster("file:" + n.path)
	must(t, err)
	log := slog.New(slog.NewTextHandler(n.log, nil))
	n.alerts, err = alert.New(d, log, prometheus.NewRegistry())
	must(t, err)
	n.Endpoints = endpoint.New(endpoint.Config{DB: d, Atlas: n.atlas, Master: n.master,
		Operators: operator.New(operator.Config{DB: d}), Alerts: n.alerts, Log: log,
		Changed: func(_ context.Context, all []country.Environment) { n.changed = append(n.changed, all...) }})
	must(t, n.Refresh(t.Context()))
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ptr(text string) *string { return &text }

// made is a PKCS#12 for a host, ending when it says.
func made(t *testing.T, host string, ends time.Time) *identity.PKCS12 {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "Gateway"},
		DNSNames: []string{host}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	file, err := pkcs12.Modern2023.Encode(key, cert, nil, "open sesame")
	must(t, err)
	return &identity.PKCS12{File: file, Password: "open sesame"}
}

func TestWhatIsSetIsSealedAuditedAndSeenByOtherNodes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newNode(t, d, "")
		b := newNode(t, d, a.path)
		cert := made(t, "in.example.com", time.Now().Add(90*24*time.Hour))
		set, err := a.Set(t.Context(), who, xx,
			endpoint.Change{URL: ptr("http://127.0.0.1:9/"),
				Secrets: map[string]secret.Secret{"platform_key": secret.FromText(canary)}})
		must(t, err)
		if set.URL != "http://127.0.0.1:9" || len(set.Secrets) != 1 || set.Certificate != nil || len(set.Missing) != 0 {
			t.Errorf("%+v", set)
		}
		set, err = a.Set(t.Context(), who, xx, endpoint.Change{Certificate: cert}) // the rest stays
		must(t, err)
		if set.URL == "" || len(set.Secrets) != 1 || set.Certificate == nil || set.Certificate.Subject != "CN=Gateway" {
			t.Errorf("%+v", set)
		}
		if at, _ := b.atlas.Endpoint("XX", false); at.Identity.Secrets["platform_key"] != "" {
			t.Error("a node knows before it looked")
		}
		must(t, b.Refresh(t.Context()))
		at, err := b.atlas.Endpoint("XX", false)
		must(t, err)
		if at.BaseURL != "http://127.0.0.1:9" || at.Identity.Secrets["platform_key"] != canary ||
			!bytes.Equal(at.Identity.Certificate.File, cert.File) {
			t.Errorf("%+v", at.BaseURL)
		}
		if len(b.changed) != 1 || b.changed[0] != xx {
			t.Errorf("changed: %v", b.changed)
		}
		must(t, d.Read(t.Context(), func(r db.Reader) error {
			var sealed []byte
			var names string
			must(t, r.Row("SELECT sealed, secrets FROM authority_endpoints WHERE country = 'XX'").Scan(&sealed, &names))
			if bytes.Contains(sealed, []byte(canary)) || strings.Contains(names, canary) {
				t.Error("the secret is stored as it is")
			}
			log, _, err := operator.New(operator.Config{DB: d}).Audit(r, operator.AuditFilter{Subject: "XX.test"})
			must(t, err)
			if len(log) != 2 || log[0].Action != "authority.set" || log[0].Actor.Name != "ana" ||
				strings.Contains(log[0].After+log[0].Before+log[1].After, canary) || log[1].Before != "" {
				t.Errorf("the log: %+v", log)
			}
			return nil
		}))
		must(t, a.Unset(t.Context(), who, xx))
		must(t, b.Refresh(t.Context()))
		if at, _ := b.atlas.Endpoint("XX", false); at.BaseURL != "http://127.0.0.1:1/xx" || at.Identity.Secrets != nil {
			t.Errorf("after unset: %+v", at.BaseURL)
		}
		if err := a.Unset(t.Context(), who, xx); fault.KindOf(err) != fault.NotFound {
			t.Errorf("unset twice: %v", err)
		}
	})
}

func TestWhatCannotBeSetIsSaidAllAtOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t, dbtest.SQLite(t), "")
	soon := made(t, "in.example.com", time.Now().Add(90*24*time.Hour))
	for name, c := range map[string]struct {
		at     country.Environment
		change endpoint.Change
		want   []string
	}{
		"unknown secret": {xx, endpoint.Change{Secrets: map[string]secret.Secret{"client_id": secret.FromText("x")}},
			[]string{"client_id is unknown; XX requires platform_key"}},
		"no secrets at all": {es, endpoint.Change{Secrets: map[string]secret.Secret{"token": secret.FromText("x")}},
			[]string{"ES requires no secrets of the operator"}},
		"too long": {xx, endpoint.Change{
			Secrets: map[string]secret.Secret{"platform_key": secret.FromText(strings.Repeat("x", 4097))}},
			[]string{"1 to 4096 bytes"}},
		"address":            {es, endpoint.Change{URL: ptr("ftp://x")}, []string{"--url", "https"}},
		"plain live address": {es, endpoint.Change{URL: ptr("http://authority.example")}, []string{"--url", "https"}},
		"host without calls": {es, endpoint.Change{Host: ptr("in.example.com"), CA: []byte("x")},
			[]string{"--host the authority of ES makes no callbacks", "--ca the authority of ES makes no callbacks"}},
		"certificate of none": {es, endpoint.Change{Certificate: soon},
			[]string{"--certificate ES requires none of the operator"}},
		"wrong password": {xx, endpoint.Change{Certificate: &identity.PKCS12{File: soon.File, Password: "x"}},
			[]string{"--certificate-password-file"}},
		"no PKCS#12": {xx, endpoint.Change{Certificate: &identity.PKCS12{File: []byte("x")}}, []string{"--certificate "}},
		"expired": {xx, endpoint.Change{Certificate: made(t, "x.example.com", time.Now().Add(-time.Hour))},
			[]string{"--certificate expired on"}},
		"live XX": {country.Environment{Code: "XX", Live: true}, endpoint.Change{URL: ptr("https://x.example")},
			[]string{"not available with live keys"}},
		"documents only": {country.Environment{Code: "GB"}, endpoint.Change{URL: ptr("https://x.example")},
			[]string{"documents only"}},
		"no country": {country.Environment{Code: "QQ"}, endpoint.Change{URL: ptr("https://x.example")},
			[]string{"unknown country QQ"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := n.Set(t.Context(), who, c.at, c.change)
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("%v", err)
			}
			text, _ := json.Marshal(err)
			for _, want := range c.want {
				if !strings.Contains(err.Error()+string(text), want) {
					t.Errorf("%v %s has no %q", err, text, want)
				}
			}
		})
	}
	must(t, n.d.Read(t.Context(), func(r db.Reader) error {
		list, err := n.List(r)
		must(t, err)
		for _, s := range list {
			if s.UpdatedAt != nil {
				t.Errorf("%s was stored", s.Name())
			}
		}
		if len(list) == 0 || list[len(list)-1].Name() != "XX.test" {
			t.Errorf("%+v", list)
		}
		for _, s := range list {
			if s.Name() == "XP.test" && strings.Join(s.Missing, " ") != "platform_key certificate" {
				t.Errorf("missing at XP: %q", s.Missing)
			}
		}
		return nil
	}))
}

// The command line says where this node goes; what is stored is for all nodes.
func TestAnAddressOfTheCommandLineWins(t *testing.T) {
	t.Parallel()
	n := newNode(t, dbtest.SQLite(t), "")
	pl := country.Environment{Code: "PL", Live: true}
	_, err := n.Set(t.Context(), who, pl, endpoint.Change{URL: ptr("https://stored.example")})
	must(t, err)
	_, err = n.Set(t.Context(), who, es, endpoint.Change{URL: ptr("https://stored.example")})
	must(t, err)
	must(t, n.Refresh(t.Context()))
	for at, want := range map[country.Environment]string{pl: "https://flag.example flag",
		es: "https://stored.example stored", xx: "http://127.0.0.1:1/xx simulators"} {
		if base, from := n.atlas.Address(at); base+" "+from != want {
			t.Errorf("%s: %s %s, want %s", at, base, from, want)
		}
	}
}

func TestARotatedMasterKeyStillOpensIdentities(t *testing.T) {
	t.Parallel()
	n := newNode(t, dbtest.SQLite(t), "")
	_, err := n.Set(t.Context(), who, xx, endpoint.Change{
		Secrets: map[string]secret.Secret{"platform_key": secret.FromText(canary)}})
	must(t, err)
	before, err := n.master.KeyID()
	must(t, err)
	after, err := n.master.Rotate()
	must(t, err)
	if moved, err := n.Rewrap(t.Context()); err != nil || moved != 1 {
		t.Fatalf("%d %v", moved, err)
	}
	if moved, err := n.Rewrap(t.Context()); err != nil || moved != 0 {
		t.Errorf("moved twice: %d %v", moved, err)
	}
	must(t, n.d.Read(t.Context(), func(r db.Reader) error {
		var wrapped []byte
		must(t, r.Row("SELECT wrapped FROM authority_endpoints").Scan(&wrapped))
		if id, err := secret.KeyID(wrapped); err != nil || id != after || id == before {
			t.Errorf("under %s %v, want %s", id, err, after)
		}
		return nil
	}))
	other := newNode(t, n.d, n.path)
	if at, _ := other.atlas.Endpoint("XX", false); at.Identity.Secrets["platform_key"] != canary {
		t.Error("it does not open any more")
	}
}

// With another master key the address stays in use, and nothing is guessed.
func TestAnIdentityThatDoesNotOpenLeavesTheAddress(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	a := newNode(t, d, "")
	_, err := a.Set(t.Context(), who, xx, endpoint.Change{URL: ptr("http://127.0.0.1:9"),
		Secrets: map[string]secret.Secret{"platform_key": secret.FromText(canary)}})
	must(t, err)
	b := newNode(t, d, "")
	at, err := b.atlas.Endpoint("XX", false)
	if err != nil || at.BaseURL != "http://127.0.0.1:9" || at.Identity.Secrets != nil ||
		!strings.Contains(b.log.String(), "not readable") {
		t.Errorf("%v %v %s", at.BaseURL, err, b.log)
	}
	if _, err := b.Set(t.Context(), who, xx, endpoint.Change{URL: ptr("http://127.0.0.1:8")}); err == nil {
		t.Error("a change that would lose the secrets was stored")
	}
}

func TestTheEndOfACertificateRaisesTheAlarmsOfSuppliers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, "")
		_, err := n.Set(t.Context(), who, xx,
			endpoint.Change{Certificate: made(t, "in.example.com", time.Now().Add(20*24*time.Hour))})
		must(t, err)
		for _, want := range []int{1, 0} {
			if raised, err := n.RaiseExpiryAlarms(t.Context()); err != nil || raised != want {
				t.Fatalf("raised %d %v, want %d", raised, err, want)
			}
		}
		_, err = n.Set(t.Context(), who, xx, endpoint.Change{Certificate: made(t, "in.example.com",
			time.Now().Add(20*time.Hour))})
		must(t, err)
		if raised, err := n.RaiseExpiryAlarms(t.Context()); err != nil || raised != 1 {
			t.Fatalf("a new certificate: raised %d %v", raised, err)
		}
		must(t, d.Read(t.Context(), func(r db.Reader) error {
			list, err := alert.List(r, alert.Filter{Open: true, Limit: 10})
			must(t, err)
			if len(list) != 2 || list[0].Name != alert.CredentialsExpiring1d || list[1].Name != alert.CredentialsExpiring30d ||
				list[0].Subject != "XX.test" {
				t.Errorf("%+v", list)
			}
			return nil
		}))
	})
}

func TestTwoChangesAtOnceDoNotUndoEachOther(t *testing.T) {
	t.Parallel()
	n := newNode(t, dbtest.SQLite(t), "")
	errs := make(chan error, 8)
	for range 8 {
		go func() {
			_, err := n.Set(t.Context(), who, xx, endpoint.Change{URL: ptr("http://127.0.0.1:9")})
			errs <- err
		}()
	}
	stored := 0
	for range 8 {
		switch err := <-errs; {
		case err == nil:
			stored++
		case fault.KindOf(err) != fault.Conflict:
			t.Errorf("%v", err)
		}
	}
	if stored == 0 {
		t.Error("nobody won")
	}
}
