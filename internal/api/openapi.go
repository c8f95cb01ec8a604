package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"tributary/internal/fault"
	"tributary/internal/lookup"
	"tributary/internal/onboarding"
	"tributary/internal/transaction"
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
	request     string // name of a request schema, or ""
	example     string // file below docs/examples, or ""
	answers     map[int]any
}

// param is a path or query parameter.
type param struct {
	name   string
	in     string
	about  string
	schema object
}

// plain marks an answer that is not JSON.
type plain string

// describe makes the OpenAPI document from the table of routes.
func (a *API) describe(routes []route) ([]byte, error) {
	paths := object{}
	schemas := &schemaBook{components: requestSchemas()}
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
			object{"name": "Transactions", "description": "Sales, and corrections of sales."}, object{"name": "Countries", "description": "What each country wants."},
			object{"name": "Onboarding", "description": "Companies in whose name sales are issued."}, object{"name": "Lookup", "description": "Tax-number validation."},
			object{"name": "Webhooks", "description": "Events and their delivery."}, object{"name": "Documents", "description": "Generated files."},
			object{"name": "Service", "description": "The service itself."},
		},
		"paths":      paths,
		"security":   []any{object{"bearer": []any{}}, object{"apiKey": []any{}}, object{"subscriptionKey": []any{}}},
		"webhooks":   webhookDocs(),
		"components": object{"schemas": schemas.components, "securitySchemes": securitySchemes()},
		"x-codes":    codeTable(),
	}
	return json.Marshal(doc)
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
		all[event] = object{"post": object{
			"summary":     "The resource is complete",
			"description": "Signed: X-Service-Hmac-SHA256 is the lower-case hex HMAC-SHA256 of the raw body with your API key. Any 2xx is success.",
			"requestBody": object{"required": true, "content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Notification"}}}},
			"responses":   object{"2XX": object{"description": "Received."}},
		}}
	}
	return all
}

func (a *API) describeRoute(r route, schemas *schemaBook) object {
	d := r.doc
	op := object{"tags": []any{d.tag}, "summary": d.summary, "operationId": operationName(r), "responses": a.describeAnswers(r, schemas)}
	if d.description != "" {
		op["description"] = d.description
	}
	if r.open {
		op["security"] = []any{object{}}
	}
	var params []any
	for _, p := range d.params {
		params = append(params, object{"name": p.name, "in": p.in, "required": p.in == "path", "description": p.about, "schema": p.schema})
	}
	if params != nil {
		op["parameters"] = params
	}
	if d.request != "" {
		content := object{"schema": object{"$ref": "#/components/schemas/" + d.request}}
		if example, ok := requestExamples[d.example]; ok {
			content["example"] = json.RawMessage(example)
		}
		op["requestBody"] = object{"required": true, "content": object{"application/json": content}}
	}
	return op
}

// describeAnswers lists the answers of the route and those of every route.
func (a *API) describeAnswers(r route, schemas *schemaBook) object {
	answers := object{}
	add := func(status int, content object) {
		answers[strconv.Itoa(status)] = object{"description": http.StatusText(status),
			"headers": object{"X-Request-Id": object{"schema": object{"type": "string"}}}, "content": content}
	}
	for status, v := range r.doc.answers {
		if media, ok := v.(plain); ok {
			add(status, object{string(media): object{"schema": object{"type": "string"}}})
		} else if v == nil {
			answers[strconv.Itoa(status)] = object{"description": http.StatusText(status)}
		} else {
			add(status, object{"application/json": object{"schema": schemas.of(reflect.TypeOf(v))}})
		}
	}
	refusals := []int{405, 500}
	if !r.open {
		refusals = append(refusals, 401, 429, 503)
	}
	if r.doc.request != "" {
		refusals = append(refusals, 400, 413, 415)
	}
	for _, p := range r.doc.params {
		if p.in == "query" {
			refusals = append(refusals, 400)
		}
	}
	for _, status := range refusals {
		if _, ok := answers[strconv.Itoa(status)]; !ok {
			add(status, object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Error"}}})
		}
	}
	return answers
}

func operationName(r route) string {
	name := strings.ToLower(r.method)
	for _, part := range strings.FieldsFunc(r.path, func(c rune) bool { return strings.ContainsRune("/{}-._", c) }) {
		name += strings.ToUpper(part[:1]) + part[1:]
	}
	return name
}

// schemaBook turns Go types into schemas, each named type once.
type schemaBook struct{ components object }

// names gives types their names in the document where the Go name would not tell.
var names = map[reflect.Type]string{
	reflect.TypeFor[errorBody]():           "Error",
	reflect.TypeFor[fault.Fault]():         "Fault",
	reflect.TypeFor[transaction.Result]():  "TransactionResult",
	reflect.TypeFor[onboarding.Envelope](): "JobEnvelope",
	reflect.TypeFor[lookup.Batch]():        "BatchValidation",
	reflect.TypeFor[lookup.Single]():       "SingleValidation",
	reflect.TypeFor[webhook.EventRow]():    "WebhookEvent",
}

func (b *schemaBook) of(t reflect.Type) object {
	switch {
	case t.Kind() == reflect.Pointer:
		return nullable(b.of(t.Elem()))
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Struct && t.Name() != "":
		return b.named(t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.String:
		if _, exact := reflect.Zero(t).Interface().(json.Marshaler); exact {
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
	if ref, ok := s["$ref"]; ok {
		return object{"anyOf": []any{object{"$ref": ref}, object{"type": "null"}}}
	}
	s["type"] = []any{s["type"], "null"}
	return s
}

func (b *schemaBook) named(t reflect.Type) object {
	name := names[t]
	if name == "" {
		name = typeName(t)
	}
	ref := object{"$ref": "#/components/schemas/" + name}
	if _, done := b.components[name]; done {
		return ref
	}
	b.components[name] = object{} // a type may contain itself
	properties, required := object{}, []any{}
	b.members(t, properties, &required)
	b.components[name] = object{"type": "object", "properties": properties, "required": required}
	return ref
}

func (b *schemaBook) members(t reflect.Type, properties object, required *[]any) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			b.members(f.Type, properties, required)
			continue
		}
		if !f.IsExported() || name == "-" || name == "" {
			continue
		}
		properties[name] = b.of(f.Type)
		if !strings.Contains(rest, "omit") {
			*required = append(*required, name)
		}
	}
}

// typeName spells page[Company] as CompanyPage.
func typeName(t reflect.Type) string {
	name := t.Name()
	if base, inner, ok := strings.Cut(name, "["); ok {
		inner = strings.TrimSuffix(inner[strings.LastIndexAny(inner, "./*")+1:], "]")
		name = inner + strings.ToUpper(base[:1]) + base[1:]
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
