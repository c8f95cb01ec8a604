package db_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/lease"
	"tributary/internal/needs"
)

// throughProxy opens a database whose server can be made to say nothing. It is a
// guest: nobody but the test asks the server something.
func throughProxy(t *testing.T) (d, direct *db.DB, p *dbtest.Proxy) {
	t.Helper()
	address := dbtest.MigratedURL(t)
	u, err := url.Parse(address)
	must(t, err)
	p = dbtest.StartProxy(t, u.Host)
	u.Host = p.Addr()
	d, direct = dbtest.Open(t, db.Config{URL: u.String(), NoWorkers: true}),
		dbtest.Open(t, db.Config{URL: address, NoWorkers: true})
	must(t, d.Write(context.Background(), func(tx *db.Tx) error {
		return tx.Exec("CREATE TABLE acked (id TEXT PRIMARY KEY)")
	}))
	return d, direct, p
}

// A network that swallows packets: whoever waits for a write hears 503 when its
// patience ends, and the members of a group do not wait one after another, each
// on a connection of its own.
func TestGroupOnASilentServerIsAnsweredInTime(t *testing.T) {
	t.Parallel()
	d, direct, p := throughProxy(t)
	db.SetPatience(d, 300*time.Millisecond)
	p.Mute.Store(true) // until everybody was answered
	before := len(p.Ports())
	const writes = 60
	var wg sync.WaitGroup
	for i := range writes {
		wg.Go(func() {
			if err := addAcked(d, fmt.Sprint("lost", i)); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("write %d answers %v", i, err)
			}
		})
	}
	wg.Wait()
	if dialled := len(p.Ports()) - before; dialled > writes/2 {
		t.Errorf("%d connections were tried for %d writes in a few groups", dialled, writes)
	}
	p.Mute.Store(false)
	db.SetPatience(d, db.WriteTimeout)
	after := healed(d, "healed")
	if have := stored(t, direct); !have[after] {
		t.Errorf("stored %v", have)
	}
}

// Reads, claims and whatever else asks the server something end by themselves:
// the server says nothing until all of them have.
func TestQuestionsToASilentServerEnd(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "a question after the other")
	d, _, p := throughProxy(t)
	q := work(t, d)
	p.Mute.Store(true)
	const limit = 500 * time.Millisecond
	var wg sync.WaitGroup
	for what, ask := range map[string]func() error{
		"a read of a visitor": func() error {
			return d.Read(db.WithReadBudget(context.Background(), limit), func(r db.Reader) error {
				return r.Row("SELECT 1").Scan(new(int))
			})
		},
		"a claim": func() error {
			_, _, err := q.Due(context.Background(), d, lease.Claim{Max: 1, Fair: true})
			return err
		},
		"the nodes that live": func() error {
			_, _, err := d.Alive()
			return err
		},
		"the clock": func() error { return db.SampleClock(d) },
	} {
		wg.Go(func() {
			if err := ask(); err == nil {
				t.Errorf("%s: a silent server answered", what)
			}
		})
	}
	wg.Wait()
	p.Mute.Store(false)
	healed(d, "healed")
}

// After a commit whose outcome nobody knows, no connection of before is used again.
func TestConnectionsAreGivenUpAfterAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	d, direct, p := throughProxy(t)
	var wg, reading sync.WaitGroup
	const readers = 4
	reading.Add(readers)
	for range readers { // each with a connection of its own, because all of them have one at the same time
		wg.Go(func() {
			err := d.Read(t.Context(), func(r db.Reader) error {
				reading.Done()
				reading.Wait()
				return r.Row("SELECT 1").Scan(new(int))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	before := proxied(t, direct, p)
	if len(before) < 3 {
		t.Fatalf("only %d connections: the test tests nothing", len(before))
	}
	p.Cut.Store(int64(len(dbtest.CommitMessage)))
	if err := addAcked(d, "unknown"); !errors.Is(err, db.ErrOutcomeUnknown) {
		t.Fatalf("the cut commit answers %v", err)
	}
	healed(d, "healed")
	// another program has no signal to give
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		left := 0
		now := proxied(t, direct, p)
		for pid := range before {
			if now[pid] {
				left++
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections of before are still used", left)
		}
	}
}

// proxied are the server's sessions that come through the proxy.
func proxied(t *testing.T, direct *db.DB, p *dbtest.Proxy) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	must(t, direct.Read(t.Context(), func(r db.Reader) error {
		pids, err := db.Collect(r, func(scan func(...any) error) (pid string, err error) { return pid, scan(&pid) },
			"SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'tributary' AND client_port = ANY($1)", p.Ports())
		for _, pid := range pids {
			found[pid] = true
		}
		return err
	}))
	return found
}

func TestSilentPeersAreGivenUpByTheKernel(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	keepalive, timeout, err := db.DialOptions(t.Context(), l.Addr().String())
	must(t, err)
	if !keepalive || timeout != 10*time.Second {
		t.Errorf("keepalive %t, unacknowledged bytes are given up after %s", keepalive, timeout)
	}
}

// Servers with other settings than ours: one server, started again with each.
func TestSettingsOfAServer(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "a server of its own")
	dbtest.PostgresURL(t) // skips where there is none
	s, err := dbtest.StartServer(os.TempDir())
	must(t, err)
	defer func() { _ = s.Stop() }() // a test's own server
	t.Run("dangerous ones are found", func(t *testing.T) { dangerousSettingsAreFound(t, s) })
	t.Run("its certificate is verified", func(t *testing.T) { serversCertificateIsVerified(t, s) })
}

// A server with a certificate is believed only when it was signed by the one who is trusted.
func serversCertificateIsVerified(t *testing.T, s *dbtest.Server) {
	trusted, key, cert := certificates(t)
	stranger, _, _ := certificates(t)
	dir := t.TempDir()
	must(t, errors.Join(os.WriteFile(filepath.Join(dir, "trusted.pem"), trusted, 0o600),
		os.WriteFile(filepath.Join(dir, "stranger.pem"), stranger, 0o600)))
	keyFile, err := s.Put("server.key", key)
	must(t, err)
	certFile, err := s.Put("server.crt", cert)
	must(t, err)
	must(t, s.Configure("ssl=on", "ssl_key_file="+keyFile, "ssl_cert_file="+certFile))
	base := strings.Replace(s.URL(), "sslmode=disable", "", 1)
	open := func(how string) error {
		d, err := db.Open(t.Context(), db.Config{URL: base + how, NoWorkers: true})
		if err == nil {
			var encrypted bool
			err = d.Read(t.Context(), func(r db.Reader) error {
				return r.Row("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(&encrypted)
			})
			if err == nil && !encrypted {
				err = errors.New("not encrypted")
			}
			err = errors.Join(err, d.Close())
		}
		return err
	}
	must(t, open("sslmode=verify-full&sslrootcert="+filepath.Join(dir, "trusted.pem")))
	if err := open("sslmode=verify-full&sslrootcert=" + filepath.Join(dir, "stranger.pem")); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that a stranger signed is believed: %v", err)
	}
}

// certificates are an authority of one server, and the server's key and certificate for 127.0.0.1.
func certificates(t *testing.T) (root, key, cert []byte) {
	t.Helper()
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, form, form, made.Public(), made)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(made)
	must(t, err)
	root = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return root, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), root
}

func dangerousSettingsAreFound(t *testing.T, s *dbtest.Server) {
	look := func() (found []string) {
		d, err := db.Open(t.Context(), db.Config{URL: s.URL(), NoWorkers: true})
		must(t, err)
		defer func() { _ = d.Close() }() // tested elsewhere
		list, err := d.Dangers(t.Context())
		must(t, err)
		for _, danger := range list {
			if danger.Harm == "" || danger.Fix == "" {
				t.Errorf("%s: nobody says what to do", danger.Setting)
			}
			found = append(found, danger.Setting+"="+danger.Value)
		}
		var now string
		must(t, d.Read(t.Context(), func(r db.Reader) error {
			return r.Row("SELECT current_setting('synchronous_commit')").Scan(&now)
		}))
		if now != "on" && now != "remote_apply" {
			t.Errorf("our own sessions commit with synchronous_commit = %s", now)
		}
		return found
	}
	if found := look(); len(found) != 0 {
		t.Errorf("a sound server has dangers: %v", found)
	}
	must(t, s.Configure("fsync=off", "full_page_writes=off", "synchronous_commit=off"))
	if found := strings.Join(look(), " "); found != "fsync=off full_page_writes=off synchronous_commit=off" {
		t.Errorf("found %q", found)
	}
	must(t, s.Configure("synchronous_commit=remote_apply"))
	if found := look(); len(found) != 0 {
		t.Errorf("a careful server has dangers: %v", found)
	}
	if list, err := dbtest.SQLite(t).Dangers(t.Context()); len(list) != 0 || err != nil {
		t.Errorf("SQLite has dangers: %v %v", list, err)
	}
}

// A server that is too slow for a moment does not end a command or a start.
func TestASlowServerIsTriedAgain(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	u, err := url.Parse(dbtest.MigratedURL(t))
	must(t, err)
	p := dbtest.StartProxy(t, u.Host)
	u.Host = p.Addr()
	p.Deaf.Store(1)
	d, err := db.Open(t.Context(), db.Config{URL: u.String(), NoWorkers: true})
	must(t, err)
	must(t, d.Close())
}
