package country_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
)

// selfSigned is a supplier's certificate as simulated authorities accept it.
func selfSigned(t *testing.T, serial string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Shop", SerialNumber: serial},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// who tells the caller's own serial number back.
func who(w http.ResponseWriter, r *http.Request) {
	cert, err := authority.ClientCertificate(r)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case cert == nil:
		http.Error(w, "nobody", http.StatusUnauthorized)
	default:
		_, _ = io.WriteString(w, cert.Subject.SerialNumber)
	}
}

func TestASimulatorSeesTheClientCertificateWithAndWithoutTLS(t *testing.T) {
	cert := selfSigned(t, "ES-B12345678")
	plain := httptest.NewServer(http.HandlerFunc(who))
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(who))
	secure.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	secure.StartTLS()
	defer secure.Close()
	for _, server := range []*httptest.Server{plain, secure} {
		at := country.Endpoint{BaseURL: server.URL, HTTP: client(t)}
		if server == secure {
			at.HTTP = server.Client() // trusts the test server's own root
		}
		known := new(country.Callers).Client(at, cert)
		for _, c := range []struct {
			by   *http.Client
			want string
		}{{known, "ES-B12345678"}, {at.HTTP, "nobody\n"}} {
			resp, err := c.by.Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			body, err := country.ReadBody(resp, 100)
			if err != nil || string(body) != c.want {
				t.Errorf("%s: %q %v", server.URL, body, err)
			}
		}
		known.CloseIdleConnections()
	}
}
