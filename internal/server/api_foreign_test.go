package server_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tributary/internal/account"
	"tributary/internal/db/dbtest"
)

// possessions are ids of every kind that one client has.
func possessions(t testing.TB, p *program) map[string]string {
	t.Helper()
	c := p.as(demoKey)
	op := c.submit(t, "/v1/transactions", p.sale(t, "owned", nil))
	result := c.outcome(t, op)
	if result["status"] != "SUCCESS" {
		t.Fatalf("the sale to be guessed at: %v", result["errors"])
	}
	company := example(t, "company", object{"meta": object{"country_code": "fr", "external_id": "owned-company"},
		"tax_information": object{"tax_number": "FR83404833048", "regime": "VAT"}})
	_, job := c.onboard(t, company)
	batch := c.want(t, 202, "POST", "/lookup/v2/batch-validations", example(t, "batch", nil)).json(t)["batch_id"].(string)
	single := c.want(t, 202, "POST", "/lookup/v2/single-validations",
		example(t, "single", nil)).json(t)["validation_id"].(string)
	p.inbox.await(t, batch, 1)
	series := c.want(t, 201, "POST", "/v1/series",
		object{"supplier_id": p.Demo().Suppliers["XX"], "kind": "CREDIT", "pattern": "OWN-{N:4}"}).json(t)["id"].(string)
	me := c.want(t, 200, "GET", "/v1/me", nil).json(t)
	ids := map[string]string{
		"operation": op, "transaction": "owned", "number": result["transaction_number"].(string),
		"company": p.Demo().Suppliers["XX"], "external id": "demo-XX",
		"job": job, "batch": batch, "single": single, "series": series, "client": me["client_id"].(string),
		"key":     me["key_id"].(string),
		"webhook": p.inbox.await(t, op, 1)[0].WebhookID,
		"cursor":  fmt.Sprint(c.want(t, 200, "GET", "/v1/webhooks/events?limit=1", nil).json(t)["next_cursor"]),
	}
	for _, a := range result["attachments"].([]any) {
		ids["document "+a.(object)["kind"].(string)] = a.(object)["resource_id"].(string)
	}
	return ids
}

// unknown is an id of the same form that nobody has.
func unknown(id string) string {
	b := make([]byte, 20+len(id))
	rand.Read(b) // never fails
	fresh := hex.EncodeToString(b)
	if len(id) == 36 && strings.Count(id, "-") == 4 {
		return id[:9] + fresh[:4] + id[13:15] + fresh[4:7] + id[18:24] + fresh[8:20]
	}
	if id[0] > '9' {
		fresh = "f" + fresh[1:] // nor may it be a number by chance, which is good for a limit
	}
	return fresh[:min(len(id), len(fresh))]
}

// engines runs a test against the program on SQLite, the one that all tests
// share, and on PostgreSQL.
func engines(t *testing.T, test func(t *testing.T, p *program)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, busy(t))
	})
	// As the owner of the tables statements alone keep clients apart; with roles every route works behind row security
	// too.
	for name, url := range map[string]func(testing.TB) string{
		"postgres": dbtest.MigratedURL,
		"roles":    func(t testing.TB) string { served, _ := dbtest.ServedURL(t); return served },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := start(true, url(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := p.stop(); err != nil {
					t.Error(err)
				}
			})
			test(t, p)
		})
	}
}

// TestHardCase24ForeignIdsAreLikeUnknownOnes calls every described operation with
// ids of every kind that another client has, and with ids that nobody has, in
// the path, in every parameter and in every member of the body that names
// something: status, headers and body must not tell them apart. It is made from
// the description alone, which is the table of routes: a new route is called
// without anybody thinking of it.
func TestHardCase24ForeignIdsAreLikeUnknownOnes(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, p *program) {
		a := &intrusion{p: p, ids: possessions(t, p)}
		routes := 0
		for path, methods := range describedBy(t, p).doc["paths"].(object) {
			for method, op := range methods.(object) {
				routes++
				a.everywhere(t, strings.ToUpper(method), path, op.(object))
			}
		}
		t.Logf("%d routes, %d kinds of ids, %d pairs of calls", routes, len(a.ids), a.pairs)
		if a.pairs < 50*len(a.ids) || routes < 30 {
			t.Errorf("only %d pairs of calls to %d routes: the test does not see the addresses", a.pairs, routes)
		}
		for kind, path := range map[string]string{"operation": "/v1/transactions/",
			"transaction": "/v1/transactions/history/", "company": "/onboarding/v2/companies/", "job": "/onboarding/v2/jobs/",
			"batch": "/lookup/v2/batch-validations/", "single": "/lookup/v2/single-validations/"} {
			p.as(demoKey).want(t, 200, "GET", path+a.ids[kind], nil) // the owner is served: the ids were right
		}
	})
}

// intrusion makes calls with ids of others.
type intrusion struct {
	p       *program
	ids     map[string]string
	pairs   int
	clients int
}

// everywhere puts ids into every place of an operation.
func (a *intrusion) everywhere(t *testing.T, method, path string, op object) {
	t.Helper()
	body := exampleOf(op)
	if strings.Contains(path, "{") && !strings.Contains(path, "{code}") && !strings.HasPrefix(path, "/docs/") {
		for _, format := range formatsOf(path) {
			for _, query := range []string{"", "?external-id=true", "?limit=1"} {
				if name := strings.Trim(query, "?=true1"); name != "" && !hasParameter(op, name) {
					continue
				}
				a.compare(t, "404 ", method, path+query, func(id string) (string, any) {
					return replaceParams(strings.ReplaceAll(path, "{format}", format), url.PathEscape(id)) + query, body
				})
			}
		}
		return
	}
	at := strings.NewReplacer("{code}", "XX", "{page}", "index.html").Replace(path)
	for _, param := range list(op["parameters"]) {
		if name := param.(object)["name"].(string); param.(object)["in"] == "query" {
			a.compare(t, "", method, path+"?"+name, func(id string) (string, any) {
				return at + "?" + name + "=" + url.QueryEscape(id), body
			})
		}
	}
	for _, member := range namingMembers(body, nil) {
		a.compare(t, "", method, path+" "+strings.Join(member, "."), func(id string) (string, any) {
			return at, withMember(body, member, id)
		})
	}
}

// whatIsNew is what differs between any two calls: ids and times.
var whatIsNew = regexp.MustCompile(
	`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|20\d\d-\d\d-\d\dT[0-9:.]+Z`)

// newcomer asks in one place as a client of his own: what is made of such ids becomes their own.
func (a *intrusion) newcomer(t *testing.T, want, method string,
	make func(id string) (path string, body any)) (ask func(id string) string) {
	t.Helper()
	a.clients++
	key, err := a.p.newClient(fmt.Sprintf("intruder-%d", a.clients), account.Rate{})
	if err != nil {
		t.Fatal(err)
	}
	a.p.inbox.trust(key)
	intruder := a.p.as(key)
	ask = func(id string) string {
		path, body := make(id)
		got := intruder.do(t, method, path, body)
		// the length is of a body that repeats the id
		for _, volatile := range []string{"X-Request-Id", "Date", "Content-Length", "Location"} {
			got.header.Del(volatile)
		}
		return fmt.Sprintf("%d %v %s", got.status, got.header,
			whatIsNew.ReplaceAllString(strings.ReplaceAll(string(got.body), id, "ID"), "ANY"))
	}
	if want == "" {
		ask(unknown("0123456789abcdef")) // the first may be the one that makes something
	}
	return ask
}

// compare asks in one place with ids of another client and with those of nobody.
func (a *intrusion) compare(t *testing.T, want, method, where string, make func(id string) (path string, body any)) {
	t.Helper()
	ask := a.newcomer(t, want, method, make)
	for kind, id := range a.ids {
		foreign, nobodys := ask(id), ask(unknown(id))
		// What the first calls made may be settled between the two, and a sale that is settled is answered differently:
		// whoever differs for that differs once.
		for again := 0; foreign != nobodys && again < 4; again++ {
			ask = a.newcomer(t, want, method, make)
			foreign, nobodys = ask(id), ask(unknown(id))
		}
		a.pairs++
		// a place in a list, and no secret: what it shows is the asker's own
		if kind == "cursor" && strings.HasSuffix(where, "?cursor") {
			if strings.HasPrefix(foreign, "200 ") && !strings.Contains(foreign, `"data":[]`) {
				t.Errorf("%s %s of another client shows\n%s", method, where, foreign)
			}
			continue
		}
		if foreign != nobodys || !strings.HasPrefix(foreign, want) {
			t.Errorf("%s %s with a foreign %s answers\n%s\nwith an unknown one\n%s", method, where, kind, foreign, nobodys)
		}
	}
}

func formatsOf(path string) []string {
	if strings.Contains(path, "{format}") {
		return []string{"pdf", "json"}
	}
	return []string{""}
}

func hasParameter(op object, name string) bool {
	return slices.ContainsFunc(list(op["parameters"]), func(p any) bool { return p.(object)["name"] == name })
}

// exampleOf is the body that the description shows.
func exampleOf(op object) any {
	content, ok := op["requestBody"].(object)
	if !ok {
		return nil
	}
	as, ok := content["content"].(object)["application/json"].(object)
	if !ok {
		return nil // bytes have none
	}
	return as["example"]
}

// namingMembers are the members of a body that name something: id, …_id, …_number.
func namingMembers(body any, at []string) (found [][]string) {
	switch v := body.(type) {
	case object:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			here := append(slices.Clone(at), name)
			if _, text := v[name].(string); text &&
				(name == "id" || strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_number")) {
				found = append(found, here)
			}
			found = append(found, namingMembers(v[name], here)...)
		}
	case []any:
		if len(v) > 0 {
			found = namingMembers(v[0], append(slices.Clone(at), "0"))
		}
	}
	return found
}

// withMember is a body with one member replaced.
func withMember(body any, at []string, id string) any {
	if len(at) == 0 {
		return id
	}
	switch v := body.(type) {
	case object:
		v = maps.Clone(v)
		v[at[0]] = withMember(v[at[0]], at[1:], id)
		return v
	case []any:
		v = slices.Clone(v)
		v[0] = withMember(v[0], at[1:], id)
		return v
	}
	return body
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// TestHardCase24ForeignReferencesFailLikeUnknownOnes submits with another
// client's supplier and original: accepted, then the failure of an unknown one.
func TestHardCase24ForeignReferencesFailLikeUnknownOnes(t *testing.T) {
	t.Parallel()
	engines(t, foreignReferences)
}

func foreignReferences(t *testing.T, p *program) {
	owner, stranger := p.as(demoKey), p.as(p.stranger)
	theirs := owner.submit(t, "/v1/transactions", p.sale(t, "shared-id", nil))
	owner.outcome(t, theirs)
	outcomes := map[string][]string{}
	try := func(what, path string, body object, secret string) {
		t.Helper()
		op := stranger.submit(t, path, body)
		r := stranger.outcome(t, op)
		var faults []string
		for _, f := range r["errors"].([]any) {
			f := f.(object)
			faults = append(faults, strings.ReplaceAll(fmt.Sprint(f["code"], " ", f["field"], " ", f["message"], " ",
				f["type"]), secret, "ID"))
		}
		outcomes[what] = append(outcomes[what], fmt.Sprint(r["status"], faults, r["supplier"].(object)["external_id"]))
	}
	foreign, nobodys := p.Demo().Suppliers["XX"], strings.Repeat("e", 32)
	try("supplier", "/v1/transactions", p.sale(t, "s-1", object{"supplier": object{"id": foreign}}), foreign)
	try("supplier", "/v1/transactions", p.sale(t, "s-2", object{"supplier": object{"id": nobodys}}), nobodys)
	for _, kind := range []string{"adjustment", "credit", "cancellation"} {
		for _, original := range []string{"shared-id", "nobodys-id"} {
			body := example(t, kind, object{"transaction_id": kind + "-of-" + original,
				"transaction_number": "F-" + kind + original, "reference_transaction_id": original})
			if kind == "adjustment" {
				body["supplier"] = object{"id": nobodys}
			}
			try(kind, "/v1/transactions/"+kind, body, original)
		}
	}
	for what, got := range outcomes {
		if got[0] != got[1] || !strings.HasPrefix(got[0], "FAILURE") || !strings.Contains(got[0], "_unknown") {
			t.Errorf("%s of another client: %s\nof nobody: %s", what, got[0], got[1])
		}
	}
	// One id in two clients is two transactions.
	own := stranger.submit(t, "/v1/transactions", p.sale(t, "shared-id", object{"supplier": object{"id": nobodys}}))
	if own == theirs {
		t.Error("another client's operation was answered")
	}
	stranger.outcome(t, own)
	if h := owner.want(t, 200, "GET", "/v1/transactions/history/shared-id", nil).json(t)["history"].([]any); len(h) != 1 {
		t.Errorf("the owner's history has %v", h)
	}
	if page := stranger.want(t, 200, "GET", "/v1/transactions?supplier_id="+foreign,
		nil).json(t)["data"].([]any); len(page) != 1 || page[0].(object)["transaction_id"] != "s-1" {
		t.Errorf("the list by a foreign supplier shows %v", page)
	}
}
