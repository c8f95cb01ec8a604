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
	return strings.Join(Lane{p, shard}.Parts(), "|")
}

// Environment is how live and test are stored.
func Environment(live country.Live) string {
	if live {
		return "live"
	}
	return "test"
}

// Lane is one of the lanes of a place, by the columns that its row has.
type Lane struct {
	Place
	Shard int
}

// LaneFields are those columns; a table that only refers to lanes has their names.
const LaneFields = "client_id, country, environment, shard, supplier_id"

// ScanLane reads LaneFields, and more.
func ScanLane(scan func(...any) error, more ...any) (l Lane, err error) {
	var environment string
	err = scan(append([]any{&l.Scope, &l.Code, &environment, &l.Shard, &l.SupplierID}, more...)...)
	l.Live = environment == Environment(true)
	return l, err
}

// Parts are what LaneFields hold, and what a lane's name is made of.
func (l Lane) Parts() []string {
	return []string{l.Scope, l.Code, Environment(l.Live), strconv.Itoa(l.Shard), l.SupplierID}
}

// ParseLane reads a name that Place.Lane made.
func ParseLane(name string) (Lane, error) {
	parts := strings.SplitN(name, "|", 5)
	if len(parts) != 5 {
		return Lane{}, fmt.Errorf("lane %q has no such form", name)
	}
	shard, err := strconv.Atoi(parts[3])
	if err != nil {
		return Lane{}, fmt.Errorf("lane %q: %w", name, err)
	}
	return Lane{Place{Scope: parts[0], Code: parts[1], Live: parts[2] == Environment(true), SupplierID: parts[4]}, shard}, nil
}
