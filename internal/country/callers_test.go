package country_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/needs"
)

// gate is an authority that asks everybody for a certificate, and counts.
type gate struct {
	*httptest.Server
	open, most atomic.Int64
	strangers  atomic.Int64 // calls with another's certificate
}

func openGate(t testing.TB) *gate {
	g := &gate{}
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS.PeerCertificates[0].Subject.CommonName != r.Header.Get("Supplier") {
			g.strangers.Add(1)
		}
		if r.TLS.DidResume {
			w.Header().Set("Resumed", "true")
		}
		io.WriteString(w, "taken") // a test's answer
	}))
	g.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	g.Config.ErrorLog = log.New(io.Discard, "", 0)
	g.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			now := g.open.Add(1)
			for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
			}
		case http.StateClosed, http.StateHijacked:
			g.open.Add(-1)
		}
	}
	g.StartTLS()
	t.Cleanup(g.Close)
	return g
}

// certificates makes suppliers' certificates that share a key: only who they are differs.
func certificates(t testing.TB, n int) []tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]tls.Certificate, n)
	for i := range list {
		of := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: fmt.Sprint(i)},
			NotAfter: time.Now().Add(time.Hour)}
		der, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		list[i] = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	}
	return list
}

const roundSlots = 32 // calls at a time

// round has every supplier call once, and answers how many handshakes were short.
func (g *gate) round(t testing.TB, callers *country.Callers, suppliers []tls.Certificate,
	pace *time.Ticker) (resumed int64) {
	at := country.Endpoint{BaseURL: g.URL, HTTP: country.NewClient(g.Client().Transport)}
	var short atomic.Int64
	var wg sync.WaitGroup
	slots := make(chan struct{}, roundSlots)
	for i, cert := range suppliers {
		if pace != nil {
			<-pace.C
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.URL, nil)
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Supplier", fmt.Sprint(i))
			reply, err := country.Exchange(callers.Client(at, cert), r, 100)
			if err != nil || string(reply.Body) != "taken" {
				t.Errorf("supplier %d: %q, %v", i, reply.Body, err)
			}
			if reply.Header.Get("Resumed") != "" {
				short.Add(1)
			}
		})
	}
	wg.Wait()
	return short.Load()
}

// More suppliers with certificates of their own than connections may be kept:
// all are served, each as itself, and who comes back shakes hands shortly.
// TRIBUTARY_SUPPLIERS=10000 makes it the size of a large service at its pace.
func TestManySuppliersWithCertificatesShareConnectionsAndResume(t *testing.T) {
	n, pace := country.CallersMax+200, (*time.Ticker)(nil)
	if text := os.Getenv("TRIBUTARY_SUPPLIERS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		pace = time.NewTicker(time.Second / 167)
		defer pace.Stop()
	}
	g, callers, suppliers := openGate(t), new(country.Callers), certificates(t, n)
	g.round(t, callers, suppliers, pace)
	began := time.Now()
	resumed := g.round(t, callers, suppliers, pace)
	t.Logf("%d suppliers, %.0f calls per second, %d resumed, %d connections at most", n,
		float64(n)/time.Since(began).Seconds(), resumed, g.most.Load())
	if g.strangers.Load() != 0 {
		t.Errorf("%d calls were made with the certificate of another supplier", g.strangers.Load())
	}
	// Those that still have a connection need no handshake, and theirs is not a resumed one.
	if least := int64(n - country.CallersMax); resumed < least {
		t.Errorf("%d handshakes were resumed, want at least %d", resumed, least)
	}
	// The authority sees an end late, and whose client is put aside before its call begins keeps a connection, idle.
	for late := time.Now().Add(2 * time.Minute); g.open.Load() > country.CallersMax+roundSlots; runtime.Gosched() {
		if time.Now().After(late) {
			t.Fatalf("%d connections stay open, want at most %d", g.open.Load(), country.CallersMax+roundSlots)
		}
	}
	// and those under way, twice
	if most, bound := g.most.Load(), int64(country.CallersMax+2*roundSlots); most > bound && needs.IsLong() {
		t.Errorf("%d connections were open at a time, want at most %d", most, bound)
	}
	for _, client := range callers.All() {
		client.CloseIdleConnections()
	}
}
