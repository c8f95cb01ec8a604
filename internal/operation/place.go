package operation

import (
	"fmt"
	"strconv"
	"strings"

	"tributary/internal/country"
)

// Place is where an operation belongs: a client's supplier in a country and environment.
type Place struct {
	Scope      string
	Code       string
	Live       country.Live
	SupplierID string
}

// Environment is the authority of a place.
func (p Place) Environment() country.Environment {
	return country.Environment{Code: p.Code, Live: p.Live}
}

// Place is where the operation belongs.
func (o *Accepted) Place() Place {
	return Place{Scope: o.Scope, Code: o.Code, Live: o.Live, SupplierID: o.SupplierID}
}

// Lane is the name of one of the lanes of a place. Corrections without a
// supplier of their own begin in the lane of nobody and move once the original
// is known.
func (p Place) Lane(shard int) string {
	return p.Scope + "|" + p.Code + "|" + Environment(p.Live) + "|" + strconv.Itoa(shard) + "|" + p.SupplierID
}

// Environment is how live and test are stored.
func Environment(live country.Live) string {
	if live {
		return "live"
	}
	return "test"
}

// ParseLane reads a name that Place.Lane made.
func ParseLane(name string) (Place, error) {
	parts := strings.SplitN(name, "|", 5)
	if len(parts) != 5 {
		return Place{}, fmt.Errorf("lane %q has no such form", name)
	}
	return Place{Scope: parts[0], Code: parts[1], Live: parts[2] == "live", SupplierID: parts[4]}, nil
}
