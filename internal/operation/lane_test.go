package operation_test

import (
	"testing"

	"tributary/internal/country"
	"tributary/internal/operation"
)

// A lane's name says what its columns hold, whatever is in a supplier's id.
func TestALanesNameIsItsColumns(t *testing.T) {
	for _, want := range []operation.Lane{
		{Place: operation.Place{Scope: "c_one", Code: "XX", Live: country.Live(true), SupplierID: "s"}, Shard: 3},
		{Place: operation.Place{Scope: "c_one", Code: "ES", SupplierID: "a|b|Ü"}},
		{Place: operation.Place{Scope: "c_one", Code: "PL"}, Shard: 12},
	} {
		name := want.Lane(want.Shard)
		got, err := operation.ParseLane(name)
		if err != nil || got != want {
			t.Errorf("%s: %+v %v", name, got, err)
		}
		read, err := operation.ScanLane(func(into ...any) error {
			for i, part := range want.Parts() {
				switch v := into[i].(type) {
				case *string:
					*v = part
				case *int:
					*v = want.Shard
				}
			}
			return nil
		})
		if err != nil || read != want {
			t.Errorf("%s has columns of %+v %v", name, read, err)
		}
	}
	for _, name := range []string{"", "c|XX|test|0", "c|XX|test|first|s"} {
		if got, err := operation.ParseLane(name); err == nil {
			t.Errorf("%q is the lane %+v", name, got)
		}
	}
}
