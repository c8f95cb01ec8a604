package db_test

import (
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

// A server that is named first and does not serve costs the look around at the start, not every session.
func TestTheServerThatWasUsedIsAskedFirst(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(dbtest.MigratedURL(t))
	must(t, err)
	useless, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = useless.Close() }) // a test's own listener
	var asked atomic.Int32
	go func() {
		for {
			c, err := useless.Accept()
			if err != nil {
				return // the test is over
			}
			asked.Add(1)
			_ = c.Close() // that is its answer
		}
	}()
	u.Host = useless.Addr().String() + "," + u.Host
	d := dbtest.Open(t, db.Config{URL: u.String(), NoWorkers: true})
	atStart := asked.Load()
	for range 5 {
		db.ResetConnections(d)
		must(t, db.SampleClock(d))
		must(t, d.Read(t.Context(), func(r db.Reader) error {
			var one int
			return r.Row("SELECT 1").Scan(&one)
		}))
	}
	if again := asked.Load(); atStart == 0 || again != atStart {
		t.Errorf("the server that does not serve was asked %d times at the start and %d times after it", atStart, again-atStart)
	}
}
