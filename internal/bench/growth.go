package bench

import (
	"context"
	"errors"
	"fmt"

	"tributary/internal/server"
)

// growth measures over a store with many settled transactions and over an
// empty one, in turns, one server at a time. Settling comes first: submits
// leave work behind.
func (r *run) growth(ctx context.Context) (err error) {
	empty, err := r.place(ctx, "empty")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, empty.drop()) }()
	stored, err := r.place(ctx, "stored")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stored.drop()) }()
	var mark string
	if err := r.visit(ctx, stored, apiOnly, func(s *subject) error { mark = s.mark; return r.fill(ctx, s, r.cfg.Stored) }); err != nil {
		return err
	}
	if err := atRest(ctx, stored.database); err != nil {
		return fmt.Errorf("wait for the store to settle: %w", err)
	}
	if err := r.visit(ctx, stored, apiOnly, func(s *subject) error { return r.reads(ctx, s, mark) }); err != nil {
		return err
	}
	settle := func(s *subject) (outcome, error) { return r.settle(ctx, s, r.scale(journeyCount/2)) }
	if err := r.oldAndEmpty(ctx, "settled", places{stored, empty}, nil, settle); err != nil {
		return err
	}
	submit := func(s *subject) (outcome, error) { return r.lasting(submitLoad(s, "growth"), turnSeconds).run(ctx) }
	return r.oldAndEmpty(ctx, "submits", places{stored, empty}, apiOnly, submit)
}

// visit runs a server over a place for as long as do takes.
func (r *run) visit(ctx context.Context, at *place, change func(*server.Config), do func(*subject) error) error {
	s, err := r.openAt(ctx, at, change)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.close())
}

// places are a store with a past and one without.
type places struct{ stored, empty *place }

// oldAndEmpty takes turns and reports the rate over the old store and its ratio to the other.
func (r *run) oldAndEmpty(ctx context.Context, name string, at places, change func(*server.Config),
	measure func(*subject) (outcome, error)) error {
	var old, fresh outcome
	err := r.turns(func(counts bool) error {
		for _, turn := range []struct {
			at  *place
			sum *outcome
		}{{at.empty, &fresh}, {at.stored, &old}} {
			err := r.visit(ctx, turn.at, change, func(s *subject) error {
				o, err := measure(s)
				if counts {
					*turn.sum = turn.sum.and(o)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.report.add(name+"_per_second_stored", old.rate(), "1/s")
	r.report.add(name+"_stored_to_empty", old.rate()/fresh.rate(), "x")
	return nil
}

// fill loads settled transactions directly, with progress on standard error.
func (r *run) fill(ctx context.Context, s *subject, n int) error {
	const step = 20_000
	for from := 0; from < n; from += step {
		fmt.Fprintf(r.cfg.Err, "\rloading %d of %d settled transactions", from, n)
		if err := s.LoadSettled(ctx, min(step, n-from), func(i int) []byte {
			return storedBody(s, from+i, n)
		}); err != nil {
			return err
		}
	}
	fmt.Fprintf(r.cfg.Err, "\rloaded %d settled transactions            \n", n)
	return nil
}
