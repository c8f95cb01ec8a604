package api

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/files"
	"tributary/internal/period"
	"tributary/internal/result"
	"tributary/internal/webhook"
)

const documentPath = "/invoicing/v1/invoices/{resource_id}/{format}"

// countryAnswer is a pack as clients see it: the very facts that validation reads.
type countryAnswer struct {
	Code    string   `json:"country_code"`
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Sources []string `json:"legal_sources"`
	Years   int      `json:"retention_years"`

	// Enabled is what the client may use it for; nil: it is not enabled.
	Enabled *country.UseCase `json:"enabled_use_case"`
	country.Facts
}

// countryOf shows a pack; a list without entries is empty, never null.
func (c *call) countryOf(p country.Pack) countryAnswer {
	f := p.Facts
	f.Languages, f.UseCases, f.Required, f.Forbidden = orEmpty(f.Languages), orEmpty(f.UseCases), orEmpty(f.Required),
		orEmpty(f.Forbidden)
	f.Allowed, f.MaxLengths, f.Regimes, f.ReasonCodes, f.Reasons = orEmpty(f.Allowed), orEmpty(f.MaxLengths),
		orEmpty(f.Regimes), orEmpty(f.ReasonCodes), orEmpty(f.Reasons)
	f.Roles = orEmpty(f.Roles)
	f.Rates, f.Corrections, f.Settings, f.Credentials = orEmpty(f.Rates), orEmpty(f.Corrections), orEmpty(f.Settings),
		orEmpty(f.Credentials)
	f.Formats, f.Derivations = orEmpty(f.Formats), orEmpty(f.Derivations)
	answer := countryAnswer{Code: p.Code, Name: p.Name, Version: p.Version, Sources: orEmpty(p.Sources),
		Years: p.KeptYears(), Facts: f}
	if useCase, enabled := c.caller.Config.UseCase(p.Code); enabled {
		answer.Enabled = &useCase
	}
	return answer
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (a *API) countries(c *call) error {
	q := c.query("enabled")
	only := q.oneOf("enabled", "true", "false")
	if err := q.err(); err != nil {
		return err
	}
	var list []countryAnswer
	for _, code := range a.cfg.Atlas.Codes() {
		if p, ok := a.cfg.Atlas.Pack(code); ok && a.cfg.Atlas.Offers(code, country.Live(c.caller.Live)) {
			if answer := c.countryOf(p); only == "" || (answer.Enabled != nil) == (only == "true") {
				list = append(list, answer)
			}
		}
	}
	return answerPage(c, pageOf(list, ""))
}

func (a *API) country(c *call) error {
	p, ok := a.cfg.Atlas.Pack(c.PathValue("code"))
	if !ok || !a.cfg.Atlas.Offers(p.Code, country.Live(c.caller.Live)) {
		return notFound("unknown country")
	}
	return c.answer(http.StatusOK, c.countryOf(p))
}

func (a *API) onboard(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	envelope, err := a.cfg.Companies.Create(c.Context(), c.caller.ClientID, c.caller.Live, body)
	if err != nil {
		return err
	}
	return c.answer(http.StatusAccepted, envelope)
}

func (a *API) job(c *call) error {
	envelope, err := a.cfg.Companies.Job(c.Context(), c.caller.ClientID, c.PathValue("job_id"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, envelope)
}

func (a *API) company(c *call) error {
	q := c.query("external-id")
	external := q.oneOf("external-id", "true", "false") == "true"
	if err := q.err(); err != nil {
		return err
	}
	company, err := a.cfg.Companies.Company(c.Context(), c.caller.ClientID, c.PathValue("id"), external)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, company)
}

func (a *API) listCompanies(c *call) error {
	q := c.query("limit", "cursor")
	limit, cursor := q.limit(), q.cursor()
	if err := q.err(); err != nil {
		return err
	}
	list, next, err := a.cfg.Companies.List(c.Context(), c.caller.ClientID, limit, cursor)
	if err != nil {
		return err
	}
	return answerPage(c, pageOf(list, next))
}

func (a *API) closeCompany(c *call) error {
	id := c.PathValue("id")
	err := a.cfg.Companies.Close(c.Context(), c.caller.ClientID, id, func(r db.Reader) (bool, error) {
		return period.Open(r, c.caller.ClientID, id)
	})
	if err != nil {
		return err
	}
	c.out.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) patchCompany(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	envelope, err := a.cfg.Companies.Patch(c.Context(), c.caller.ClientID, c.PathValue("id"), body)
	if err != nil {
		return err
	}
	return c.answer(http.StatusAccepted, envelope)
}

func (a *API) events(c *call) error {
	q := c.query("status", "from", "to", "limit", "cursor")
	f := webhook.Filter{
		Status: q.oneOf("status", "pending", "delivered", "discarded", "unsubscribed"),
		From:   q.time("from"), To: q.time("to"), Limit: q.limit(), After: q.cursor(),
	}
	if err := q.err(); err != nil {
		return err
	}
	list, next, err := a.cfg.Hooks.List(c.Context(), c.caller.ClientID, f)
	if err != nil {
		return err
	}
	rows := make([]eventAnswer, len(list))
	for i, e := range list {
		rows[i] = eventOf(e)
	}
	return answerPage(c, pageOf(rows, next))
}

// eventAnswer is an event as clients read it.
type eventAnswer struct {
	WebhookID   string         `json:"webhook_id"`
	EventType   string         `json:"event_type"`
	ResourceID  string         `json:"resource_id"`
	ResourceURL string         `json:"resource_url"`
	Status      webhook.Status `json:"status"`
	Tries       int            `json:"tries"`
	NextTryAt   *string        `json:"next_try_at"`
	LastStatus  *int           `json:"last_status"`
	CreatedAt   string         `json:"created_at"`
}

func eventOf(e webhook.EventRow) eventAnswer {
	row := eventAnswer{WebhookID: e.WebhookID, EventType: e.EventType, ResourceID: e.ResourceID, ResourceURL: e.ResourceURL,
		Status: e.Status, Tries: e.Tries, CreatedAt: result.Stamp(e.CreatedAt)}
	if !e.NextTryAt.IsZero() {
		next := result.Stamp(e.NextTryAt)
		row.NextTryAt = &next
	}
	if e.LastStatus != 0 {
		row.LastStatus = &e.LastStatus
	}
	return row
}

type redeliverAnswer struct {
	WebhookID string `json:"webhook_id"`
}

func (a *API) redeliver(c *call) error {
	id := c.PathValue("webhook_id")
	if err := a.cfg.Hooks.Redeliver(c.Context(), c.caller.ClientID, id); err != nil {
		return err
	}
	return c.answer(http.StatusAccepted, redeliverAnswer{id})
}

// document serves an attachment: by the owner's key, or by a signed address.
func (a *API) document(c *call) error {
	content, err := a.cfg.Documents.Open(c.Context(), files.Request{
		ResourceID: c.PathValue("resource_id"), Format: c.PathValue("format"), ClientID: c.caller.ClientID, Query: c.URL.Query(),
	})
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // only read
	head := c.out.Header()
	for name, values := range files.Headers(content) {
		head[name] = values
	}
	head.Set("Content-Length", strconv.FormatInt(content.Size, 10))
	c.out.WriteHeader(http.StatusOK)
	if c.Method != http.MethodHead {
		_, _ = io.Copy(c.out, content) // the client went away
	}
	return nil
}

func (a *API) openAPIDocument(c *call) error {
	c.raw(http.StatusOK, "application/json", a.openAPI)
	return nil
}

func healthz(c *call) error {
	c.raw(http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
	return nil
}

// readyz says whether requests can be served: reading is, also where nothing can be
// written any more, which is said only to those who ask.
func (a *API) readyz(c *call) error {
	q := c.query("write")
	write := q.oneOf("write", "1")
	if err := q.err(); err != nil {
		return err
	}
	if err := a.cfg.Ready(c.Context()); err != nil {
		return err
	}
	if write != "" {
		if err := a.cfg.Writable(c.Context()); err != nil {
			return err
		}
	}
	c.raw(http.StatusOK, "text/plain; charset=utf-8", []byte("ready\n"))
	return nil
}

// trimBase is the base address without its last slash.
func trimBase(base string) string { return strings.TrimSuffix(base, "/") }
