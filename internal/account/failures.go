package account

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
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

const (
	failureBucketsMax = 4096 // per generation, for addresses and for kids
	spikeWindow       = time.Minute
	// A network that owns one IPv6 address usually owns its /64.
	ipv6Bits = 64
)

// failures counts and limits failed authentication in bounded memory.
type failures struct {
	limit  FailureLimit
	metric *prometheus.CounterVec // nil: not counted
	total  atomic.Int64

	mu      sync.Mutex
	buckets recent[*rate.Limiter]
	telling *rate.Limiter // lines of log

	// The current window; only watchFailures touches it.
	began  time.Time
	base   int64
	raised bool
}

func newFailures(l FailureLimit, reg prometheus.Registerer) (*failures, error) {
	f := &failures{limit: l, telling: rate.NewLimiter(refusalsPerSecond, refusalsBurst),
		buckets: newRecent[*rate.Limiter](2 * failureBucketsMax)}
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
	f.mu.Lock()
	defer f.mu.Unlock()
	var wait time.Duration
	if kid != "" {
		wait = f.spend("kid "+kid, now)
	}
	if from.IsValid() {
		wait = max(wait, f.spend("ip "+network(from), now))
	}
	return wait
}

func (f *failures) spend(who string, now time.Time) time.Duration {
	bucket, ok := f.buckets.get(who)
	if !ok {
		bucket = rate.NewLimiter(rate.Limit(f.limit.PerSecond), max(f.limit.Burst, 1))
		f.buckets.put(who, bucket)
	}
	r := bucket.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

func network(ip netip.Addr) string {
	ip = ip.Unmap()
	if ip.Is4() {
		return ip.String()
	}
	if p, err := ip.WithZone("").Prefix(ipv6Bits); err == nil {
		return p.String()
	}
	return ip.String()
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
