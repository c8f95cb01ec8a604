package country_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tributary/internal/country"
)

// What a call sends and gets is counted once, through every kind of client, and
// costs nobody anything who does not ask.
func TestTrafficIsCountedOnce(t *testing.T) {
	t.Parallel()
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Write(append(body, "!!"...))
	}))
	defer at.Close()
	plain := country.NewClient(http.DefaultTransport)
	mutual := new(country.Callers).Client(country.Endpoint{BaseURL: at.URL, HTTP: plain},
		tls.Certificate{Certificate: [][]byte{{1}}})
	for name, client := range map[string]*http.Client{"plain": plain, "mutual": mutual} {
		ctx := country.WithTraffic(t.Context())
		for range 2 {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.URL, strings.NewReader("12345"))
			if err != nil {
				t.Fatal(err)
			}
			if reply, err := country.Exchange(client, r, 100); err != nil || string(reply.Body) != "12345!!" {
				t.Fatal(err, string(reply.Body))
			}
		}
		if n := country.TrafficOf(ctx); n.Out() != 10 || n.In() != 14 {
			t.Errorf("%s: %d out, %d in", name, n.Out(), n.In())
		}
	}
	if n := country.TrafficOf(t.Context()); n.Out() != 0 || n.In() != 0 {
		t.Error("nobody asked, and something was counted")
	}
}
