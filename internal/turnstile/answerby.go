package turnstile

import (
	"context"
	"time"

	"tributary/internal/fault"
)

// workTime is what is left of a request's time for the work behind a gate.
const workTime = 4 * time.Second

type answerKey struct{}

// AnswerBy marks a request whose caller must hear something by an instant: its
// connection is closed then. Gates and writes give up before it, so that the caller
// reads when to come back and not the end of a file.
func AnswerBy(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, answerKey{}, at)
}

// AnsweredBy is the earlier of an instant and the one that [AnswerBy] set.
func AnsweredBy(ctx context.Context, otherwise time.Time) time.Time {
	if at, ok := ctx.Value(answerKey{}).(time.Time); ok && at.Before(otherwise) {
		return at
	}
	return otherwise
}

// inTime ends waiting where no time would be left for the work.
func inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if at, ok := ctx.Value(answerKey{}).(time.Time); ok {
		return context.WithDeadline(ctx, at.Add(-workTime))
	}
	return ctx, func() {}
}

// tooLate is what a caller hears who waited for as long as it could.
func tooLate(cause error) error {
	return (&fault.Error{Kind: fault.Unavailable, Message: "the service is busy; please retry", RetryAfter: 2 * time.Second,
		Faults: []fault.Fault{{Code: fault.CodeOverloaded, Type: fault.General,
			Message: "others are served before this request; please retry"}},
	}).Because(cause)
}
