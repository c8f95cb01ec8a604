package console

import (
	"cmp"
	"net/url"
	"time"

	"tributary/internal/account"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operator"
	"tributary/internal/webhook"
)

const replaysShown = 5

func eventStatuses() []webhook.Status {
	return []webhook.Status{webhook.Pending, webhook.Delivered, webhook.Discarded, webhook.Unsubscribed}
}

// deliveryPages shows events and their tries, and sends them again.
type deliveryPages struct {
	cfg *Config
	now func() time.Time
	dir *directory
}

type deliveriesBody struct {
	Receivers []receiverRow
	Events    []webhook.EventRow
	NextAt    string
	Form      eventsForm
	Faults    []fault.Fault
	Order     order
	Clients   []account.Client
	Replays   []webhook.Replay
	Probes    map[string]time.Time // by webhook_id, where a breaker is open
	Now       time.Time
	Here      string
	Acts      []string
}

// eventsForm is what narrows the list of events, as it stands in the address.
type eventsForm struct{ Client, Status, From, To string }

func readEvents(query url.Values) eventsForm {
	return eventsForm{Client: query.Get("client"), Status: query.Get("status"), From: query.Get("from"), To: query.Get("to")}
}

func (f eventsForm) client() string { return cmp.Or(f.Client, webhook.AnyClient) }

func (f eventsForm) filter() (webhook.Filter, []fault.Fault) {
	q := webhook.Filter{Status: f.Status}
	var faults []fault.Fault
	q.From, q.To, faults = stretch(f.From, f.To, "")
	if !q.To.IsZero() {
		q.To = q.To.Add(-time.Second) // of events it is inclusive
	}
	return q, faults
}

// eventColumns are those by which the list of events can be sorted.
var eventColumns = columns[webhook.EventRow]{
	"event":    func(a, b webhook.EventRow) int { return cmp.Compare(a.EventType, b.EventType) },
	"status":   func(a, b webhook.EventRow) int { return cmp.Compare(a.Status, b.Status) },
	"attempts": func(a, b webhook.EventRow) int { return cmp.Compare(a.Tries, b.Tries) },
	"response": func(a, b webhook.EventRow) int { return cmp.Compare(a.LastStatus, b.LastStatus) },
	"created":  func(a, b webhook.EventRow) int { return a.CreatedAt.Compare(b.CreatedAt) },
	"next":     func(a, b webhook.EventRow) int { return a.NextTryAt.Compare(b.NextTryAt) },
}

func (c *deliveryPages) deliveries(v *request) (page, error) {
	query := v.r.URL.Query()
	f := readEvents(query)
	body := &deliveriesBody{Form: f, Now: c.now(), Order: readOrder(v, Root+"/deliveries"), Acts: []string{actRedeliver}}
	body.Here = body.Order.here()
	p := page{Title: "Deliveries", Place: "Deliveries", Client: f.Client, Body: body}
	var err error
	if body.Clients, err = c.dir.clientList(v); err != nil {
		return p, err
	}
	if body.Receivers, err = c.dir.receivers(v); err != nil {
		return p, err
	}
	if body.Replays, err = c.cfg.Hooks.Replays(v.ctx, replaysShown); err != nil {
		return p, err
	}
	q, faults := f.filter()
	if body.Faults = faults; len(faults) > 0 {
		return p, nil
	}
	body.Events, body.NextAt, err = inOrder(&body.Order, query.Get("after"), eventColumns,
		func(after string, limit int) ([]webhook.EventRow, string, error) {
			q.After, q.Limit = after, cmp.Or(limit, sortedPage)
			return c.cfg.Hooks.List(v.ctx, f.client(), q)
		})
	body.NextAt = body.Order.next(body.NextAt)
	body.Probes = c.dir.probesOf(v, body.Events)
	return p, err
}

type eventBody struct {
	webhook.EventRow
	ClientID string
	Tries    []webhook.Try
	Receiver receiverRow
	Probe    time.Time
	Now      time.Time
}

func (c *deliveryPages) event(v *request) (page, error) {
	id := v.r.PathValue("event")
	row, client, err := c.cfg.Hooks.Find(v.ctx, id)
	if err != nil {
		return page{}, err
	}
	tries, err := c.cfg.Hooks.Tries(v.ctx, webhook.AnyClient, id)
	if err != nil {
		return page{}, err
	}
	body := &eventBody{EventRow: row, ClientID: client, Tries: tries, Now: c.now(), Probe: c.dir.probeOf(v, client, row.EventType),
		Receiver: receiverRow{Delivery: c.cfg.Hooks.Receiver(v.ctx, client, row.EventType), Client: client}}
	return page{Title: "Event " + short(id), Place: "Deliveries", Crumbs: []crumb{{"Deliveries", Root + "/deliveries"}},
		Client: client, Body: body}, nil
}

// probeOf is when the receiver of an event is tried next, if its breaker is
// open: until then nothing goes there, whatever is due. Zero: it is closed.
func (c *directory) probeOf(v *request, client, event string) time.Time {
	return c.cfg.Hooks.Receiver(v.ctx, client, event).Breaker.NextProbe
}

// probesOf is probeOf of the events of a list that are due.
func (c *directory) probesOf(v *request, events []webhook.EventRow) map[string]time.Time {
	probes := map[string]time.Time{}
	for _, e := range events {
		if e.NextTryAt.IsZero() {
			continue
		}
		if _, client, err := c.cfg.Hooks.Find(v.ctx, e.WebhookID); err == nil {
			probes[e.WebhookID] = c.probeOf(v, client, e.EventType)
		}
	}
	return probes
}

// redeliver sends one event again and goes back to where it was asked for.
func (c *deliveryPages) redeliver(v *request) (string, error) {
	id := v.r.PathValue("event")
	row, client, err := c.cfg.Hooks.Find(v.ctx, id)
	if err != nil {
		return "", err
	}
	act := operator.Act{Action: "event.redelivered", Subject: id, ClientID: client,
		Before: map[string]any{"status": row.Status, "tries": row.Tries}}
	err = c.dir.do(v, act, func() (any, error) {
		return map[string]any{"status": webhook.Pending}, c.cfg.Hooks.Redeliver(v.ctx, webhook.AnyClient, id)
	})
	if err != nil {
		return "", err
	}
	back := local(v.r.PostFormValue("back"))
	if back == Root+"/" {
		back = Root + "/deliveries/events/" + url.PathEscape(id)
	}
	if !c.dir.probeOf(v, client, row.EventType).IsZero() {
		return back + "?notice=behind-breaker", nil
	}
	return back + "?notice=redelivered", nil
}

// redeliverLatest sends the newest event of one address again: a receiver that
// was mended is tried with something real.
func (c *deliveryPages) redeliverLatest(v *request) (string, error) {
	client, address := v.r.PostFormValue("client"), v.r.PostFormValue("address")
	events, _, err := c.cfg.Hooks.List(v.ctx, client, webhook.Filter{Limit: webhook.LimitMax})
	if err != nil {
		return "", err
	}
	for _, e := range events {
		if c.cfg.Hooks.Receiver(v.ctx, client, e.EventType).URL != address {
			continue
		}
		v.r.SetPathValue("event", e.WebhookID)
		return c.redeliver(v)
	}
	return "", fault.New(fault.NotFound, "None of the newest %d events of %s goes to this URL.", webhook.LimitMax, client)
}

// Last is the newest try, of which the page shows what was sent.
func (b eventBody) Last() *webhook.Try {
	if len(b.Tries) == 0 || len(b.Tries[len(b.Tries)-1].Body) == 0 {
		return nil
	}
	return &b.Tries[len(b.Tries)-1]
}

type replayBody struct {
	Clients  []account.Client
	Client   string
	Event    string
	Events   []string
	Status   string
	From, To string
	Counted  bool
	Count    int
	More     bool
	Faults   []fault.Fault
}

// replay asks for a window of time and says how many events stand in it, before
// anything is sent.
func (c *deliveryPages) replay(v *request) (page, error) {
	query := v.r.URL.Query()
	body := &replayBody{Client: query.Get("client"), Event: query.Get("event"), Status: query.Get("status"),
		From: query.Get("from"), To: query.Get("to"), Events: webhook.EventTypes()}
	p := page{Title: "Replay events", Place: "Deliveries", Crumbs: []crumb{{"Deliveries", Root + "/deliveries"}}, Body: body}
	var err error
	if body.Clients, err = c.dir.clientList(v); err != nil {
		return p, err
	}
	if !query.Has("client") || !query.Has("from") {
		now := c.now().UTC()
		body.From, body.To = now.Add(-time.Hour).Format("2006-01-02T15:04"), now.Add(time.Minute).Format("2006-01-02T15:04")
		return p, nil
	}
	w, faults := window(query)
	if body.Faults = faults; len(faults) > 0 {
		return p, nil
	}
	body.Count, body.More, err = c.cfg.Hooks.CountWindow(v.ctx, w)
	if fault.KindOf(err) == fault.Invalid {
		body.Faults = faultsOf(err)
		return p, nil
	}
	body.Counted = err == nil
	return p, err
}

// window reads a stretch of time of one client's events.
func window(form url.Values) (w webhook.Window, faults []fault.Fault) {
	w = webhook.Window{ClientID: form.Get("client"), EventType: form.Get("event"), Status: webhook.Status(form.Get("status"))}
	if w.ClientID == "" {
		faults = append(faults, fault.At("client", fault.FieldRequired, "is required"))
	}
	for name, to := range map[string]*time.Time{"from": &w.From, "to": &w.To} {
		at, err := readMoment(form.Get(name))
		if err != nil || at.IsZero() {
			faults = append(faults, fault.At(name, fault.FieldNotValid, "must be a time such as 2026-11-15T08:30"))
		}
		*to = at
	}
	if len(faults) == 0 && !w.From.Before(w.To) {
		faults = append(faults, fault.At("to", fault.ValidationMatchInvalid, "must be later than from"))
	}
	return w, faults
}

// startReplay starts what replay has counted, in one commit with its entry in the log.
func (c *deliveryPages) startReplay(v *request) (string, error) {
	w, faults := window(v.r.PostForm)
	if len(faults) > 0 {
		return "", fault.New(fault.Invalid, "Invalid time range.").With(faults...)
	}
	n, more, err := c.cfg.Hooks.CountWindow(v.ctx, w)
	if err != nil {
		return "", err
	}
	if n == 0 {
		return "", fault.New(fault.Conflict, "There are no events left in this time range.")
	}
	_, err = c.cfg.Hooks.Replay(v.ctx, w, v.session.Name, func(tx *db.Tx) error {
		return c.cfg.Operators.RecordIn(tx, v.by(),
			operator.Act{Action: "events.replayed", Subject: w.ClientID, ClientID: w.ClientID, After: map[string]any{
				"event_type": w.EventType, "status": w.Status, "from": w.From, "to": w.To, "count": n, "at_least": more,
			}})
	})
	if err != nil {
		return "", err
	}
	return Root + "/deliveries?client=" + url.QueryEscape(w.ClientID) + "&notice=replaying", nil
}
