package server_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	pkcs12 "software.sslmate.com/src/go-pkcs12"

	"tributary/internal/audit"
	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/db"
	"tributary/internal/endpoint"
	"tributary/internal/official/xxwire"
	"tributary/internal/server"
)

// An authority that answers "pending" and calls back, twice and out of order,
// settles the transaction once; nobody has to poll.
func TestAnAuthorityCallsBack(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, url string) {
		p := demoAt(t, url, func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
		c := p.as(demoKey)
		good := c.submit(t, "/v1/transactions",
			p.sale(t, "CB-1", object{"transaction_number": "CB-1" + xxwire.SuffixCallback}))
		bad := c.submit(t, "/v1/transactions",
			p.sale(t, "CB-2", object{"transaction_number": "CB-2" + xxwire.SuffixCallbackRefused}))
		if got := c.outcome(t, good); got["status"] != "SUCCESS" || got["tax_authority_id_1"] == nil {
			t.Errorf("%v %v", got["status"], got["errors"])
		}
		if got := c.outcome(t, bad); got["status"] != "FAILURE" || !strings.Contains(text(t, got["errors"]),
			"authority_rejected") {
			t.Errorf("%v %v", got["status"], got["errors"])
		}
		// a decision and a late "pending" each, the repetition is nothing
		p.settles(t, "SELECT count(*) FROM inbox_messages WHERE taken_at IS NOT NULL", 4)
		if held := p.book(t, "XX"); len(held) != 1 || held[0].(object)["number"] != "CB-1"+xxwire.SuffixCallback {
			t.Errorf("the authority holds %v", held)
		}
		if n := len(p.inbox.await(t, good, 1)); n != 1 {
			t.Errorf("%d events", n)
		}
		if again := c.want(t, http.StatusOK, "GET", "/v1/transactions/"+good, nil).json(t); again["status"] != "SUCCESS" {
			t.Errorf("what came late changed it: %v", again)
		}
	})
}

// settles waits until a count is reached, and sees that it is not passed.
func (p *program) settles(t *testing.T, sql string, want int) {
	t.Helper()
	n := 0
	for late := time.Now().Add(patience); time.Now().Before(late); <-time.After(20 * time.Millisecond) {
		if err := p.DB().Read(t.Context(), func(r db.Reader) error { return r.Row(sql).Scan(&n) }); err != nil {
			t.Fatal(err)
		}
		if n >= want {
			break
		}
	}
	if n != want {
		t.Errorf("%s: %d, want %d", sql, n, want)
	}
}

// The address that authorities are given is the operator's word: one that leads
// nowhere leaves the transaction pending.
func TestTheAddressForCallbacksIsTheOneGiven(t *testing.T) {
	t.Parallel()
	p := demoAt(t, "", func(c *server.Config) { c.Callbacks, c.CallbacksURL = "127.0.0.1:0", "http://127.0.0.1:1" })
	c := p.as(demoKey)
	id := c.submit(t, "/v1/transactions", p.sale(t, "CB-9", object{"transaction_number": "CB-9" + xxwire.SuffixCallback}))
	p.settles(t, "SELECT count(*) FROM operations WHERE operation_id = '"+id+"' AND stage = 'pending'", 1)
	p.settles(t, "SELECT count(*) FROM inbox_messages", 0)
}

// issued is a certificate of its own issuer, as PKCS#12 and for a TLS client.
func issued(t *testing.T, name string) (*identity.PKCS12, tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(5), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	file, err := pkcs12.Modern2023.Encode(key, cert, nil, "word")
	if err != nil {
		t.Fatal(err)
	}
	return &identity.PKCS12{File: file, Password: "word"}, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// The name that an authority calls chooses the certificate; who shows one of
// another issuer is a stranger.
func TestCallbacksAreServedUnderTheNameThatWasSet(t *testing.T) {
	t.Parallel()
	p := demoAt(t, "", func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
	e, _ := p.besides(t, "sqlite:"+p.dir+"/tributary.db")
	ours, _, root := issued(t, "in.example.com")
	_, authority, ca := issued(t, "authority.example.com")
	_, stranger, _ := issued(t, "stranger.example.com")
	key, host := xxwire.PlatformKey(""), "in.example.com"
	if _, err := e.Set(t.Context(), audit.Actor{Name: "test"}, country.Environment{Code: "XX"},
		endpoint.Change{Certificate: ours, Host: &host, CA: ca}); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(xxwire.Callback{ID: "m1", Key: "nobody's",
		Receipt: xxwire.Receipt{Number: "1", Outcome: xxwire.OutcomePending}})
	if err != nil {
		t.Fatal(err)
	}
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(root)
	post := func(name string, show ...tls.Certificate) (int, error) {
		client := &http.Client{Timeout: patience,
			Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{ServerName: name, RootCAs: trust,
				GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					if len(show) == 0 {
						return &tls.Certificate{}, nil
					}
					return &show[0], nil
				}}}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			strings.Replace(p.CallbacksURL(), "http://", "https://", 1)+"/authorities/xx/test/receipts", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(xxwire.HeaderPlatform, xxwire.PlatformMAC(key, body))
		resp, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	for late := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) { // the running program looks for changes
		if status, err := post(host); err == nil && status == http.StatusNoContent {
			break
		} else if time.Now().After(late) {
			t.Fatalf("%d %v", status, err)
		}
	}
	if status, err := post(host, authority); err != nil || status != http.StatusNoContent {
		t.Errorf("the authority's certificate: %d %v", status, err)
	}
	if status, err := post(host, stranger); err != nil || status != http.StatusForbidden {
		t.Errorf("a stranger's certificate: %d %v", status, err)
	}
	if status, err := post("other.example.com"); err == nil {
		t.Errorf("another name is served: %d", status)
	}
	if status, err := p.plain(t, "/v1/transactions"); err != nil || status != http.StatusNotFound {
		t.Errorf("the API is served to authorities: %d %v", status, err)
	}
}

// plain calls the listener for authorities without TLS.
func (p *program) plain(t *testing.T, path string) (int, error) {
	t.Helper()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(p.CallbacksURL() + path)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// text is a value as JSON.
func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
