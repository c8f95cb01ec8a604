package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/server"
	"tributary/internal/transaction"
	"tributary/internal/webhook"
)

const (
	connections   = 128
	submitSeconds = 5
	journeyCount  = 6000
	deliveryCount = 6000
)

// scale shortens everything for tests.
func (r *run) scale(n int) int {
	if r.cfg.Quick {
		return max(1, n/20)
	}
	return n
}

func (r *run) seconds(n int) time.Duration { return time.Duration(r.scale(n*1000)) * time.Millisecond }

// body is a typical sale of about one kilobyte.
func body(id, supplier string) []byte {
	return fmt.Appendf(nil, `{"country_code":"XX","language_code":"EN","currency_code":"EUR","transaction_date":"2026-03-31T10:00:00Z","transaction_number":"%[1]s","transaction_id":"%[1]s","supplier":{"id":"%[2]s"},"customer":{"legal_name":"Example Customer Limited","type":"BUSINESS","address":{"country_code":"XX","city":"Exampleton","postal_code":"12345","address_line_1":"17 Long Sample Street"},"tax_information":{"tax_number":"XX987654321","regime":"VAT"}},"items":[{"number":1,"name":"Darjeeling first flush, 100 g","quantity":3,"unit":"piece","unit_price":7570,"type":"GOODS","tax_breakdowns":[{"rate":25,"regime":"VAT"}]},{"number":2,"name":"Tea strainer, stainless steel","quantity":1,"unit":"piece","unit_price":1250,"type":"GOODS","tax_breakdowns":[{"rate":25,"regime":"VAT"}]},{"number":3,"name":"Delivery","quantity":1,"unit":"piece","unit_price":500,"type":"SERVICES","tax_breakdowns":[{"rate":25,"regime":"VAT"}]}],"payments":[{"type":"CARD","amount":24460}],"note":"Thank you for your order."}`, id, supplier)
}

func host(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return u.Host
}

// submitLoad posts fresh sales to a server.
func submitLoad(s *subject, prefix string) load {
	demo := s.Demo()
	return load{
		address: host(s.URL()), connections: connections, header: "Authorization: Bearer " + demo.APIKey + "\r\n",
		request: func(i int) (string, []byte) {
			return "/v1/transactions", body(fmt.Sprintf("%s-%s-%08d", s.mark, prefix, i), demo.Suppliers["XX"])
		},
	}
}

// submits measures durable submits against two yardsticks: the same HTTP
// server that only decodes and answers, and one commit per request. The first
// takes turns with what it is compared to, because machines have moods.
func (r *run) submits(ctx context.Context) error {
	bare, stop, err := r.bareHandler()
	if err != nil {
		return err
	}
	defer stop()
	apiOnly := func(c *server.Config) { c.Worker = false }
	s, err := r.open(ctx, "submits", apiOnly)
	if err != nil {
		return err
	}
	decoded, full, err := r.turns(ctx, bare, submitLoad(s, "submit"))
	if err != nil {
		return errors.Join(err, s.close())
	}
	l := submitLoad(s, "half")
	l.lasts, l.every = r.seconds(3), time.Duration(2*float64(time.Second)/full.rate())
	half, err := l.run(ctx)
	if err != nil {
		return errors.Join(err, s.close())
	}
	if err := errors.Join(r.submitsStored(ctx, s, full.rate()), s.close()); err != nil {
		return err
	}
	single, err := r.oneCommitEach(ctx)
	if err != nil {
		return err
	}
	r.report.add("submits_per_second", full.rate(), "1/s")
	r.report.add("submits_refused", float64(full.refused+full.failed), "")
	r.report.add("decode_only_per_second", decoded.rate(), "1/s")
	r.report.add("submits_to_decode_only", full.rate()/decoded.rate(), "x")
	r.report.add("one_commit_per_request_per_second", single, "1/s")
	r.report.add("submits_to_one_commit", full.rate()/single, "x")
	r.report.add("submit_p50_half_load", ms(half.percentile(.5)), "ms")
	r.report.add("submit_p99_half_load", ms(half.percentile(.99)), "ms")
	return nil
}

const (
	turnCount   = 5
	turnSeconds = 1
)

// turns lets two loads run one after the other, several times. The first turn
// of each warms up and does not count.
func (r *run) turns(ctx context.Context, yardstick, measured load) (a, b outcome, err error) {
	yardstick.lasts, measured.lasts = r.seconds(turnSeconds), r.seconds(turnSeconds)
	sent := 0
	for turn := range turnCount + 1 {
		x, err := yardstick.run(ctx)
		if err != nil {
			return a, b, err
		}
		from := sent
		turned := measured
		turned.request = func(i int) (string, []byte) { return measured.request(from + i) }
		y, err := turned.run(ctx)
		if err != nil {
			return a, b, err
		}
		sent += y.requests + measured.connections // each connection may have drawn one more
		if turn > 0 {
			a, b = a.and(x), b.and(y)
		}
	}
	return a, b, nil
}

// submitsStored loads settled transactions and measures again.
func (r *run) submitsStored(ctx context.Context, s *subject, empty float64) error {
	if r.cfg.Stored == 0 {
		return nil
	}
	if err := r.fill(ctx, s, r.cfg.Stored); err != nil {
		return err
	}
	l := submitLoad(s, "stored")
	l.lasts = r.seconds(submitSeconds)
	o, err := l.run(ctx)
	r.report.add("submits_per_second_stored", o.rate(), "1/s")
	r.report.add("submits_stored_to_empty", o.rate()/empty, "x")
	return err
}

// fill loads settled transactions directly, with progress on standard error.
func (r *run) fill(ctx context.Context, s *subject, n int) error {
	supplier := s.Demo().Suppliers["XX"]
	const step = 20_000
	for from := 0; from < n; from += step {
		fmt.Fprintf(r.cfg.Err, "\rloading %d of %d settled transactions", from, n)
		if err := s.LoadSettled(ctx, min(step, n-from), func(i int) []byte { return body(fmt.Sprintf("%s-old-%09d", s.mark, from+i), supplier) }); err != nil {
			return err
		}
	}
	fmt.Fprintf(r.cfg.Err, "\rloaded %d settled transactions            \n", n)
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// bareHandler is the first yardstick, ready to be called.
func (r *run) bareHandler() (l load, stop func(), err error) {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return load{}, nil, err
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		text, err := io.ReadAll(req.Body)
		if err == nil {
			_, _, err = transaction.Decode(country.Invoice, text)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		id, _ := uuid.NewV7() // never fails here
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, `{"operation_id":"%s"}`, id)
	})}
	go srv.Serve(at) //nolint:errcheck // ends with Close
	return load{
		address: at.Addr().String(), connections: connections,
		request: func(i int) (string, []byte) { return "/", body(fmt.Sprintf("bare-%08d", i), "supplier") },
	}, func() { srv.Close() }, nil //nolint:errcheck // a yardstick
}

// oneCommitEach is the second yardstick: the same program without groups.
func (r *run) oneCommitEach(ctx context.Context) (float64, error) {
	s, err := r.open(ctx, "single", func(c *server.Config) { c.Worker, c.NoGroups = false, true })
	if err != nil {
		return 0, err
	}
	l := submitLoad(s, "single")
	l.lasts = r.seconds(2)
	o, err := l.run(ctx)
	return o.rate(), errors.Join(err, s.close())
}

// journeys measures submit → authority → settled, and the same with document and webhook.
func (r *run) journeys(ctx context.Context) error {
	settled, _, err := r.journey(ctx, journeyPlan{name: "settled", use: country.Reporting})
	if err != nil {
		return err
	}
	r.report.add("settled_per_second", settled.rate(), "1/s")
	if r.cfg.Stored > 0 {
		old, _, err := r.journey(ctx, journeyPlan{name: "settled-stored", use: country.Reporting, stored: r.cfg.Stored})
		if err != nil {
			return err
		}
		r.report.add("settled_per_second_stored", old.rate(), "1/s")
		r.report.add("settled_stored_to_empty", old.rate()/settled.rate(), "x")
	}
	whole, arrivals, err := r.journey(ctx, journeyPlan{name: "whole", use: country.Both, told: true})
	if err != nil {
		return err
	}
	r.report.add("submit_to_webhook_per_second", whole.rate(), "1/s")
	r.report.add("submit_to_webhook_p50", ms(arrivals.percentile(.5)), "ms")
	r.report.add("submit_to_webhook_p99", ms(arrivals.percentile(.99)), "ms")
	return nil
}

type journeyPlan struct {
	name   string
	use    country.UseCase
	told   bool // with a receiver; without, settled is the end
	stored int
}

// journey submits a number of sales and waits until all are settled or told.
func (r *run) journey(ctx context.Context, plan journeyPlan) (done, arrivals outcome, err error) {
	box := newMailbox()
	defer box.close()
	s, err := r.open(ctx, plan.name, func(c *server.Config) {
		c.DemoUseCase = plan.use
		if plan.told {
			c.WebhookURL = box.url()
		}
	})
	if err != nil {
		return done, arrivals, err
	}
	n := r.scale(journeyCount)
	if plan.stored > 0 {
		if err := r.fill(ctx, s, plan.stored); err != nil {
			return done, arrivals, errors.Join(err, s.close())
		}
	}
	l := submitLoad(s, plan.name)
	l.total = n
	l.answered = func(_, status int, text []byte, took time.Duration) {
		if status == http.StatusAccepted {
			box.sent(operationOf(text), took)
		}
	}
	start := time.Now()
	done, err = l.run(ctx)
	if err == nil && plan.told {
		err = box.wait(ctx, n-done.refused-done.failed)
	} else if err == nil {
		err = s.WaitSettled(ctx)
	}
	done.took = time.Since(start)
	arrivals = box.outcome()
	return done, arrivals, errors.Join(err, s.close())
}

func operationOf(text []byte) string {
	var answer struct {
		OperationID string `json:"operation_id"`
	}
	json.Unmarshal(text, &answer) //nolint:errcheck // an empty id is missed by the mailbox
	return answer.OperationID
}

// deliveries measures signed deliveries of stored events.
func (r *run) deliveries(ctx context.Context) error {
	box := newMailbox()
	defer box.close()
	s, err := r.open(ctx, "deliveries", func(c *server.Config) { c.WebhookURL = box.url() })
	if err != nil {
		return err
	}
	n := r.scale(deliveryCount)
	start := time.Now()
	for from := 0; from < n && err == nil; from += 500 {
		var events []webhook.Event
		for i := from; i < min(n, from+500); i++ {
			id := fmt.Sprintf("%s-delivery-%08d", s.mark, i)
			box.sent(id, 0)
			events = append(events, webhook.Event{ClientID: s.Demo().ClientID, Type: webhook.TransactionCompleted, ResourceID: id, ResourcePath: "/v1/transactions/" + id})
		}
		err = s.Notify(ctx, events...)
	}
	if err == nil {
		err = box.wait(ctx, n)
	}
	took := time.Since(start)
	r.report.add("deliveries_per_second", float64(n)/took.Seconds(), "1/s")
	return errors.Join(err, s.close())
}

// mailbox is a receiver that notes when notifications arrive.
type mailbox struct {
	l       net.Listener
	srv     *http.Server
	mu      sync.Mutex
	begun   map[string]time.Time
	arrived map[string]time.Time
	count   atomic.Int64
	news    chan struct{}
}

func newMailbox() *mailbox {
	m := &mailbox{begun: map[string]time.Time{}, arrived: map[string]time.Time{}, news: make(chan struct{}, 1)}
	var err error
	if m.l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		panic(err) // loopback always has a port
	}
	m.srv = &http.Server{Handler: http.HandlerFunc(m.receive)}
	go m.srv.Serve(m.l) //nolint:errcheck // ends with close
	return m
}

func (m *mailbox) url() string { return "http://" + m.l.Addr().String() + "/" }
func (m *mailbox) close()      { m.srv.Close() } //nolint:errcheck // a yardstick

func (m *mailbox) receive(w http.ResponseWriter, req *http.Request) {
	text, err := io.ReadAll(req.Body)
	now := time.Now()
	w.WriteHeader(http.StatusNoContent)
	if err != nil {
		return
	}
	_, rest, _ := strings.Cut(string(text), `"resource_id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	m.mu.Lock()
	if _, twice := m.arrived[id]; !twice {
		m.arrived[id] = now
		m.count.Add(1)
	}
	m.mu.Unlock()
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// sent notes when a sale left the client.
func (m *mailbox) sent(id string, took time.Duration) {
	m.mu.Lock()
	m.begun[id] = time.Now().Add(-took)
	m.mu.Unlock()
}

func (m *mailbox) wait(ctx context.Context, n int) error {
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	for int(m.count.Load()) < n {
		select {
		case <-m.news:
		case <-deadline.C:
			return fmt.Errorf("%d of %d notifications arrived within two minutes", m.count.Load(), n)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (m *mailbox) outcome() (o outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, at := range m.arrived {
		if began, ok := m.begun[id]; ok {
			o.times = append(o.times, at.Sub(began))
		}
	}
	sortTimes(o.times)
	return o
}
