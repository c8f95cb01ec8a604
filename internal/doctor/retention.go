package doctor

import (
	"context"
	"strings"
	"time"

	"tributary/internal/db"
	"tributary/internal/retention"
	"tributary/internal/schema"
)

// lateRound is how long the last round of retention may be ago.
const lateRound = 2 * retention.Every

// checkRetention says when what has had its time was last forgotten.
func (d *doctor) checkRetention(ctx context.Context) {
	var last []retention.Report
	err := d.db.Read(ctx, func(r db.Reader) (err error) { last, err = retention.Last(r, 1); return err })
	what := about{check: "retention"}
	switch {
	case err != nil:
		what.fix = "check the database log"
		d.say(Fail, what, "%v", err)
		return
	case len(last) == 0:
		what.fix = "no action if the service has never run here; otherwise start a node with --role worker"
		d.say(Warn, what, "never run yet")
		return
	}
	n, ago := last[0].Removed, d.now().Sub(last[0].EndedAt).Round(time.Minute)
	if len(last[0].Failed) > 0 {
		what.fix = "see the alert retention_failed"
		d.say(Warn, what, "the run %s ago failed for %s", ago, strings.Join(last[0].Failed, ", "))
		return
	}
	if last[0].Waits {
		what.fix = "correct the machine's clock if it is wrong; otherwise no action, it is trusted after a week"
		d.say(Warn, what, "no records are deleted for now: the clock jumped by over a month between two runs")
		return
	}
	verdict := OK
	if ago > lateRound {
		verdict, what.fix = Warn, "start a node with --role worker, or check why the running one does not work"
	}
	d.say(verdict, what, "the last run was %s ago; deleted records: %d, events: %d, delivery attempts: %d, calls: %d; clients on legal hold: %d",
		ago, n.Operations, n.Events, n.Tries, n.Calls, len(last[0].Held))
}

// roomDoubtful is how many days ahead partitions are made at least, as long as rounds are.
const roomDoubtful = (schema.PartitionsAhead - 2) * 24 * time.Hour

// checkPartitions says when the days to come have no partitions. Nothing is lost
// by it; but what then goes into the rest goes row by row one day.
func (d *doctor) checkPartitions(ctx context.Context) {
	rooms, err := schema.Rooms(ctx, d.db, d.now())
	if err != nil {
		d.say(Fail, about{check: "partitions", fix: "check the database log"}, "%v", err)
	}
	for _, r := range rooms {
		switch what := (about{check: "partitions", subject: r.Table}); {
		case r.Rest > schema.PartitionRestMax:
			what.fix = "docs/operations.md, Partitions"
			d.say(Warn, what, "%d MiB of rows have no partition for their day: none can be created while the service writes",
				r.Rest>>20)
		case r.Until.Sub(d.now()) < roomDoubtful:
			what.fix = "start a node with --role worker: its runs create them; see the alert retention_failed of partitions"
			d.say(Warn, what, "created until %s", r.Until.Format(time.DateOnly))
		default:
			d.say(OK, what, "created until %s", r.Until.Format(time.DateOnly))
		}
	}
}
