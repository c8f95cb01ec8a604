package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
)

// Reason is why lanes of one environment of an authority stand still.
type Reason struct {
	At    country.Environment
	Code  fault.Code
	Lanes int
}

// Reasons counts, by environment and published name, the lanes that stand still
// with something to send; at most [lanesLook] are looked at.
func (s *Ledger) Reasons(ctx context.Context) (list []Reason, err error) {
	found := map[Reason]int{}
	err = s.db.Read(ctx, func(r db.Reader) error {
		rows, err := r.Query(reasonsSQL, lanesLook)
		if err != nil {
			return err
		}
		return rows.Each(func(scan func(...any) error) error {
			var lane string
			var code fault.Code
			if err := scan(&lane, &code); err != nil {
				return err
			}
			at, err := filing.ParseLane(lane)
			if err == nil {
				found[Reason{At: country.Environment{Code: at.Code, Live: at.Live}, Code: code}]++
			}
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read why lanes stand still: %w", err)
	}
	for r, n := range found {
		r.Lanes = n
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(a.At.String(), b.At.String()), cmp.Compare(a.Code, b.Code))
	})
	return list, nil
}

const reasonsSQL = `SELECT lane, reason FROM lanes
	WHERE reason <> '' AND EXISTS (SELECT 1 FROM operations o WHERE o.lane = lanes.lane AND o.due_at IS NOT NULL) ORDER BY lane LIMIT $1`
