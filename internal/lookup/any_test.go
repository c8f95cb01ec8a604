package lookup_test

import (
	"context"
	"slices"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/lookup"
)

func TestTheOperatorSeesRequestsOfAllClients(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newDesk(t, d, newGate(t, 0).register(t)) // nobody works
		entries := []lookup.Entry{{Country: "DE", Number: "129273398"}, {Country: "DE", Number: "wrong"}}
		var ids []string
		for _, client := range []string{"c_one", "c_two", "c_one"} {
			ids = append(ids, k.createFor(client, entries).BatchID)
		}
		list := func(f lookup.AnyFilter) (found []string) {
			for {
				page, next, err := k.ListAny(context.Background(), f)
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range page {
					found = append(found, b.ID)
					if b.Entries != 2 || b.Kind != "batch" || b.Status != lookup.Running || b.RequestedAt.IsZero() || b.Answered != 0 {
						t.Errorf("%+v", b)
					}
				}
				if f.Cursor = next; next == "" {
					return found
				}
			}
		}
		newest := []string{ids[2], ids[1], ids[0]}
		for _, limit := range []int{0, 1, 2, 100} {
			if got := list(lookup.AnyFilter{Limit: limit}); !slices.Equal(got, newest) {
				t.Errorf("by %d: %v, want %v", limit, got, newest)
			}
		}
		if got := list(lookup.AnyFilter{ClientID: "c_one", Status: lookup.Running}); !slices.Equal(got,
			[]string{ids[2], ids[0]}) {
			t.Errorf("of one client: %v", got)
		}
		if got := list(lookup.AnyFilter{Status: lookup.Completed}); len(got) != 0 {
			t.Errorf("completed: %v", got)
		}
		for _, f := range []lookup.AnyFilter{{Limit: 101}, {Limit: -1}, {Cursor: "x"}} {
			_, _, err := k.ListAny(t.Context(), f)
			wantKind(t, err, fault.Invalid)
		}
	})
}
