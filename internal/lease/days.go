package lease

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tributary/internal/db"
)

// spans are the ids among which a queue's open rows are, where its table stands in
// a partition for each day. A statement that names them opens the partitions of
// those days and no others: with a hundred of them that is most of what it costs.
// There are two, so that one old event that is sent again does not open all days
// between it and today. Nil: the table is one, and nothing is named.
//
// Failure policy: whatever is open when days are looked for is within them, and
// so is what is made in the next seconds, by clocks that differ by less than
// spansMargin. A row that is opened again later, of another day, is found by the
// next look: at once where whoever opens it says so ([db.Tx.WakeOld]), at most
// lowWaterWhole later otherwise. Nothing is lost by it.
type spans struct {
	old, recent span
	endless     bool // something is open behind the last partition: recent has no end
}

type span struct{ from, to string } // to is behind the last

const spansMargin = 24 * time.Hour

// where is the condition for a column, with its arguments behind n others: it begins with AND.
//
// It is there to choose partitions, not rows. PostgreSQL takes a lower and an
// upper bound of one column for a narrow range, half a row in a hundred, and
// would read the whole day by its ids rather than walk the index of what is due:
// 0.3 of the deliveries. An upper bound that stands in an array is no part of a
// range to it, and prunes all the same.
func (s *spans) where(column string, n int) string {
	if s == nil {
		return ""
	}
	text := fmt.Sprintf("%s >= $%d", column, n+1)
	if !s.endless {
		text += fmt.Sprintf(" AND %s < ANY(ARRAY[$%d::text])", column, n+2)
		n++
	}
	if s.old.to != "" {
		text = fmt.Sprintf("(%s OR %s >= $%d AND %s < ANY(ARRAY[$%d::text]))", text, column, n+2, column, n+3)
	}
	return " AND " + text
}

// after appends the arguments of the condition.
func (s *spans) after(args ...any) []any {
	if s == nil {
		return args
	}
	args = append(args, s.recent.from)
	if !s.endless {
		args = append(args, s.recent.to)
	}
	if s.old.to != "" {
		args = append(args, s.old.from, s.old.to)
	}
	return args
}

// spansOf are the ids of rows that are known: up to the widest gap between two of
// them, and from there on. What they say is exact, whatever was looked for before.
func spansOf(ids []string) *spans {
	ids = slices.Sorted(slices.Values(ids))
	if len(ids) == 0 {
		return nil
	}
	cut, widest := 0, time.Duration(0)
	for i := 1; i < len(ids); i++ {
		a, err := db.TimeOfID(ids[i-1])
		b, wrong := db.TimeOfID(ids[i])
		if gap := b.Sub(a); err == nil && wrong == nil && gap > max(widest, spansMargin) {
			cut, widest = i, gap
		}
	}
	behind := func(id string) string { return id + "0" } // the next longer one: ids have one length
	s := &spans{recent: span{ids[cut], behind(ids[len(ids)-1])}}
	if cut > 0 {
		s.old = span{ids[0], behind(ids[cut-1])}
	}
	return s
}

// openDays looks where rows of a queue are open; nil where its table is one.
func (q *Queue[T]) openDays(ctx context.Context, d *db.DB) (s *spans, err error) {
	if q.IDFrom == nil || d.Engine() != "postgres" {
		return nil, nil
	}
	text := func(sql string) string { return q.setText(sql, nil, 0) }
	var open []span
	var last string
	beyond := 0
	err = d.ReadSoon(ctx, func(r db.Reader) error {
		if err := r.Row(text(lastDaySQL)).Scan(&last); err != nil || last == "" {
			return err
		}
		open, err = db.Collect(r, func(scan func(...any) error) (s span, err error) {
			return s, scan(&s.from, &s.to)
		}, text(openDaysSQL))
		if err != nil {
			return err
		}
		return r.Row(text(beyondSQL), last).Scan(&beyond)
	})
	if err != nil {
		return nil, fmt.Errorf("look in which days rows of %s are open: %w", q.Table, err)
	}
	if last == "" {
		return nil, nil
	}
	now := d.Now()
	s = around(open, span{q.IDFrom(now.Add(-spansMargin)), q.IDFrom(now.Add(spansMargin))})
	s.endless = beyond > 0
	if s.endless {
		s.recent.from = min(s.recent.from, last)
	}
	return s, nil
}

// around are the days around now, with what is open beside them, and those before.
func around(open []span, recent span) *spans {
	s := &spans{recent: recent}
	for _, o := range slices.Backward(open) {
		switch {
		case o.to >= s.recent.from: // it reaches into them, or ends where they begin
			s.recent = span{min(o.from, s.recent.from), max(o.to, s.recent.to)}
		case s.old.to == "":
			s.old = o
		default:
			s.old.from = min(o.from, s.old.from)
		}
	}
	return s
}
