package console

import (
	"strconv"
	"time"

	"tributary/internal/account"
	"tributary/internal/fault"
	"tributary/internal/ledger"
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

func (c *Console) suppliers(v *request) (page, error) {
	query := v.r.URL.Query()
	body := &suppliersBody{Client: query.Get("client"), Country: query.Get("country"), Text: query.Get("q"),
		Ending: query.Get("ending"), Now: c.now()}
	p := page{Title: "Suppliers", Place: "Suppliers", Body: body}
	f := onboarding.AnyFilter{ClientID: body.Client, Country: body.Country, Text: body.Text, Limit: 50,
		Cursor: query.Get("after")}
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
	if f.Text != "" {
		if f.OrIDs, err = c.cfg.Ledger.Namesakes(v.ctx, f.Text, f.Limit); err != nil {
			return p, err
		}
	}
	var next string
	body.List, next, err = c.cfg.Companies.ListAny(v.ctx, f)
	if next != "" {
		query.Set("after", next)
		body.NextAt = Root + "/suppliers?" + query.Encode()
	}
	return p, err
}

type supplierBody struct {
	onboarding.AnyCompany
	Lanes []ledger.SupplierLane
	Lines []ledger.Line // the newest transactions
	Open  int
	Now   time.Time
}

// supplier shows one company: its credentials, its queues with what they wait
// for, the head of its chain, and its newest transactions.
func (c *Console) supplier(v *request) (page, error) {
	client, id := v.r.PathValue("client"), v.r.PathValue("company")
	list, _, err := c.cfg.Companies.ListAny(v.ctx, onboarding.AnyFilter{ClientID: client, Text: id, Limit: 1})
	if err != nil {
		return page{}, err
	}
	if len(list) == 0 || list[0].ID != id {
		return page{}, fault.New(fault.NotFound, "This client has no such supplier.")
	}
	body := &supplierBody{AnyCompany: list[0], Now: c.now()}
	if body.Lanes, err = c.cfg.Ledger.SupplierLanes(v.ctx, client, id); err != nil {
		return page{}, err
	}
	for _, l := range body.Lanes {
		body.Open += l.Open
	}
	found, err := c.cfg.Ledger.Search(v.ctx, ledger.Query{Text: id, ClientID: client, Limit: 20})
	if err != nil {
		return page{}, err
	}
	body.Lines, err = c.cfg.Ledger.Lines(v.ctx, found.List)
	return page{Title: body.LegalName, Place: "Suppliers", Crumbs: []crumb{{"Suppliers", Root + "/suppliers"}},
		Client: client, Body: body}, err
}

type lookupsBody struct {
	List    []lookup.AnyBatch
	NextAt  string
	Client  string
	Status  string
	Clients []account.Client
}

func (c *Console) lookups(v *request) (page, error) {
	query := v.r.URL.Query()
	body := &lookupsBody{Client: query.Get("client"), Status: query.Get("status")}
	p := page{Title: "Lookups", Place: "Lookups", Body: body}
	var err error
	if body.Clients, err = c.clientList(v); err != nil {
		return p, err
	}
	var next string
	body.List, next, err = c.cfg.Lookups.ListAny(v.ctx,
		lookup.AnyFilter{ClientID: body.Client, Status: lookup.Progress(body.Status), Limit: 50, Cursor: query.Get("after")})
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

func (c *Console) batch(v *request) (page, error) {
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
	return page{Title: title, Place: "Lookups", Crumbs: []crumb{{"Lookups", Root + "/lookups"}}, Client: client,
		Body: body}, nil
}
