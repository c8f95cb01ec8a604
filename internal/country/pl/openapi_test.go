package pl_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
)

// described is KSeF's own OpenAPI document with its routes.
var described = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromFile(descriptionPath)
	if err != nil {
		return nil, err
	}
	doc.Servers = openapi3.Servers{{URL: "/v2"}}
	openapi3filter.RegisterBodyDecoder("application/xml", openapi3filter.FileBodyDecoder)
	return legacy.NewRouter(doc, openapi3.DisableExamplesValidation(), openapi3.DisableSchemaDefaultsValidation())
})

var descriptionPath string

// watch puts the official document between both sides: every request of ours
// and every answer of the double must be one of it.
func watch(t *testing.T, pack *country.Pack) *atomic.Int64 {
	t.Helper()
	descriptionPath = packtest.Schemas(t, "pl-ksef", "open-api.json")
	router, err := described()
	if err != nil {
		t.Fatal(err)
	}
	var seen atomic.Int64
	inner := pack.Simulator
	pack.Simulator = func(d *country.Desk) http.Handler {
		if err := seed(d, ministryKey()); err != nil {
			t.Error(err)
		}
		return watched{t: t, router: router, next: inner(d), seen: &seen}
	}
	return &seen
}

type watched struct {
	t      *testing.T
	router routers.Router
	next   http.Handler
	seen   *atomic.Int64
}

func (o watched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		o.t.Errorf("reading a request: %v", err)
	}
	asked := r.Clone(r.Context())
	asked.Body, r.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
	route, params, err := o.router.FindRoute(asked)
	if err != nil {
		o.t.Errorf("%s %s is no call of KSeF: %v", r.Method, r.URL.Path, err)
		o.next.ServeHTTP(w, r)
		return
	}
	in := &openapi3filter.RequestValidationInput{
		Request: asked, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
		o.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	kept := &keeping{ResponseWriter: w}
	o.next.ServeHTTP(kept, r)
	if kept.status == 0 || strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		return // a script's mishap: no answer of KSeF
	}
	o.seen.Add(1)
	err = openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: kept.status, Header: w.Header(), Body: io.NopCloser(bytes.NewReader(kept.body)), Options: in.Options,
	})
	if err != nil {
		o.t.Errorf("%s %s answered %d: %v\n%s", r.Method, r.URL.Path, kept.status, err, kept.body)
	}
}

// keeping remembers what was answered.
type keeping struct {
	http.ResponseWriter
	status int
	body   []byte
}

func (k *keeping) Unwrap() http.ResponseWriter { return k.ResponseWriter }

func (k *keeping) WriteHeader(status int) {
	k.status = status
	k.ResponseWriter.WriteHeader(status)
}

func (k *keeping) Write(b []byte) (int, error) {
	if k.status == 0 {
		k.status = http.StatusOK
	}
	k.body = append(k.body, b...)
	return k.ResponseWriter.Write(b)
}
