package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
	"tributary/internal/lease"
)

const (
	inFlightDefault = 2048
	// A target that cannot be told is our own trouble: it is asked again, no try is spent.
	targetAgain = 10 * time.Second
	// How long an event waits behind the first try of the one before it before its
	// row is given back, and how soon it then comes again.
	turnWait  = ExchangeTimeout + 5*time.Second
	turnAgain = 100 * time.Millisecond
)

// Hooks stores events and delivers them. It is safe for concurrent use.
type Hooks struct {
	cfg       Config
	base      string
	queue     *lease.Queue[delivery]
	receivers receivers
	pauses    pauses
	turns     turns
	counts    *counts
	serial    atomic.Uint32 // of events
}

// delivery is what a claim reads of a row.
type delivery struct {
	resourceID string
	path       string
	tries      int
	rung       int
	lastAt     int64
	createdAt  int64
	inSeries   bool
	previous   string // webhook_id of the event that must be tried before; empty: none
}

type leased = lease.Lease[delivery]

// New returns hooks; deliveries are made while Run runs.
func New(c Config) (*Hooks, error) {
	if c.DB == nil || c.Alerts == nil || c.Sender == nil || c.Target == nil || c.Keys == nil || c.BaseURL == "" {
		return nil, errors.New("make webhooks: a database, alerts, a base URL, a sender, targets and keys are needed")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Int64N
	}
	if c.InFlight <= 0 {
		c.InFlight = inFlightDefault
	}
	h := &Hooks{
		cfg: c, base: trimBase(c.BaseURL),
		queue: &lease.Queue[delivery]{Table: eventsTable, ID: "webhook_id", Key: "lane", Columns: deliveryColumns,
			Scan: scanDelivery, IDFrom: idFrom, Longest: c.Ladder.longestSQL()},
		receivers: newReceivers(c.Pace, c.Now), pauses: newPauses(c.Now), turns: newTurns(),
	}
	var err error
	h.counts, err = newCounts(c.Metrics)
	return h, err
}

func scanDelivery(scan func(...any) error) (d delivery, err error) {
	var previous *string
	err = scan(&d.resourceID, &d.path, &d.tries, &d.rung, &d.lastAt, &d.createdAt, &d.inSeries, &previous)
	if previous != nil {
		d.previous = *previous
	}
	return d, err
}

// Run delivers until ctx ends, then lets tries in progress come to their end.
//
// Failure policy: a row is leased before it is sent and recorded after. A node
// that dies in between leaves its rows leased; they are sent again, with the same
// webhook_id, by the next holder. So nothing is lost, and what may be repeated is
// what was in flight. A try cut short by our own shutdown is not counted.
func (h *Hooks) Run(ctx context.Context) error {
	g := db.NewGather(h.cfg.DB, h.store)
	defer g.Close()
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { _ = h.runReplays(ctx) }) // a pump has no error
	if h.cfg.Changed != nil {
		watching.Go(func() { h.watchChanges(ctx) })
	}
	pump := &lease.Pump[delivery]{
		DB: h.cfg.DB, Queue: h.queue, Log: h.cfg.Log, InFlight: h.cfg.InFlight, Poll: h.cfg.Poll, Grace: h.cfg.Grace, Room: h.room, TurnMost: turnMost,
		Work: func(ctx context.Context, l *leased) { h.work(ctx, &attempt{leased: l, gather: g}) },
	}
	return pump.Run(ctx)
}

// watchChanges lets deliveries go on as soon as somebody has fixed what they wait for.
func (h *Hooks) watchChanges(ctx context.Context) {
	changed := h.cfg.Changed()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			changed = h.cfg.Changed() // before looking, so that nothing in between is missed
			h.pauses.lift()
			h.cfg.DB.Wake(eventsTable)
		}
	}
}

// attempt is the work on one claimed row.
type attempt struct {
	*leased
	gather *db.Gather[outcome, struct{}]
	client string
	event  string
	gate   *gate // what later events of its series wait at; nil: nobody does

	target   Target
	receiver *receiver
	permit   Permit
}

// work makes one try of one delivery, or says why not now. Whatever happens, it
// ends with one write of the row.
func (h *Hooks) work(ctx context.Context, a *attempt) {
	a.client, a.event = splitLane(a.Key)
	ctx = db.WorkOf(ctx, a.client)
	if a.Row.inSeries {
		a.gate = h.turns.take(a.ID)
		defer h.turns.done(a.ID, a.gate)
	}
	if a.Row.previous != "" && !h.turns.wait(ctx, a.Row.previous, h.tried) {
		h.postpone(ctx, a, turnAgain)
		return
	}
	switch admitted, err := h.admit(ctx, a); {
	case err != nil:
		h.cfg.Log.Warn("find the URL of a webhook", "client", a.client, "event", a.event, "webhook_id", a.ID, "error", err)
		h.postpone(ctx, a, targetAgain)
		return
	case a.target.URL == "":
		h.record(ctx, a, outcome{leased: a.leased, kind: closed, client: a.client})
		h.cfg.Log.Info("a webhook is closed: its URL was removed", "client", a.client, "event", a.event, "webhook_id", a.ID,
			"tries", a.Row.tries)
		return
	case !admitted:
		h.postpone(ctx, a, 0)
		return
	}
	made := false
	defer func() {
		if !made {
			a.receiver.abandon(a.permit)
		}
	}()
	try, deliveredAt, err := h.send(ctx, a)
	if err != nil || try.Class == ClassInterrupted {
		h.postpone(ctx, a, 0)
		return
	}
	made = true
	if a.gate != nil {
		h.turns.tried(a.gate)
	}
	h.settle(ctx, a, try, deliveredAt)
}

// admit finds the present address and waits for its receiver's permission. The
// address is looked at again after the wait, which can be long.
func (h *Hooks) admit(ctx context.Context, a *attempt) (bool, error) {
	for {
		target, ok, err := h.cfg.Target(ctx, a.client, a.event)
		if err != nil || !ok {
			a.target = Target{}
			return false, err
		}
		if a.receiver != nil && target.URL == a.target.URL {
			a.target = target
			return true, nil
		}
		if a.receiver != nil {
			a.receiver.abandon(a.permit)
			a.receiver = nil
		}
		a.target = target
		r := h.receivers.of(a.client, target.URL)
		if a.permit, ok = r.enter(ctx); !ok {
			return false, nil
		}
		a.receiver = r
	}
}

// sendCosts is what the processor has to do with a try at most, as far as db.Pace
// is concerned: the rest of its time it waits for the receiver.
const sendCosts = 300 * time.Microsecond

// turnMost is how long other work of this process keeps a delivery back. Its share
// is guaranteed: packing takes microseconds, and a client that waits for a
// notification waits for its whole journey.
const turnMost = 500 * time.Millisecond

// send packs and posts the notification. An error means that nothing was sent.
func (h *Hooks) send(ctx context.Context, a *attempt) (Try, time.Time, error) {
	keys, err := h.cfg.Keys(ctx, a.client)
	if err != nil {
		h.pause(ctx, a, err)
		return Try{}, time.Time{}, err
	}
	if h.pauses.end(a.client) {
		h.cfg.DB.Wake(eventsTable)
	}
	at := DeliveredAt(h.cfg.Now(), db.FromMicros(a.Row.lastAt))
	done := h.cfg.DB.Pace().TurnWithin(ctx, turnMost)
	parcel, err := Pack(Notification{
		EventType: a.event, DeliveredAt: at, ResourceID: a.Row.resourceID, ResourceURL: h.resourceURL(a.Row.path), WebhookID: a.ID,
	}, keys)
	done()
	if err != nil {
		h.pause(ctx, a, err)
		return Try{}, time.Time{}, err
	}
	if a.Row.tries == 0 {
		h.counts.firstTry(h.cfg.DB.Now().Sub(db.FromMicros(a.Row.createdAt)))
	}
	began := h.cfg.DB.Elapsed()
	try := h.cfg.Sender.For(a.target.Allow).Send(ctx, a.target.URL, parcel)
	h.cfg.DB.Pace().Spent(min(h.cfg.DB.Elapsed()-began, sendCosts))
	return try, at, nil
}

// pause holds a client's deliveries back: a notification that is not signed with
// the receiver's key would be refused and cost a try.
func (h *Hooks) pause(ctx context.Context, a *attempt, cause error) {
	if ctx.Err() != nil || !h.pauses.begin(a.client) {
		return
	}
	if fault.KindOf(cause) == fault.Unavailable {
		h.cfg.Log.Warn("sign webhooks", "client", a.client, "error", cause)
		return
	}
	h.raise(ctx, alert.SigningKeyMissing, a.client, "webhooks wait because they cannot be signed: "+cause.Error())
}

func (h *Hooks) raise(ctx context.Context, name alert.Name, subject, message string) {
	if err := h.cfg.Alerts.Raise(context.WithoutCancel(ctx), name, subject, message); err != nil {
		h.cfg.Log.Warn("store an alert", "error", err)
	}
}

// settle decides what a try means for its delivery and for the pace of its
// receiver, and records both.
func (h *Hooks) settle(ctx context.Context, a *attempt, try Try, deliveredAt time.Time) {
	o := outcome{leased: a.leased, kind: tried, client: a.client, try: try, deliveredAt: deliveredAt, status: Delivered}
	if !try.Delivered() {
		o.rung = a.Row.rung + 1
		delay, again := h.cfg.Ladder.Delay(o.rung, try.RetryAfter, h.cfg.Random)
		if o.status = Pending; !again {
			o.status = Discarded
			o.alerts = append(o.alerts, raised{alert.WebhookDiscarded,
				fmt.Sprintf("%s of %s (webhook_id %s) was discarded after %s; the last one: %s",
					a.event, a.Row.resourceID, a.ID, fault.Count(int(a.Row.tries)+1, "attempt"), try.Detail)})
		} else {
			o.next = h.cfg.DB.Now().Add(delay)
		}
	}
	if a.receiver.refused(try.Refusal != nil) {
		o.alerts = append(o.alerts, raised{alert.WebhookAddressRefused, fmt.Sprintf("%s: %s", try.Class, try.Detail)})
	}
	change := a.receiver.done(a.permit, Outcome{Event: a.ID, Delivered: try.Delivered()})
	h.counts.try(try.Class)
	killpoint.Reach(killpoint.Delivered)
	h.record(ctx, a, o)
	switch change {
	case Opened:
		h.raise(ctx, alert.WebhookBreakerOpen, a.client,
			fmt.Sprintf("%s is failing: %s; it is probed every %s, nothing is lost", shown(a.target.URL), try.Detail,
				a.receiver.pace.ProbeEvery))
	case Closed:
		h.cfg.Log.Info("a webhook receiver is back", "client", a.client, "receiver", shown(a.target.URL))
		h.cfg.DB.Wake(eventsTable)
	}
}
