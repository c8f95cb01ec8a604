package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

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

// Authority is how things stand with one country.
type Authority struct {
	Country     string
	Files       bool // false: the country has documents only
	Queued      int
	QueuedMore  bool      // there are more than were looked at
	OldestAt    time.Time // acceptance of the oldest that is queued
	Failing     int       // lanes that stand still because the authority does not answer
	Credentials int       // lanes that stand still because of their supplier's credentials
	Outage      *Outage   // nil: every call is answered
}

// Outage is what is known of an authority that does not answer.
type Outage struct {
	Since                time.Time // of the lane that has waited longest
	Lanes                int
	Failures             int64 // calls in a row, of that lane
	Reason               fault.Code
	Trouble              string
	NextAt               time.Time
	Lane                 string
	ClientID, SupplierID string
}

// Health answers how things stand with every country that has something queued
// or standing still, by code.
func (s *Ledger) Health(ctx context.Context) (list []Authority, err error) {
	all := map[string]*Authority{}
	of := func(code string) *Authority {
		if all[code] == nil {
			pack, known := s.cfg.Atlas.Pack(code)
			all[code] = &Authority{Country: code, Files: known && pack.Connect != nil}
		}
		return all[code]
	}
	err = s.db.Read(ctx, func(r db.Reader) error {
		if err := queuedByCountry(r, of); err != nil {
			return err
		}
		return failingLanes(r, of)
	})
	if err != nil {
		return nil, fmt.Errorf("read the health of authorities: %w", err)
	}
	for _, a := range all {
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b Authority) int { return cmp.Compare(a.Country, b.Country) })
	return list, nil
}

// queuedByCountry looks at what is due, the longest waiting first.
func queuedByCountry(r db.Reader, of func(string) *Authority) error {
	type row struct {
		code   string
		n      int
		oldest int64
	}
	rows, err := db.Collect(r, func(scan func(...any) error) (w row, err error) {
		return w, scan(&w.code, &w.n, &w.oldest)
	}, queuedSQL, queueScanMax)
	if err != nil {
		return err
	}
	total := 0
	for _, w := range rows {
		a := of(w.code)
		a.Queued, a.OldestAt = w.n, db.FromMicros(w.oldest)
		total += w.n
	}
	for _, w := range rows {
		of(w.code).QueuedMore = total >= queueScanMax
	}
	return nil
}

const queuedSQL = `SELECT country, count(*), min(accepted_at) FROM
	(SELECT country, accepted_at FROM operations WHERE due_at IS NOT NULL ORDER BY due_at LIMIT $1) AS q GROUP BY country`

func failingLanes(r db.Reader, of func(string) *Authority) error {
	rows, err := r.Query(failingSQL, lanesLook)
	if err != nil {
		return err
	}
	return rows.Each(func(scan func(...any) error) error {
		var name string
		var next, since time.Time
		var failures int64
		var reason fault.Code
		var trouble string
		at, err := operation.ScanLane(scan, &name, db.NullInstant(&next), &failures, &reason, &trouble, db.NullInstant(&since))
		if err != nil {
			return err
		}
		a := of(at.Code)
		if reason == fault.CredentialsInvalid {
			a.Credentials++
			return nil
		}
		a.Failing++
		if a.Outage == nil || since.Before(a.Outage.Since) {
			a.Outage = &Outage{Since: since, Failures: failures, Reason: reason, Trouble: trouble, NextAt: next, Lane: name,
				ClientID: at.Scope, SupplierID: at.SupplierID}
		}
		a.Outage.Lanes = a.Failing
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
