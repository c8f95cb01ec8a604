package filing

import "time"

// Backoff is the pause after the n-th failure in a row, with a given jitter in [0, 1).
func Backoff(base time.Duration, n int64, jitter float64) time.Duration {
	s := &Service{cfg: Config{RetryBase: base}, jitter: func() float64 { return jitter }}
	return s.backoff(n)
}

// Limits that tests go to and past.
const (
	WaitingMax   = waitingMax
	CrashesMax   = crashesMax
	BatchMax     = batchMax
	RetryMax     = retryMax
	RetryBase    = retryBaseDefault
	LanesAtOnce  = lanesAtOnce
	SuspectsLook = suspectsLook
)
