package country

import (
	"context"
	"fmt"
	"time"
)

// Quota is how many calls an authority grants within a minute, an hour or a day of its
// own clock. A pack says it as data and takes each call from it, see [Endpoint.Spend]:
// so the service stops before the authority counts.
type Quota struct {
	Name string        // of the authority's limit: one counter for each name and subject
	Per  time.Duration // at most a day
	Most int64         // as the authority has it; a tenth is kept back
	Zone string        // IANA, whose midnight begins a day; "": UTC
	// Alone says that others need no such call: its subject is one document, or it looks for lost answers. What does need it
	// waits by itself where it is used up, and the company goes on.
	Alone bool
}

// Window is the one in which an instant lies.
func (q Quota) Window(at time.Time) (from, to time.Time) {
	if q.Per < 24*time.Hour {
		from = at.Truncate(q.Per)
		return from, from.Add(q.Per)
	}
	where, err := time.LoadLocation(q.Zone)
	if err != nil {
		where = time.UTC
	}
	day := SpanOf(Daily, at.In(where))
	return day.First, day.Next
}

// Exhausted is the error of a call that was not made, because the authority grants no
// more of its kind for now.
type Exhausted struct {
	Quota, Subject string
	Until          time.Time // by the time of day
	Alone          bool      // see [Quota]
}

func (e *Exhausted) Error() string {
	return fmt.Sprintf("the calls %q that the authority grants are used up until %s", e.Quota, e.Until.UTC().Format(time.RFC3339))
}

// Unwrap says that nothing left.
func (e *Exhausted) Unwrap() error { return ErrNotTaken }

// Meter takes one call of a subject from a quota, or answers an [Exhausted].
type Meter func(ctx context.Context, q Quota, subject string) error

// Spend takes a call from a quota of the authority. subject is whose it is: a company's
// number, a document's id; "" where the quota is the endpoint's. An endpoint without a
// meter grants everything.
func (e Endpoint) Spend(ctx context.Context, q Quota, subject string) error {
	if e.Meter == nil {
		return nil
	}
	return e.Meter(ctx, q, subject)
}

// Keep gives the next channels what the service keeps for them: a count of their calls,
// and the names of their filings, which may be nil.
func (a *Atlas) Keep(meter func(at Environment) Meter, names func(at Environment) Names) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.meter, a.names = meter, names
	a.channels = map[Environment]Channel{}
}
