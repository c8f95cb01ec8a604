package series

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/result"
)

// A restored backup does not know which numbers were drawn since it was made, and
// documents with them may be in other people's books. So each series leaps past
// every number that can have been drawn, once, and says which were left out.
//
// Failure policy: as for sequences draws are bounded, [Burst] at once and [Rate] a
// second; whoever wants more is told to come back. A counter that the backup does
// not know, of a year whose first document came after it, begins behind the leap.

// Why numbers of a series were left out.
const (
	GapRestored   = "restored"          // a backup was restored: they may have been drawn after it was made
	GapRegistered = "registered_before" // drawn for a document that the authority holds under another number
	GapUsed       = "number_used"       // the authority holds another document under it
)

// SeriesGap is a span of numbers that a series left out.
type SeriesGap struct {
	Year   int64  `json:"year,omitempty"` // where the series counts by years
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason"` // restored, registered_before or number_used
	At     string `json:"at"`
}

// Why says to people why numbers were left out.
func (g SeriesGap) Why() string {
	switch g.Reason {
	case GapRestored:
		return "a backup was restored; they may have been drawn after it was made"
	case GapRegistered:
		return "the document is registered under another number"
	case GapUsed:
		return "the authority holds another document under it"
	}
	return g.Reason
}

// room is what may be drawn by now. $4 is now.
var room = fmt.Sprintf("room + CASE WHEN at < $4 THEN ($4 - at) * %d / 1000000 ELSE 0 END", Rate)

// advance counts a counter up and answers the first of the numbers drawn.
func advance(tx *db.Tx, from *Draw, n int64) (first int64, err error) {
	var next, left int64
	draw := func() error {
		return tx.Row(fmt.Sprintf(`UPDATE series_counters SET next = next + $3, at = CASE WHEN at < $4 THEN $4 ELSE at END,
			room = CASE WHEN %[1]s > %[2]d THEN %[2]d ELSE %[1]s END - $3 WHERE series_id = $1 AND year = $2 RETURNING next, room`, room, Burst),
			from.ID, from.from, n, db.Micros(tx.Now())).Scan(&next, &left)
	}
	err = draw()
	if errors.Is(err, db.ErrNoRows) {
		if err = begin(tx, from); err == nil {
			err = draw()
		}
	}
	if err != nil {
		return 0, fmt.Errorf("draw from series %s: %w", from.ID, err)
	}
	if left < 0 {
		return 0, &fault.Error{Kind: fault.Limited, RetryAfter: time.Second,
			Message: fmt.Sprintf("series %s gives at most %d numbers a second", from.ID, Rate),
			Faults: []fault.Fault{{Code: fault.RateLimited, Type: fault.General, Field: "transaction_number",
				Message: "transaction_number: too many are drawn from this series at once"}}}
	}
	return next - n, nil
}

// begin makes the counter of a year.
func begin(tx *db.Tx, from *Draw) error {
	var leapt, until int64
	if err := tx.Row("SELECT leapt, leapt_year FROM number_series WHERE series_id = $1", from.ID).Scan(&leapt,
		&until); err != nil {
		return err
	}
	if from.from > until {
		leapt = 0
	}
	now := db.Micros(tx.Now())
	if leapt > 0 {
		if err := leaveOut(tx, []any{from.ID, from.from, int64(1), leapt, GapRestored, now}); err != nil {
			return err
		}
	}
	return tx.Exec("INSERT INTO series_counters (series_id, year, next, room, at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (series_id, year) DO NOTHING",
		from.ID, from.from, leapt+1, Burst, now)
}

// leaveOut notes numbers that will not be drawn, or not be used.
func leaveOut(tx *db.Tx, row []any) error {
	return tx.Exec("INSERT INTO series_gaps (series_id, year, first, last, reason, at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (series_id, year, first) DO NOTHING", row...)
}

// leapSeries moves every series past what can have been drawn since the backup was
// made. What it knows last, an acceptance or a series, is when that was at the
// earliest.
func leapSeries(tx *db.Tx, wall time.Time) error {
	var known *int64
	err := tx.Row(`SELECT max(at) FROM (SELECT max(accepted_at) AS at FROM operations UNION ALL SELECT max(created_at) FROM number_series) AS x`).Scan(&known)
	if err != nil || known == nil {
		return err
	}
	age := max(0, max(db.Micros(wall), db.Micros(tx.Now()))-*known) + leapSlack.Microseconds()
	by, now := Burst+(age/time.Second.Microseconds()+1)*Rate, db.Micros(tx.Now())
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{"INSERT INTO series_gaps (series_id, year, first, last, reason, at) SELECT series_id, year, next, next + $1 - 1, $2, $3 FROM series_counters", []any{by, GapRestored, now}},
		{"UPDATE series_counters SET next = next + $1, room = $2, at = $3", []any{by, Burst, now}},
		{"UPDATE number_series SET leapt = leapt + $1, leapt_year = $2", []any{by, wall.Year() + 1}},
	} {
		if err := tx.Exec(step.sql, step.args...); err != nil {
			return fmt.Errorf("leap with series: %w", err)
		}
	}
	return nil
}

// Redraw gives a transaction the next number: the authority holds another
// document under the one that it had.
func Redraw(tx *db.Tx, of Transaction, from *Draw, had string) (number string, err error) {
	next, err := advance(tx, from, 1)
	if err != nil {
		return "", err
	}
	number = from.number(next, from.of)
	return number, Renumber(tx, of, from, Change{Had: had, Gets: number, Reason: GapUsed})
}

// Change is another number of a transaction, and why the one it had is left out.
type Change struct{ Had, Gets, Reason string }

// Renumber gives a transaction another number than the one drawn for it.
func Renumber(tx *db.Tx, of Transaction, from *Draw, c Change) error {
	if count, ok := from.count(c.Had); ok {
		if err := leaveOut(tx, []any{from.ID, from.from, count, count, c.Reason, db.Micros(tx.Now())}); err != nil {
			return err
		}
	}
	return tx.ExecOne("UPDATE drawn_numbers SET number = $3 WHERE client_id = $1 AND transaction_id = $2", of.Scope,
		of.ID, c.Gets)
}

// count reads the count of a number; false: it is not of this series.
func (in *Series) count(number string) (int64, bool) {
	text := regexp.QuoteMeta(in.Pattern)
	for mark, digits := range map[string]string{"{YYYY}": "[0-9]{4}", "{YY}": "[0-9]{2}"} {
		text = strings.ReplaceAll(text, regexp.QuoteMeta(mark), digits)
	}
	mark := countMark.FindString(in.Pattern)
	text = strings.Replace(text, regexp.QuoteMeta(mark), fmt.Sprintf("([0-9]{%d,12})", width(mark)), 1)
	found := regexp.MustCompile("^" + text + "$").FindStringSubmatch(number)
	if found == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	return n, err == nil
}

// Gives reports whether a number may be one of this series.
func (in *Series) Gives(number string) bool {
	_, ok := in.count(number)
	return ok
}

// withGaps adds to a client's series what they left out.
func withGaps(r db.Reader, scope string, list []Series) error {
	at := map[string]*Series{}
	for i := range list {
		at[list[i].ID] = &list[i]
	}
	rows, err := r.Query(`SELECT g.series_id, g.year, g.first, g.last, g.reason, g.at FROM series_gaps g JOIN number_series s ON s.series_id = g.series_id
		WHERE s.client_id = $1 ORDER BY g.series_id, g.year, g.first`, scope)
	if err != nil {
		return fmt.Errorf("read gaps: %w", err)
	}
	return rows.Each(func(scan func(...any) error) error {
		var id string
		var g SeriesGap
		var first, last, when int64
		err := scan(&id, &g.Year, &first, &last, &g.Reason, &when)
		if one := at[id]; one != nil {
			year := g.Year
			if year == 0 {
				year = int64(db.FromMicros(when).Year())
			}
			g.From, g.To, g.At = one.number(first, year), one.number(last, year), result.Stamp(db.FromMicros(when))
			one.Gaps = append(one.Gaps, g)
		}
		return err
	})
}

// Of finds a series.
func Of(r db.Reader, id string) (s Series, err error) {
	err = r.Row("SELECT series_id, pattern, yearly FROM number_series WHERE series_id = $1", id).Scan(&s.ID, &s.Pattern,
		&s.Yearly)
	if err != nil {
		return s, fmt.Errorf("read series %s: %w", id, err)
	}
	return s, nil
}
