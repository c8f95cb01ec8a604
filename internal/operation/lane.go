package operation

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

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

// Lane is the name of one of the lanes of a place. Corrections without a
// supplier of their own begin in the lane of nobody and move once the original
// is known.
func (p Place) Lane(shard int) string {
	return strings.Join(Lane{p, shard}.Parts(), "|")
}

// DocumentShards spread the operations of one supplier where the country has no
// authority and so no order to keep.
const DocumentShards = 4

// Shards is how many lanes the filings of one supplier may use side by side.
func Shards(atlas *country.Atlas, pack country.Pack, live country.Live) int {
	if pack.Connect == nil {
		return DocumentShards
	}
	channel, err := atlas.Channel(pack.Code, live)
	if err != nil {
		return 1 // the lane will find out and say so
	}
	if limits := channel.Limits(); !limits.Chain && limits.Parallel > 1 {
		return limits.Parallel
	}
	return 1
}

// Shard is the lane of an operation among those of its supplier: operations are
// spread evenly and always alike. Where filing is a choice, what nobody can choose
// to file has lanes of its own: documents for consumers do not wait for an access
// point that is away. A correction whose body names no customer may be of either
// kind, and goes with what may be filed; so does what has no body, t is nil then.
func Shard(operationID string, t *transaction.Transaction, pack country.Pack, shards int) int {
	shard := 0
	if shards > 1 {
		h := fnv.New32a()
		h.Write([]byte(operationID))
		shard = int(h.Sum32() % uint32(shards))
	}
	if t != nil && pack.Chosen() && t.Whole() && !pack.MayFile(t) {
		shard += shards
	}
	return shard
}
