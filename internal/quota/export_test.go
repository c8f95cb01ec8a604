package quota

import "time"

// Clock has it go by another clock.
func (q *Quotas) Clock(now func() time.Time) *Quotas {
	q.wall = now
	return q
}
