package account

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"tributary/internal/alert"
)

// FailureLimit bounds failed authentication per address and per kid. The zero
// value limits nothing.
type FailureLimit struct {
	PerSecond int // 0: no limit
	Burst     int
	// SpikePerMinute raises an alert when that many failed within a minute,
	// whoever they came from. 0: no alert.
	SpikePerMinute int
}

// ServeFailureLimit is what a server in production uses.
func ServeFailureLimit() FailureLimit {
	return FailureLimit{PerSecond: 5, Burst: 50, SpikePerMinute: 300}
}

const spikeWindow = time.Minute

// failures counts and limits failed authentication in bounded memory.
type failures struct {
	limit  FailureLimit
	metric *prometheus.CounterVec // nil: not counted
	total  atomic.Int64

	sources *Pace
	telling *rate.Limiter // lines of log

	// The current window; only watchFailures touches it.
	began  time.Time
	base   int64
	raised bool
}

func newFailures(l FailureLimit, reg prometheus.Registerer) (*failures, error) {
	f := &failures{limit: l, telling: rate.NewLimiter(refusalsPerSecond, refusalsBurst),
		sources: NewPace(l.PerSecond, l.Burst)}
	if reg == nil {
		return f, nil
	}
	f.metric = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tributary_auth_failures_total", Help: "Requests rejected because of their API key, by reason.",
	}, []string{"reason"})
	for _, reason := range []string{reasonMalformed, reasonUnknown, reasonMismatch} {
		f.metric.WithLabelValues(reason)
	}
	if err := reg.Register(f.metric); err != nil {
		return nil, fmt.Errorf("register the metric of failed authentication: %w", err)
	}
	return f, nil
}

// count notes a failure; a positive answer says how long its source has to wait.
func (f *failures) count(kid string, from netip.Addr, reason string, now time.Time) time.Duration {
	f.total.Add(1)
	if f.metric != nil {
		f.metric.WithLabelValues(reason).Inc()
	}
	if f.limit.PerSecond == 0 {
		return 0
	}
	var wait time.Duration
	if kid != "" {
		wait = f.sources.Spend("kid "+kid, now)
	}
	if from.IsValid() {
		wait = max(wait, f.sources.Spend("ip "+Network(from), now))
	}
	return wait
}

// watchFailures raises one alert per window in which too many failed.
func (a *Accounts) watchFailures(ctx context.Context) {
	f, now, total := a.failures, time.Now(), a.failures.total.Load()
	if spike := f.limit.SpikePerMinute; spike > 0 && !f.raised && total-f.base >= int64(spike) && a.alerts != nil {
		f.raised = true
		message := fmt.Sprintf("%d requests with an invalid API key within a minute on node %s", total-f.base, a.db.Node())
		if err := a.alerts.Raise(ctx, alert.AuthFailuresSpike, "api", message); err != nil && ctx.Err() == nil {
			a.log.Warn("raise the alert of failed authentication", "error", err)
		}
	}
	if f.began.IsZero() {
		f.began = now
	} else if now.Sub(f.began) >= spikeWindow {
		f.began, f.base, f.raised = now, total, false
	}
}
