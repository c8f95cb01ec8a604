package db

import (
	"context"
	"time"

	"tributary/internal/fault"
)

// ReadBudget is how long a read for a client or an operator may take.
const ReadBudget = 5 * time.Second

type budgetKey struct{}

type budget struct {
	limit   time.Duration
	visitor bool // somebody from outside, with connections of their own
}

// WithReadBudget marks the reads of a caller from outside: each is ended after
// the budget and answers Unavailable, and all of them share connections of their
// own. Whatever they ask, commits, claims and the program's own reads go on.
func WithReadBudget(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, budgetKey{}, budget{limit, true})
}

// ReadSoon is Read for a question that is quickly answered or not at all: a claim
// must not hang on a server that says nothing. Its statements need not agree.
func (d *DB) ReadSoon(ctx context.Context, fn func(Reader) error) error {
	return d.ReadEach(context.WithValue(ctx, budgetKey{}, budget{limit: ReadBudget}), fn)
}

// readBudget is nil where there is none.
func readBudget(ctx context.Context) *budget {
	if b, limited := ctx.Value(budgetKey{}).(budget); limited {
		return &b
	}
	return nil
}

// overBudget is what a caller hears whose read took too long.
func overBudget(err error) error {
	return (&fault.Error{
		Kind: fault.Unavailable, Message: "reading took too long; please narrow the request or retry", RetryAfter: 2 * time.Second,
		Faults: []fault.Fault{{Code: fault.CodeOverloaded, Type: fault.General, Message: "reading took too long"}},
	}).Because(err)
}
