package console

import (
	"slices"
	"strings"
	"time"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/webhook"
)

const alertsShown = 100

// period is a stretch of time that plots look back over.
type period struct {
	Key, Name string
	step      time.Duration
	steps     int
}

func periods() []period {
	return []period{
		{"hour", "Hour", time.Minute, 60},
		{"day", "Day", 15 * time.Minute, 96},
		{"week", "Week", 2 * time.Hour, 84},
	}
}

// directory answers what many pages name: clients, countries, receivers, alerts.
type directory struct {
	cfg *Config
	now func() time.Time
}

type overviewBody struct {
	Period     period
	Periods    []period
	All        series
	Sum        tally
	Processing int
	More       bool
	OldestAt   time.Time
	Stuck      int // operations that a person must look at
	Countries  []countryRow
	Receivers  []receiverRow
	Pending    int
	Discarded  int
	Alerts     []alertRow
	Now        time.Time
}

// countryRow is the line of a country's environment: what happened there and how
// its authority is.
type countryRow struct {
	At        country.Environment
	Name      string
	Series    series
	Sum       tally
	Authority *ledger.Authority
}

// Age is how long the oldest queued operation has waited.
func (r countryRow) Age(now time.Time) time.Duration {
	if r.Authority == nil || r.Authority.OldestAt.IsZero() {
		return 0
	}
	return now.Sub(r.Authority.OldestAt).Truncate(time.Second)
}

// receiverRow is one address of a client, with all events that go there.
type receiverRow struct {
	webhook.Delivery
	Client string
	Events []string // types, of which Delivery.EventType is the first
}

// State is one word for how a receiver is.
func (r receiverRow) State() string {
	switch {
	case !r.Configured:
		return "no address"
	case r.Breaker.Open:
		return "open"
	case r.Breaker.Failures > 0:
		return "failing"
	case !r.Known:
		return "quiet"
	}
	return "ok"
}

func (c *Console) overview(v *request) (page, error) {
	body := overviewBody{Period: choose(periods(), v.r.URL.Query().Get("over")), Periods: periods(), Now: c.now()}
	p := page{Title: "Overview", Place: "Overview", Body: &body}
	if err := c.dir.countAll(v, &body); err != nil {
		return p, err
	}
	depths, err := c.cfg.Ledger.Depths(v.ctx)
	if err != nil {
		return p, err
	}
	for _, d := range depths {
		body.Processing += d.Count
		body.More = body.More || d.More
		if !d.OldestAt.IsZero() && (body.OldestAt.IsZero() || d.OldestAt.Before(body.OldestAt)) {
			body.OldestAt = d.OldestAt
		}
		if d.Stage == filing.Quarantined {
			body.Stuck += d.Count
		}
	}
	all, err := c.dir.receivers(v)
	if err != nil {
		return p, err
	}
	for _, r := range all {
		body.Pending += r.Pending
		body.Discarded += r.Discarded
		if s := r.State(); s == "open" || s == "failing" || r.Discarded > 0 {
			body.Receivers = append(body.Receivers, r)
		}
	}
	body.Alerts, err = c.dir.alertRows(v, alert.Filter{Open: true, Limit: 8})
	return p, err
}

func choose(all []period, key string) period {
	for _, p := range all {
		if p.Key == key {
			return p
		}
	}
	return all[0]
}

// countAll reads what was counted and how authorities are, by environment.
func (c *directory) countAll(v *request, body *overviewBody) error {
	to := body.Now.UTC().Truncate(body.Period.step).Add(body.Period.step)
	from := to.Add(-time.Duration(body.Period.steps) * body.Period.step)
	counts, err := c.cfg.Ledger.Counts(v.ctx, from, to, body.Period.step)
	if err != nil {
		return err
	}
	empty := func() series {
		return series{From: from, Step: body.Period.step, Tally: make([]tally, body.Period.steps)}
	}
	body.All = empty()
	rows := map[country.Environment]*countryRow{}
	row := func(at country.Environment) *countryRow {
		if rows[at] == nil {
			rows[at] = &countryRow{At: at, Name: c.countryName(at.Code), Series: empty()}
		}
		return rows[at]
	}
	for _, n := range counts {
		i := int(n.At.Sub(from) / body.Period.step)
		if i < 0 || i >= body.Period.steps {
			continue
		}
		t := tally{n.Accepted, n.Succeeded, n.Failed}
		body.All.Tally[i] = body.All.Tally[i].plus(t)
		if t == (tally{}) {
			continue // calls alone: they are the authority's health
		}
		s := row(n.Environment).Series
		s.Tally[i] = s.Tally[i].plus(t)
	}
	health, err := c.cfg.Ledger.Health(v.ctx)
	if err != nil {
		return err
	}
	for i := range health {
		row(health[i].At).Authority = &health[i]
	}
	for _, r := range rows {
		r.Sum = r.Series.sum()
		body.Countries = append(body.Countries, *r)
	}
	slices.SortFunc(body.Countries, func(a, b countryRow) int { return strings.Compare(a.At.String(), b.At.String()) })
	body.Sum = body.All.sum()
	return nil
}

func (c *directory) countryName(code string) string {
	if p, ok := c.cfg.Atlas.Pack(code); ok {
		return p.Name
	}
	return code
}

// explain says what the codes of a country's authority mean that stand in a text.
func (c *directory) explain(code, text string) []country.AuthorityCode {
	p, _ := c.cfg.Atlas.Pack(code)
	return p.Explain(text)
}

// receivers lists where every client's events go, those in trouble first.
func (c *directory) receivers(v *request) ([]receiverRow, error) {
	clients, err := c.clientList(v)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(clients))
	names := map[string]string{}
	for i, cl := range clients {
		ids[i] = cl.ID
		names[cl.ID] = cl.Config.DisplayName
	}
	list, err := c.cfg.Hooks.Deliveries(v.ctx, ids)
	if err != nil {
		return nil, err
	}
	rows := groupReceivers(list, names)
	rank := func(r receiverRow) int { return slices.Index([]string{"open", "failing"}, r.State()) }
	slices.SortStableFunc(rows, func(a, b receiverRow) int {
		ra, rb := rank(a), rank(b)
		if ra < 0 {
			ra = 2
		}
		if rb < 0 {
			rb = 2
		}
		return ra - rb
	})
	return rows, nil
}

// groupReceivers puts together what goes to one address of a client: it has one
// breaker, whatever kinds of events it gets.
func groupReceivers(list []webhook.Delivery, names map[string]string) (rows []receiverRow) {
	counted := map[string]bool{}
	at := map[[2]string]int{}
	for _, d := range list {
		key := [2]string{d.ClientID, d.URL}
		if i, known := at[key]; known {
			row := &rows[i]
			row.Events = append(row.Events, d.EventType)
			row.Pending += d.Pending
			if row.OldestAt.IsZero() || !d.OldestAt.IsZero() && d.OldestAt.Before(row.OldestAt) {
				row.OldestAt = d.OldestAt
			}
			continue
		}
		if counted[d.ClientID] { // what was given up is counted for a client as a whole
			d.Discarded, d.DiscardedMore = 0, false
		}
		counted[d.ClientID], at[key] = true, len(rows)
		rows = append(rows, receiverRow{Delivery: d, Client: names[d.ClientID], Events: []string{d.EventType}})
	}
	return rows
}

func (c *directory) clientList(v *request) (list []account.Client, err error) {
	err = c.cfg.DB.Read(v.ctx, func(r db.Reader) (err error) {
		list, err = c.cfg.Accounts.List(r)
		return err
	})
	return list, err
}
