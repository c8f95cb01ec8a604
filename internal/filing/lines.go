package filing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/adoption"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// unread reports whether a document that an operation is about to adopt has lines that
// nobody has looked at: the list does not say them, and the document itself can be had.
func unread(v *visit, o *op, g *adoption.Gap, by adoption.Names) bool {
	_, reads := v.lane.channel.(country.LineReader)
	return reads && by.Said == "" && g.Lines == nil && o.Kind == transaction.Invoice && (g.SHA256 == "" || g.SHA256 != by.SHA256)
}

// readLines reads them and keeps them. False: they are not known yet, and the operation
// does not go on now.
func readLines(ctx context.Context, b *batch, o *op, g *adoption.Gap) (known bool, err error) {
	v := b.v
	call, cancel := exchange.Bounded(ctx, v.lane.limits)
	began := v.now()
	var lines []int64
	err = country.Safely("read a document's lines", func() (err error) {
		lines, err = v.lane.channel.(country.LineReader).Lines(call, v.lane.supplier, g.Entry(), v.lane.creds)
		return err
	})
	cancel()
	b.record(exchange.Call{Verb: "read", At: began, Operations: []string{o.ID}, Err: err, Traffic: country.TrafficOf(call)})
	switch {
	case errors.Is(err, country.ErrCredentials):
		v.pause(err) // it stays due, and the lane rests
		return false, nil
	case err != nil:
		return false, awaitLines(ctx, b, o, g, err)
	case lines == nil:
		return true, nil // such a document has none
	}
	return true, v.commit(ctx, nothing, func(tx *db.Tx) error { return adoption.Read(tx, v.lane.at, g.Key(), lines) })
}

// awaitLines puts an operation off whose document was not shown; nobody else waits for
// that. After a day a person is asked.
func awaitLines(ctx context.Context, b *batch, o *op, g *adoption.Gap, cause error) error {
	v := b.v
	if v.now().Sub(maxTime(o.startedAt, g.Found)) >= DoubtfulAfter {
		return waitForPerson(ctx, b, o, adoption.Held{Number: g.Number, Why: fmt.Sprintf(
			"the authority holds %s since before the backup was restored, with these sums, and has not shown its lines for %s: %v", g.Number, DoubtfulAfter, cause)})
	}
	return v.commit(ctx, func(now time.Time) []transition {
		due, doubt := now.Add(v.s.Pause(o.tries+1)), reasonOf(cause)
		var used *country.Exhausted
		if errors.As(cause, &used) {
			due, doubt = now.Add(used.Until.Sub(v.s.db.Wall())), fault.AuthorityWait
		}
		return []transition{o.to(notYetRead, db.Micros(due), string(doubt))}
	})
}
