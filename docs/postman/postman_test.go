package postman_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"tributary/docs/postman"
	"tributary/internal/leaks"
	"tributary/internal/mutate"
	"tributary/internal/secret"
	"tributary/internal/server"
)

var update = flag.Bool("update", false, "rewrite the collection")

const (
	file = "tributary.postman_collection.json"
	key  = "trb_test_postman_0123456789012345678901234567890123456789012"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// service starts the program and returns its address.
func service(t *testing.T) string {
	t.Helper()
	srv, err := server.Open(t.Context(), server.Config{Demo: true, API: true, Worker: true, Listen: "127.0.0.1:0",
		Simulators: "127.0.0.1:0", Data: t.TempDir(), APIKey: secret.FromText(key)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	<-srv.Ready()
	return srv.URL()
}

func fetch(t *testing.T, method, url, body string, head http.Header) (int, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if head != nil {
		req.Header = head
	}
	answer, err := http.DefaultTransport.RoundTrip(req) // as it is answered: no redirect is followed
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, text
}

// TestTheCollectionIsTheDescription compares the committed file with what the
// service describes, and counts its operations.
func TestTheCollectionIsTheDescription(t *testing.T) {
	base := service(t)
	_, openAPI := fetch(t, http.MethodGet, base+"/openapi.json", "", nil)
	made, err := postman.Generate(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, made, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, kept) {
		t.Fatalf("%s is not what the service describes; rewrite it with: go test ./docs/postman -update", file)
	}
	var described struct {
		Paths map[string]map[string]struct {
			Responses map[string]any
		}
	}
	if err := json.Unmarshal(openAPI, &described); err != nil {
		t.Fatal(err)
	}
	collection := read(t, kept)
	times := map[string]int{}
	for _, folder := range collection.Item {
		for _, item := range folder.Item {
			times[strings.ToLower(item.Request.Method)+" "+asPath(item.Request.URL)]++
		}
	}
	for path, operations := range described.Paths {
		for method := range operations {
			name := method + " " + path
			if times[name] != 1 {
				t.Errorf("%s is %d times in the collection", name, times[name])
			}
			delete(times, name)
		}
	}
	for name := range times {
		t.Errorf("%s is in the collection and not described", name)
	}
	// Each request, sent as it stands, is answered as described.
	for _, folder := range collection.Item {
		for _, item := range folder.Item {
			status := send(t, base, item)
			if _, ok := described.Paths[asPath(item.Request.URL)][strings.ToLower(item.Request.Method)].Responses[fmt.Sprint(
				status)]; !ok {
				t.Errorf("%s %s is answered %d, which is not described", item.Request.Method, item.Request.URL.Raw, status)
			}
		}
	}
}

func read(t *testing.T, text []byte) (c postman.Collection) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// asPath is an address as OpenAPI writes it.
func asPath(u postman.URL) string {
	path := ""
	for _, part := range u.Path {
		if name, ok := strings.CutPrefix(part, ":"); ok {
			part = "{" + name + "}"
		}
		path += "/" + part
	}
	return path
}

func send(t *testing.T, base string, item postman.Item) int {
	t.Helper()
	url := strings.ReplaceAll(item.Request.URL.Raw, "{{base_url}}", base)
	for _, v := range item.Request.URL.Variable {
		value, special := map[string]string{"code": "XX", "format": "pdf", "page": "site.css"}[v.Key]
		if !special {
			value = "nobodys"
		}
		url = strings.ReplaceAll(url, ":"+v.Key, value)
	}
	head, body := http.Header{}, ""
	for _, h := range item.Request.Header {
		head.Set(h.Key, h.Value)
	}
	if item.Request.Auth == nil {
		head.Set("Authorization", "Bearer "+key)
	}
	if item.Request.Body != nil {
		body = item.Request.Body.Raw
	}
	status, _ := fetch(t, item.Request.Method, url, body, head)
	return status
}

// TestTheCollectionIsInForm holds it against the rules of v2.1.0.
func TestTheCollectionIsInForm(t *testing.T) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := read(t, text)
	if c.Info.Schema != postman.Schema || c.Info.Name == "" ||
		!regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(c.Info.ID) {
		t.Errorf("info %+v", c.Info)
	}
	variables := map[string]bool{}
	for _, v := range c.Variable {
		variables[v.Key] = true
	}
	for _, m := range regexp.MustCompile(`\{\{([a-z_]+)\}\}`).FindAllStringSubmatch(string(text), -1) {
		if !variables[m[1]] {
			t.Errorf("variable %s is used and not there", m[1])
		}
	}
	if strings.Contains(string(text), "trb_") {
		t.Error("a key is in the collection")
	}
	for _, folder := range c.Item {
		names := map[string]bool{}
		if len(folder.Item) == 0 {
			t.Errorf("folder %s is empty", folder.Name)
		}
		for _, item := range folder.Item {
			u := item.Request.URL
			if item.Name == "" || names[item.Name] {
				t.Errorf("%s/%q has no name of its own", folder.Name, item.Name)
			}
			names[item.Name] = true
			if u.Raw != strings.Join(u.Host, ".")+"/"+strings.Join(u.Path, "/") {
				t.Errorf("%s: the address %s is not its parts", item.Name, u.Raw)
			}
			declared := map[string]bool{}
			for _, v := range u.Variable {
				declared[":"+v.Key] = true
			}
			for _, part := range u.Path {
				if strings.HasPrefix(part, ":") && !declared[part] {
					t.Errorf("%s: %s is not declared", item.Name, part)
				}
				delete(declared, part)
			}
			for left := range declared {
				t.Errorf("%s: %s is declared and not in the path", item.Name, left)
			}
			if b := item.Request.Body; b != nil &&
				(b.Mode != "raw" || b.Options.Raw.Language == "json" != json.Valid([]byte(b.Raw))) {
				t.Errorf("%s: body %+v", item.Name, b)
			}
		}
	}
}

func TestWhatCannotBeShownIsRefused(t *testing.T) {
	for _, text := range []string{`{`, `{"paths":{"/x":{"trace":{}}}}`, `{"paths":{"/x":{"get":{"tags":["Unknown"]}}}}`,
		`{"tags":[{"name":"A"}],"paths":{"/x":{"post":{"tags":["A"],"requestBody":{"content":{"text/xml":{}}}}}}}`} {
		if _, err := postman.Generate([]byte(text)); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

func FuzzGenerate(f *testing.F) {
	f.Add([]byte(`{"tags":[{"name":"A"}],"paths":{"/x/{y}":{"get":{"tags":["A"],"summary":"s","parameters":[{"name":"y","in":"path"}]}}}}`))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		made, err := postman.Generate(text)
		if err == nil && !json.Valid(made) {
			t.Fatalf("%s became %s", text, made)
		}
	})
}
