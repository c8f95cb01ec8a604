package console

import (
	"cmp"
	"strconv"
	"time"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/ledger"
	"tributary/internal/lookup"
	"tributary/internal/onboarding"
)

const endingDaysMax = 3650

// companyColumns are those by which the list of suppliers can be sorted.
var companyColumns = columns[onboarding.AnyCompany]{
	"name":    func(a, b onboarding.AnyCompany) int { return alphabetical(a.LegalName, b.LegalName) },
	"country": func(a, b onboarding.AnyCompany) int { return cmp.Compare(a.Meta.CountryCode, b.Meta.CountryCode) },
	"tax": func(a, b onboarding.AnyCompany) int {
		return alphabetical(a.TaxInformation.TaxNumber, b.TaxInformation.TaxNumber)
	},
	"client":  func(a, b onboarding.AnyCompany) int { return alphabetical(a.ClientID, b.ClientID) },
	"status":  func(a, b onboarding.AnyCompany) int { return cmp.Compare(a.Status, b.Status) },
	"changed": func(a, b onboarding.AnyCompany) int { return time.Time(a.UpdatedAt).Compare(time.Time(b.UpdatedAt)) },
}

// batchColumns are those by which the list of lookups can be sorted.
var batchColumns = columns[lookup.AnyBatch]{
	"client":    func(a, b lookup.AnyBatch) int { return alphabetical(a.ClientID, b.ClientID) },
	"status":    func(a, b lookup.AnyBatch) int { return cmp.Compare(a.Status, b.Status) },
	"answered":  func(a, b lookup.AnyBatch) int { return cmp.Compare(a.Answered, b.Answered) },
	"numbers":   func(a, b lookup.AnyBatch) int { return cmp.Compare(a.Entries, b.Entries) },
	"requested": func(a, b lookup.AnyBatch) int { return a.RequestedAt.Compare(b.RequestedAt) },
	"finished":  func(a, b lookup.AnyBatch) int { return a.EndedAt.Compare(b.EndedAt) },
}

type suppliersBody struct {
	List      []onboarding.AnyCompany
	NextAt    string
	Client    string
	Country   string
	Text      string
	Ending    string
	Order     order
	Clients   []account.Client
	Countries []countryOption
	Now       time.Time
}

func (c *Console) suppliers(v *request) (page, error) {
	query := v.r.URL.Query()
	body := &suppliersBody{Client: query.Get("client"), Country: query.Get("country"), Text: query.Get("q"),
		Ending: query.Get("ending"), Now: c.now(), Order: readOrder(v, Root+"/suppliers")}
	p := page{Title: "Suppliers", Place: "Suppliers", Body: body}
	f := onboarding.AnyFilter{ClientID: body.Client, Country: body.Country, Text: body.Text}
	if days, err := strconv.Atoi(body.Ending); err == nil && days > 0 && days <= endingDaysMax {
		f.EndingBefore = body.Now.AddDate(0, 0, days)
	}
	var err error
	if body.Clients, err = c.dir.clientList(v); err != nil {
		return p, err
	}
	for _, code := range c.cfg.Atlas.Codes() {
		body.Countries = append(body.Countries, countryOption{code, c.dir.countryName(code)})
	}
	if f.Text != "" {
		if f.OrIDs, err = c.cfg.Ledger.Namesakes(v.ctx, f.Text, sortedPage); err != nil {
			return p, err
		}
	}
	var next string
	body.List, next, err = inOrder(&body.Order, query.Get("after"), companyColumns,
		func(after string, limit int) ([]onboarding.AnyCompany, string, error) {
			f.Cursor, f.Limit = after, cmp.Or(limit, sortedPage)
			return c.cfg.Companies.ListAny(v.ctx, f)
		})
	body.NextAt = body.Order.next(next)
	return p, err
}

type supplierBody struct {
	onboarding.AnyCompany
	Lanes []ledger.SupplierLane
	Lines []ledger.Line // the newest transactions
	Open  int

	Sources   []ledger.Source
	Aside     []ledger.Aside // received documents that were kept aside, the newest
	AsideMore bool

	Now time.Time
}

// supplier shows one company: its credentials, its queues with what they wait
// for, the head of its chain, what brings it messages and documents, and its newest transactions.
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
	body.Sources, body.Aside, body.AsideMore, err = c.cfg.Ledger.Sources(v.ctx, client, id, country.Live(body.Live))
	if err != nil {
		return page{}, err
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
	Order   order
	Clients []account.Client
}

func (c *Console) lookups(v *request) (page, error) {
	query := v.r.URL.Query()
	body := &lookupsBody{Client: query.Get("client"), Status: query.Get("status"), Order: readOrder(v, Root+"/lookups")}
	p := page{Title: "Lookups", Place: "Lookups", Body: body}
	var err error
	if body.Clients, err = c.dir.clientList(v); err != nil {
		return p, err
	}
	var next string
	body.List, next, err = inOrder(&body.Order, query.Get("after"), batchColumns,
		func(after string, limit int) ([]lookup.AnyBatch, string, error) {
			return c.cfg.Lookups.ListAny(v.ctx, lookup.AnyFilter{ClientID: body.Client, Status: lookup.Progress(body.Status),
				Limit: cmp.Or(limit, sortedPage), Cursor: after})
		})
	body.NextAt = body.Order.next(next)
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
