// Package postman makes the Postman collection from the OpenAPI document that
// the service describes itself with.
//
// It owns the form of the collection (v2.1.0) and nothing of its content. Law of
// [Generate]: equal descriptions give equal bytes, whatever address or version
// they were served with, and every operation is in the collection once.
package postman

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Schema is the address that names the form of the collection.
const Schema = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"

// Collection is a Postman collection, as far as this one uses it.
type Collection struct {
	Info     Info       `json:"info"`
	Auth     *Auth      `json:"auth"`
	Variable []Variable `json:"variable"`
	Event    []Event    `json:"event"`
	Item     []Folder   `json:"item"`
}

// Event is a script that runs before or after requests.
type Event struct {
	Listen string `json:"listen"` // prerequest or test
	Script Script `json:"script"`
}

// Script is JavaScript, line by line.
type Script struct {
	Type string   `json:"type"`
	Exec []string `json:"exec"`
}

func script(listen, text string) Event {
	return Event{Listen: listen, Script: Script{Type: "text/javascript", Exec: strings.Split(text, "\n")}}
}

// Info names the collection.
type Info struct {
	ID          string `json:"_postman_id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Schema      string `json:"schema"`
}

// Auth says how requests sign in.
type Auth struct {
	Type   string     `json:"type"`
	Bearer []Variable `json:"bearer,omitempty"`
}

// Variable is a named value: of the collection, a path or a query.
type Variable struct {
	Key         string `json:"key"`
	Value       string `json:"value"`
	Type        string `json:"type,omitempty"`
	Description string `json:"description,omitempty"`
	Disabled    bool   `json:"disabled,omitempty"`
}

// Folder holds the requests of one tag.
type Folder struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Item        []Item `json:"item"`
}

// Item is one request.
type Item struct {
	Name     string   `json:"name"`
	Event    []Event  `json:"event,omitempty"`
	Request  Request  `json:"request"`
	Response []string `json:"response"` // always empty: examples are in the reference
}

// Request is what is sent.
type Request struct {
	Auth        *Auth      `json:"auth,omitempty"` // nil: the collection's
	Method      string     `json:"method"`
	Header      []Variable `json:"header"`
	Body        *Body      `json:"body,omitempty"`
	URL         URL        `json:"url"`
	Description string     `json:"description,omitempty"`
}

// Body is a text, of JSON but for documents.
type Body struct {
	Mode    string  `json:"mode"`
	Raw     string  `json:"raw"`
	Options Options `json:"options"`
}

// Options say how the body is shown.
type Options struct {
	Raw struct {
		Language string `json:"language"`
	} `json:"raw"`
}

// URL is an address in its parts.
type URL struct {
	Raw      string     `json:"raw"`
	Host     []string   `json:"host"`
	Path     []string   `json:"path"`
	Query    []Variable `json:"query,omitempty"`
	Variable []Variable `json:"variable,omitempty"`
}

// description is the part of an OpenAPI document that is read.
type description struct {
	Info struct{ Title, Description string }
	Tags []struct{ Name, Description string }
	// Paths by path and method.
	Paths map[string]map[string]operation
}

type operation struct {
	Tags                 []string
	Summary, Description string
	Parameters           []struct {
		Name, In, Description string
	}
	RequestBody *struct {
		Content map[string]struct{ Example json.RawMessage }
	}
	Security *[]map[string]any
}

// Generate makes the collection of an OpenAPI document.
func Generate(openAPI []byte) ([]byte, error) {
	var d description
	if err := json.Unmarshal(openAPI, &d); err != nil {
		return nil, fmt.Errorf("reading the description: %w", err)
	}
	c := Collection{
		Info: Info{ID: uuid.NewSHA1(uuid.NameSpaceURL, []byte("tributary")).String(), Name: d.Info.Title,
			Description: d.Info.Description, Schema: Schema},
		Auth: &Auth{Type: "bearer", Bearer: []Variable{{Key: "token", Value: "{{api_key}}", Type: "string"}}},
		Variable: []Variable{
			{Key: "base_url", Value: "http://127.0.0.1:8080", Type: "string"},
			{Key: "api_key", Value: "", Type: "string"},
			{Key: "supplier_id", Value: "", Type: "string"}, // empty: the demo's, from the list of companies
		},
		Event: []Event{script("prerequest", before), script("test", after)},
	}
	for _, name := range []string{"run", "transaction_id", "operation_id", "company_id", "job_id", "resource_id",
		"format", "webhook_id", "batch_id", "validation_id"} {
		c.Variable = append(c.Variable, Variable{Key: name, Type: "string"})
	}
	for _, tag := range d.Tags {
		c.Item = append(c.Item, Folder{Name: tag.Name, Description: tag.Description, Item: []Item{}})
	}
	calls, err := d.calls()
	if err != nil {
		return nil, err
	}
	for _, call := range calls {
		method, path, _ := strings.Cut(call, " ")
		op := d.Paths[path][method]
		at := slices.IndexFunc(c.Item, func(f Folder) bool { return len(op.Tags) > 0 && f.Name == op.Tags[0] })
		if at < 0 {
			return nil, fmt.Errorf("%s has no tag that is described", call)
		}
		item, err := request(method, path, op)
		if err != nil {
			return nil, err
		}
		if text, ok := scripts[call]; ok {
			item.Event = []Event{script("test", text)}
		}
		c.Item[at].Item = append(c.Item[at].Item, item)
	}
	// Newman and Postman run folders from the first to the last: in the order of their first requests.
	slices.SortStableFunc(c.Item, func(a, b Folder) int { return cmp.Compare(firstOf(a), firstOf(b)) })
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(c)
	return out.Bytes(), err
}

func request(method, path string, op operation) (Item, error) {
	r := Request{Method: strings.ToUpper(method), Header: []Variable{}, Description: op.Description,
		URL: URL{Host: []string{"{{base_url}}"}}}
	for _, part := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if strings.HasPrefix(part, "{") {
			part = ":" + strings.Trim(part, "{}")
		}
		r.URL.Path = append(r.URL.Path, part)
	}
	r.URL.Raw = "{{base_url}}/" + strings.Join(r.URL.Path, "/")
	for _, p := range op.Parameters {
		v := Variable{Key: p.Name, Description: p.Description}
		switch p.In {
		case "path":
			v.Value = known(path, p.Name)
			r.URL.Variable = append(r.URL.Variable, v)
		case "query":
			v.Disabled = true
			r.URL.Query = append(r.URL.Query, v)
		case "header":
			r.Header = append(r.Header, v)
		}
	}
	if op.RequestBody != nil {
		language, text, err := bodyOf(op.RequestBody.Content)
		if err != nil {
			return Item{}, fmt.Errorf("%s %s: %w", method, path, err)
		}
		r.Body = &Body{Mode: "raw", Raw: text}
		r.Body.Options.Raw.Language = language
		r.Header = append(r.Header, Variable{Key: "Content-Type", Value: "application/" + language})
	}
	if op.Security != nil && len(*op.Security) == 0 {
		r.Auth = &Auth{Type: "noauth"}
	}
	return Item{Name: op.Summary, Request: r, Response: []string{}}, nil
}

// bodyOf is what a body begins with: its example, or of a document that somebody else writes a place to put it.
func bodyOf(content map[string]struct{ Example json.RawMessage }) (language, text string, err error) {
	as, ok := content["application/json"]
	switch _, xml := content["application/xml"]; {
	case !ok && xml:
		return "xml", "<Invoice/>", nil
	case !ok:
		return "", "", errors.New("the body is neither JSON nor XML")
	case len(as.Example) == 0:
		return "json", "{}", nil
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, as.Example, "", "  "); err != nil {
		return "", "", fmt.Errorf("the example: %w", err)
	}
	return "json", chained(pretty.String()), nil
}

// calls are the operations as "method path", in the order of the tour.
func (d *description) calls() (all []string, err error) {
	for path, methods := range d.Paths {
		for method := range methods {
			if !slices.Contains([]string{"get", "post", "put", "patch", "delete"}, method) {
				return nil, fmt.Errorf("%s %s: the method is not known here", method, path)
			}
			all = append(all, method+" "+path)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b)) })
	return all, nil
}

// firstOf is where the first request of a folder stands on the tour.
func firstOf(f Folder) int {
	if len(f.Item) == 0 {
		return len(tour)
	}
	r := f.Item[0].Request
	path := ""
	for _, part := range r.URL.Path {
		if name, ok := strings.CutPrefix(part, ":"); ok {
			part = "{" + name + "}"
		}
		path += "/" + part
	}
	return place(strings.ToLower(r.Method) + " " + path)
}
