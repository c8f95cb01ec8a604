package pl

import (
	"context"
	"time"

	"tributary/internal/country"
)

// What the tests beside this package look at.

// SetClock gives a channel another time, in which waiting is only told.
func SetClock(ch country.Channel, now func() time.Time, advance func(time.Duration)) {
	ch.(*channel).Now = now
	ch.(*channel).Rest = func(ctx context.Context, wait time.Duration) error {
		advance(wait)
		return ctx.Err()
	}
}

// FillSession makes the open session take no further invoice.
func FillSession(ch country.Channel) { ch.(*channel).SessionMax = 0 }

func Holiday(day time.Time) bool { return holidays.Free(day) }

// SetPieceMax is the largest package of received invoices that is taken into memory.
func SetPieceMax(ch country.Channel, bytes int64) { ch.(*channel).PieceMax = bytes }

func SetPartMax(ch country.Channel, bytes int) { ch.(*channel).PartMax = bytes }
