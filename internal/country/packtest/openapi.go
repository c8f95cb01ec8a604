package packtest

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
)

// Description is an authority's own OpenAPI document.
type Description struct {
	router routers.Router
	seen   sync.Map // operations that were called, by method and path
	count  atomic.Int64
}

// Describe reads the document; base is the path that its operations stand under.
func Describe(t testing.TB, path, base string) *Description {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc.Servers = openapi3.Servers{{URL: base}}
	openapi3filter.RegisterBodyDecoder("application/xml", openapi3filter.FileBodyDecoder)
	router, err := legacy.NewRouter(doc, openapi3.DisableExamplesValidation(), openapi3.DisableSchemaDefaultsValidation())
	if err != nil {
		t.Fatal(err)
	}
	return &Description{router: router}
}

// Seen are the operations that were called, as "METHOD /path/{name}".
func (d *Description) Seen() map[string]bool {
	all := map[string]bool{}
	d.seen.Range(func(name, _ any) bool {
		all[name.(string)] = true
		return true
	})
	return all
}

// Count is how many answers were compared.
func (d *Description) Count() int64 { return d.count.Load() }

// Request says what is wrong with a call.
func (d *Description) Request(r *http.Request) error {
	_, err := d.request(r)
	return err
}

func (d *Description) request(r *http.Request) (*openapi3filter.RequestValidationInput, error) {
	route, params, err := d.router.FindRoute(r)
	if err != nil {
		return nil, err
	}
	d.seen.Store(route.Method+" "+route.Path, true)
	in := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	return in, openapi3filter.ValidateRequest(r.Context(), in)
}

// Watch puts the document between a caller and a double: every call and every
// answer must be one of it. Calls that exempt names are let through unseen.
func (d *Description) Watch(t testing.TB, double http.Handler, exempt func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if exempt != nil && exempt(r) {
			double.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading a request: %v", err)
		}
		asked := r.Clone(r.Context())
		asked.Body, r.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
		in, err := d.request(asked)
		if err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		if in == nil {
			double.ServeHTTP(w, r)
			return
		}
		kept := &keeping{ResponseWriter: w}
		double.ServeHTTP(kept, r)
		if kept.status == 0 || strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			return // a script's mishap: no answer of the authority
		}
		d.count.Add(1)
		err = openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
			RequestValidationInput: in, Status: kept.status, Header: w.Header(), Body: io.NopCloser(bytes.NewReader(kept.body)),
			Options: in.Options,
		})
		if err != nil {
			t.Errorf("%s %s answered %d: %v\n%s", r.Method, r.URL.Path, kept.status, err, kept.body)
		}
	})
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
