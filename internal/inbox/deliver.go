package inbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"tributary/internal/db"
	"tributary/internal/lease"
)

const (
	atOnce    = 8
	pauseBase = time.Second
	pauseMax  = 5 * time.Minute
	lookFor   = 48 * time.Hour // then only a person can know whose it is
)

// Run hands messages on, and looks into mailboxes, until ctx ends.
func (i *Inbox) Run(ctx context.Context) error {
	var both sync.WaitGroup
	defer both.Wait()
	if i.cfg.Companies != nil {
		both.Go(func() {
			if err := i.fetch(ctx); err != nil && ctx.Err() == nil {
				i.log.Error("check mailboxes", "error", err)
			}
		})
	}
	pump := &lease.Pump[stored]{DB: i.db, Queue: queue, Log: i.log, InFlight: atOnce, Work: i.deliver}
	return pump.Run(ctx)
}

// deliver gives one message to its filing, in one write with the mark that it
// was taken: whatever it does is done once.
func (i *Inbox) deliver(ctx context.Context, lease *lease.Lease[stored]) {
	m, err := lease.Row, error(nil)
	if m.message.Document != nil {
		err = i.hand(ctx, lease)
	} else {
		err = i.db.Write(ctx, func(tx *db.Tx) error { return i.tell(tx, lease) })
	}
	if err == nil || errors.Is(err, db.ErrStale) || ctx.Err() != nil {
		return
	}
	i.log.Error("process a message", "authority", m.at.String(), "message", m.message.Key, "error", err)
	_ = i.db.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error { // otherwise the lease runs out
		return lease.Finish(tx, tx.Now().Add(pauseMax/10))
	})
}

// tell hands a message to filing, in the write that marks it as taken.
func (i *Inbox) tell(tx *db.Tx, lease *lease.Lease[stored]) error {
	m := lease.Row
	operation, err := i.cfg.HandleMessage(tx, m.at, m.of, m.message)
	if err != nil {
		return err
	}
	if operation == "" {
		if err := tx.Exec(lostSQL, lease.ID); err != nil {
			return err
		}
		return lease.Finish(tx, again(tx.Now(), m))
	}
	if err := tx.Exec(takenSQL, operation, db.Micros(tx.Now()), lease.ID); err != nil {
		return err
	}
	return lease.Finish(tx, time.Time{})
}

// again is when a message whose filing is not known is looked at next; zero: never.
func again(now time.Time, m stored) time.Time {
	if now.Sub(m.receivedAt) > lookFor {
		return time.Time{}
	}
	pause := pauseBase
	for n := int64(0); n < m.tries && pause < pauseMax; n++ {
		pause *= 2
	}
	return now.Add(min(pause, pauseMax))
}
