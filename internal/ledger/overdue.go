package ledger

import (
	"context"
	"time"

	"tributary/internal/db"
)

// Backlog is what an operator should worry about: work that nobody takes, and
// operations that were accepted long ago and have not ended.
type Backlog struct {
	Untaken      int       // due before the limit, in a lane that is neither held nor pausing
	UntakenSince time.Time // the oldest due time among them
	Old          int       // accepted before the limit, still moving
	OldSince     time.Time
}

// Overdue counts the backlog. Both questions are answered from the index of due
// operations, so they cost what is open and not what is stored.
func Overdue(r db.Reader, dueBefore, acceptedBefore time.Time) (b Backlog, err error) {
	var since *int64
	now := db.Micros(r.Now())
	err = r.Row(`SELECT count(*), min(o.due_at) FROM operations o LEFT JOIN lanes l ON l.lane = o.lane
		WHERE o.due_at < $1 AND (l.due_at IS NULL OR l.due_at < $1) AND (l.lease_until IS NULL OR l.lease_until < $2)`, db.Micros(dueBefore), now).Scan(&b.Untaken, &since)
	if err != nil {
		return b, err
	}
	if since != nil {
		b.UntakenSince = db.FromMicros(*since)
	}
	since = nil
	err = r.Row("SELECT count(*), min(accepted_at) FROM operations WHERE due_at IS NOT NULL AND accepted_at < $1",
		db.Micros(acceptedBefore)).Scan(&b.Old, &since)
	if since != nil {
		b.OldSince = db.FromMicros(*since)
	}
	return b, err
}

// Open counts the operations that are on their way, and tells when the oldest
// was accepted; the zero time when there is none.
func Open(r db.Reader) (n int, oldest time.Time, err error) {
	var since *int64
	err = r.Row("SELECT count(*), min(accepted_at) FROM operations WHERE due_at IS NOT NULL").Scan(&n, &since)
	if since != nil {
		oldest = db.FromMicros(*since)
	}
	return n, oldest, err
}

// Unsettled tells whether operations are on their way, without counting them. The
// latest is asked for: before the earliest PostgreSQL's index still has everything
// that was due until its next vacuum.
func (s *Ledger) Unsettled(ctx context.Context) (bool, error) {
	var last *int64
	err := s.db.ReadEach(ctx, func(r db.Reader) error {
		return r.Row("SELECT max(due_at) FROM operations WHERE due_at IS NOT NULL").Scan(&last)
	})
	return last != nil, err
}
