package filing

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/lease"
	"tributary/internal/transaction"
)

// laneQueue leases lanes; the operations that ride in them make them due.
var laneQueue = &lease.Queue[laneState]{
	Table: "lanes", ID: "lane", Key: "lane", Columns: "failures, reason, trouble, trouble_at, asked_until, credentials",
	Feed:  &lease.Feed{Table: "operations", Column: "lane"},
	Scan:  scanLane,
	Group: "|", // a lane begins with its client
}

func scanLane(scan func(...any) error) (s laneState, err error) {
	err = scan(&s.failures, &s.reason, &s.trouble, db.NullInstant(&s.troubleAt), db.NullInstant(&s.askedUntil), &s.credentials)
	return s, err
}

// laneState is what a lane remembers between visits.
type laneState struct {
	failures    int64      // visits in a row that the authority did not answer
	reason      fault.Code // why it stands still, see reasonOf; "" without trouble
	trouble     string     // the same for the operator
	troubleAt   time.Time  // since when; zero without trouble
	askedUntil  time.Time  // the end of a pause that the authority asked for
	credentials int64      // version of the supplier's credentials that was acted on
}

// Place is a lane's name taken apart.
type Place struct {
	Scope      string
	Code       string
	Live       country.Live
	SupplierID string
}

// Lane is the name of one of the lanes of a place. Corrections without a
// supplier of their own begin in the lane of nobody and move once the original
// is known.
func (p Place) Lane(shard int) string {
	return p.Scope + "|" + p.Code + "|" + environment(p.Live) + "|" + strconv.Itoa(shard) + "|" + p.SupplierID
}

func environment(live country.Live) string {
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

// endpointOf is the country and environment of a lane: authorities that hang
// take slots from nobody but those who file with them.
func endpointOf(lane string) string {
	_, rest, _ := strings.Cut(lane, "|")
	code, rest, _ := strings.Cut(rest, "|")
	environment, _, _ := strings.Cut(rest, "|")
	return code + "|" + environment
}

// shardIn is the number of a lane among those of its supplier.
func shardIn(lane string) int {
	parts := strings.Split(lane, "|")
	if len(parts) < 4 {
		return 0
	}
	n, _ := strconv.Atoi(parts[3]) // we wrote it
	return n
}

// documentLanes spreads the operations of one supplier where the country has
// no authority and so no order to keep.
const documentLanes = 4

// lanesOf is how many lanes the filings of one supplier may use side by side.
func lanesOf(atlas *country.Atlas, pack country.Pack, live country.Live) int {
	if pack.Connect == nil {
		return documentLanes
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

// shardOf spreads operations evenly and always alike.
func shardOf(operationID string, shards int) int {
	if shards <= 1 {
		return 0
	}
	h := fnv.New32a()
	h.Write([]byte(operationID))
	return int(h.Sum32() % uint32(shards))
}

// shardFor is the lane of an operation among those of its supplier. Where filing
// is a choice, what nobody can choose to file has lanes of its own: documents for
// consumers do not wait for an access point that is away. A correction whose body
// names no customer may be of either kind, and goes with what may be filed.
func shardFor(operationID string, t *transaction.Transaction, pack country.Pack, lanes int) int {
	shard := shardOf(operationID, lanes)
	if pack.Chosen() && t.Whole() && !pack.MayFile(t) {
		shard += lanes
	}
	return shard
}

// lanesOfSupplier finds the lanes of a supplier: it has a handful of them, and
// may have a million operations.
func lanesOfSupplier(r db.Reader, clientID, supplierID string) (lanes []string, err error) {
	all, err := db.Collect(r, func(scan func(...any) error) (lane string, err error) { return lane, scan(&lane) },
		"SELECT lane FROM lanes WHERE lane LIKE $1 ORDER BY lane", "%|"+supplierID)
	if err != nil {
		return nil, fmt.Errorf("find the lanes of %s: %w", supplierID, err)
	}
	for _, lane := range all {
		if at, err := ParseLane(lane); err == nil && at.Scope == clientID && at.SupplierID == supplierID {
			lanes = append(lanes, lane)
		}
	}
	return lanes, nil
}

// errDocuments marks trouble of the document store.
var errDocuments = errors.New("the document cannot be stored")

// errMissing marks what must be stored and is not: trouble of the storage,
// never a reason to end an operation.
var errMissing = errors.New("is missing in the database")

// reasonOf names what went wrong, as clients and operators read it; "" is
// trouble of our own that has no published name.
func reasonOf(err error) fault.Code {
	var call *url.Error
	var line net.Error
	switch {
	case errors.Is(err, errDocuments):
		return fault.DocumentsUnavailable
	case errors.Is(err, errMissing), fault.KindOf(err) == fault.Unavailable:
		return ""
	case errors.Is(err, country.ErrNoAddress), errors.Is(err, country.ErrTestOnly), errors.Is(err, country.ErrNoIdentity):
		return fault.AuthorityNotConfigured
	case errors.Is(err, country.ErrCredentials):
		return fault.CredentialsInvalid
	case errors.As(err, &call), errors.As(err, &line), errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.ErrUnexpectedEOF):
		return fault.AuthorityUnreachable
	}
	return fault.AuthorityError
}
