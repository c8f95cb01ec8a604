package db

import (
	"context"
	"fmt"
	"time"
)

// JobCount is how many jobs of a kind are in a state.
type JobCount struct {
	Kind, State string
	Count       int
	OldestAt    time.Time // when the oldest was enqueued
}

// clientJobState names the state of a client's job as River would.
const clientJobState = `CASE WHEN lease_node IS NOT NULL THEN 'running' WHEN failures > 0 THEN 'retryable' WHEN due_at > $1 THEN 'scheduled' ELSE 'available' END`

// JobCounts answers what the job engine has to do, by kind and state. Jobs that
// ended well are left out: they are history, and there may be many.
func (d *DB) JobCounts(ctx context.Context) (list []JobCount, err error) {
	find, oldest := d.eng.claimSQL().find, "CAST(strftime('%s', min(created_at)) AS INTEGER)"
	if d.Engine() == "postgres" {
		oldest = "extract(epoch FROM min(created_at))::bigint"
	}
	err = d.Read(ctx, func(r Reader) error {
		list, err = Collect(r, func(scan func(...any) error) (c JobCount, err error) {
			var seconds *int64
			err = scan(&c.Kind, &c.State, &c.Count, &seconds)
			if seconds != nil {
				c.OldestAt = time.Unix(*seconds, 0).UTC()
			}
			return c, err
		}, "SELECT kind, CAST(state AS text), count(*), "+oldest+` FROM river_job
			WHERE state IN ('available', 'running', 'retryable', 'scheduled', 'pending', 'discarded') GROUP BY kind, state
			UNION ALL SELECT substr(lane, `+find+`(lane, '/') + 1) AS kind, `+clientJobState+` AS state, count(*), min(created_at) / 1000000 FROM client_jobs GROUP BY 1, 2
			ORDER BY 1, 2`, Micros(r.Now()))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count jobs: %w", err)
	}
	return list, nil
}
