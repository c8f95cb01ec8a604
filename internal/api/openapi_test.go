package api_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"tributary/docs/examples"
	"tributary/internal/api"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

type object = map[string]any

// published is the document as clients get it.
func published(t testing.TB) (object, []byte) {
	t.Helper()
	w := ask(bare(t, nil), http.MethodGet, "/openapi.json")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("/openapi.json answers %d %s", w.Code, w.Header().Get("Content-Type"))
	}
	var doc object
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc, w.Body.Bytes()
}

// at follows a path of names through objects.
func at(t testing.TB, from any, names ...string) object {
	t.Helper()
	for _, name := range names {
		o, ok := from.(object)
		if !ok || o[name] == nil {
			t.Fatalf("no %s in %v", name, names)
		}
		from = o[name]
	}
	return from.(object)
}

func TestTheDocumentIsValidOpenAPI31(t *testing.T) {
	t.Parallel()
	raw, text := published(t)
	if raw["openapi"] != "3.1.0" {
		t.Errorf("openapi %v", raw["openapi"])
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	// of 3.1: schemas, references, operation ids, and every example against its schema
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	// in an example: is anybody looking?
	broken := strings.Replace(string(text), `"unit_price":7570`, `"unit_price":"7570"`, 1)
	if other, err := openapi3.NewLoader().LoadFromData([]byte(broken)); err != nil || other.Validate(t.Context()) == nil {
		t.Error("a document with a wrong example passes")
	}
	if doc.Info.Version != "1.2.3" || doc.Servers[0].URL != "https://api.example.com" {
		t.Errorf("version %s, server %s", doc.Info.Version, doc.Servers[0].URL)
	}
	if len(doc.Webhooks) != 5 {
		t.Errorf("%d webhooks, want 5", len(doc.Webhooks))
	}
}

func TestTheDocumentAndTheTableOfRoutesAreTheSame(t *testing.T) {
	t.Parallel()
	doc, _ := published(t)
	var described []string
	for path, methods := range at(t, doc, "paths") {
		for method := range methods.(object) {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	routes := bare(t, nil).Routes()
	slices.Sort(routes)
	slices.Sort(described)
	if !slices.Equal(routes, described) {
		t.Errorf("routes\n%s\ndescribed\n%s", strings.Join(routes, "\n"), strings.Join(described, "\n"))
	}
}

func TestEveryOperationSaysWhatItTakesAndAnswers(t *testing.T) {
	t.Parallel()
	doc, _ := published(t)
	for path, methods := range at(t, doc, "paths") {
		for method, op := range methods.(object) {
			name := method + " " + path
			o := op.(object)
			if o["summary"] == "" || o["operationId"] == "" || len(o["tags"].([]any)) != 1 {
				t.Errorf("%s has no summary, name or tag", name)
			}
			var inPath []string
			for _, p := range strings.Split(path, "/") {
				if strings.HasPrefix(p, "{") {
					inPath = append(inPath, strings.Trim(p, "{}"))
				}
			}
			params, _ := o["parameters"].([]any)
			for _, p := range params {
				p := p.(object)
				if p["description"] == "" {
					t.Errorf("%s: parameter %v has no description", name, p["name"])
				}
				if p["in"] == "path" {
					inPath = slices.DeleteFunc(inPath, func(n string) bool { return n == p["name"] })
				}
			}
			if len(inPath) > 0 {
				t.Errorf("%s does not describe %v", name, inPath)
			}
			if body, ok := o["requestBody"].(object); ok {
				content := at(t, body, "content")
				if content["application/xml"] == nil && at(t, content, "application/json")["example"] == nil { // bytes have none
					t.Errorf("%s has no example of its body", name)
				}
			}
			for status, answer := range at(t, o, "responses") {
				if at(t, answer, "headers")["X-Request-Id"] == nil {
					t.Errorf("%s %s does not name X-Request-Id", name, status)
				}
			}
		}
	}
}

func TestEveryExampleFileIsInTheDocument(t *testing.T) {
	t.Parallel()
	_, text := published(t)
	files, err := examples.Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		content, err := examples.Files.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(content, &value); err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		compact, _ := json.Marshal(value)
		var doc any
		_ = json.Unmarshal(text, &doc)
		if again, _ := json.Marshal(doc); !strings.Contains(string(again), string(compact)) {
			t.Errorf("%s is no operation's example", f.Name())
		}
	}
}

func TestEveryMemberIsDescribedAndNoDescriptionIsOrphaned(t *testing.T) {
	t.Parallel()
	doc, _ := published(t)
	described := map[string]bool{}
	for name, schema := range at(t, doc, "components", "schemas") {
		properties, _ := schema.(object)["properties"].(object)
		for member, p := range properties {
			described[name+"."+member] = true
			page := strings.HasSuffix(name, "Page")
			plain := strings.HasSuffix(name, "Address") // city, postal_code … say it themselves
			_, about := p.(object)["description"]
			_, reference := p.(object)["$ref"]
			if !about && !page && !plain && !reference {
				t.Errorf("%s.%s is not described", name, member)
			}
		}
	}
	for _, key := range []string{"SingleValidation", "TaxNumberValidation"} {
		if !described[key+".validation_id"] {
			t.Errorf("%s has no validation_id", key)
		}
	}
	for _, key := range api.Details() {
		if !described[key] {
			t.Errorf("%s is described but not there", key)
		}
	}
}

func TestEveryPublishedCodeIsListed(t *testing.T) {
	t.Parallel()
	doc, _ := published(t)
	enum := at(t, doc, "components", "schemas", "Fault", "properties", "code")["enum"].([]any)
	table := doc["x-codes"].([]any)
	if len(enum) != len(fault.Codes()) || len(table) != len(enum) {
		t.Fatalf("%d codes in the schema, %d in the table, %d published", len(enum), len(table), len(fault.Codes()))
	}
	for i, m := range fault.Codes() {
		row := table[i].(object)
		if enum[i] != string(m.Code) || row["code"] != string(m.Code) || row["meaning"] != m.Meaning ||
			row["action"] != m.Action {
			t.Errorf("code %s: schema %v, table %v", m.Code, enum[i], row)
		}
	}
}

// Most validators divide floats, and 9.975 ÷ 0.0001 is no integer there: a rate
// that the service accepts would be refused before it is sent.
func TestNoSchemaAsksForMultiplesOfAFraction(t *testing.T) {
	t.Parallel()
	_, text := published(t)
	if bytes.Contains(text, []byte("multipleOf")) {
		t.Error("multipleOf is in the document")
	}
}

// TestRequestSchemasHaveTheMembersOfTheCountryContract holds the schemas
// against the list of paths that countries may name in their rules.
func TestRequestSchemasHaveTheMembersOfTheCountryContract(t *testing.T) {
	t.Parallel()
	doc, _ := published(t)
	schemas := at(t, doc, "components", "schemas")
	found := map[string]bool{}
	for _, name := range []string{"Transaction", "Adjustment", "Credit", "Cancellation", "PaymentReport", "Backfill"} {
		walk(t, schemas, at(t, schemas, name), "", found)
	}
	got := slices.Sorted(maps.Keys(found))
	got = slices.DeleteFunc(got, func(path string) bool { // the alias and what is below it
		return strings.Contains(path, ".*.tax_breakdown") && !strings.Contains(path, ".*.tax_breakdowns")
	})
	if want := transaction.FieldPaths(); !slices.Equal(got, want) {
		t.Errorf("schemas have\n%s\nthe contract\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// walk collects the paths of a schema's members.
func walk(t testing.TB, schemas, schema object, prefix string, found map[string]bool) {
	if name, ok := schema["$ref"].(string); ok {
		schema = at(t, schemas, name[strings.LastIndex(name, "/")+1:])
	}
	if some, ok := schema["anyOf"].([]any); ok && some[0].(object)["$ref"] != nil {
		walk(t, schemas, some[0].(object), prefix, found)
		return
	}
	if items, ok := schema["items"].(object); ok {
		walk(t, schemas, items, prefix+"*.", found)
	}
	properties, _ := schema["properties"].(object)
	for name, p := range properties {
		found[prefix+name] = true
		walk(t, schemas, p.(object), prefix+name+".", found)
	}
}
