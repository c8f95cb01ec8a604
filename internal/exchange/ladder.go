package exchange

import (
	"context"
	"time"

	"tributary/internal/country"
)

// Bounded is the context of one call to an authority; it counts the call's bytes.
func Bounded(ctx context.Context, l country.Limits) (context.Context, context.CancelFunc) {
	timeout := l.CallTimeout
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	return context.WithTimeout(country.WithTraffic(ctx), timeout)
}

// Ladder is how long nobody is called after calls that brought nothing.
type Ladder struct {
	Base   time.Duration // the first pause
	Most   time.Duration
	Jitter func() float64 // 0 ≤ x < 1
}

// Pause is the one after the n-th failure in a row: base, doubling, capped, ±20 %.
func (l Ladder) Pause(n int64) time.Duration { return l.Spread(l.Doubled(l.Base, n)) }

// Doubled is a pause after doubling it for each time but the first, capped.
func (l Ladder) Doubled(pause time.Duration, times int64) time.Duration {
	for i := int64(1); i < times && pause < l.Most; i++ {
		pause *= 2
	}
	return min(pause, l.Most)
}

// Spread is a pause ±20 %: what was put off together must not come back together.
func (l Ladder) Spread(pause time.Duration) time.Duration {
	return time.Duration(float64(pause) * (0.8 + 0.4*l.Jitter()))
}
