package console

import (
	"time"

	"tributary/internal/db"
	"tributary/internal/ledger"
)

// What one page shows.
const (
	periodsShown     = 50
	periodSalesShown = 100
)

type periodsBody struct {
	List   []ledger.Period
	Client string
	NextAt string
	Now    time.Time
}

// periods lists the periods in which sales are gathered, newest first.
func (c *Console) periods(v *request) (page, error) {
	query := v.r.URL.Query()
	body := &periodsBody{Client: query.Get("client"), Now: c.now()}
	p := page{Title: "Periods", Place: "Periods", Body: body}
	var next string
	err := c.cfg.DB.Read(v.ctx, func(r db.Reader) (err error) {
		body.List, next, err = ledger.Periods(r,
			ledger.PeriodFilter{ClientID: body.Client, Limit: periodsShown, After: query.Get("after")})
		return err
	})
	if next != "" {
		query.Set("after", next)
		body.NextAt = Root + "/periods?" + query.Encode()
	}
	return p, err
}

type periodBody struct {
	ledger.Period
	Sold   []ledger.PeriodSale
	NextAt string
	Now    time.Time
}

// period shows one, with its documents and its sales.
func (c *Console) period(v *request) (page, error) {
	body := &periodBody{Now: c.now()}
	p := page{Title: "Period", Place: "Periods", Body: body, Crumbs: []crumb{{Name: "Periods", Address: Root + "/periods"}}}
	id, query := v.r.PathValue("period"), v.r.URL.Query()
	var next string
	err := c.cfg.DB.Read(v.ctx, func(r db.Reader) (err error) {
		body.Period, body.Sold, next, err = ledger.PeriodOf(r, id, query.Get("after"), periodSalesShown)
		return err
	})
	p.Client = body.ClientID
	if next != "" {
		body.NextAt = Root + "/periods/" + id + "?after=" + next
	}
	return p, err
}
