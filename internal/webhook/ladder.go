package webhook

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The ladder of docs/specification.md, section 8: one try and up to 20 retries.
const (
	RetriesMax      = 20
	RetryBase       = 5 * time.Second
	RetryDelayMax   = 10 * time.Hour
	jitterDivisor   = 5 // ±1/5
	retryAfterTimes = 2
	// retryAfterMax keeps a receiver's number from overflowing a Duration; the ladder caps it far below.
	retryAfterMax = 365 * 24 * time.Hour
)

// Ladder computes when the next try of a delivery is due. The zero value is the
// specified ladder; Base is the operator's to change (--webhook-retry-base).
//
// Failure policy: the ladder's instants are the earliest ones. A try made later,
// because a receiver is paused or a node was down, does not skip a rung.
type Ladder struct {
	Base time.Duration
}

// Nominal is the delay before retry n (1 to [RetriesMax]) without jitter.
func (l Ladder) Nominal(n int) time.Duration {
	base := l.Base
	if base <= 0 {
		base = RetryBase
	}
	delay := min(base, RetryDelayMax)
	for range n - 1 {
		delay = min(2*delay, RetryDelayMax)
	}
	return delay
}

// Delay returns the wait between the end of a failed try and retry n, and whether
// there is such a retry: after the last one the delivery is discarded. retryAfter
// is what the receiver asked for, honoured up to twice the nominal delay and never
// to come earlier. random returns a number in [0,n), as [math/rand/v2.Int64N] does.
func (l Ladder) Delay(n int, retryAfter time.Duration, random func(n int64) int64) (time.Duration, bool) {
	if n < 1 || n > RetriesMax {
		return 0, false
	}
	nominal := l.Nominal(n)
	spread := nominal / jitterDivisor
	delay := nominal - spread + time.Duration(random(int64(2*spread)+1))
	return max(delay, min(retryAfter, retryAfterTimes*nominal)), true
}

// ParseRetryAfter reads a Retry-After header (RFC 9110, section 10.2.3): seconds or
// a date. The result is never negative; false means there is nothing to honour.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(retryAfterMax/time.Second) {
			return retryAfterMax, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), retryAfterMax), true
}

// longestSQL is the longest pause that an event can be in, by the rungs it has
// climbed, in microseconds: see [lease.Queue].
func (l Ladder) longestSQL() string {
	least := max(retryAfterTimes*l.Nominal(1), 2*time.Minute)
	return fmt.Sprintf("CASE WHEN rung > %d THEN %d ELSE (CAST(%d AS BIGINT) << CAST(rung AS INTEGER)) END", RetriesMax,
		(retryAfterTimes * RetryDelayMax).Microseconds(), least.Microseconds())
}
