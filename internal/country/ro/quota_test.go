package ro_test

import (
	"errors"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/quota"
)

// ANAF gives an archive ten times a day: two nodes and one that was started again
// stop together before it refuses, and only that document waits.
func TestAnArchiveIsFetchedNoMoreThanANAFGrants(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, at := beside(t)
		node := func() country.Channel {
			own := at
			own.Meter = quota.New(d).Of(country.Environment{Code: "RO"})
			return open(t, own)
		}
		nodes := []country.Channel{node(), node()}
		f := packtest.Prepared(t, nodes[0], now(invoice("Q-1")))
		last, err := send(t, nodes[0], f)
		if err != nil {
			t.Fatal(err)
		}
		fetched := 0
		for i := range 30 {
			if i == 6 {
				nodes[1] = node() // it was started again
			}
			r, err := nodes[i%2].Poll(t.Context(), f, last, credentials())
			var used *country.Exhausted
			switch {
			case err == nil && r.Outcome == country.Accepted:
				fetched++
			case errors.As(err, &used):
				if used.Quota != "descarcare" || !used.Alone || time.Until(used.Until) > 25*time.Hour {
					t.Errorf("%+v", used)
				}
			default:
				t.Fatalf("ANAF was asked once too often: %+v %v", r, err)
			}
		}
		if fetched < 9 { // more where midnight came meanwhile
			t.Errorf("fetched %d times instead of 9", fetched)
		}
		// Calls about another document are not used up.
		g := packtest.Prepared(t, nodes[0], now(invoice("Q-2")))
		next, err := send(t, nodes[1], g)
		if err == nil {
			next, err = nodes[0].Poll(t.Context(), g, next, credentials())
		}
		if err != nil || next.Outcome != country.Accepted {
			t.Errorf("%+v %v", next, err)
		}
	})
}
