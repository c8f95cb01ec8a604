package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/operation"
)

// Bounds of what is looked at for the overview; past them counts are "at least".
const (
	queueScanMax = 20_000
	lanesLook    = 10_000
)

// callsLook is how far back calls tell how an authority is.
const callsLook = 24 * time.Hour

// Authority is how things stand with one environment of a country's authority.
type Authority struct {
	At         country.Environment
	Files      bool // false: the country has documents only
	Queued     int
	QueuedMore bool      // there are more than were looked at
	OldestAt   time.Time // acceptance of the oldest that is queued
	Waits      []Waiting // what waits for something, by reason
	Outage     *Outage   // of the lane that has been in trouble longest; nil: none is
	AnsweredAt time.Time // of the last day's calls the last one that was answered; zero: none was
	Calls      int64     // in the last day
	Unanswered int64
}

// Outage is what is known of a lane that stands still.
type Outage struct {
	Since                time.Time
	Failures             int64 // visits in a row
	Reason               fault.Code
	Trouble              string
	NextAt               time.Time
	Lane                 string
	ClientID, SupplierID string
}

// Health answers how things stand with every environment that somebody uses: in
// which something is queued or waits, or that was called in the last day.
func (s *Ledger) Health(ctx context.Context) (list []Authority, err error) {
	all := map[country.Environment]*Authority{}
	of := func(at country.Environment) *Authority {
		if all[at] == nil {
			pack, known := s.cfg.Atlas.Pack(at.Code)
			all[at] = &Authority{At: at, Files: known && pack.Connect != nil}
		}
		return all[at]
	}
	var now time.Time
	err = s.db.Read(ctx, func(r db.Reader) error {
		clear(all) // a read may run twice
		now = r.Now()
		waits, err := Waits(r)
		if err != nil {
			return err
		}
		for _, w := range waits {
			a := of(w.At)
			a.Waits = append(a.Waits, w)
		}
		if err := queuedByEnvironment(r, of); err != nil {
			return err
		}
		return failingLanes(r, of)
	})
	if err != nil {
		return nil, fmt.Errorf("read the health of authorities: %w", err)
	}
	counts, err := s.Counts(ctx, now.Add(-callsLook), now.Add(time.Minute), time.Minute)
	if err != nil {
		return nil, err
	}
	for _, c := range counts {
		if c.Calls == 0 {
			continue
		}
		a := of(c.Environment)
		a.Calls, a.Unanswered = a.Calls+c.Calls, a.Unanswered+c.CallsFailed
		if c.Calls > c.CallsFailed {
			a.AnsweredAt = c.At
		}
	}
	for _, a := range all {
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b Authority) int { return cmp.Compare(a.At.String(), b.At.String()) })
	return list, nil
}

// queuedByEnvironment looks at what is due, the longest waiting first.
func queuedByEnvironment(r db.Reader, of func(country.Environment) *Authority) error {
	type row struct {
		at     country.Environment
		n      int
		oldest int64
	}
	rows, err := db.Collect(r, func(scan func(...any) error) (w row, err error) {
		var live bool
		err = scan(&w.at.Code, &live, &w.n, &w.oldest)
		w.at.Live = country.Live(live)
		return w, err
	}, queuedSQL, queueScanMax)
	if err != nil {
		return err
	}
	total := 0
	for _, w := range rows {
		a := of(w.at)
		a.Queued, a.OldestAt = w.n, db.FromMicros(w.oldest)
		total += w.n
	}
	for _, w := range rows {
		of(w.at).QueuedMore = total >= queueScanMax
	}
	return nil
}

const queuedSQL = `SELECT country, live, count(*), min(accepted_at) FROM
	(SELECT country, live, accepted_at FROM operations WHERE due_at IS NOT NULL ORDER BY due_at LIMIT $1) AS q GROUP BY country, live`

func failingLanes(r db.Reader, of func(country.Environment) *Authority) error {
	rows, err := r.Query(failingSQL, lanesLook)
	if err != nil {
		return err
	}
	return rows.Each(func(scan func(...any) error) error {
		var o Outage
		at, err := operation.ScanLane(scan, &o.Lane, db.NullInstant(&o.NextAt), &o.Failures, &o.Reason, &o.Trouble,
			db.NullInstant(&o.Since))
		if err != nil {
			return err
		}
		o.ClientID, o.SupplierID = at.Scope, at.SupplierID
		if a := of(at.Environment()); a.Outage == nil || o.Since.Before(a.Outage.Since) {
			a.Outage = &o
		}
		return nil
	})
}

// failingSQL leaves out lanes that have nothing left to send: nobody visits
// them, so they would be in trouble for ever.
const failingSQL = `SELECT ` + operation.LaneFields + `, lane, due_at, failures, reason, trouble, trouble_at FROM lanes
	WHERE failures > 0 AND EXISTS (SELECT 1 FROM operations o WHERE o.lane = lanes.lane AND o.due_at IS NOT NULL) ORDER BY lane LIMIT $1`

// Depth is how many operations stand in a stage.
type Depth struct {
	Stage    filing.Stage
	Count    int
	More     bool      // there are more than were looked at
	OldestAt time.Time // acceptance
}

// Depths answers what is not settled, by stage in the order of the journey.
func (s *Ledger) Depths(ctx context.Context) (list []Depth, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		list = nil
		for _, text := range []string{depthsDueSQL, depthsIdleSQL} {
			some, err := db.Collect(r, func(scan func(...any) error) (d Depth, err error) {
				return d, scan(&d.Stage, &d.Count, db.NullInstant(&d.OldestAt))
			}, text, queueScanMax)
			if err != nil {
				return err
			}
			list = mergeDepths(list, some)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the depth of queues: %w", err)
	}
	journey := []filing.Stage{filing.Received, filing.Prepared, filing.Sent, filing.Pending, filing.Waiting,
		filing.Blocked, filing.Quarantined}
	slices.SortFunc(list, func(a, b Depth) int { return slices.Index(journey, a.Stage) - slices.Index(journey, b.Stage) })
	return list, nil
}

const (
	depthsDueSQL = `SELECT stage, count(*), min(accepted_at) FROM
		(SELECT stage, accepted_at FROM operations WHERE due_at IS NOT NULL ORDER BY due_at LIMIT $1) AS q GROUP BY stage`
	depthsIdleSQL = `SELECT stage, count(*), min(accepted_at) FROM
		(SELECT stage, accepted_at FROM operations WHERE status = 'PROCESSING' AND due_at IS NULL ORDER BY operation_id LIMIT $1) AS q GROUP BY stage`
)

// mergeDepths adds what one look has found. A look that was cut off says so of
// all its stages.
func mergeDepths(list, some []Depth) []Depth {
	total := 0
	for _, d := range some {
		total += d.Count
	}
	for _, d := range some {
		d.More = total >= queueScanMax
		i := slices.IndexFunc(list, func(o Depth) bool { return o.Stage == d.Stage })
		if i < 0 {
			list = append(list, d)
			continue
		}
		list[i].Count += d.Count
		list[i].More = list[i].More || d.More
		if d.OldestAt.Before(list[i].OldestAt) {
			list[i].OldestAt = d.OldestAt
		}
	}
	return list
}
