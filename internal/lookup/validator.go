package lookup

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"tributary/internal/country/taxid"
)

// Validator decides on entries: format here, existence at the register.
type Validator struct {
	vies      *VIES
	reference bool
}

// NewValidator returns a validator. Without a register every number of the
// right format is not_checked. The reference country XX is known only where
// the register is a test's or a demo's: its numbers select their own answer.
func NewValidator(vies *VIES, reference bool) *Validator {
	return &Validator{vies: vies, reference: reference}
}

// question is what the register is asked, and for which entries.
type question struct {
	state   string
	number  string
	entries []int
}

// Validate decides on one entry. The error is the context's and nothing else:
// whatever goes wrong at the register is part of the result.
func (v *Validator) Validate(ctx context.Context, e Entry) (Result, error) {
	r, q := v.local(e)
	if q.state == "" {
		return r, nil
	}
	return v.remote(ctx, q)
}

// ValidateAll decides on every entry and hands each result over with the
// index of its entry, in any order, never two at a time. Entries that mean the
// same number are asked once and answered each. Member states are worked on
// side by side, so that a slow one does not hold up the others. It returns
// early with the first error of done, or when the context ends: results are
// then handed over for some entries and no more will come.
//
// Memory stays flat: nothing is kept of a result after done has returned, and
// what is kept of an entry is its number and its index.
func (v *Validator) ValidateAll(parent context.Context, entries []Entry, done func(int, Result) error) error {
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	handed := 0
	queues, err := v.sort(ctx, entries, func(i int, r Result) error {
		handed++
		return done(i, r)
	})
	if err != nil {
		return err
	}
	var handing sync.Mutex
	hand := func(q *question, r Result) {
		handing.Lock()
		defer handing.Unlock()
		for _, i := range q.entries {
			if ctx.Err() != nil {
				return
			}
			handed++
			if err := done(i, r); err != nil {
				stop(err)
			}
		}
	}
	var workers sync.WaitGroup
	for _, queue := range queues {
		var next atomic.Int64
		for range min(v.vies.config.ParallelPerState, len(queue)) {
			workers.Go(func() {
				for i := next.Add(1) - 1; i < int64(len(queue)); i = next.Add(1) - 1 {
					r, err := v.remote(ctx, *queue[i])
					if err != nil {
						return
					}
					hand(queue[i], r)
				}
			})
		}
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil && (handed < len(entries) || parent.Err() == nil) {
		return err
	}
	// A context that ends after the last result has cost nothing.
	return nil
}

// sort hands over what is decided here and queues the rest by member state.
func (v *Validator) sort(ctx context.Context, entries []Entry, done func(int, Result) error) (map[string][]*question, error) {
	queues := map[string][]*question{}
	asked := map[string]*question{}
	for i, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r, q := v.local(e)
		if q.state == "" {
			if err := done(i, r); err != nil {
				return nil, err
			}
			continue
		}
		key := q.state + q.number
		if asked[key] == nil {
			asked[key] = &q
			queues[q.state] = append(queues[q.state], &q)
		}
		asked[key].entries = append(asked[key].entries, i)
	}
	return queues, nil
}

// local decides what the text decides. A question without a state needs no answer.
func (v *Validator) local(e Entry) (Result, question) {
	verdict := taxid.Check(e.Country, e.Number)
	known := verdict.Country != "" && (verdict.Country != taxid.Reference || v.reference)
	switch {
	case !known:
		return Result{Format: FormatInvalid, Status: StatusInvalid, IsBusiness: BusinessUnknown, ErrorCode: CodeCountry}, question{}
	case !verdict.Valid:
		return Result{Format: FormatInvalid, Status: StatusInvalid, IsBusiness: BusinessNo, ErrorCode: CodeFormat}, question{}
	}
	notChecked := Result{Format: FormatValid, Status: StatusNotChecked, IsBusiness: BusinessUnknown}
	if v.vies == nil {
		return notChecked, question{}
	}
	if verdict.Country == taxid.Reference {
		return Result{}, question{state: taxid.Reference, number: verdict.Number}
	}
	state, number, served := verdict.VIES()
	if !served {
		return notChecked, question{}
	}
	return Result{}, question{state: state, number: number}
}

// remote asks the register and makes a result of whatever comes back.
func (v *Validator) remote(ctx context.Context, q question) (Result, error) {
	answer, err := v.vies.Check(ctx, q.state, q.number)
	if err == nil {
		r := Result{Format: FormatValid, Status: StatusNotRegistered, IsBusiness: BusinessNo,
			AnsweredAt: answer.AnsweredAt, RequestID: answer.RequestID}
		if answer.Registered {
			r.Status, r.IsBusiness = StatusRegistered, BusinessYes
			r.BusinessName, r.BusinessAddress = answer.Name, answer.Address
		}
		return r, nil
	}
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	r := Result{Format: FormatValid, Status: StatusUnknown, IsBusiness: BusinessUnknown, ErrorCode: CodeUnavailable}
	var e *VIESError
	if errors.As(err, &e) {
		r.ErrorCode = e.Code
	}
	return r, nil
}
