package console

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"tributary/internal/breaker"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/endpoint"
	"tributary/internal/inbox"
	"tributary/internal/ledger"
)

// authorityRow is one environment of an authority.
type authorityRow struct {
	Environment country.Environment
	Name        string
	Address     string
	From        string // who said the address, see country.FromFlag
	Takes       bool   // it takes an identity of the operator's
	Calls       bool   // it calls us
	Stored      endpoint.Shown
	Callback    string
	Expiry      string // badgeClass of the certificate's end
	Health      ledger.Authority
	Breaker     *breaker.Open // nil: calls go through
	Traffic     series        // calls: answered as succeeded, the others as failed
	Took        time.Duration // of a call, on average
}

// CallsSum is all calls of the period.
func (r authorityRow) CallsSum() tally { return r.Traffic.sum() }

// FailedShare is how many of a hundred calls brought no answer.
func (r authorityRow) FailedShare() string {
	sum := r.Traffic.sum()
	if sum.Accepted == 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(sum.Failed)/float64(sum.Accepted), 'f', 1, 64) + " %"
}

type authoritiesBody struct {
	Period  period
	Periods []period
	Rows    []authorityRow
	Unknown []inbox.Message // that speak of no filing of ours
	Calls   []ledger.Call   // the newest
	Now     time.Time
}

// unknownShown is how many messages without a filing one page has.
const unknownShown = 50

// callsShown is how many of the last calls one page has.
const callsShown = 20

// authorities shows where each authority is called, in whose name, and why what
// waits for it waits.
func (c *Console) authorities(v *request) (page, error) {
	body := &authoritiesBody{Period: choose(periods(), v.r.URL.Query().Get("over")), Periods: periods(), Now: c.now()}
	p := page{Title: "Authorities", Place: "Authorities", Body: body}
	stored := map[string]endpoint.Shown{}
	var open []breaker.Open
	err := c.cfg.DB.Read(v.ctx, func(r db.Reader) error {
		list, err := c.cfg.Endpoints.List(r)
		for _, s := range list {
			stored[s.Name()] = s
		}
		if err == nil {
			body.Unknown, err = inbox.Unknown(r, unknownShown)
		}
		if err == nil {
			open, err = breaker.All(r, c.cfg.DB.Now())
		}
		return err
	})
	if err != nil {
		return p, err
	}
	health := map[country.Environment]ledger.Authority{}
	all, err := c.cfg.Ledger.Health(v.ctx)
	if err != nil {
		return p, err
	}
	for _, a := range all {
		health[a.At] = a
	}
	if body.Calls, err = c.cfg.Ledger.LastCalls(v.ctx, callsShown); err != nil {
		return p, err
	}
	for _, code := range c.cfg.Atlas.Codes() {
		pack, _ := c.cfg.Atlas.Pack(code)
		for _, live := range []country.Live{true, false} {
			at := country.Environment{Code: code, Live: live}
			if pack.Connect == nil || !c.cfg.Atlas.Offers(code, live) {
				continue
			}
			row := authorityRow{Environment: at, Name: pack.Name, Stored: stored[at.String()], Takes: pack.Identity != nil, Calls: pack.Callbacks != nil,
				Health: health[at]}
			row.Health.At, row.Health.Files = at, true
			row.Address, row.From = c.cfg.Atlas.Address(at)
			if e, err := c.cfg.Atlas.Endpoint(code, live); err == nil && pack.Callbacks != nil {
				row.Callback = e.Callback
			}
			if cert := row.Stored.Certificate; cert != nil {
				row.Expiry = expiryBadge(body.Now, cert.ExpiresAt)
			}
			if i := slices.IndexFunc(open, func(b breaker.Open) bool { return b.At == at }); i >= 0 {
				row.Breaker = &open[i]
			}
			body.Rows = append(body.Rows, row)
		}
	}
	if err := c.countCalls(v, body); err != nil {
		return p, err
	}
	slices.SortStableFunc(body.Rows, func(a, b authorityRow) int { return cmp.Compare(a.Environment.Code, b.Environment.Code) })
	return p, nil
}

// countCalls adds how calls went and how long they took, over the period.
func (c *Console) countCalls(v *request, body *authoritiesBody) error {
	to := body.Now.UTC().Truncate(body.Period.step).Add(body.Period.step)
	from := to.Add(-time.Duration(body.Period.steps) * body.Period.step)
	counts, err := c.cfg.Ledger.Counts(v.ctx, from, to, body.Period.step)
	if err != nil {
		return err
	}
	took := map[country.Environment]time.Duration{}
	for i := range body.Rows {
		body.Rows[i].Traffic = series{From: from, Step: body.Period.step, Tally: make([]tally, body.Period.steps)}
	}
	for _, n := range counts {
		row := slices.IndexFunc(body.Rows, func(r authorityRow) bool { return r.Environment == n.Environment })
		step := int(n.At.Sub(from) / body.Period.step)
		if row < 0 || step < 0 || step >= body.Period.steps {
			continue
		}
		s := body.Rows[row].Traffic
		s.Tally[step] = s.Tally[step].plus(tally{n.Calls, n.Calls - n.CallsFailed, n.CallsFailed})
		took[n.Environment] += time.Duration(n.CallsTook) * time.Microsecond
	}
	for i := range body.Rows {
		if n := body.Rows[i].Traffic.sum().Accepted; n > 0 {
			body.Rows[i].Took = took[body.Rows[i].Environment] / time.Duration(n)
		}
	}
	return nil
}

// expiryBadge is the badge of a certificate's end.
func expiryBadge(now, end time.Time) string {
	switch left := end.Sub(now); {
	case left <= 24*time.Hour:
		return "bad"
	case left <= 30*24*time.Hour:
		return "busy"
	}
	return "good"
}
