package filing

import (
	"context"
	"errors"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/killpoint"
	"tributary/internal/lease"
	"tributary/internal/operation"
	"tributary/internal/period"
)

// closePeriods makes the documents of periods until ctx ends.
func (s *Service) closePeriods(ctx context.Context) {
	pump := &lease.Pump[period.Row]{DB: s.db, Queue: period.Queue, Log: s.log, InFlight: periodsAtOnce, Poll: s.poll, Work: s.closePeriod, Room: func(string) int { return 1 }}
	if err := pump.Run(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("close periods", "error", err)
	}
}

// closePeriod closes a period and stores what it needs, one operation a commit;
// see [period.Periods.Next] for what a crash leaves.
func (s *Service) closePeriod(ctx context.Context, lease *lease.Lease[period.Row]) {
	for more := true; more && ctx.Err() == nil; {
		err := s.db.Write(ctx, func(tx *db.Tx) error {
			own, goOn, err := s.periods.Next(tx, lease)
			if more = goOn; err != nil || own == nil {
				return err
			}
			return s.storeOwn(tx, own)
		})
		switch {
		case errors.Is(err, db.ErrStale), ctx.Err() != nil:
			return
		case err != nil:
			s.log.Error("close a period", "period", lease.ID, "error", err)
			return // its lease ends, and it is closed again
		}
		if more {
			s.reached(killpoint.Gathered, lease.ID)
		}
	}
	s.reached("rested", lease.ID) // for those who wait for it, in tests
}

// storeOwn stores an operation of our own like a submission: from here on it is worked like any other.
func (s *Service) storeOwn(tx *db.Tx, own *period.Own) error {
	body, err := own.Body()
	if err != nil {
		return err
	}
	pack, _ := s.cfg.Atlas.Pack(own.At.Code)
	now := db.Micros(tx.Now())
	lane := own.At.Lane(operation.Shard(own.ID, nil, pack, operation.Shards(s.cfg.Atlas, pack, own.At.Live)))
	tx.Wake(laneQueue.Table)
	return errors.Join(
		tx.Insert("transactions", "client_id,transaction_id,attempts,open", []any{own.At.Scope, own.TransactionID, 1, 1}),
		tx.Insert("operations", operationColumns, []any{
			own.ID, own.At.Scope, own.TransactionID, 1, string(own.Kind), own.At.Code, bool(own.At.Live), string(country.Reporting), own.At.SupplierID, own.Number,
			db.Micros(own.Date), now, db.Null(own.Reference), lane, string(Received), string(Processing), now, pack.Version, int64(len(body)) + own.Bytes,
		}),
		tx.Insert("bodies", "operation_id,body", []any{own.ID, body}),
	)
}
