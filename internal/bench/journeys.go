package bench

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"tributary/internal/country"
	"tributary/internal/server"
)

const toldSeconds = 10

// journeys measures submit → authority → settled, and the same with document and webhook.
func (r *run) journeys(ctx context.Context) error {
	s, err := r.open(ctx, "settled", nil)
	if err != nil {
		return err
	}
	settled, err := r.settle(ctx, s, r.scale(journeyCount))
	if err := errors.Join(err, s.close()); err != nil {
		return err
	}
	r.report.add("settled_per_second", settled.rate(), "1/s")
	return r.toldJourney(ctx)
}

// settle submits a number of sales and waits until all are settled.
func (r *run) settle(ctx context.Context, s *subject, n int) (outcome, error) {
	l := submitLoad(s, "settled")
	l.total = n
	start := time.Now()
	done, err := l.run(ctx)
	if err == nil {
		err = s.WaitSettled(ctx)
	}
	done.took = time.Since(start)
	return done, err
}

// toldJourney goes on to the document and the webhook.
func (r *run) toldJourney(ctx context.Context) error {
	box := newMailbox()
	defer box.close()
	s, err := r.open(ctx, "whole", func(c *server.Config) { c.DemoUseCase, c.WebhookURL = country.Both, box.url() })
	if err != nil {
		return err
	}
	l := submitLoad(s, "whole")
	l.total = r.scale(journeyCount)
	l.answered = func(_, status int, text []byte, took time.Duration) {
		if status == http.StatusAccepted {
			box.sent(operationOf(text), took)
		}
	}
	start := time.Now()
	whole, err := l.run(ctx)
	if err == nil {
		err = box.wait(ctx, l.total-whole.refused-whole.failed)
	}
	whole.took = time.Since(start)
	arrivals := box.outcome()
	if err := errors.Join(err, s.close()); err != nil {
		return err
	}
	r.report.add("submit_to_webhook_per_second", whole.rate(), "1/s")
	r.report.add("submit_to_webhook_p50", ms(arrivals.percentile(.5)), "ms")
	r.report.add("submit_to_webhook_p99", ms(arrivals.percentile(.99)), "ms")
	return r.toldAtHalf(ctx, whole.rate()/2)
}

// toldAtHalf measures how long an event waits for its first try while sales come
// at half the pace that the whole journey has.
func (r *run) toldAtHalf(ctx context.Context, rate float64) error {
	box := newMailbox()
	defer box.close()
	s, err := r.open(ctx, "told-half", func(c *server.Config) { c.DemoUseCase, c.WebhookURL = country.Both, box.url() })
	if err != nil {
		return err
	}
	l := r.lasting(submitLoad(s, "told-half"), toldSeconds)
	l.every = time.Duration(float64(time.Second) / rate)
	o, err := l.run(ctx)
	if err == nil {
		err = box.wait(ctx, o.requests-o.refused-o.failed)
	}
	if err := errors.Join(err, s.close()); err != nil {
		return err
	}
	r.report.add("webhook_first_try_p99_half_load", ms(box.firstTries().percentile(.99)), "ms")
	return nil
}

func operationOf(text []byte) string {
	var answer struct {
		OperationID string `json:"operation_id"`
	}
	_ = json.Unmarshal(text, &answer) // an empty id is missed by the mailbox
	return answer.OperationID
}
