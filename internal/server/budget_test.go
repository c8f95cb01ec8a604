package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/server"
	"tributary/internal/turnstile"
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
	for i := range readers {
		stuck.Go(func() {
			// Of clients of their own: one alone never has all.
			ctx := db.ForClient(db.WithReadBudget(context.Background(), 2*patience), fmt.Sprint("client-", i))
			err := p.DB().Read(ctx, func(db.Reader) error {
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

// Whoever waits for its turn or for a commit is answered before the connection is closed.
func TestRequestsAreAnsweredBeforeTheirConnectionIsClosed(t *testing.T) {
	t.Parallel()
	began := time.Now()
	h := server.InTime(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		by := turnstile.AnsweredBy(r.Context(), began.Add(time.Hour))
		if left := time.Now().Add(server.ExchangeTimeout).Sub(by); left < 500*time.Millisecond {
			t.Errorf("an answer may come %s before the connection is closed", left)
		}
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
}
