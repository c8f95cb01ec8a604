package console

import (
	"strconv"
	"time"

	"tributary/internal/account"
	"tributary/internal/lookup"
	"tributary/internal/onboarding"
)

const endingDaysMax = 3650

type suppliersBody struct {
	List      []onboarding.AnyCompany
	NextAt    string
	Client    string
	Country   string
	Text      string
	Ending    string
	Clients   []account.Client
	Countries []countryOption
	Now       time.Time
}

func (c *Console) suppliers(v *visit) (page, error) {
	query := v.r.URL.Query()
	body := &suppliersBody{Client: query.Get("client"), Country: query.Get("country"), Text: query.Get("q"), Ending: query.Get("ending"), Now: c.now()}
	p := page{Title: "Suppliers", Place: "Suppliers", Body: body}
	f := onboarding.AnyFilter{ClientID: body.Client, Country: body.Country, Text: body.Text, Limit: 50, Cursor: query.Get("after")}
	if days, err := strconv.Atoi(body.Ending); err == nil && days > 0 && days <= endingDaysMax {
		f.EndingBefore = body.Now.AddDate(0, 0, days)
	}
	var err error
	if body.Clients, err = c.clientList(v); err != nil {
		return p, err
	}
	for _, code := range c.cfg.Atlas.Codes() {
		body.Countries = append(body.Countries, countryOption{code, c.countryName(code)})
	}
	var next string
	body.List, next, err = c.cfg.Companies.ListAny(v.ctx, f)
	if next != "" {
		query.Set("after", next)
		body.NextAt = Root + "/suppliers?" + query.Encode()
	}
	return p, err
}

type lookupsBody struct {
	List    []lookup.AnyBatch
	NextAt  string
	Client  string
	Status  string
	Clients []account.Client
}

func (c *Console) lookups(v *visit) (page, error) {
	query := v.r.URL.Query()
	body := &lookupsBody{Client: query.Get("client"), Status: query.Get("status")}
	p := page{Title: "Lookups", Place: "Lookups", Body: body}
	var err error
	if body.Clients, err = c.clientList(v); err != nil {
		return p, err
	}
	var next string
	body.List, next, err = c.cfg.Lookups.ListAny(v.ctx, lookup.AnyFilter{ClientID: body.Client, Status: lookup.Progress(body.Status), Limit: 50, Cursor: query.Get("after")})
	if next != "" {
		query.Set("after", next)
		query.Del("seen")
		body.NextAt = Root + "/lookups?" + query.Encode()
	}
	return p, err
}

type batchBody struct {
	lookup.Batch
	ClientID string
	NextAt   string
}

func (c *Console) batch(v *visit) (page, error) {
	query := v.r.URL.Query()
	client, id := v.r.PathValue("client"), v.r.PathValue("batch")
	b, err := c.cfg.Lookups.Batch(v.ctx, client, id, 100, query.Get("after"))
	if err != nil {
		return page{}, err
	}
	body := &batchBody{Batch: b, ClientID: client}
	if b.NextCursor != nil && *b.NextCursor != "" {
		query.Set("after", string(*b.NextCursor))
		query.Del("seen")
		body.NextAt = v.r.URL.Path + "?" + query.Encode()
	}
	title := "Batch " + short(id)
	if b.BatchName != nil && *b.BatchName != "" {
		title = *b.BatchName
	}
	return page{Title: title, Place: "Lookups", Crumbs: []crumb{{"Lookups", Root + "/lookups"}}, Body: body}, nil
}
