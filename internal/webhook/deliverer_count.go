package webhook

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are the deliverer's metrics.
type counts struct {
	tries *prometheus.CounterVec
	first prometheus.Histogram
}

func newCounts(reg prometheus.Registerer) (*counts, error) {
	c := &counts{
		tries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tributary_webhook_tries_total", Help: "Delivery attempts of webhooks, by outcome.",
		}, []string{"outcome"}),
		first: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tributary_webhook_first_try_seconds", Help: "Time from an event to its first delivery attempt.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600},
		}),
	}
	if reg == nil {
		return c, nil
	}
	for _, m := range []prometheus.Collector{c.tries, c.first} {
		if err := reg.Register(m); err != nil {
			return nil, fmt.Errorf("register the metrics of webhooks: %w", err)
		}
	}
	return c, nil
}

func (c *counts) try(class Class) {
	outcome := string(class)
	if outcome == "" {
		outcome = "delivered"
	}
	c.tries.WithLabelValues(outcome).Inc()
}

func (c *counts) firstTry(after time.Duration) { c.first.Observe(max(after, 0).Seconds()) }
