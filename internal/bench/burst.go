package bench

import (
	"context"
	"errors"
	"net/http"
	"time"

	"tributary/internal/country"
	"tributary/internal/server"
)

// A burst: as many callers as one busy client has, with everything behind the
// intake switched on.
const (
	burstConnections = 64
	burstSeconds     = 3
)

// burst measures what the intake takes while the whole journey runs behind it,
// and how fast the rest is worked off afterwards.
func (r *run) burst(ctx context.Context) error {
	box := newMailbox()
	defer box.close()
	s, err := r.open(ctx, "burst", func(c *server.Config) { c.DemoUseCase, c.WebhookURL = country.Both, box.url() })
	if err != nil {
		return err
	}
	l := submitLoad(s, "burst")
	l.connections = burstConnections
	l = r.lasting(l, burstSeconds)
	if r.cfg.Quick {
		l.total = burstConnections
	}
	l.answered = func(_, status int, text []byte, took time.Duration) {
		if status == http.StatusAccepted {
			box.sent(operationOf(text), took)
		}
	}
	o, err := l.run(ctx)
	taken, meanwhile, over := o.requests-o.refused-o.failed, box.count.Load(), time.Now()
	if err == nil {
		err = box.wait(ctx, taken)
	}
	rest, first := time.Since(over), box.firstTries()
	if err := errors.Join(err, s.close()); err != nil {
		return err
	}
	r.report.add("burst_submits_per_second", o.rate(), "1/s")
	r.report.add("burst_submit_p99", ms(o.percentile(.99)), "ms")
	r.report.add("burst_worked_off_meanwhile_per_second", float64(meanwhile)/o.took.Seconds(), "1/s")
	r.report.add("burst_worked_off_per_second", float64(int64(taken)-meanwhile)/rest.Seconds(), "1/s")
	r.report.add("webhook_first_try_p99_burst", ms(first.percentile(.99)), "ms")
	return nil
}
