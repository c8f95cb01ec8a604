package webhook_test

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"tributary/internal/guard"
	"tributary/internal/leaks"
	"tributary/internal/secret"
	"tributary/internal/webhook"
)

func TestMain(m *testing.M) {
	if os.Getenv(hostileEnv) != "" {
		serveHostile()
		return
	}
	leaks.Main(m)
}

// authority is a private CA as an operator would name it with --webhook-ca.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority() (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, caTemplate(), caTemplate(), key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, err
}

func caTemplate() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "receivers' CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
}

// issue returns a server certificate for names and addresses.
func (a authority) issue(names ...string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// serveTLS starts an HTTPS receiver on address with a certificate for names.
func serveTLS(t testing.TB, ca authority, address string, h http.Handler, names ...string) *httptest.Server {
	t.Helper()
	s := &httptest.Server{
		Listener: must(net.Listen("tcp", address))(t),
		Config:   &http.Server{Handler: h},
		TLS:      &tls.Config{Certificates: []tls.Certificate{must(ca.issue(names...))(t)}},
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func portOf(s *httptest.Server) string {
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port
}

func newGuard(t testing.TB, c guard.Config) *guard.Guard {
	t.Helper()
	return must(guard.New(c))(t)
}

func newSender(t testing.TB, c webhook.SenderConfig) *webhook.Sender {
	t.Helper()
	s := must(webhook.NewSender(patient(c)))(t)
	t.Cleanup(s.Close)
	return s
}

// patient is c for receivers that answer: what a test does not limit itself may take as long as the machine stands
// still.
func patient(c webhook.SenderConfig) webhook.SenderConfig {
	c.Connect, c.Exchange = cmp.Or(c.Connect, time.Minute), cmp.Or(c.Exchange, time.Minute)
	return c
}

func roots(t testing.TB, ca authority) *x509.CertPool {
	t.Helper()
	return must(webhook.LoadRoots(ca.pem))(t)
}

func keyText(id string) secret.Secret {
	return secret.FromText("trb_test_" + id + "_" + strings.Repeat("s", 43))
}

func key(id string) webhook.Key { return webhook.Key{ID: id, Text: keyText(id)} }

func parcel(t testing.TB) webhook.Parcel {
	t.Helper()
	return must(webhook.Pack(notification(time.Now()), webhook.Keys{Current: key("k1")}))(t)
}

func notification(at time.Time) webhook.Notification {
	return webhook.Notification{
		EventType: webhook.EventTransactionCompleted, DeliveredAt: at,
		ResourceID:  "0197f0a0-0000-7000-8000-000000000001",
		ResourceURL: "https://api.example/v1/transactions/0197f0a0-0000-7000-8000-000000000001",
		WebhookID:   "0123456789abcdef0123456789abcdef01234567",
	}
}

// discardLog silences a server that is meant to see broken handshakes.
func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }
