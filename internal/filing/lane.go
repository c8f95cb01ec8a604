package filing

import (
	"errors"
	"fmt"
	"time"

	"tributary/internal/correction"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/lease"
	"tributary/internal/operation"
)

// laneQueue leases lanes; the operations that ride in them make them due.
var laneQueue = &lease.Queue[laneState]{
	Table: "lanes", ID: "lane", Key: "lane", Columns: operation.LaneFields + ", failures, reason, trouble, trouble_at, asked_until, credentials",
	Longest: fmt.Sprintf("CASE WHEN asked_until >= due_at THEN %d ELSE %d END", askedMax.Microseconds(),
		(2 * retryMax).Microseconds()),
	Feed: &lease.Feed{Table: "operations", Column: "lane",
		Longest: fmt.Sprintf("CASE WHEN stage = 'quarantined' THEN %d ELSE %d END", (2 * HopelessAfter).Microseconds(),
			(2 * retryMax).Microseconds()),
		PartsOf: func(name string) []string { return laneOf(name).Parts() },
		Parts:   [][2]string{{"client_id", "text"}, {"country", "text"}, {"environment", "text"}, {"shard", "bigint"}, {"supplier_id", "text"}}},
	Scan:  scanLane,
	Group: "|", // a lane begins with its client
}

func scanLane(scan func(...any) error) (s laneState, err error) {
	s.Lane, err = operation.ScanLane(scan, &s.failures, &s.reason, &s.trouble, db.NullInstant(&s.troubleAt), db.NullInstant(&s.askedUntil), &s.credentials)
	return s, err
}

// laneState is what a lane remembers between visits.
type laneState struct {
	operation.Lane
	failures    int64      // visits in a row that the authority did not answer
	reason      fault.Code // why it stands still, see reasonOf; "": it does not
	trouble     string     // the same for the operator
	troubleAt   time.Time  // since when; zero without trouble
	askedUntil  time.Time  // the end of a pause that the authority asked for
	credentials int64      // version of the supplier's credentials that was acted on
}

// endpointOf is the country and environment of a lane: authorities that hang
// take slots from nobody but those who file with them.
func endpointOf(lane string) string {
	return laneOf(lane).Environment().String()
}

// laneOf reads the name of a lane, which this package made: one that is none is in no country.
func laneOf(name string) operation.Lane {
	l, _ := operation.ParseLane(name)
	return l
}

// endPausesOf has the lanes of a supplier that stand still for one of two reasons
// visited at once; also is what changes besides.
func endPausesOf(tx *db.Tx, at [2]string, also string, reasons ...fault.Code) error {
	lanes, err := db.Collect(tx, func(scan func(...any) error) (lane string, err error) { return lane, scan(&lane) },
		supplierLanesSQL, at[0], at[1])
	if err != nil {
		return fmt.Errorf("find the lanes of %s: %w", at[1], err)
	}
	rows := make([][]any, len(lanes))
	for i, lane := range lanes {
		rows[i] = []any{lane, db.Micros(tx.Now()), string(reasons[0]), string(reasons[len(reasons)-1])}
	}
	tx.Wake(laneQueue.Table)
	return tx.ExecEach("UPDATE lanes SET "+soonAgain+also+" WHERE lane = $1 AND lease_until IS NULL AND reason IN ($3, $4)", rows)
}

const supplierLanesSQL = "SELECT lane FROM lanes WHERE client_id = $1 AND supplier_id = $2 ORDER BY lane"

// errDocuments marks trouble of the document store.
var errDocuments = errors.New("the document cannot be stored")

// reasonOf names what went wrong, as clients and operators read it.
func reasonOf(err error) fault.Code {
	switch {
	case errors.Is(err, errDocuments):
		return fault.DocumentsUnavailable
	case errors.Is(err, correction.ErrMissing), fault.KindOf(err) == fault.Unavailable:
		return fault.InternalError
	}
	return country.ReasonOf(err)
}
