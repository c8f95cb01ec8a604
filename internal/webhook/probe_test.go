package webhook_test

import (
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"

	"tributary/internal/guard"
	"tributary/internal/webhook"
)

func TestReachGoesAsFarAsTheHandshakeAndSendsNothing(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer receiver.Close()
	roots := x509.NewCertPool()
	roots.AddCert(receiver.Certificate())
	reach := func(allow bool, trusted *x509.CertPool, address string) error {
		cfg := guard.Config{}
		if allow {
			cfg.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
		}
		guard, err := guard.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		sender, err := webhook.NewSender(patient(webhook.SenderConfig{Guard: guard, Roots: trusted}))
		if err != nil {
			t.Fatal(err)
		}
		defer sender.Close()
		return sender.Reach(t.Context(), address)
	}
	if err := reach(true, roots, receiver.URL); err != nil {
		t.Errorf("an allowed and trusted receiver: %v", err)
	}
	var refusal *guard.Refusal
	if err := reach(false, roots, receiver.URL); !errors.As(err, &refusal) {
		t.Errorf("a private receiver that is not allowed: %v", err)
	}
	if err := reach(true, x509.NewCertPool(), receiver.URL); err == nil {
		t.Error("an untrusted certificate was taken")
	}
	if err := reach(true, roots, "http://127.0.0.1/"); !errors.As(err, &refusal) {
		t.Errorf("plain http: %v", err)
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
