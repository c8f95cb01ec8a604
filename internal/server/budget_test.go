package server_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"tributary/internal/db"
)

// Every connection that callers may read with is taken by slow reads. Whoever
// reads hears 503 in time, and submits are taken as if nothing were.
func TestSubmitsGoOnWhileReadsAreStuck(t *testing.T) {
	t.Parallel()
	p, err := start(true, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	}()
	api := p.as(demoKey)
	body := p.sale(t, "before", nil)
	api.submit(t, "/v1/transactions", body)

	release := make(chan struct{})
	var stuck, held sync.WaitGroup
	const readers = 4 // as many as there are
	held.Add(readers)
	for range readers {
		stuck.Go(func() {
			err := p.DB().Read(db.WithReadBudget(context.Background(), 2*patience), func(db.Reader) error {
				held.Done()
				<-release
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	held.Wait()
	// Both are answered before the reads are let go: neither has waited for them.
	api.submit(t, "/v1/transactions", p.sale(t, "meanwhile", nil))
	got := api.do(t, http.MethodGet, "/v1/transactions", nil)
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("a read answers %d: %s", got.status, got.body)
	}
	close(release)
	stuck.Wait()
	if got := api.do(t, http.MethodGet, "/v1/transactions", nil); got.status != http.StatusOK {
		t.Errorf("afterwards a read answers %d: %s", got.status, got.body)
	}
}
