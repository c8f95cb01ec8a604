package api

import (
	"encoding"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"tributary/docs/examples"
	"tributary/internal/fault"
	"tributary/internal/lookup"
	"tributary/internal/onboarding"
	"tributary/internal/result"
	"tributary/internal/webhook"
)

// object is a JSON object of the description.
type object = map[string]any

// operationDoc describes a route. What it answers is a Go value whose type
// becomes the schema: the very type that the handler encodes.
type operationDoc struct {
	tag         string
	summary     string
	description string
	params      []param
	request     string   // name of a request schema, or ""
	uploads     []string // media types of a body of bytes; nil: it has none
	example     string   // file of docs/examples without its ending, or ""
	answers     map[int]any
	refuses     []fault.Code // of a 400; nil: those of any body or query
	results     []fault.Code // what a result may say later
}

// param is a path or query parameter.
type param struct {
	name   string
	in     string
	about  string
	schema object
}

// media are the types of an answer that is not JSON.
type media []string

// whole is an answer with members that its Go type may leave out elsewhere.
type whole struct {
	answer   any
	required []string
}

// describe makes the OpenAPI document from the table of routes.
func (a *API) describe(routes []route) ([]byte, error) {
	paths := object{}
	schemas := &schemaBook{components: requestSchemas(), made: map[string]reflect.Type{}}
	schemas.of(reflect.TypeFor[errorBody]())
	for _, r := range routes {
		entry, _ := paths[r.path].(object)
		if entry == nil {
			entry = object{}
			paths[r.path] = entry
		}
		entry[strings.ToLower(r.method)] = a.describeRoute(r, schemas)
	}
	doc := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Tributary", "version": a.cfg.Version, "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Transaction reporting and e-invoicing. Amounts are integers in minor units of the currency. Results come by webhook; see the guide.",
		},
		"servers": []any{object{"url": trimBase(a.cfg.BaseURL)}},
		"tags": []any{
			object{"name": "Transactions", "description": "Sales, and corrections of sales."},
			object{"name": "Countries", "description": "Requirements of each country."},
			object{"name": "Onboarding", "description": "Companies on whose behalf sales are issued."},
			object{"name": "Lookup", "description": "Tax-number validation."},
			object{"name": "Webhooks", "description": "Events and their delivery."},
			object{"name": "Documents", "description": "Generated files."},
			object{"name": "Service", "description": "The service itself."},
		},
		"paths":      paths,
		"security":   security(),
		"webhooks":   webhookDocs(),
		"components": object{"schemas": schemas.components, "securitySchemes": securitySchemes()},
		"x-codes":    codeTable(),
	}
	if schemas.err != nil {
		return nil, schemas.err
	}
	return json.Marshal(doc)
}

func security() []any {
	return []any{object{"bearer": []any{}}, object{"apiKey": []any{}}, object{"subscriptionKey": []any{}}}
}

func securitySchemes() object {
	return object{
		"bearer":          object{"type": "http", "scheme": "bearer", "description": "trb_(test|live)_<kid>_<secret>"},
		"apiKey":          object{"type": "apiKey", "in": "header", "name": "X-Api-Key"},
		"subscriptionKey": object{"type": "apiKey", "in": "header", "name": "Ocp-Apim-Subscription-Key"},
	}
}

func codeTable() []any {
	var table []any
	for _, m := range fault.Codes() {
		table = append(table, object{"code": string(m.Code), "meaning": m.Meaning, "action": m.Action})
	}
	return table
}

func webhookDocs() object {
	all := object{}
	for _, event := range webhook.EventTypes() {
		summary := "The resource is complete"
		switch event {
		case webhook.TransactionUpdated:
			summary = "A transaction was updated after its success; sent only if this event is subscribed to by name"
		case webhook.TransactionReceived:
			summary = "A received document was read, or cannot be; sent only if this event is subscribed to by name"
		}
		all[event] = object{"post": object{
			"summary":     summary,
			"description": "Signed: X-Service-Hmac-SHA256, or the header you chose, is the lower-case hex HMAC-SHA256 of the raw body with your API key. With a webhook secret, the headers of Standard Webhooks are sent as well. Any 2xx is success.",
			"parameters": []any{
				object{"name": webhook.HeaderSignature, "in": "header", "required": true,
					"description": "HMAC-SHA256 of the body with your API key; during a rotation with the older one.",
					"schema":      object{"type": "string", "pattern": "^[0-9a-f]{64}$"}},
				object{"name": webhook.HeaderSignatureNext, "in": "header",
					"description": "The same with the other key of a rotation: the newer one before promotion, the retiring one afterwards until it is revoked.", "schema": object{"type": "string", "pattern": "^[0-9a-f]{64}$"}},
			},
			"requestBody": object{"required": true, "content": object{"application/json": object{"schema": notification()}}},
			"responses":   object{"2XX": object{"description": "Received."}},
		}}
	}
	return all
}

func (a *API) describeRoute(r route, schemas *schemaBook) object {
	d := r.doc
	op := object{"tags": []any{d.tag}, "summary": d.summary, "operationId": operationName(r),
		"responses": describeAnswers(r, schemas)}
	if d.description != "" {
		op["description"] = d.description
	}
	if d.results != nil {
		var codes []any
		for _, c := range d.results {
			codes = append(codes, string(c))
		}
		op["x-result-codes"] = codes
	}
	switch {
	case r.path == documentPath:
		op["security"] = append([]any{object{}}, security()...)
	case r.open:
		op["security"] = []any{}
	}
	var params []any
	for _, p := range d.params {
		params = append(params, object{"name": p.name, "in": p.in, "required": p.in == "path", "description": p.about,
			"schema": p.schema})
	}
	if params != nil {
		op["parameters"] = params
	}
	if d.request != "" {
		content := object{"schema": ref(d.request)}
		if example, err := examples.Files.ReadFile(d.example + ".json"); err == nil {
			content["example"] = json.RawMessage(example)
		}
		op["requestBody"] = object{"required": true, "content": object{"application/json": content}}
	}
	if d.uploads != nil {
		content := object{}
		for _, name := range d.uploads {
			content[name] = object{} // bytes as they are
		}
		op["requestBody"] = object{"required": true, "content": content}
	}
	return op
}

// describeAnswers lists the answers of the route and those of every route.
func describeAnswers(r route, schemas *schemaBook) object {
	answers := object{}
	for status, v := range r.doc.answers {
		answers[strconv.Itoa(status)] = describeAnswer(status, schemas.content(v))
	}
	refusals := []int{405, 500}
	if !r.open || r.path == documentPath {
		refusals = append(refusals, 401, 403, 429, 503)
	}
	if r.doc.request != "" || r.doc.uploads != nil {
		refusals = append(refusals, 400, 413, 415)
	}
	for _, p := range r.doc.params {
		if p.in == "query" && r.path != documentPath {
			refusals = append(refusals, 400)
		}
	}
	for _, status := range refusals {
		if _, ok := answers[strconv.Itoa(status)]; !ok {
			answers[strconv.Itoa(status)] = describeAnswer(status, schemas.content(errorBody{}))
		}
	}
	for status, answer := range answers {
		if code, err := strconv.Atoi(status); err == nil && code >= http.StatusBadRequest {
			answer.(object)["x-codes"] = codesOf(r, code)
		}
	}
	return answers
}

// content is the body of an answer by media type; nil: there is none.
func (b *schemaBook) content(v any) object {
	switch v := v.(type) {
	case nil:
		return nil
	case media:
		all := object{}
		for _, name := range v {
			all[name] = object{} // bytes as they are
		}
		return all
	case whole:
		return object{"application/json": object{"schema": object{"allOf": []any{b.of(reflect.TypeOf(v.answer))},
			"required": list(v.required...)}}}
	}
	return object{"application/json": object{"schema": b.of(reflect.TypeOf(v))}}
}

func describeAnswer(status int, content object) object {
	header := func(about string) object { return object{"description": about, "schema": object{"type": "string"}} }
	headers := object{"X-Request-Id": header(
		"Request id: yours if you sent one, otherwise ours. Quote it when you contact support.")}
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		headers["Retry-After"] = object{"description": "Seconds to wait.", "schema": object{"type": "integer", "minimum": 1}}
	case http.StatusMethodNotAllowed:
		headers["Allow"] = header("Supported methods.")
	case http.StatusSeeOther:
		headers["Location"] = header("Redirect target.")
	case http.StatusUnauthorized:
		headers["WWW-Authenticate"] = header("Bearer.")
	}
	answer := object{"description": http.StatusText(status), "headers": headers}
	if content != nil {
		answer["content"] = content
	}
	return answer
}

func operationName(r route) string {
	name := strings.ToLower(r.method)
	for _, part := range strings.FieldsFunc(r.path, func(c rune) bool { return strings.ContainsRune("/{}-._", c) }) {
		name += strings.ToUpper(part[:1]) + part[1:]
	}
	return name
}

// schemaBook turns Go types into schemas, each named type once.
type schemaBook struct {
	components object
	made       map[string]reflect.Type
	err        error
}

func (b *schemaBook) of(t reflect.Type) object {
	if values, ok := answerValues[t]; ok {
		return object{"type": "string", "enum": values}
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return nullable(b.of(t.Elem()))
	case t == reflect.TypeFor[lookup.Cursor](), t == reflect.TypeFor[result.Optional]():
		return object{"type": []any{"string", "null"}} // the empty one prints as null
	case t == reflect.TypeFor[time.Time](), t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	case t.Kind() == reflect.Struct && t.Name() != "":
		return b.named(t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.String:
		if t.Implements(reflect.TypeFor[json.Marshaler]()) {
			return object{"type": "number"} // digits kept exactly
		}
		return object{"type": "string"}
	case reflect.Slice:
		return object{"type": "array", "items": b.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": b.of(t.Elem())}
	}
	return object{} // anything
}

func nullable(s object) object {
	if reference, ok := s["$ref"]; ok {
		return object{"anyOf": []any{object{"$ref": reference}, object{"type": "null"}}}
	}
	if one, ok := s["type"].(string); ok {
		s["type"] = []any{one, "null"}
	}
	if values, ok := s["enum"].([]any); ok {
		s["enum"] = append(values[:len(values):len(values)], nil)
	}
	return s
}

func (b *schemaBook) named(t reflect.Type) object {
	name := answerNames[t]
	if name == "" {
		name = t.Name()
	}
	if _, known := b.components[name]; known {
		if b.made[name] != t {
			b.err = fmt.Errorf("describe the API: %s and %s are both called %s", b.made[name], t, name)
		}
		return ref(name)
	}
	b.made[name] = t
	b.components[name] = object{} // a type may contain itself
	properties, required := object{}, []any{}
	b.members(t, name, properties, &required)
	b.components[name] = object{"type": "object", "properties": properties, "required": required}
	if t == reflect.TypeFor[onboarding.Reference]() {
		b.components[name].(object)["oneOf"] = []any{object{"required": list("job_id", "job_status_location")},
			object{"required": list("id", "location")}}
	}
	return ref(name)
}

func (b *schemaBook) members(t reflect.Type, owner string, properties object, required *[]any) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			if f.Type.Kind() == reflect.Pointer { // there or not: none of its members must be
				b.maybe(f.Type.Elem(), properties)
				continue
			}
			from := owner
			if embedded := answerNames[f.Type]; embedded != "" {
				from = embedded // described where it stands on its own
			}
			b.members(f.Type, from, properties, required)
			continue
		}
		if !f.IsExported() || name == "-" || name == "" {
			continue
		}
		properties[name] = b.member(owner+"."+name, f.Type)
		if !strings.Contains(rest, "omit") {
			*required = append(*required, name)
		}
	}
}

// maybe adds the members of a type that may be there, but for names that stand already.
func (b *schemaBook) maybe(t reflect.Type, properties object) {
	more := object{}
	b.members(t, t.Name(), more, &[]any{})
	for name, schema := range more {
		if _, taken := properties[name]; !taken {
			properties[name] = schema
		}
	}
}

// member is the schema of a type with what is known of the member beyond it.
func (b *schemaBook) member(key string, t reflect.Type) object {
	s := b.of(t)
	d, ok := detailOf(key)
	if !ok {
		return s
	}
	if d.about != "" {
		s["description"] = d.about
	}
	for keyword, value := range d.with {
		if values, ok := value.([]any); ok && keyword == "enum" && t.Kind() == reflect.Pointer {
			value = append(values[:len(values):len(values)], nil)
		}
		s[keyword] = value
	}
	if d.orNull {
		s = nullable(s)
	}
	return s
}
