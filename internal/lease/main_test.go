package lease_test

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/leaks"
	"tributary/internal/lease"
)

func TestMain(m *testing.M) {
	if dbtest.PlayChild(map[string]func([]string){"holder": playHolder}) {
		return
	}
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		_ = f.Value.Set("10") // a number; the database under each check is real and slow
	}
	leaks.Main(m)
}

// playHolder claims a row and, when told to, writes it.
func playHolder(args []string) {
	ctx := context.Background()
	d, err := db.Open(ctx, db.Config{URL: args[0]})
	dbtest.Check(err)
	q := &lease.Queue[struct{}]{Table: "work", ID: "id", Key: "fair"}
	leases, _, err := q.Due(ctx, d, lease.Claim{Max: 1})
	dbtest.Check(err)
	dbtest.Tell("holds %s %d", leases[0].ID, leases[0].Token)
	dbtest.Await()
	err = d.Write(ctx, func(tx *db.Tx) error {
		if err := leases[0].Guard(tx); err != nil {
			return err
		}
		return tx.ExecOne("UPDATE work SET payload = 'written by a stalled holder' WHERE id = $1", leases[0].ID)
	})
	dbtest.Tell("stale: %t", errors.Is(err, db.ErrStale))
	dbtest.Check(d.Close())
}

func must(t interface {
	Helper()
	Fatal(...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// finishAll gives many rows up in one write.
func finishAll[T any](tx *db.Tx, leases []*lease.Lease[T], next time.Time) error {
	for _, l := range leases {
		if err := l.Finish(tx, next); err != nil {
			return err
		}
	}
	return nil
}
