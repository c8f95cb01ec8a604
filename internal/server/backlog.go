package server

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/alert"
	"tributary/internal/breaker"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/ledger"
	"tributary/internal/webhook"
)

// backlog tells, whenever metrics are asked for, how much work is open and since
// when. It speaks of the whole service, so every node says the same: rules take
// the maximum, never the sum.
//
// Failure policy: while the database does not respond, its metrics are absent
// rather than zero; a rule on absence sees that, and zero would look like peace.
type backlog struct {
	db      *db.DB
	atlas   *country.Atlas
	open    []*prometheus.Desc // by queue
	age     []*prometheus.Desc
	wait    *prometheus.Desc
	alerts  *prometheus.Desc
	breaker *prometheus.Desc
}

const backlogTimeout = 2 * time.Second

func newBacklog(d *db.DB, atlas *country.Atlas) *backlog {
	b := &backlog{
		db: d, atlas: atlas,
		wait: prometheus.NewDesc("tributary_operations_waiting", "Waiting operations, by published reason.",
			[]string{"country", "environment", "reason"}, nil),
		alerts: prometheus.NewDesc("tributary_alerts_open", "Alerts that nobody has acknowledged, by name.",
			[]string{"name"}, nil),
		breaker: prometheus.NewDesc("tributary_authority_breaker_open",
			"1 while an authority is unavailable and only probes are sent, otherwise 0.", []string{"country", "environment"}, nil),
	}
	for _, of := range []struct{ name, what string }{{"operations", "Operations in progress."},
		{"webhooks", "Webhook events waiting for delivery."}} {
		b.open = append(b.open, prometheus.NewDesc("tributary_"+of.name+"_open", of.what, nil, nil))
		b.age = append(b.age, prometheus.NewDesc("tributary_"+of.name+"_oldest_seconds", "Age of the oldest: "+of.what, nil, nil))
	}
	return b
}

// Describe lists the metrics.
func (b *backlog) Describe(to chan<- *prometheus.Desc) {
	for i := range b.open {
		to <- b.open[i]
		to <- b.age[i]
	}
	to <- b.wait
	to <- b.alerts
	to <- b.breaker
}

// Collect asks the database.
func (b *backlog) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
	defer cancel()
	var counts [2]int
	var oldest [2]time.Time
	var now time.Time
	var waits []ledger.Waiting
	var breakers []breaker.Open
	var alerts map[alert.Name]int
	err := b.db.Read(ctx, func(r db.Reader) (err error) {
		now = r.Now()
		if counts[0], oldest[0], err = ledger.Open(r); err != nil {
			return err
		}
		if counts[1], oldest[1], err = webhook.Backlog(r); err != nil {
			return err
		}
		if waits, err = ledger.Waits(r); err != nil {
			return err
		}
		if alerts, err = alert.Open(r); err != nil {
			return err
		}
		breakers, err = breaker.All(r, now)
		return err
	})
	if err != nil {
		return
	}
	for i := range counts {
		age := 0.0
		if !oldest[i].IsZero() {
			age = max(0, now.Sub(oldest[i]).Seconds())
		}
		to <- prometheus.MustNewConstMetric(b.open[i], prometheus.GaugeValue, float64(counts[i]))
		to <- prometheus.MustNewConstMetric(b.age[i], prometheus.GaugeValue, age)
	}
	for _, w := range waits {
		code, environment, _ := strings.Cut(w.At.String(), ".")
		to <- prometheus.MustNewConstMetric(b.wait, prometheus.GaugeValue, float64(w.Operations), code, environment, string(w.Code))
	}
	for _, m := range alert.Meanings() { // also those that are not open: a rule on them is never without an answer
		to <- prometheus.MustNewConstMetric(b.alerts, prometheus.GaugeValue, float64(alerts[m.Name]), string(m.Name))
	}
	b.collectBreakers(breakers, to)
}

// collectBreakers tells the state of every authority that has an address.
func (b *backlog) collectBreakers(breakers []breaker.Open, to chan<- prometheus.Metric) {
	open := map[country.Environment]float64{}
	for _, br := range breakers {
		open[br.At] = 1
	}
	for _, name := range b.atlas.Codes() {
		for _, live := range []country.Live{false, true} {
			at := country.Environment{Code: name, Live: live}
			if address, _ := b.atlas.Address(at); address == "" {
				continue
			}
			code, environment, _ := strings.Cut(at.String(), ".")
			to <- prometheus.MustNewConstMetric(b.breaker, prometheus.GaugeValue, open[at], code, environment)
		}
	}
}
