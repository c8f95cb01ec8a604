package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"tributary/docs/examples"
)

type object = map[string]any

// caller speaks to a running program with one key and holds every answer
// against the published description: a test that calls anything checks that, too.
type caller struct {
	p   *program
	key string
}

func (p *program) as(key string) *caller { return &caller{p, key} }

// answer is a reply, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) json(t testing.TB) object {
	t.Helper()
	var o object
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		t.Fatalf("status %d, body %.200q: %v", a.status, a.body, err)
	}
	return o
}

// code is that of the first fault of a refusal.
func (a answer) code(t testing.TB) string {
	t.Helper()
	faults, _ := a.json(t)["errors"].([]any)
	if len(faults) == 0 {
		t.Fatalf("status %d without faults: %s", a.status, a.body)
	}
	return faults[0].(object)["code"].(string)
}

// do makes a request and checks the answer against its schema. body is nil,
// a string of JSON, or a value to encode. headers come in pairs.
func (c *caller) do(t testing.TB, method, path string, body any, headers ...string) answer {
	t.Helper()
	r := c.request(t, method, path, body, headers...)
	got := exchange(t, r)
	describedBy(t, c.p).check(t, r, got)
	return got
}

func (c *caller) request(t testing.TB, method, path string, body any, headers ...string) *http.Request {
	t.Helper()
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	case []byte:
		content = bytes.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, c.p.URL()+path, content)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func exchange(t testing.TB, r *http.Request) answer {
	t.Helper()
	reply, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{reply.StatusCode, reply.Header, text}
}

// want makes a request that must be answered with a status.
func (c *caller) want(t testing.TB, status int, method, path string, body any, headers ...string) answer {
	t.Helper()
	got := c.do(t, method, path, body, headers...)
	// a busy machine; clients are told to come back
	for again := 0; got.status == http.StatusServiceUnavailable && status != got.status && again < 20; again++ {
		<-time.After(250 * time.Millisecond)
		got = c.do(t, method, path, body, headers...)
	}
	if got.status != status {
		t.Fatalf("%s %s answers %d %.600s, want %d", method, path, got.status, got.body, status)
	}
	return got
}

// submit sends a transaction and returns its operation.
func (c *caller) submit(t testing.TB, path string, body any) string {
	t.Helper()
	return c.want(t, http.StatusAccepted, http.MethodPost, path, body).json(t)["operation_id"].(string)
}

// outcome waits for an operation's event and returns its result.
func (c *caller) outcome(t testing.TB, operation string) object {
	t.Helper()
	n := c.p.inbox.await(t, operation, 1)[0]
	if want := c.p.URL() + "/v1/transactions/" + operation; n.EventType != "transactions.transaction_completed" ||
		n.ResourceURL != want {
		t.Errorf("event %+v, want one for %s", n, want)
	}
	return c.want(t, http.StatusOK, http.MethodGet, "/v1/transactions/"+operation, nil).json(t)
}

// example is a body of docs/examples with members replaced; nil deletes one.
func example(t testing.TB, name string, changes object) object {
	t.Helper()
	text, err := examples.Files.ReadFile(name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var body object
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&body); err != nil {
		t.Fatal(err)
	}
	for member, value := range changes {
		if value == nil {
			delete(body, member)
		} else {
			body[member] = value
		}
	}
	return body
}

// sale is the example invoice under an id and number of its own.
func (p *program) sale(t testing.TB, id string, changes object) object {
	t.Helper()
	all := object{"transaction_id": id, "transaction_number": "N-" + id,
		"supplier": object{"id": p.Demo().Suppliers["XX"]}}
	maps.Copy(all, changes)
	return example(t, "invoice", all)
}

// described is the published description with its schemas compiled.
type described struct {
	doc      object
	compiler *jsonschema.Compiler
	paths    []describedPath
	mu       sync.Mutex
	schemas  map[string]*jsonschema.Schema
}

type describedPath struct {
	path string
	form *regexp.Regexp
}

// descriptions are read once per program.
var descriptions sync.Map

func describedBy(t testing.TB, p *program) *described {
	t.Helper()
	if d, ok := descriptions.Load(p); ok {
		return d.(*described)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+"/openapi.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(exchange(t, r).body))
	if err != nil {
		t.Fatal(err)
	}
	d := &described{doc: raw.(object), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	closeAnswers(d.doc)
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	d.compiler.UseRegexpEngine(ecma)
	if err := d.compiler.AddResource("https://description/openapi.json", d.doc); err != nil {
		t.Fatal(err)
	}
	for path := range d.doc["paths"].(object) {
		form := regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`)
		d.paths = append(d.paths, describedPath{path, regexp.MustCompile("^" + form + "$")})
	}
	slices.SortFunc(d.paths, func(a, b describedPath) int { // a fixed path goes before a parameter
		return strings.Compare(strings.ReplaceAll(a.path, "{", "~"), strings.ReplaceAll(b.path, "{", "~"))
	})
	descriptions.Store(p, d)
	return d
}

// ecma reads \uXXXX, which Go spells otherwise.
func ecma(pattern string) (jsonschema.Regexp, error) {
	return regexp.Compile(regexp.MustCompile(`\\u([0-9A-F]{4})`).ReplaceAllString(pattern, `\x{$1}`))
}

// closeAnswers lets no answer have a member that is not described.
func closeAnswers(doc object) {
	schemas := doc["components"].(object)["schemas"].(object)
	requests := map[string]bool{}
	var mark func(any)
	mark = func(v any) {
		switch v := v.(type) {
		case object:
			if name, ok := v["$ref"].(string); ok {
				name = name[strings.LastIndex(name, "/")+1:]
				if !requests[name] {
					requests[name] = true
					mark(schemas[name])
				}
			}
			for _, child := range v {
				mark(child)
			}
		case []any:
			for _, child := range v {
				mark(child)
			}
		}
	}
	for _, methods := range doc["paths"].(object) {
		for _, op := range methods.(object) {
			mark(op.(object)["requestBody"])
		}
	}
	for name, s := range schemas {
		schema := s.(object)
		if _, open := schema["additionalProperties"]; !open && !requests[name] && schema["properties"] != nil {
			schema["additionalProperties"] = false
		}
	}
}

func (d *described) schema(t testing.TB, pointer string) *jsonschema.Schema {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.schemas[pointer]; ok {
		return s
	}
	s, err := d.compiler.Compile("https://description/openapi.json#" + pointer)
	if err != nil {
		t.Fatalf("the schema at %s: %v", pointer, err)
	}
	d.schemas[pointer] = s
	return s
}

// operation finds the described operation of a request.
func (d *described) operation(r *http.Request) (path, method string, found bool) {
	method = strings.ToLower(r.Method)
	if method == "head" {
		method = "get"
	}
	for _, p := range d.paths {
		if p.form.MatchString(r.URL.EscapedPath()) {
			_, found = d.doc["paths"].(object)[p.path].(object)[method]
			return p.path, method, found
		}
	}
	return "", method, false
}

// check fails the test when an answer is not as described.
func (d *described) check(t testing.TB, r *http.Request, got answer) {
	t.Helper()
	if got.header.Get("X-Request-Id") == "" {
		t.Errorf("%s %s: no X-Request-Id", r.Method, r.URL)
	}
	path, method, found := d.operation(r)
	pointer := "/components/schemas/Error"
	if found {
		status := fmt.Sprint(got.status)
		answers := d.doc["paths"].(object)[path].(object)[method].(object)["responses"].(object)
		described, ok := answers[status].(object)
		if !ok {
			t.Errorf("%s %s answers %s %.300s, which is not described", r.Method, path, status, got.body)
			return
		}
		if got.status >= http.StatusBadRequest && r.Method != http.MethodHead {
			checkCodes(t, r, described, got)
		}
		content, _ := described["content"].(object)
		media, _, _ := strings.Cut(got.header.Get("Content-Type"), ";")
		if len(content) == 0 && len(got.body) == 0 {
			return
		}
		if _, ok := content[media]; !ok {
			t.Errorf("%s %s answers %s as %q, described are %v", r.Method, path, status, media,
				slices.Collect(maps.Keys(content)))
			return
		}
		if content[media].(object)["schema"] == nil {
			return
		}
		pointer = "/paths/" + escapePointer(path) + "/" + method + "/responses/" + status + "/content/" +
			escapePointer(media) + "/schema"
	}
	if r.Method == http.MethodHead {
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(got.body))
	if err != nil {
		t.Errorf("%s %s answers %d with %.300q: %v", r.Method, r.URL.Path, got.status, got.body, err)
		return
	}
	if err := d.schema(t, pointer).Validate(value); err != nil {
		t.Errorf("%s %s answers %d %.600s, which is not as described: %v", r.Method, r.URL.Path, got.status, got.body, err)
	}
}

// checkCodes holds the codes of a refusal against those that the operation says
// it may have.
func checkCodes(t testing.TB, r *http.Request, described object, got answer) {
	t.Helper()
	var body struct{ Errors []struct{ Code string } }
	if err := json.Unmarshal(got.body, &body); err != nil {
		return // the schema is checked by the caller
	}
	codes, _ := described["x-codes"].([]any)
	for _, f := range body.Errors {
		if !slices.Contains(codes, any(f.Code)) {
			t.Errorf("%s %s answers %d with %s, which is not among its codes %v", r.Method, r.URL.Path, got.status, f.Code,
				codes)
		}
	}
}

func escapePointer(part string) string {
	return url.PathEscape(strings.ReplaceAll(strings.ReplaceAll(part, "~", "~0"), "/", "~1"))
}
