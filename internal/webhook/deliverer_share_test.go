package webhook_test

import (
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/db/dbtest"
	"tributary/internal/webhook"
)

// While submits come in numbers and filing uses up all that is left to the work
// behind them, notifications go out all the same.
func TestDeliveriesHaveTheirShareWhileOtherWorkTakesAll(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	var got atomic.Int64
	o, _ := newTown(t, d, 1, func(int) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) })
	})
	pace := d.Pace()
	for range 8 * runtime.GOMAXPROCS(0) {
		defer pace.Submit()()
	}
	if !pace.Pressed() {
		t.Fatal("submits do not press")
	}
	quit, owing := make(chan struct{}), sync.WaitGroup{}
	owing.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			pace.Spent(time.Minute)
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	})
	defer owing.Wait()
	defer close(quit)
	var events []webhook.Event
	for i := range 5 {
		id := fmt.Sprint("op-", i)
		events = append(events, webhook.Event{ClientID: clientNo(0), Type: webhook.TransactionCompleted, ResourceID: id,
			ResourcePath: "/" + id})
	}
	o.notify(t, events...)
	stop := o.open(t)
	eventually(t, "all are delivered", func() bool { return got.Load() == int64(len(events)) })
	stop()
}
