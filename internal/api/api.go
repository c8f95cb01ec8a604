// Package api is the public HTTP face: routes, authentication, JSON and error
// bodies, and the description of it all as OpenAPI.
//
// It owns the wire form of requests and answers. It does not own any rule
// about what they mean: each handler hands over to the slice that does. Law:
// one table of routes makes both the mux and the OpenAPI document, so they
// cannot drift apart; and every refusal has one shape.
//
// Choices that a client meets: an unknown query parameter is refused, because a
// misspelled filter would answer too much; an unknown member of a body is a
// warning, because clients send what other providers know. A path that is not in
// its plain form is unknown, never redirected: a redirected POST arrives as a GET.
// Characters that reorder text (bidi embeddings, overrides, isolates) are refused
// everywhere, in notes too: what is read must be what is filed.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	documents "tributary"
	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/files"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/lookup"
	"tributary/internal/onboarding"
	"tributary/internal/received"
	"tributary/internal/site"
	"tributary/internal/transaction"
	"tributary/internal/turnstile"
	"tributary/internal/webhook"
)

// Config is what the API stands on.
type Config struct {
	Accounts     *account.Accounts
	Atlas        *country.Atlas
	Transactions *filing.Service
	Ledger       *ledger.Ledger
	Companies    *onboarding.Companies
	Lookups      *lookup.Lookups
	Documents    *files.Store
	Received     *received.Documents
	Hooks        *webhook.Hooks
	BaseURL      string
	Version      string
	Ready        func(context.Context) error // nil error: requests can be served
	Writable     func(context.Context) error // nil error: something can be stored
	Log          *slog.Logger
	Metrics      prometheus.Registerer
	Demo         func() *site.Demo // what the documentation can be tried with; nil: not a demo
	TrustProxy   bool              // the address of a request is the last of X-Forwarded-For
}

// bodyBytesMax is the largest request body, but for attachments; past it 413.
const bodyBytesMax = 1 << 20

// API is the public handler.
type API struct {
	cfg     Config
	log     *slog.Logger
	mux     *http.ServeMux
	took    *prometheus.HistogramVec
	unknown http.Handler // answers every path that is not ours
	openAPI []byte
	site    *site.Site
	now     func() time.Time
	large   *turnstile.Gate
	uploads *turnstile.Gate

	plainSite *site.Site // of a demo, without its key

	refusals refusals
}

// New builds the handler.
func New(cfg Config) (*API, error) {
	a := &API{cfg: cfg, log: cfg.Log, mux: http.NewServeMux(), now: time.Now, large: newLargeGate(),
		uploads: turnstile.New(uploadsMax, largeWaiting)}
	a.took = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "tributary_http_request_seconds", Help: "Time to answer a request of the public API.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
	}, []string{"route", "status"})
	if cfg.Metrics != nil {
		if err := cfg.Metrics.Register(a.took); err != nil {
			return nil, err
		}
	}
	routes := a.routes()
	byPath := map[string]map[string]route{}
	for _, r := range routes {
		if byPath[r.path] == nil {
			byPath[r.path] = map[string]route{}
		}
		byPath[r.path][r.method] = r
	}
	for at, methods := range byPath {
		handler := a.serve(at, methods)
		if at == responsePath {
			a.mux.Handle("/v1/transactions/{operation_id}/{verb}", a.verb("response", handler))
			continue
		}
		a.mux.Handle(at, handler)
		if before, parameter, ok := strings.Cut(at, "{"); at == "/docs/{page}" {
			a.mux.Handle("/docs/{$}", a.serve("/docs", byPath["/docs"])) // as people type it
		} else if ok && !strings.Contains(parameter, "/") {
			a.mux.Handle(before+"{$}", a.slash(strings.TrimSuffix(parameter, "}"), handler))
		}
	}
	for _, name := range site.Texts {
		a.mux.Handle("/"+name, a.serve("/docs", byPath["/docs"])) // where language models look for them
	}
	a.unknown = a.serve("unknown", nil)
	a.mux.Handle("/", a.unknown)
	var err error
	if a.openAPI, err = a.describe(routes); err != nil {
		return nil, err
	}
	a.site = a.newSite(false)
	a.plainSite = site.New(site.Config{Documents: documents.Documents, OpenAPI: a.openAPI})
	return a, nil
}

// ServeHTTP answers a request. An address that is not in its plain form, such
// as /v1//transactions, is unknown: the mux would redirect it, and a redirected
// POST arrives as a GET.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if at := r.URL.EscapedPath(); !plainPath(at) {
		a.unknown.ServeHTTP(w, r)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// slash answers for an id that is nothing but a slash: the mux takes the %2F of
// such an address for its end.
func (a *API) slash(parameter string, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(strings.ToUpper(r.URL.EscapedPath()), "%2F") {
			a.unknown.ServeHTTP(w, r)
			return
		}
		r.SetPathValue(parameter, "/")
		handler.ServeHTTP(w, r)
	})
}

// responsePath is a pattern that the mux does not take beside that of histories: none of both is the narrower one. As one
// of any word behind an operation it is the wider one.
const responsePath = "/v1/transactions/{operation_id}/response"

// verb answers one word behind an operation; all others are unknown.
func (a *API) verb(word string, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("verb") != word {
			a.unknown.ServeHTTP(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// plainPath reports whether the mux would leave the path as it is.
func plainPath(at string) bool {
	clean := path.Clean(at)
	return at == clean || at == clean+"/" && clean != "/"
}

// route is one line of the table.
type route struct {
	method string
	path   string
	open   bool // needs no key
	handle func(*call) error
	doc    operationDoc
}

// routes is the whole public API.
func (a *API) routes() []route {
	return []route{
		{"POST", "/v1/transactions", false, a.submit(transaction.Invoice), docSubmit},
		{"GET", "/v1/transactions", false, a.listTransactions, docList},
		{"POST", "/v1/transactions/validate", false, a.validate, docValidate},
		{"POST", "/v1/transactions/adjustment", false, a.submit(transaction.Adjustment), docAdjustment},
		{"POST", "/v1/transactions/credit", false, a.submit(transaction.Credit), docCredit},
		{"POST", "/v1/transactions/cancellation", false, a.submit(transaction.Cancellation), docCancellation},
		{"POST", "/v1/transactions/payment", false, a.submit(transaction.PaymentReport), docPayment},
		{"POST", "/v1/transactions/backfill/reported", false, a.submit(transaction.Backfill), docBackfill},
		{"POST", "/v1/transactions/received", false, a.receive, docReceive},
		{"POST", responsePath, false, a.respond, docRespond},
		{"GET", historyPath, false, a.history, docHistory},
		{"GET", "/v1/transactions/{operation_id}", false, a.result, docResult},
		{"GET", "/v1/me", false, me, docMe},
		{"GET", "/v1/series", false, a.listSeries, docListSeries},
		{"POST", "/v1/series", false, a.createSeries, docCreateSeries},
		{"GET", "/v1/countries", false, a.countries, docCountries},
		{"GET", "/v1/countries/{code}", false, a.country, docCountry},
		{"POST", "/onboarding/v2/companies", false, a.onboard, docOnboard},
		{"GET", "/onboarding/v2/companies", false, a.listCompanies, docCompanies},
		{"GET", "/onboarding/v2/companies/{id}", false, a.company, docCompany},
		{"PATCH", "/onboarding/v2/companies/{id}", false, a.patchCompany, docPatchCompany},
		{"DELETE", "/onboarding/v2/companies/{id}", false, a.closeCompany, docCloseCompany},
		{"GET", "/onboarding/v2/jobs/{job_id}", false, a.job, docJob},
		{"POST", "/lookup/v2/batch-validations", false, a.createBatch, docCreateBatch},
		{"GET", "/lookup/v2/batch-validations/{id}", false, a.batch, docBatch},
		{"DELETE", "/lookup/v2/batch-validations/{id}", false, a.cancelBatch, docCancelBatch},
		{"POST", "/lookup/v2/single-validations", false, a.createSingle, docCreateSingle},
		{"GET", "/lookup/v2/single-validations/{id}", false, a.single, docSingle},
		{"GET", "/v1/webhooks/events", false, a.events, docEvents},
		{"POST", "/v1/webhooks/events/{webhook_id}/redeliver", false, a.redeliver, docRedeliver},
		{"GET", documentPath, true, a.document, docDocument},
		{"GET", "/openapi.json", true, a.openAPIDocument, docOpenAPI},
		{"GET", "/docs", true, a.docsStart, docDocs},
		{"GET", "/docs/{page}", true, a.docsPage, docPage},
		{"GET", "/healthz", true, healthz, docHealth},
		{"GET", "/readyz", true, a.readyz, docReady},
	}
}
