package server_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/authority/reference"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/official/xxwire"
	"tributary/internal/secret"
	"tributary/internal/server"
)

// crowd lets calls wait until so many of them have been there at once.
type crowd struct {
	http.Handler
	want      int
	full      chan struct{} // closed when they were
	mu        sync.Mutex
	now, most int
}

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && r.URL.Path == xxwire.PathDocuments {
		c.count(1)
		defer c.count(-1)
		select {
		case <-c.full:
			time.Sleep(50 * time.Millisecond) // one too many would come beside it
		case <-r.Context().Done():
		}
	}
	c.Handler.ServeHTTP(w, r)
}

func (c *crowd) count(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += n
	if c.most < c.want && c.now == c.want {
		close(c.full)
	}
	c.most = max(c.most, c.now)
}

// However many lanes have work, an authority is called from so many slots as
// --authority-slots says, and from no more.
func TestAuthoritySlotsBoundTheCallsToOneCountry(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{1, 2} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			t.Parallel()
			seen := &crowd{want: slots, full: make(chan struct{})}
			pack := world.Reference("IS", country.ByNumber)
			pack.Simulator = func(d *authority.Desk) http.Handler {
				seen.Handler = reference.New(d)
				return seen
			}
			p := &program{dir: t.TempDir(), inbox: newInbox(), ended: make(chan error, 1)}
			t.Cleanup(p.inbox.server.Close)
			p.inbox.trust(demoKey)
			seeded(t, p.dir, "")
			var err error
			p.Server, err = open(t.Context(), server.Config{
				Demo: true, API: true, Worker: true, Listen: "127.0.0.1:0", Simulators: "127.0.0.1:0", Data: p.dir, Version: "test",
				APIKey: secret.New([]byte(demoKey)), WebhookURL: p.inbox.server.URL, Packs: []country.Pack{pack},
				AuthoritySlots: slots,
			})
			if err != nil {
				t.Fatal(err)
			}
			p.run(t)
			c := p.as(demoKey)
			var ids []string
			for i := range 12 { // of one supplier: they spread over four lanes
				ids = append(ids, c.submit(t, "/v1/transactions", p.abroad(t, realAuthority{pack}, fmt.Sprint("IS-", i))))
			}
			for _, id := range ids {
				if got := c.outcome(t, id); got["status"] != "SUCCESS" {
					t.Fatalf("%v %v", got["status"], got["errors"])
				}
			}
			seen.mu.Lock()
			defer seen.mu.Unlock()
			if seen.most != slots {
				t.Errorf("%d calls at the same time from %d slots", seen.most, slots)
			}
		})
	}
}

func TestAuthoritySlotsHaveBounds(t *testing.T) {
	t.Parallel()
	for slots, fine := range map[int]bool{-1: false, 1: true, 1024: true, 1025: false} {
		s, err := server.Open(t.Context(), server.Config{Demo: true, API: true, Listen: "127.0.0.1:0",
			Simulators: "127.0.0.1:0", Data: t.TempDir(), Version: "test", AuthoritySlots: slots})
		if (err == nil) != fine {
			t.Errorf("%d slots: %v", slots, err)
		}
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
