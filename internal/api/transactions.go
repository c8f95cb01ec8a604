package api

import (
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/transaction"
)

// operationAnswer is the 202 of every submission.
type operationAnswer struct {
	OperationID string `json:"operation_id"`
}

func (a *API) submit(kind transaction.Kind) func(*call) error {
	return func(c *call) error {
		body, err := c.bodyUpTo(transaction.BodyBytesMax)
		if err != nil {
			return err
		}
		id, err := a.cfg.Transactions.Submit(c.Context(), c.actingAs(), kind, body)
		if err != nil {
			return err
		}
		return c.answer(http.StatusAccepted, operationAnswer{id})
	}
}

// totalsAnswer shows what a transaction would amount to.
type totalsAnswer struct {
	TotalAmount    int64 `json:"total_amount"`
	TotalNetAmount int64 `json:"total_net_amount"`
	TotalTaxAmount int64 `json:"total_tax_amount"`
	Withheld       int64 `json:"total_withheld_amount"`
}

type validateAnswer struct {
	Valid    bool          `json:"valid"`
	Totals   totalsAnswer  `json:"totals"`
	Warnings []fault.Fault `json:"warnings"`
}

// validateKinds are what can be tried without being stored.
func validateKinds() []string {
	return []string{string(transaction.Invoice), string(transaction.Adjustment), string(transaction.Credit),
		string(transaction.Cancellation), string(transaction.PaymentReport)}
}

func (a *API) validate(c *call) error {
	q := c.query("kind")
	kind := transaction.Kind(q.oneOf("kind", validateKinds()...))
	if err := q.err(); err != nil {
		return err
	}
	if kind == "" {
		kind = transaction.Invoice
	}
	body, err := c.bodyUpTo(transaction.BodyBytesMax)
	if err != nil {
		return err
	}
	seen, err := a.cfg.Transactions.Validate(c.Context(), c.actingAs(), kind, body)
	if err != nil {
		return err
	}
	t := seen.Totals
	return c.answer(http.StatusOK, validateAnswer{Valid: true, Warnings: append([]fault.Fault{}, seen.Warnings...),
		Totals: totalsAnswer{TotalAmount: t.Gross, TotalNetAmount: t.Net, TotalTaxAmount: t.Tax, Withheld: t.Withheld}})
}

func (a *API) result(c *call) error {
	text, done, err := a.cfg.Ledger.Answer(c.Context(), c.caller.ClientID, c.PathValue("operation_id"))
	if err != nil {
		return err
	}
	defer done()
	c.raw(http.StatusOK, "application/json", text...)
	return nil
}

type historyAnswer struct {
	History []ledger.HistoryEntry `json:"history"`
}

// historyUnknown is the one 404 with a shape of its own: docs/specification.md, section 12.
type historyUnknown struct {
	Message       string `json:"message"`
	TransactionID string `json:"transaction_id"`
}

const historyPath = "/v1/transactions/history/{transaction_id}"

func (a *API) history(c *call) error {
	id := c.PathValue("transaction_id")
	if !db.Storable(id) {
		return c.answer(http.StatusNotFound, historyUnknown{"unknown transaction", id})
	}
	list, err := a.cfg.Ledger.History(c.Context(), c.caller.ClientID, id)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return c.answer(http.StatusNotFound, historyUnknown{"unknown transaction", id})
	}
	return c.answer(http.StatusOK, historyAnswer{list})
}

// page is the shape of every list.
type page[T any] struct {
	Data []T     `json:"data"`
	Next *string `json:"next_cursor"`
}

func pageOf[T any](data []T, next string) page[T] {
	p := page[T]{Data: append([]T{}, data...)}
	if next != "" {
		cursor := base64.RawURLEncoding.EncodeToString([]byte(next))
		p.Next = &cursor
	}
	return p
}

const (
	limitDefault = 20
	limitMax     = 100

	parameterShownMax = 64 // bytes of a client's own name that a message repeats
)

// query reads query parameters and collects what is wrong with them.
type query struct {
	values url.Values
	faults []fault.Fault
}

func (c *call) query(known ...string) *query {
	values, err := url.ParseQuery(c.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.faults = append(q.faults, fault.Fault{Code: fault.FieldNotValid, Type: fault.Validation,
			Message: "the query string is not valid percent-encoding"})
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name):
			q.wrong(strings.ToValidUTF8(name[:min(len(name), parameterShownMax)], "\uFFFD"), "unknown query parameter; %s",
				supported(known))
		case len(values[name]) > 1:
			q.wrong(name, "must appear only once")
		case !db.Storable(values.Get(name)):
			q.wrong(name, "must be valid UTF-8")
		}
	}
	return q
}

// supported says which query parameters an endpoint takes.
func supported(known []string) string {
	if len(known) == 0 {
		return "this endpoint takes none"
	}
	return "supported: " + strings.Join(known, ", ")
}

func (q *query) wrong(name, format string, args ...any) {
	q.faults = append(q.faults, fault.At(name, fault.FieldNotValid, format, args...))
}

func (q *query) limit() int {
	text := q.values.Get("limit")
	if text == "" {
		return limitDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > limitMax {
		q.wrong("limit", "must be a number from 1 to %d", limitMax)
	}
	return n
}

func (q *query) cursor() string {
	text := q.values.Get("cursor")
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(plain) > 200 {
		q.wrong("cursor", "must be a next_cursor of an earlier response")
	}
	return string(plain)
}

func (q *query) time(name string) time.Time {
	text := q.values.Get(name)
	if text == "" {
		return time.Time{}
	}
	if t, ok := transaction.ParseInstant(text); ok {
		if name == "to" && t.Nanosecond() == 0 {
			t = t.Add(time.Second - time.Microsecond) // the whole second that answers print
		}
		return t
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		if name == "to" {
			t = t.AddDate(0, 0, 1).Add(-time.Microsecond) // the whole day
		}
		return t
	}
	q.wrong(name, "must be a time such as 2026-01-31T00:00:00Z or a date such as 2026-01-31")
	return time.Time{}
}

// matching reads a parameter of a form.
func (q *query) matching(name string, form *regexp.Regexp, what string) string {
	text := q.values.Get(name)
	if text != "" && !form.MatchString(text) {
		q.wrong(name, "must be %s", what)
	}
	return text
}

func (q *query) oneOf(name string, allowed ...string) string {
	text := q.values.Get(name)
	if text == "" {
		return ""
	}
	for _, v := range allowed {
		if v == text {
			return text
		}
	}
	q.wrong(name, "must be one of %s", strings.Join(allowed, ", "))
	return ""
}

func (q *query) err() error {
	if len(q.faults) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "invalid query").With(q.faults...)
}

var (
	countryForm   = regexp.MustCompile(`^[A-Za-z]{2}$`)
	operationForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

func directions() []string {
	return []string{string(ledger.Sent), string(ledger.Received), string(ledger.All)}
}

func (a *API) listTransactions(c *call) error {
	q := c.query("status", "country_code", "supplier_id", "transaction_number", "direction", "from", "to", "limit",
		"cursor")
	f := ledger.Filter{
		Direction:  ledger.Direction(q.oneOf("direction", directions()...)),
		Status:     filing.Status(q.oneOf("status", string(filing.Success), string(filing.Processing), string(filing.Failure))),
		Country:    strings.ToUpper(q.matching("country_code", countryForm, "a two-letter country code")),
		SupplierID: q.values.Get("supplier_id"), Number: q.values.Get("transaction_number"),
		From: q.time("from"), To: q.time("to"), Limit: q.limit(), After: q.cursor(),
	}
	if f.After != "" && !operationForm.MatchString(f.After) {
		q.wrong("cursor", "must be a next_cursor of an earlier response")
	}
	if err := q.err(); err != nil {
		return err
	}
	list, next, err := a.cfg.Ledger.List(c.Context(), c.caller.ClientID, f)
	if err != nil {
		return err
	}
	return answerPage(c, pageOf(list, next))
}
