package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tributary/internal/server"
	"tributary/internal/webhook"
)

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
			events = append(events, webhook.Event{ClientID: s.Demo().ClientID, Type: webhook.TransactionCompleted,
				ResourceID: id, ResourcePath: "/v1/transactions/" + id})
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
	event   string // the type of those that it notes; "": of all
	l       net.Listener
	srv     *http.Server
	mu      sync.Mutex
	begun   map[string]time.Time
	arrived map[string]time.Time
	first   []time.Duration // from an event to its first try
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
	go func() { _ = m.srv.Serve(m.l) }() // ends with close
	return m
}

func (m *mailbox) url() string { return "http://" + m.l.Addr().String() + "/" }
func (m *mailbox) close()      { _ = m.srv.Close() } // a yardstick

func (m *mailbox) receive(w http.ResponseWriter, req *http.Request) {
	text, err := io.ReadAll(req.Body)
	now := time.Now()
	w.WriteHeader(http.StatusNoContent)
	if err != nil || m.event != "" && member(text, "event_type") != m.event {
		return
	}
	id, event := member(text, "resource_id"), member(text, "webhook_id")
	m.mu.Lock()
	if _, twice := m.arrived[id]; !twice {
		m.arrived[id] = now
		if made, ok := madeAt(event); ok {
			m.first = append(m.first, max(now.Sub(made), 0))
		}
		m.count.Add(1)
	}
	m.mu.Unlock()
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// member is the value of one member of a notification; no value has quotes.
func member(text []byte, name string) string {
	_, rest, _ := strings.Cut(string(text), `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// madeAt is when an event was made: its webhook_id begins with the millisecond.
func madeAt(webhookID string) (time.Time, bool) {
	ms, err := strconv.ParseInt(webhookID[:min(len(webhookID), 12)], 16, 64)
	return time.UnixMilli(ms), err == nil
}

// firstTries are the times from events to their first tries.
func (m *mailbox) firstTries() (o outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.times = slices.Sorted(slices.Values(m.first))
	return o
}

// sent notes when a sale left the client.
func (m *mailbox) sent(id string, took time.Duration) {
	m.mu.Lock()
	m.begun[id] = time.Now().Add(-took)
	m.mu.Unlock()
}

// wait ends when n notifications have arrived, or none for two minutes.
func (m *mailbox) wait(ctx context.Context, n int) error {
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	for int(m.count.Load()) < n {
		select {
		case <-m.news:
			deadline.Reset(2 * time.Minute)
		case <-deadline.C:
			return fmt.Errorf("%d of %d webhooks arrived, and none for two minutes", m.count.Load(), n)
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
