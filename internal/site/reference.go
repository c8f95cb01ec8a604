package site

import (
	"cmp"
	"encoding/json"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// description is the part of an OpenAPI document that pages are made of.
type description struct {
	Info       struct{ Title, Version, Description string }
	Servers    []struct{ URL string }
	Tags       []struct{ Name, Description string }
	Paths      map[string]map[string]*operation
	Webhooks   map[string]map[string]*operation
	Components struct{ Schemas map[string]schema }
	Codes      []code `json:"x-codes"`
}

// code is what an error's code means.
type code struct{ Code, Meaning, Action string }

type operation struct {
	Tags                              []string
	Summary, Description, OperationID string
	Parameters                        []parameter
	RequestBody                       *struct{ Content map[string]content }
	Responses                         map[string]response
	Security                          *[]map[string]any
	ResultCodes                       []string `json:"x-result-codes"`

	method, path string
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                schema
}

type content struct {
	Schema  schema
	Example json.RawMessage
}

type response struct {
	Description string
	Content     map[string]content
	Codes       []string `json:"x-codes"`
}

// schema is a JSON Schema as it came.
type schema map[string]any

// methods in the order a reader expects.
var methods = []string{"get", "post", "patch", "put", "delete"}

// addReference makes the reference: an overview, a page for each operation by
// its tag, the events and the objects.
func (b *book) addReference(api *description) error {
	on := b.shelve("Reference")
	var groups []group
	for _, tag := range api.Tags {
		g := group{Name: tag.Name, About: tag.Description}
		for _, path := range slices.Sorted(maps.Keys(api.Paths)) {
			for _, method := range methods {
				if op := api.Paths[path][method]; op != nil && len(op.Tags) > 0 && op.Tags[0] == tag.Name {
					op.method, op.path = strings.ToUpper(method), path
					g.Operations = append(g.Operations, op)
				}
			}
		}
		groups = append(groups, g)
	}
	if err := b.addTemplate(&page{Name: "reference.html", Title: "API reference", shelf: on}, "reference",
		map[string]any{"API": api, "Groups": groups}); err != nil {
		return err
	}
	for _, g := range groups {
		for _, op := range g.Operations {
			if err := b.addTemplate(&page{Name: op.Page(), Title: op.Summary, shelf: on}, "operation",
				b.operationPage(api, op)); err != nil {
				return err
			}
			b.sections = append(b.sections, section{Page: op.Page(), Title: op.Summary, Of: g.Name, Text: op.words(api)})
		}
	}
	if err := b.addTemplate(&page{Name: "events.html", Title: "Events", shelf: on}, "events", b.eventsPage(api)); err != nil {
		return err
	}
	return b.addObjects(on, api)
}

func (b *book) addObjects(on int, api *description) error {
	var objects []object
	for _, name := range slices.Sorted(maps.Keys(api.Components.Schemas)) {
		o := object{name, api.fields(api.Components.Schemas[name])}
		objects = append(objects, o)
		var words strings.Builder
		for _, f := range o.Fields {
			words.WriteString(f.Name + ": " + f.About + " ")
		}
		b.sections = append(b.sections, section{Page: objectsPage, Anchor: name, Title: name, Of: "Objects", Text: words.String()})
	}
	return b.addTemplate(&page{Name: objectsPage, Title: "Objects", shelf: on}, "objects", objects)
}

// group is the operations of a tag.
type group struct {
	Name, About string
	Operations  []*operation
}

// object is a named schema.
type object struct {
	Name   string
	Fields []field
}

const objectsPage = "objects.html"

// Page is the name of the operation's page.
func (o *operation) Page() string { return o.OperationID + ".html" }

// Method and Path are how it is called.
func (o *operation) Method() string { return o.method }

// Path of the operation, with names in braces.
func (o *operation) Path() string { return o.path }

// Open reports that the operation needs no key.
func (o *operation) Open() bool {
	return o.Security != nil && len(*o.Security) == 0
}

// words are what a search finds the operation by.
func (o *operation) words(api *description) string {
	text := []string{o.method, o.path, o.OperationID, o.Description}
	for _, p := range o.Parameters {
		text = append(text, p.Name, p.Description)
	}
	if body := o.body(); body != nil {
		for _, f := range api.fields(body.Schema) {
			text = append(text, f.Name, f.About)
		}
	}
	return strings.Join(text, " ")
}

func (o *operation) body() *content {
	if o.RequestBody == nil {
		return nil
	}
	c, ok := o.RequestBody.Content["application/json"]
	if !ok {
		return nil
	}
	return &c
}

// operationPage is what the page of an operation shows.
type operationPage struct {
	*operation
	Takes    []parameterLine
	Object   template.HTML // link to what the body is
	Fields   []field
	Body     string // the example
	Examples []example
	Answers  []answer
	Errors   []errorLine
	Results  []errorLine
	Key      string // of the demo
}

// parameterLine is a parameter with its rules and the demo's value.
type parameterLine struct {
	field
	In, Value string
}

type answer struct {
	Status, Text, Media string
	Object              template.HTML
	Sample              string
}

type errorLine struct {
	Status string
	code
}

func (b *book) operationPage(api *description, op *operation) operationPage {
	p := operationPage{operation: op}
	if b.demo != nil {
		p.Key = b.demo.Key
	}
	values := b.values()
	for _, in := range op.Parameters {
		line := parameterLine{field: api.field(in.Name, in.Schema, in.Required), In: in.In, Value: values[in.Name]}
		line.About = in.Description
		p.Takes = append(p.Takes, line)
	}
	if body := op.body(); body != nil {
		p.Object, p.Fields = api.typeOf(body.Schema), api.fields(body.Schema)
		p.Body = b.filled(indented(body.Example))
	}
	p.Examples = b.examples(api, op, p.Body)
	meanings := map[string]code{}
	for _, c := range api.Codes {
		meanings[c.Code] = c
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		if status < "400" {
			p.Answers = append(p.Answers, api.answer(status, r))
			continue
		}
		for _, c := range r.Codes {
			p.Errors = append(p.Errors, errorLine{status, meanings[c]})
		}
	}
	for _, c := range op.ResultCodes {
		p.Results = append(p.Results, errorLine{"", meanings[c]})
	}
	return p
}

func (d *description) answer(status string, r response) answer {
	a := answer{Status: status, Text: r.Description}
	for _, media := range slices.Sorted(maps.Keys(r.Content)) {
		if c := r.Content[media]; media == "application/json" && len(c.Schema) > 0 {
			a.Object = d.typeOf(c.Schema)
			if text, err := json.MarshalIndent(d.sample(c.Schema, 0), "", "  "); err == nil {
				a.Sample = string(text)
			}
		} else {
			a.Media = strings.TrimPrefix(a.Media+", "+media, ", ")
		}
	}
	return a
}

// event is a notification with what it carries.
type event struct {
	Name, Summary, About string
	Headers, Fields      []field
}

func (b *book) eventsPage(api *description) []event {
	var all []event
	for _, name := range slices.Sorted(maps.Keys(api.Webhooks)) {
		op := api.Webhooks[name]["post"]
		if op == nil {
			continue
		}
		e := event{Name: name, Summary: op.Summary, About: op.Description}
		for _, p := range op.Parameters {
			f := api.field(p.Name, p.Schema, p.Required)
			f.About = p.Description
			e.Headers = append(e.Headers, f)
		}
		if body := op.body(); body != nil {
			e.Fields = api.fields(body.Schema)
		}
		all = append(all, e)
		b.sections = append(b.sections, section{Page: "events.html", Anchor: name, Title: name, Of: "Events",
			Text: e.Summary + ". " + e.About})
	}
	return all
}

// field is a line of a table of members.
type field struct {
	Name     string
	Type     template.HTML
	Required bool
	About    string
	Rules    string
}

// resolved follows a reference.
func (d *description) resolved(s schema) schema {
	if ref, ok := s["$ref"].(string); ok {
		return d.Components.Schemas[ref[strings.LastIndex(ref, "/")+1:]]
	}
	return s
}

// fields are the members of an object, those that must be there first.
func (d *description) fields(s schema) []field {
	s = d.resolved(s)
	var all []field
	for _, part := range list(s["allOf"]) {
		all = append(all, d.fields(schema(asObject(part)))...)
	}
	required := map[string]bool{}
	for _, name := range list(s["required"]) {
		text, _ := name.(string)
		required[text] = true
	}
	properties := asObject(s["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		all = append(all, d.field(name, schema(asObject(properties[name])), required[name]))
	}
	slices.SortStableFunc(all, func(a, b field) int {
		return cmp.Compare(map[bool]int{true: 0, false: 1}[a.Required], map[bool]int{true: 0, false: 1}[b.Required])
	})
	return all
}

func (d *description) field(name string, s schema, required bool) field {
	about, _ := s["description"].(string)
	return field{Name: name, Type: d.typeOf(s), Required: required, About: about, Rules: rules(s)}
}

// typeOf names a type, with a link to the object it is.
func (d *description) typeOf(s schema) template.HTML {
	if ref, ok := s["$ref"].(string); ok {
		name := template.HTMLEscapeString(ref[strings.LastIndex(ref, "/")+1:])
		return template.HTML(`<a href="` + objectsPage + `#` + name + `">` + name + `</a>`)
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		var parts []string
		for _, part := range list(s[key]) {
			if t := string(d.typeOf(schema(asObject(part)))); t != "" {
				parts = append(parts, t)
			}
		}
		if len(parts) > 0 && s["properties"] == nil {
			return template.HTML(strings.Join(parts, " or "))
		}
	}
	var names []string
	switch t := s["type"].(type) {
	case string:
		names = []string{t}
	case []any:
		for _, one := range t {
			text, _ := one.(string)
			names = append(names, text)
		}
	}
	for i, name := range names {
		if name == "array" {
			names[i] = "list of " + cmp.Or(string(d.typeOf(schema(asObject(s["items"])))), "anything")
		}
	}
	return template.HTML(strings.Join(names, " or ")) // words of JSON Schema, and links made above
}

// rules are the limits of a value in words.
func rules(s schema) string {
	var all []string
	if values := list(s["enum"]); len(values) > 0 {
		var names []string
		for _, v := range values {
			if text, ok := v.(string); ok && text != "" {
				names = append(names, text)
			}
		}
		all = append(all, "one of "+strings.Join(names, ", "))
	}
	for _, r := range []struct{ key, words string }{{"minLength", "at least %s characters"},
		{"maxLength", "at most %s characters"}, {"minItems", "at least %s entries"}, {"maxItems", "at most %s entries"},
		{"minimum", "from %s"}, {"maximum", "up to %s"}, {"exclusiveMinimum", "more than %s"}, {"default", "default %s"},
		{"format", "%s"}} {
		if v, ok := s[r.key]; ok && (r.key != "minLength" || v != float64(1)) {
			all = append(all, strings.Replace(r.words, "%s", scalar(v), 1))
		}
	}
	if pattern, _ := s["pattern"].(string); pattern != "" && len(pattern) <= 32 {
		all = append(all, pattern)
	}
	if examples := list(s["examples"]); len(examples) > 0 {
		all = append(all, "for example "+scalar(examples[0]))
	}
	return strings.Join(all, "; ")
}

func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// sampleDepthMax ends objects that hold themselves.
const sampleDepthMax = 6

// sample is a value of the form that a schema describes.
func (d *description) sample(s schema, depth int) any {
	if depth > sampleDepthMax {
		return nil
	}
	s = d.resolved(s)
	if examples := list(s["examples"]); len(examples) > 0 {
		return examples[0]
	}
	if values := list(s["enum"]); len(values) > 0 {
		return values[0]
	}
	for _, key := range []string{"anyOf", "allOf"} {
		if parts := list(s[key]); len(parts) > 0 && s["properties"] == nil {
			return d.sample(schema(asObject(parts[0])), depth+1)
		}
	}
	kind, _ := s["type"].(string)
	if several := list(s["type"]); len(several) > 0 {
		kind, _ = several[0].(string)
	}
	switch kind {
	case "object":
		made := map[string]any{}
		for name, member := range asObject(s["properties"]) {
			made[name] = d.sample(schema(asObject(member)), depth+1)
		}
		return made
	case "array":
		return []any{d.sample(schema(asObject(s["items"])), depth+1)}
	case "integer", "number":
		return 0
	case "boolean":
		return true
	case "string":
		return "…"
	}
	return nil
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func asObject(v any) map[string]any {
	switch o := v.(type) {
	case map[string]any:
		return o
	case schema:
		return o
	}
	return nil
}
