package ledger

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/operation"
)

// Call is one call to an authority, of whatever supplier.
type Call struct {
	Exchange
	Environment country.Environment
}

// LastCalls are the newest calls to authorities, newest first. Their ids begin
// with their time, so this is the end of one index.
func (s *Ledger) LastCalls(ctx context.Context, limit int) (list []Call, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		list, err = db.Collect(r, func(scan func(...any) error) (c Call, err error) {
			var at, took int64
			err = scan(&c.ID, &c.Lane, &c.Verb, &at, &took, &c.Filings, &c.Outcome, &c.Counted, &c.Out, &c.In)
			c.At, c.Took, c.Answered = db.FromMicros(at), time.Duration(took)*time.Microsecond, c.Outcome == "answered"
			if lane, bad := operation.ParseLane(c.Lane); bad == nil {
				c.Environment = country.Environment{Code: lane.Code, Live: lane.Live}
			}
			return c, err
		}, lastCallsSQL+strconv.Itoa(limit))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the last calls: %w", err)
	}
	return list, nil
}

const lastCallsSQL = `SELECT exchange_id, lane, verb, at, took, filings, outcome, bytes_out IS NOT NULL, coalesce(bytes_out, 0), coalesce(bytes_in, 0)
	FROM exchanges ORDER BY exchange_id DESC LIMIT `
